"""Random histories of a table by both clients: every number that a view shows is one that SQL on the reference gives."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.diff.diff import Diff
from ducklake_lab.magics.questions import Questions
from ducklake_lab.widgets import charts
from ducklake_lab.widgets import diff as diff_view
from ducklake_lab.widgets import schema as schema_view
from ducklake_lab.widgets.file_browser import FileBrowser
from ducklake_lab.widgets.html import counted, size
from ducklake_lab.widgets.result import summary as footer
from ducklake_lab.widgets.schema_browser import SchemaBrowser
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.summary import summarize
from ducklake_lab.widgets.table_view import TableBrowser
from tests.interop.comparing import attach, detach
from tests.memory import FOLDER
from tests.property.file_numbers import Files, check_statistics, list_files

pytestmark = pytest.mark.sampled(3)


MAINTENANCE = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
)
#: A column with NULL and NaN, of the key `i`.
F = "CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'nan' ELSE i / 4 END::DOUBLE"
#: By row id: what the row holds.
Rows = dict[int, tuple[int, int]]


class Step(NamedTuple):
    """A statement, and which client runs it."""

    ours: bool
    sql: str


class Truth(NamedTuple):
    """Rows that the reference reads from a new snapshot; None where it lacks the table."""

    rows: Rows | None
    added: int
    removed: int


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """A table `t` with a key `k`, and changes and maintenance of it."""
    steps = [Step(draw(st.booleans()), f"CREATE TABLE t AS SELECT i AS k, 0 AS v, {F} AS f FROM range(60) r(i)")]
    if draw(st.booleans()):
        steps.append(Step(draw(st.booleans()), "CALL lake.set_option('write_deletion_vectors', true)"))
    for number in range(draw(st.integers(4, 10))):
        low = draw(st.integers(0, 80))
        where = f"WHERE k BETWEEN {low} AND {low + draw(st.sampled_from([0, 2, 25]))}"
        match draw(st.sampled_from(["insert"] * 3 + ["delete"] * 4 + ["update"] * 3 + ["maintain"] * 4 + ["expire"])):
            case "insert":
                count = draw(st.sampled_from([1, 4, 30]))
                sql = f"INSERT INTO t SELECT i, {number}, {F} FROM range({low}, {low + count}) r(i)"
            case "delete":
                sql = f"DELETE FROM t {where}"
            case "update":
                sql = f"UPDATE t SET v = v + 1 {where}"
            case "expire":
                sql = "CALL ducklake_expire_snapshots('lake', versions => [{}])"
            case _:
                sql = draw(st.sampled_from(MAINTENANCE))
        steps.append(Step(draw(st.booleans()), sql))
    if draw(st.booleans()):
        steps.append(Step(draw(st.booleans()), "DROP TABLE t"))
    return steps


def one(reference: duckdb.DuckDBPyConnection, sql: str) -> Any:
    found = reference.execute(sql).fetchone()
    assert found is not None
    return found[0]


def observe(reference: duckdb.DuckDBPyConnection, known: dict[int, Truth], sql: str) -> None:
    """Adds what the snapshots that a statement made hold."""
    ids = [number for (number,) in reference.execute("SELECT snapshot_id FROM lake.snapshots() ORDER BY 1").fetchall()]
    for number in ids:
        if number in known:
            continue
        before = known[number - 1].rows if number - 1 in known else None
        exists = reference.execute(
            "SELECT 1 FROM __ducklake_metadata_lake.ducklake_table WHERE table_name = 't' "
            f"AND begin_snapshot <= {number} AND (end_snapshot IS NULL OR end_snapshot > {number})"
        ).fetchone()
        if exists is None:
            known[number] = Truth(None, 0, len(before or ()))
            continue
        rows = read(reference, number)
        if sql in MAINTENANCE:
            # the feed lists rewritten rows, which are the same as before
            assert rows == before, (number, sql)
            known[number] = Truth(rows, 0, 0)
            continue
        known[number] = Truth(rows, *(listed(reference, kind, number) for kind in ("insertions", "deletions")))
    for number in known.keys() - set(ids):
        del known[number]
    if sql.startswith(("DELETE", "UPDATE")) and has_vectors(reference):
        # the reference takes a deletion vector that it replaces out of the catalog, and out of older snapshots with it
        for number, truth in known.items():
            if truth.rows is not None:
                removed = listed(reference, "deletions", number) if truth.removed else 0
                known[number] = truth._replace(rows=read(reference, number), removed=removed)


def has_vectors(reference: duckdb.DuckDBPyConnection) -> bool:
    """Whether the lake writes deletion vectors."""
    options = "__ducklake_metadata_lake.ducklake_metadata"
    return one(reference, f"SELECT count(*) FROM {options} WHERE key = 'write_deletion_vectors' AND value = 'true'") > 0


def read(reference: duckdb.DuckDBPyConnection, number: int) -> Rows:
    """The rows that the reference reads of a snapshot."""
    found = reference.execute(f"SELECT rowid, k, v FROM t AT (VERSION => {number})").fetchall()
    return {row_id: (k, v) for row_id, k, v in found}


def listed(reference: duckdb.DuckDBPyConnection, kind: str, number: int) -> int:
    """Rows that the reference's change feed lists of a snapshot."""
    return int(one(reference, f"SELECT count(*) FROM ducklake_table_{kind}('lake', 'main', 't', {number}, {number})"))


def run(steps: list[Step], uri: str, session: dl.Session, reference: duckdb.DuckDBPyConnection) -> dict[int, Truth]:
    known: dict[int, Truth] = {}
    for step in steps:
        # a snapshot in the middle, whose neighbours stay
        sql = step.sql.format(sorted(known)[len(known) // 2]) if "versions" in step.sql and len(known) > 3 else step.sql
        if "{}" in sql:
            continue
        if step.ours:
            session.sql(sql)
        attach(reference, uri)
        try:
            if not step.ours:
                reference.execute(sql)
            observe(reference, known, sql)
        finally:
            detach(reference)
    return known


def unpacked(stream: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.ipc.open_stream(stream).read_all().to_pylist()
    return rows


def signs(html: str) -> list[int]:
    """The numbers of rows in the cells of a listing: `+1,234` and `−5`."""
    return [int(text.replace(",", "")) for text in re.findall(r"[+−]([\d,]+)", html)]


def check_history(session: dl.Session, known: dict[int, Truth], files: dict[int, Files]) -> None:
    browser = SnapshotBrowser(session.snapshots())
    shown = {row["id"]: row for row in unpacked(browser.overview)}
    assert shown.keys() == known.keys() and browser.total == len(known)
    for number, truth in known.items():
        removed = {truth.removed}
        if number - 1 not in known and number > 0:
            removed.add(None)  # the catalog lacks what an expired snapshot held
        assert shown[number]["added"] == truth.added, number
        assert shown[number]["removed"] in removed, number
    for entry in session.snapshots(last=2):
        row = shown[entry.info.snapshot_id]
        assert (entry.rows_added, entry.rows_removed) == (row["added"], row["removed"])
    nothing = Files({}, {})
    for number in known:
        if number - 1 not in known and number > 0:
            continue  # the reference lists no files of a snapshot that expired
        before, after = (files.get(at, nothing).sizes() for at in (number - 1, number))
        moved = (shown[number]["bytes_added"], shown[number]["bytes_removed"])
        added = sum(after[path] for path in after.keys() - before.keys())
        gone = sum(before[path] for path in before.keys() - after.keys())
        assert moved == (added, gone), number
    bars: dict[tuple[int, bool], int] = {}
    for trace in session.plot.history().data:
        for number, y in zip(trace.x, trace.y, strict=True):
            bars[number, y > 0] = bars.get((number, y > 0), 0) + abs(y)
    drawn = {(number, up): rows for (number, up), rows in bars.items() if rows}
    listed = {(n, up): shown[n]["added" if up else "removed"] for n in known for up in (True, False)}
    assert drawn == {key: count for key, count in listed.items() if count}


def check_snapshot(
    session: dl.Session, number: int, rows: Rows, files: Files, reference: duckdb.DuckDBPyConnection
) -> None:
    table = session.table("t", at=number)
    inlined = session.sql(f"SELECT count(*) FROM t AT (VERSION => {number}) WHERE filename NOT LIKE '%.parquet'")
    kept = inlined.fetchall()[0][0]
    # files
    listing = table.files()
    browser = FileBrowser(listing)
    numbers = unpacked(browser.overview)
    assert {entry.path for entry in listing} == files.data.keys()
    assert sum(row["size"] for row in numbers) == sum(files.data.values())
    assert sum(row["rows"] - row["deleted"] for row in numbers) == len(rows) - kept
    live = session.sql(
        f"SELECT filename, count(*) FROM t AT (VERSION => {number}) WHERE filename LIKE '%.parquet' GROUP BY ALL"
    )
    assert {e.path: e.rows - e.deleted for e in listing if e.rows > e.deleted} == dict(live.fetchall())
    check_statistics(table, files, reference)
    facts = browser.still()
    assert f"{counted(sum(entry.rows for entry in listing), 'row')}" in facts
    (partition,) = table.partitions() or [{"files": 0, "rows": 0, "deleted": 0, "bytes": 0}]
    assert partition["rows"] - partition["deleted"] == len(rows) - kept
    assert (partition["files"], partition["bytes"]) == (len(files.data), sum(files.data.values()))
    # schemas and tables
    tree = schema_view.of_catalog("lake", *session.catalog(at=number))
    schemas = SchemaBrowser(tree)
    shown = f"{counted(len(rows), 'row')} · {size(sum(files.data.values()))}"
    assert schemas.nodes[0][1][0][3].startswith(shown) and schemas.note.endswith(shown)
    assert f"{counted(len(rows), 'row')}" in schemas.still()
    (info,) = session.tables(at=number)
    assert (info.record_count, info.file_size_bytes) == (len(rows), sum(files.data.values()))
    assert summarize("lake", number, "lake", [info]).rows == len(rows)
    assert f"{len(rows):,} rows · {sum(files.data.values()):,} bytes" in table.describe().note
    # rows
    assert TableBrowser(table.view()).passing == len(rows) == table.view().whole_rows
    result = session.sql(f"SELECT * FROM t AT (VERSION => {number})")
    assert footer(result, 10_000).startswith(counted(len(rows), "row"))
    if files.data:
        assert f"in process · {len(files.data)} of {counted(len(files.data), 'file')}, " in footer(result, 10_000)
    keys = [k for k, _ in rows.values()]
    counts = session.sql(f"SELECT count(*), count(k), min(k), max(k) FROM t AT (VERSION => {number})").fetchall()
    assert counts == [(len(keys), len(keys), min(keys, default=None), max(keys, default=None))]


def rows_of_files(reference: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int]]:
    """Return the number of rows written to each of the newest files, and of rows left, by path."""
    left = dict(reference.execute("SELECT filename, count(*) FROM t GROUP BY ALL").fetchall())
    written = reference.execute(
        "SELECT l.data_file, f.record_count FROM ducklake_list_files('lake', 't') l "
        "JOIN __ducklake_metadata_lake.ducklake_data_file f ON l.data_file LIKE '%' || f.path AND f.end_snapshot IS NULL"
    ).fetchall()
    return {path: (records, left.get(path, 0)) for path, records in written}


def check_newest(session: dl.Session, rows: Rows, files: dict[str, tuple[int, int]]) -> None:
    worn = [(records, live) for records, live in files.values() if records - live >= 0.2 * records and records > live]
    health = session.health()
    found = [one for one in health if "rewrite_data_files" in one.call]
    assert len(found) == bool(worn)
    if worn:
        total = sum(records for records, _ in worn)
        gone = total - sum(live for _, live in worn)
        assert found[0].problem.startswith(f"{len(worn):,} of {len(files):,} files")
        assert (
            found[0].effect
            == f"{len(worn):,} files of {total:,} rows would be written again without {gone:,} deleted ones"
        )
        assert [found[0].problem, found[0].effect, found[0].call] in FileBrowser(
            session.table("t").files(), health
        ).findings
    asked = Questions(lambda: {"": session})
    (table,) = asked.ask("tree", {"alias": "lake"})["schemas"][0]["tables"]
    assert (table["rows"], table["files"]) == (len(rows), len(files))
    listed = asked.ask("files", {"alias": "lake", "schema": "main", "table": "t"})["files"]
    assert sum(file["rows"] for file in listed) == sum(live for _, live in files.values())
    (estimated,) = session.sql("SELECT estimated_size FROM duckdb_tables() WHERE database_name = 'lake'").fetchall()
    assert estimated == (len(rows),)


def check_figure(diff: Diff, counts: tuple[int, ...], before: Rows, after: Rows) -> None:
    """The bars of a diff: how many rows changed, and their values of `k` and `v` before and after."""
    inserted, deleted, updated, _ = counts
    figure = diff.plot()
    bars = figure.data[0]
    assert dict(zip(bars.y, bars.x, strict=True)) == {
        "− deleted": deleted,
        "+ inserted": inserted,
        "→ updated": updated,
    }
    changed = [row_id for row_id in before.keys() | after.keys() if before.get(row_id) != after.get(row_id)]
    drawn = sorted((column for column in diff.columns if column.histogram), key=lambda column: -column.share)
    for place, column in enumerate(drawn, start=2):
        traces = {trace.name: trace for trace in figure.data[1:] if trace.xaxis == f"x{place}"}
        assert traces, column.name
        if column.name == "f":
            continue  # NULL and NaN are in no bin
        index = "kv".index(column.name)
        if column.histogram is not None and column.histogram.numeric:
            all_values = [rows[row_id][index] for rows in (before, after) for row_id in changed if row_id in rows]
            ends = f">{min(all_values)}</text>", f">{max(all_values)}</text>"
            assert charts.histogram(column.name, column.histogram).count("</text>") == 2
            assert all(end in charts.histogram(column.name, column.histogram) for end in ends), column.name
        for name, rows in (("before", before), ("after", after)):
            values = sorted(rows[row_id][index] for row_id in changed if row_id in rows)
            trace = traces.get(name)
            bins = dict(zip(trace.customdata, trace.y, strict=True)) if trace is not None else {}
            assert sum(bins.values()) == len(values), column.name
            if column.histogram is not None and column.histogram.numeric:
                edges = sorted((float(edge) for edge in bins), reverse=True)
                found = Counter(f"{next(edge for edge in edges if edge <= value):.6g}" for value in values)
            else:
                found = Counter(map(str, values))
            assert found == {label: count for label, count in bins.items() if count}, column.name


def check_diff(diff: Diff, before: Rows, after: Rows, old: Files, new: Files, known: dict[int, Truth]) -> None:
    summary = diff.summary
    both = before.keys() & after.keys()
    updated = sum(before[row_id] != after[row_id] for row_id in both)
    expected = (len(after.keys() - before.keys()), len(before.keys() - after.keys()), updated, len(both) - updated)
    assert (summary.inserted, summary.deleted, summary.updated, summary.unchanged) == expected
    files = diff.files
    assert (files.added, files.removed, files.unchanged) == (
        len(new.data.keys() - old.data.keys()),
        len(old.data.keys() - new.data.keys()),
        len(new.data.keys() & old.data.keys()),
    )
    assert files.bytes_added == sum(bytes_ for path, bytes_ in new.data.items() if path not in old.data)
    assert files.delete_files_added == len(new.deletes.keys() - old.deletes.keys())
    check_figure(diff, expected, before, after)
    assert diff.end is not None
    between = [number for number in known if diff.start.snapshot_id < number <= diff.end.snapshot_id]
    listed = {entry.info.snapshot_id: entry for entry in diff.history}
    assert listed.keys() <= set(between)
    if all(number - 1 in known for number in between):
        counts = [(known[n].added, known[n].removed) for n in between if n in listed]
        assert [(entry.rows_added, entry.rows_removed) for entry in diff.history] == counts
        assert sum(added - removed for added, removed in counts) == len(after) - len(before)
        html = diff_view._history(diff.history)
        assert signs(html.rpartition("</svg>")[2]) == [n for pair in counts for n in pair if n] if html else True


#: Delete files of several snapshots, beside inlined deletions, in merged and rewritten files.
EVERYTHING = [
    f"CREATE TABLE t AS SELECT i AS k, 0 AS v, {F} AS f FROM range(60) r(i)",
    "UPDATE t SET v = v + 1 WHERE k BETWEEN 0 AND 25",
    "DELETE FROM t WHERE k BETWEEN 20 AND 45",
    "DELETE FROM t WHERE k = 50",
    f"INSERT INTO t SELECT i, 1, {F} FROM range(70, 74) r(i)",
    f"INSERT INTO t SELECT i, 2, {F} FROM range(72, 75) r(i)",
    "DELETE FROM t WHERE k BETWEEN 72 AND 73",
    "CALL ducklake_flush_inlined_data('lake')",
    f"INSERT INTO t SELECT i, 3, {F} FROM range(0, 30) r(i)",
    f"INSERT INTO t SELECT i, 4, {F} FROM range(5, 35) r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "DELETE FROM t WHERE k BETWEEN 5 AND 25",
    "UPDATE t SET v = v + 1 WHERE k = 0",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1)",
    "DELETE FROM t WHERE k BETWEEN 26 AND 40",
    "CALL ducklake_expire_snapshots('lake', versions => [{}])",
]


_DRAWN = settings(
    max_examples=3 * int(os.environ.get("DUCKLAKE_LAB_EXAMPLES", "1")),
    # histories are short as they are, and shrinking one takes minutes
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_every_number_is_one_of_the_reference(number: int, reference: duckdb.DuckDBPyConnection) -> None:
    check = _DRAWN(given(steps=histories())(lambda steps: _check(steps, reference)))
    # the histories of a number are the same each time
    (check if "DUCKLAKE_LAB_EXAMPLES" in os.environ else seed(number)(check))()


@pytest.mark.parametrize("by_turns", [False, True])
def test_a_history_of_everything(by_turns: bool, reference: duckdb.DuckDBPyConnection) -> None:
    statements = [*EVERYTHING, "DROP TABLE t"] if by_turns else EVERYTHING
    _check([Step(not by_turns or number % 2 == 0, sql) for number, sql in enumerate(statements)], reference)


def _check(steps: list[Step], reference: duckdb.DuckDBPyConnection) -> None:
    """Each number of a history is one of the reference."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    uri = f"ducklake:{folder}/lake.ducklake"
    try:
        with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:
            known = run(steps, uri, session, reference)
            there = {number: truth.rows for number, truth in known.items() if truth.rows is not None}
            attach(reference, uri)
            files = {number: list_files(reference, number) for number in there}
            newest = rows_of_files(reference) if max(known) in there else {}
            detach(reference)
            check_history(session, known, files)
            for number, rows in there.items():
                check_snapshot(session, number, rows, files[number], reference)
            numbers = sorted(there)
            for start, end in {*pairwise(numbers), (numbers[0], numbers[-1])}:
                found = session.table("t", at=start).diff(start, end)
                check_diff(found, there[start], there[end], files[start], files[end], known)
            if max(known) in there:
                check_newest(session, there[max(known)], newest)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

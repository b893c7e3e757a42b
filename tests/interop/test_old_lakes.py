"""Lakes of older spec versions, written by the clients of their time: read as they are, migrated as the reference does."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog.duckdb_files import FileConnection
from tests.interop.comparing import attach, detach, metadata
from tests.old_lakes.make import KINDS, unpack, with_catalog
from tests.quack import Servers

pytestmark = pytest.mark.sampled(5)

OLD = ("0.1", "0.2", "0.3", "0.4")
READABLE = (*OLD, "1.1-dev1")


def uri(folder: Path, kind: str) -> str:
    return f"ducklake:{'sqlite:' if kind == 'sqlite' else ''}{folder}/{kind}.catalog"


def rows_at(session: dl.Session, columns: dict[str, list[Any]], snapshot: str) -> dict[str, list[list[str]]]:
    """Rows of some columns of each table, in the order of their ids, by one statement."""
    parts = []
    for table, names in columns.items():
        row = ", ".join(f"'c{at}': \"{name}\"" for at, name in enumerate(names))
        parts.append(f"(SELECT list({{{row}}} ORDER BY rowid) FROM {table} AT (VERSION => {snapshot}))")
    if not parts:
        return {}
    (found,) = session.sql(f"SELECT {', '.join(parts)}", engine="duckdb").fetchall()
    texts = [[[repr(value) for value in row.values()] for row in rows or ()] for rows in found]
    return dict(zip(columns, texts, strict=True))


def check_rows(session: dl.Session, expected: dict[str, dict[str, dict[str, list[object]]]]) -> None:
    compared = 0
    for snapshot, tables in expected.items():
        found = {f"{info.schema}.{info.table.name}" for info in session.tables(at=int(snapshot))}
        assert found == set(tables), snapshot
        rows = rows_at(session, {table: content["columns"] for table, content in tables.items()}, snapshot)
        for table, content in tables.items():
            assert rows[table] == content["rows"], (snapshot, table)
            compared += len(content["rows"])
    assert compared > 500


def digest(folder: Path, kind: str) -> str:
    return hashlib.sha256((folder / f"{kind}.catalog").read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", READABLE)
def test_is_read_at_every_snapshot_and_not_written(spec: str, kind: str, tmp_path: Path) -> None:
    expected = unpack(spec, kind, tmp_path)
    before = digest(tmp_path, kind)
    with dl.connect(uri(tmp_path, kind), alias="lake") as session:
        check_rows(session, expected)
        (parted,) = [info for info in session.tables() if info.table.name == "parted"]
        assert parted.table.comment == "by year and part"
        assert [(key.column_id, key.transform) for key in parted.table.partition.fields] == [
            (2, "year"),
            (1, "identity"),
        ]
        assert parted.record_count == 12
        assert len(session.snapshots()) == len(expected)
        for statement in ("INSERT INTO notes VALUES (9, 'x', NULL, 1, NULL)", "CREATE TABLE x (i INTEGER)"):
            with pytest.raises(dl.CatalogVersionError, match=f"version {spec}.*automatic_migration"):
                session.sql(statement)
    assert digest(tmp_path, kind) == before
    assert {path.name for path in tmp_path.iterdir()} <= {
        f"{k}.{end}" for k in KINDS for end in ("catalog", "files", "json")
    }


@pytest.mark.parametrize("spec", OLD[:-1])  # 0.4 has the tables of 1.0: nothing has to be shown
def test_a_duckdb_file_is_shown_once_for_each_statement(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack(spec, "duckdb", tmp_path)
    shown: list[str] = []
    sent: list[str] = []
    prepare = FileConnection.prepare

    def prepared(connection: FileConnection, statements: str) -> None:
        shown.append(statements)
        prepare(connection, statements)

    def before(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    monkeypatch.setattr(FileConnection, "prepare", prepared)
    with dl.connect(uri(tmp_path, "duckdb"), alias="lake", engine="duckdb") as session:
        session.sql("FROM notes")
        shown.clear()
        sa.event.listen(sa.Engine, "before_cursor_execute", before)
        try:
            session.sql("FROM notes AT (VERSION => 20)")
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", before)
    assert len(shown) == 1
    assert 0 < len(sent) <= 25


def content(folder: Path, kind: str) -> dict[str, list[tuple[Any, ...]]]:
    """All tables of a catalog as they are, with their definitions."""
    found: dict[str, list[tuple[Any, ...]]] = {}

    def read(execute: Callable[[str], list[tuple[Any, ...]]]) -> None:
        listing = "duckdb_tables()" if kind == "duckdb" else "sqlite_master WHERE type = 'table'"
        name = "table_name" if kind == "duckdb" else "name"
        for table, definition in execute(f"SELECT {name}, sql FROM {listing}"):
            found[table] = [(definition,), *sorted(execute(f'SELECT * FROM "{table}"'), key=repr)]

    with_catalog(folder, kind, read)
    return found


@pytest.mark.parametrize("spec", OLD)
def test_is_migrated_as_the_reference_does(spec: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    unpack(spec, "duckdb", tmp_path)
    theirs = tmp_path / "theirs.catalog"
    shutil.copy(tmp_path / "duckdb.catalog", theirs)
    reference.execute(f"ATTACH 'ducklake:{theirs}' AS lake (AUTOMATIC_MIGRATION true)")
    reference.execute("DETACH lake")
    with duckdb.connect(str(theirs)) as catalog:
        # it forgets the last snapshot of a merged file's rows, and shows them all from the first on
        catalog.execute("UPDATE ducklake_data_file SET partial_max = 11 WHERE begin_snapshot = 8")
    dl.connect(uri(tmp_path, "duckdb"), alias="lake", automatic_migration=True).close()
    expected, found = metadata(reference, f"ducklake:{theirs}"), metadata(reference, uri(tmp_path, "duckdb"))
    assert found.keys() == expected.keys()
    for table, rows in expected.items():
        assert found[table] == rows, table


#: Snapshot -> rows that it inserted into a table whose files were merged later.
MERGED = {8: 3, 9: 1, 10: 20, 11: 15}


def rows_by_snapshot(session: dl.Session) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Count the rows of MERGED's table that each snapshot inserted: by the feed, `snapshot_id` and the history."""
    feed = session.sql(
        "SELECT snapshot_id, count(*) FROM ducklake_table_changes('lake', 'main', 'numbers', 7, 12) GROUP BY ALL"
    )
    ids = session.sql("SELECT snapshot_id, count(*) FROM numbers AT (VERSION => 12) GROUP BY ALL")
    history = {e.info.snapshot_id: e.rows_added for e in session.snapshots() if 7 <= e.info.snapshot_id <= 12}
    return dict(feed.fetchall()), dict(ids.fetchall()), {number: rows for number, rows in history.items() if rows}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", OLD)
def test_merged_files_keep_the_snapshots_of_their_rows(
    spec: str, kind: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    expected = unpack(spec, kind, tmp_path)
    with dl.connect(uri(tmp_path, kind), alias="lake", engine="duckdb") as session:
        assert rows_by_snapshot(session) == (MERGED, MERGED, MERGED)
    with dl.connect(uri(tmp_path, kind), alias="lake", engine="duckdb", automatic_migration=True) as session:
        assert rows_by_snapshot(session) == (MERGED, MERGED, MERGED)
        check_rows(session, expected)
    attach(reference, uri(tmp_path, kind))
    for snapshot, rows in MERGED.items():
        query = f"SELECT count(*) FROM ducklake_table_insertions('lake', 'main', 'numbers', {snapshot}, {snapshot})"
        assert reference.execute(query).fetchall() == [(rows,)]
    detach(reference)


@pytest.mark.parametrize("spec", ["0.2", "0.3"])
def test_files_have_the_snapshots_of_their_rows_where_the_catalog_lost_them(
    spec: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    unpack(spec, "duckdb", tmp_path)
    reference.execute(f"ATTACH '{uri(tmp_path, 'duckdb')}' AS lake (AUTOMATIC_MIGRATION true)")
    feed = "SELECT snapshot_id, count(*) FROM ducklake_table_changes('lake', 'main', 'numbers', 7, 12) GROUP BY ALL"
    ids = "SELECT snapshot_id, count(*) FROM lake.numbers AT (VERSION => 12) GROUP BY ALL"
    assert [dict(reference.execute(query).fetchall()) for query in (feed, ids)] == [MERGED, MERGED]
    reference.execute("DETACH lake")
    with dl.connect(uri(tmp_path, "duckdb"), alias="lake", engine="duckdb") as session:
        assert [dict(session.sql(query).fetchall()) for query in (feed, ids)] == [MERGED, MERGED]


#: What a column is called later, and the default of rows older than a column.
RENAMED, DEFAULTS = {"s": "label"}, {"k": "42"}
States = dict[str, dict[str, dict[str, list[Any]]]]


def feed_of_states(expected: States, tables: tuple[str, ...], end: int) -> list[list[str]]:
    """The change feed up to a snapshot, of one table under all its names, from what its writer read at each."""
    columns = next(expected[str(end)][table]["columns"] for table in tables if table in expected[str(end)])
    found: list[list[str]] = []
    before: dict[str, list[str]] = {}
    for at in range(end + 1):
        content = next((expected[str(at)][table] for table in tables if table in expected[str(at)]), None)
        if content is None:
            continue
        names = [RENAMED.get(name, name) if RENAMED.get(name) in columns else name for name in content["columns"]]
        now: dict[str, list[str]] = {}
        for row in content["rows"]:
            values = dict(zip(names, row, strict=True))
            now[row[0]] = [values[name] if name in values else DEFAULTS[name] for name in columns[1:]]
        for kind, rows, others in (("insert", now, before), ("delete", before, now)):
            found += [[str(at), row_id, repr(kind), *row] for row_id, row in rows.items() if row_id not in others]
        for row_id in now.keys() & before.keys():
            if now[row_id] != before[row_id]:
                found.append([str(at), row_id, "'update_preimage'", *before[row_id]])
                found.append([str(at), row_id, "'update_postimage'", *now[row_id]])
        before = now
    return sorted(found)


@pytest.mark.parametrize(
    ("spec", "by_reference"), [("0.2", True), ("0.3", True), ("0.3", False), ("0.4", True), ("0.4", False)]
)
def test_once_migrated_every_state_and_the_feed_of_every_range_are_right(
    spec: str, by_reference: bool, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    expected = unpack(spec, "duckdb", tmp_path)
    place = uri(tmp_path, "duckdb")
    if by_reference:
        reference.execute(f"ATTACH '{place}' AS lake (AUTOMATIC_MIGRATION true); USE lake")
    else:
        dl.connect(place, automatic_migration=True).close()
        attach(reference, place)
    ends = [(int(number), table) for number, tables in expected.items() for table in tables]
    states = [f"SELECT rowid, snapshot_id, * FROM {table} AT (VERSION => {end})" for end, table in ends]
    # about the merge and the changes after it, and the whole history
    ranges = [
        (s, end, table)
        for end, table in ends
        if end in (8, 10, 13, 14, 15, ends[-1][0])
        for s in (0, 9, end)
        if s <= end
    ]
    inserted = [
        "SELECT snapshot_id, rowid, * FROM ducklake_table_insertions('lake', '{}', '{}', {}, {})".format(
            *table.split("."), start, end
        )
        for start, end, table in ranges
    ]
    theirs = {query: texts(reference.execute(query).fetchall()) for query in states + inserted}
    detach(reference)
    with dl.connect(place, alias="lake", engine="duckdb") as session:
        assert {query: texts(session.sql(query).fetchall()) for query in theirs} == theirs
        for (start, end, table), query in zip(ranges, inserted, strict=True):
            names = ("main.numbers", "main.figures") if table in ("main.numbers", "main.figures") else (table,)
            feed = [row for row in feed_of_states(expected, names, end) if int(row[0]) >= start]
            if by_reference and spec != "0.4":  # it forgets the snapshots of a merged file's rows
                feed = [row for row in feed if row[2] == "'delete'" or "update" in row[2]]
                updated = {(row[0], row[1]) for row in feed if "update" in row[2]}
                rest = [row for row in theirs[query] if (row[0], row[1]) not in updated]
                feed = sorted([*feed, *([*row[:2], "'insert'", *row[2:]] for row in rest)])
            found = session.table(table, at=end).changes(start, end)
            assert texts(found.fetchall()) == feed, (table, start, end)


def texts(rows: list[tuple[Any, ...]]) -> list[list[str]]:
    return sorted([repr(value) for value in row] for row in rows)


@pytest.mark.parametrize("info", ["2:1|9:4|5:39", "partial_max:9", "what is this:", "x:5"])
def test_the_last_snapshot_of_a_merged_file_is_the_highest(info: str, tmp_path: Path) -> None:
    unpack("0.3", "sqlite", tmp_path)
    change = f"UPDATE ducklake_data_file SET partial_file_info = '{info}' WHERE data_file_id = 8"
    with_catalog(tmp_path, "sqlite", lambda execute: execute(change) and None)
    for migrated in (False, True):
        with dl.connect(uri(tmp_path, "sqlite"), alias="lake", automatic_migration=migrated) as session:
            files = session.table("figures").files()
        (merged,) = [file.data_file for file in files if file.data_file.data_file_id == 8]
        assert merged.partial_max == (9 if "9" in info else None), migrated


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", OLD)
def test_once_migrated_is_read_by_both_and_written(
    spec: str, kind: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    expected = unpack(spec, kind, tmp_path)
    place = uri(tmp_path, kind)
    with dl.Session(engine="duckdb") as session:
        session.sql(f"ATTACH '{place}' AS lake (AUTOMATIC_MIGRATION true); USE lake")
        session.sql("INSERT INTO lake.notes VALUES (9, 'new', true, 2, NULL); CREATE TABLE lake.made (i INTEGER)")
        last = session.current_snapshot().snapshot_id
    attach(reference, place)
    assert reference.execute("SELECT s FROM notes WHERE i = 9").fetchall() == [("new",)]
    reference.execute("INSERT INTO made VALUES (1); INSERT INTO figures VALUES (77, 'theirs', 1)")
    theirs = reference.execute(f"SELECT rowid, * FROM figures AT (VERSION => {last}) ORDER BY rowid").fetchall()
    detach(reference)
    with dl.connect(place, alias="lake", engine="duckdb") as session:
        newest = max(expected, key=int)
        rows = rows_at(session, {table: content["columns"] for table, content in expected[newest].items()}, newest)
        for table, content in expected[newest].items():
            assert rows[table] == content["rows"], table
            if table == "main.figures":
                assert [[repr(value) for value in row] for row in theirs] == content["rows"]
        assert session.sql("SELECT label FROM figures WHERE i = 77").fetchall() == [("theirs",)]
        assert session.current_snapshot().snapshot_id == last + 2


@pytest.mark.parametrize("spec", OLD[:-1])  # from 0.4 on, rows are inlined in SQLite too, as other types than here
def test_is_read_and_migrated_on_postgres(
    spec: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection, postgres: Callable[[], str]
) -> None:
    expected = unpack(spec, "sqlite", tmp_path)  # nothing inlined: those tables' types would not be PostgreSQL's
    with_catalog(tmp_path, "sqlite", _drop_inlined)
    place = postgres()
    reference.execute(f"ATTACH 'host={place}' AS pg (TYPE postgres)".replace("host=dbname", "dbname"))
    reference.execute(f"ATTACH '{tmp_path}/duckdb.catalog' AS original (READ_ONLY)")
    reference.execute(f"ATTACH '{tmp_path}/sqlite.catalog' AS source (TYPE sqlite)")
    names = reference.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'source'").fetchall()
    for (name,) in names:
        reference.execute(f"CREATE TABLE pg.{name} AS SELECT * FROM original.{name} LIMIT 0")
        reference.execute(f"INSERT INTO pg.{name} SELECT * FROM source.{name}")
    for name in ("original", "source", "pg"):
        reference.execute(f"DETACH {name}")
    with dl.connect(f"ducklake:postgres:{place}", alias="lake", engine="duckdb") as session:
        check_rows(session, expected)
    with dl.connect(f"ducklake:postgres:{place}", alias="lake", automatic_migration=True) as session:
        session.sql("INSERT INTO notes VALUES (9, 'new', true, 2, NULL)")
    attach(reference, f"ducklake:postgres:{place}")
    assert reference.execute("SELECT s FROM notes WHERE i = 9").fetchall() == [("new",)]
    detach(reference)


def _drop_inlined(execute: Callable[[str], list[tuple[object, ...]]]) -> None:
    for (name,) in execute("SELECT table_name FROM ducklake_inlined_data_tables"):
        execute(f'DROP TABLE IF EXISTS "{name}"')
    execute("DELETE FROM ducklake_inlined_data_tables")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", OLD[:-1])  # the last step changes one value: there is nothing in its way
def test_a_migration_that_fails_leaves_the_catalog_as_it_was(spec: str, kind: str, tmp_path: Path) -> None:
    unpack(spec, kind, tmp_path)
    # what a step is about to make exists already, half way through for the earlier versions
    obstacle = "ALTER TABLE ducklake_delete_file ADD COLUMN partial_max BIGINT"
    with_catalog(tmp_path, kind, lambda execute: execute(obstacle) and None)
    before = content(tmp_path, kind)
    with pytest.raises(
        dl.CatalogError, match=rf"could not be migrated from version {spec} to 1\.0; it was left as it was"
    ):
        dl.connect(uri(tmp_path, kind), automatic_migration=True)
    assert content(tmp_path, kind) == before


@pytest.mark.parametrize("version", ["0.5", "1.2", "2.0", "latest"])
def test_an_unknown_version_is_refused_by_name(version: str, tmp_path: Path) -> None:
    unpack("0.4", "duckdb", tmp_path)
    change = f"UPDATE ducklake_metadata SET value = '{version}' WHERE key = 'version'"
    with_catalog(tmp_path, "duckdb", lambda execute: execute(change) and None)
    for options in ({}, {"automatic_migration": True}):
        with pytest.raises(dl.CatalogVersionError, match=f"of version {version};"):
            dl.connect(uri(tmp_path, "duckdb"), **options)


def test_a_catalog_migrated_by_another_is_not_misread(tmp_path: Path) -> None:
    unpack("0.3", "duckdb", tmp_path)
    with dl.connect(uri(tmp_path, "duckdb"), alias="lake") as session:
        dl.connect(uri(tmp_path, "duckdb"), alias="lake", automatic_migration=True).close()
        with pytest.raises(dl.CatalogVersionError, match="attach it again"):
            session.tables()


@pytest.mark.parametrize("spec", OLD)
def test_a_served_lake_is_read_and_migrated(spec: str, tmp_path: Path, quack_server: Servers) -> None:
    """Views that show it last as long as a session on the server, also after the server was started anew."""
    expected = unpack(spec, "duckdb", tmp_path)
    served = tmp_path / "duckdb.catalog"
    port = quack_server.serve(served)
    address = f"ducklake:quack:localhost:{port}"
    with dl.connect(address, alias="lake", engine="duckdb", read_only=True) as session:
        check_rows(session, expected)
        quack_server.stop(port)
        quack_server.serve(served, port)
        check_rows(session, expected)
    with dl.connect(address, alias="lake", engine="duckdb", automatic_migration=True) as session:
        check_rows(session, expected)
        session.sql("CREATE TABLE made AS SELECT 1 AS i")
    quack_server.stop(port)

"""How fast the notebook answers on a large lake: `python -m benchmarks.notebook`.

Times are those of the kernel: reading the catalog, and making what the browser gets. First paint is the static view
with the data of the interactive one; each is measured with a session that has read nothing yet ("first") and again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path

import duckdb

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare, table
from ducklake_lab.widgets.file_browser import FileBrowser
from ducklake_lab.widgets.html import mounted_at, new_mount
from ducklake_lab.widgets.schema import of_catalog
from ducklake_lab.widgets.schema_browser import SchemaBrowser
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.table_view import ResultBrowser
from tests import reference

COLUMNS = 12
#: In milliseconds.
PAINT, RESULT, PAGE, SORT, COMPLETION = 300, 100, 100, 1000, 50


@dataclass(frozen=True)
class Timing:
    """Milliseconds: of the first time in a new session, and the median of those after it."""

    name: str
    goal: float
    first: float
    again: float
    bytes: int


def build(path: Path, snapshots: int, tables: int, files: int) -> None:
    """A catalog of so many of each, without data files: metadata is all that these views read.

    Table 1 has a twentieth of the files, the others share the rest.
    """
    with dl.connect(f"ducklake:{path}") as session:
        session.sql("CREATE SCHEMA raw")
    with duckdb.connect(str(path)) as catalog:
        first = 1  # the snapshot of CREATE SCHEMA
        catalog.execute(
            f"""
            INSERT INTO ducklake_snapshot SELECT {first} + n, TIMESTAMPTZ '2026-01-01 00:00:00Z' + n * INTERVAL 37 MINUTE,
              {first} + least(n, {tables}), {10 + tables}, {files} FROM range(1, {snapshots}) AS r(n);
            INSERT INTO ducklake_snapshot_changes SELECT {first} + n,
              CASE WHEN n <= {tables} THEN 'created_table:"main"."table_' || n || '",inserted_into_table:' || (9 + n)
                   WHEN n % 17 = 0 THEN 'deleted_from_table:' || (10 + n % {tables})
                   ELSE 'inserted_into_table:' || (10 + n % {tables}) END,
              ['ana', 'ben', 'loader', NULL][1 + n % 4], 'commit number ' || n, NULL FROM range(1, {snapshots}) AS r(n);
            INSERT INTO ducklake_table SELECT 9 + n, uuid(), {first} + n, NULL, 0, 'table_' || n, 'table_' || n || '/', true
              FROM range(1, {tables} + 1) AS r(n);
            INSERT INTO ducklake_schema_versions SELECT {first} + n, {first} + n, 9 + n FROM range(1, {tables} + 1) AS r(n);
            INSERT INTO ducklake_column SELECT c, {first} + n, NULL, 9 + n, c, 'column_' || c,
              ['int64', 'varchar', 'float64', 'timestamp'][1 + c % 4], NULL, 'NULL', true, NULL, 'literal', 'duckdb'
              FROM range(1, {tables} + 1) AS r(n), range(1, {COLUMNS} + 1) AS s(c);
            CREATE TEMP TABLE f AS SELECT n AS id,
              CASE WHEN n < {files // 20} THEN 10 ELSE 10 + n % {tables} END AS table_id FROM range({files}) AS r(n);
            INSERT INTO ducklake_data_file SELECT id, table_id, {first} + greatest(table_id - 9, 1 + id % ({snapshots} - 1)), NULL,
              id, 'file-' || id || '.parquet', true, 'parquet', 1000 + id % 977, 40000 + (id * 7919) % 900000, 300, id * 2000
              , NULL, NULL, NULL, NULL FROM f;
            INSERT INTO ducklake_file_column_stats SELECT id, table_id, c, 3000, 1000, id % 3, (id * 100)::VARCHAR,
              (id * 100 + 250)::VARCHAR, NULL, NULL FROM f, range(1, {COLUMNS} + 1) AS s(c);
            INSERT INTO ducklake_table_stats SELECT table_id, count(*) * 1500, count(*) * 2000, 1000000 FROM f GROUP BY 1;
            """
        )


def views(uri: str) -> Iterator[Timing]:
    """First paint, next page and completion of every browser."""

    def session() -> dl.Session:
        return dl.connect(uri, alias="lake", read_only=True, engine="duckdb")

    def paint_snapshots(of: dl.Session) -> object:
        browser = SnapshotBrowser(of.snapshots())
        return browser._repr_html_(), browser.overview, browser.answer_page({"start": 0, "count": 200})[1][0]

    def paint_schema(of: dl.Session) -> object:
        browser = SchemaBrowser(of_catalog("lake", *of.catalog()))
        return browser._repr_html_(), json.dumps(browser.nodes)

    def paint_files(name: str) -> Callable[[dl.Session], object]:
        def paint(of: dl.Session) -> object:
            with of.reading():
                files = of.table(name).files()
                browser = FileBrowser(files, of.health(name))
            return browser._repr_html_(), browser.overview, browser.answer_page({"start": 0, "count": 200})[1][0]

        return paint

    yield _timing("snapshot browser, first paint", PAINT, session, paint_snapshots)
    yield _timing("schema browser, first paint", PAINT, session, paint_schema)
    yield _timing("file browser, table of 95 files, first paint", PAINT, session, paint_files("table_500"))
    yield _timing("file browser, table of 5,000 files, first paint", PAINT, session, paint_files("table_1"))
    with session() as held:
        snapshots = SnapshotBrowser(held.snapshots())
        schema = SchemaBrowser(of_catalog("lake", *held.catalog()))
        files = FileBrowser(held.table("table_1").files())
        yield _timing(
            "snapshots, next page", PAGE, None, lambda _: snapshots.answer_page({"start": 2000, "count": 200})[1][0]
        )
        yield _timing("snapshots, filter by text", PAGE, None, lambda _: _search(snapshots))
        yield _timing("schema, columns of a table", PAGE, None, lambda _: schema.answer_columns({"index": 700}))
        yield _timing("schema, search", PAGE, None, lambda _: _search(schema))
        yield _timing("files, next page", PAGE, None, lambda _: files.answer_page({"start": 2000, "count": 200})[1][0])
        yield _timing(
            "files, ranges of a column", PAGE, None, lambda _: files.answer_ranges({"column": "column_3"})[1][0]
        )
        for name, marked in (
            ("completion, table", "SELECT * FROM table_5|"),
            ("completion, column by alias", "SELECT t.col| FROM table_500 AS t"),
            ("completion, snapshot after AT", "SELECT * FROM table_5 AT (VERSION => |"),
        ):
            at = marked.index("|")
            text = marked.replace("|", "")
            yield _timing(name, COMPLETION, None, lambda _, text=text, at=at: held.complete(text, at))  # type: ignore[misc]


def results(uri: str, rows: int) -> Iterator[Timing]:
    """Results of queries over a table of so many rows: their tables, and the grids that take their places."""
    wide = ", ".join(f"i + {at} AS column_{at}" for at in range(300))
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t AS SELECT i AS id, (i % 12 + 1)::INTEGER AS month, 'N' || (i * 7919 % 99991) AS tailnum, "
            "CASE WHEN i % 13 > 0 THEN (i * 31 % 6000) / 10 END AS delay, TIMESTAMP '2013-01-01' + to_minutes(i) AS at "
            f"FROM range({rows}) AS r(i)"
        )

        turns = count()

        session.sql(f"CREATE TABLE wide AS SELECT {wide} FROM range(1000) AS r(i)")

        def shown(query: str, limit: int | None = None) -> tuple[dl.Result, str]:
            result = session.sql(query)
            result.limit = limit
            return result, mounted_at(new_mount(), result._repr_html_())

        def page(browser: ResultBrowser, start: int, wide: int = 5) -> bytes:
            return browser.answer_page({"start": start, "count": 200, "first": 0, "wide": wide})[1][0]

        def sort(browser: ResultBrowser) -> None:
            browser.sort = [["delay", True], ["id", next(turns) % 2 == 0]]

        def table(query: str, limit: int | None = None) -> Callable[[dl.Session], object]:
            return lambda _: shown(query, limit)[1]

        thousand, all_rows, many = "FROM t WHERE id % 100 = 7 LIMIT 1000", "SELECT * FROM t", "SELECT * FROM wide"
        yield _timing("result of 1,000 rows, first paint", RESULT, None, table(thousand))
        yield _timing("result of 1,000 rows, all of them painted", RESULT, None, table(thousand, 1000))
        yield _timing(f"result of {rows:,} rows, first paint", RESULT, None, table(all_rows))
        yield _timing("result of 300 columns, first paint", RESULT, None, table(many))
        held, _ = shown(all_rows)
        yield _timing("grid, made over the table", RESULT, None, lambda _: ResultBrowser(held, shows=()).close())
        grid, columns = ResultBrowser(held, shows=()), ResultBrowser(shown(many)[0], shows=())
        first = {"start": 0, "count": grid.passing, "first": 0, "wide": 5}
        yield _timing("grid, first rows", PAGE, None, lambda _: grid.answer_page(first)[1][0])
        started = time.perf_counter()
        grid.answer_all({})
        read = 1000 * (time.perf_counter() - started)
        yield Timing(f"grid, the rest of {rows:,} rows, of which {grid.total:,} are held", 2000, read, read, 0)
        yield _timing("grid, next page", PAGE, None, lambda _: page(grid, 1_000_000))
        yield _timing("grid, sort by two columns", SORT, None, lambda _: sort(grid))
        yield _timing("grid, next page of sorted rows", PAGE, None, lambda _: page(grid, 1_000_000))
        yield _timing("grid, page of 100 of 300 columns", PAGE, None, lambda _: page(columns, 0, 100))


def _search(browser: SnapshotBrowser | SchemaBrowser) -> object:
    browser.query = f"{'column' if isinstance(browser, SchemaBrowser) else 'commit'} {time.perf_counter_ns() % 10}"
    return browser.matches if isinstance(browser, SchemaBrowser) else browser.overview


def _timing(
    name: str, goal: float, session: Callable[[], dl.Session] | None, run: Callable[[dl.Session], object]
) -> Timing:
    """A new session each round where one is made; the catalog's file is in the machine's cache then."""
    times = []
    found: object = None
    for _ in range(4):
        of = session() if session is not None else None
        started = time.perf_counter()
        found = run(of)  # type: ignore[arg-type]
        times.append(1000 * (time.perf_counter() - started))
        if of is not None:
            of.close()
    return Timing(name, goal, times[0], statistics.median(times[1:]), _size(found))


def _size(found: object) -> int:
    if isinstance(found, tuple):
        return sum(map(_size, found))
    return len(found) if isinstance(found, str | bytes) else 0


def diff(folder: Path, scale: float, rounds: int) -> Comparison:
    """The diff of 100,000 updated rows of lineitem, against a full outer join of both versions by the reference."""
    path = folder / "lineitem.ducklake"
    with reference.connect("tpch") as connection:
        connection.execute(f"CALL dbgen(sf = {scale}); ATTACH 'ducklake:{path}' AS lake")
        connection.execute("CREATE TABLE lake.lineitem AS FROM lineitem ORDER BY l_orderkey, l_linenumber")
        (last,) = connection.execute(
            "SELECT l_orderkey FROM lineitem ORDER BY l_orderkey LIMIT 1 OFFSET 100000"
        ).fetchone()  # type: ignore[misc]
        before = connection.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone()[0]  # type: ignore[index]
        connection.execute(f"UPDATE lake.lineitem SET l_discount = l_discount + 0.01 WHERE l_orderkey < {last}")
    joined = f"""
        SELECT count(*) FILTER (b.l_orderkey IS NULL), count(*) FILTER (a.l_orderkey IS NULL), count(*) FROM
          (FROM lake.lineitem AT (VERSION => {before})) AS a
          FULL OUTER JOIN (FROM lake.lineitem AT (VERSION => {before + 1})) AS b USING (l_orderkey, l_linenumber)
        WHERE a IS DISTINCT FROM b"""
    counts: dict[str, object] = {}

    def ours() -> None:
        with dl.connect(f"ducklake:{path}", alias="lake", read_only=True, engine="duckdb") as session:
            found = session.table("lineitem").diff(before, before + 1)
            counts["ours"] = (found.summary.deleted, found.summary.inserted, found.summary.changed)

    def theirs() -> None:
        with reference.connect() as connection:
            connection.execute(f"ATTACH 'ducklake:{path}' AS lake (READ_ONLY)")
            counts["theirs"] = connection.execute(joined).fetchone()

    result = compare(
        "diff of 100,000 updated rows of lineitem", "full outer join of both versions", ours, theirs, rounds
    )
    if counts["ours"] != counts["theirs"]:
        raise AssertionError(f"The diff counts {counts['ours']}, the join {counts['theirs']}.")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.notebook", description="Measures how fast views answer."
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the lake and of lineitem")
    parser.add_argument("--output", type=Path, help="also write JSON")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as name:
        folder = Path(name)
        path = folder / "large.ducklake"
        # the newest tables need as many snapshots
        snapshots, tables, files = (5000, 1000, 100_000) if part == 1 else (900, 800, 10_000)
        build(path, snapshots, tables, files)
        print(f"{snapshots:,} snapshots, {tables:,} tables, {files:,} files\n")
        print("| what | goal | first | again | sent |\n|---|--:|--:|--:|--:|")
        timings = []
        for timing in chain(views(f"ducklake:{path}"), results(f"ducklake:{folder}/rows.ducklake", 10_000_000 // part)):
            timings.append(timing)
            mark = "" if timing.again <= timing.goal else " ✗"
            sent = f"{timing.bytes / 1000:,.0f} kB" if timing.bytes else ""
            print(
                f"| {timing.name} | {timing.goal:.0f} ms | {timing.first:.0f} ms | {timing.again:.0f} ms{mark} | {sent} |",
                flush=True,
            )
        comparison = diff(folder, 1.0 / part, 3)
        print("\n" + table([comparison]))
        print(f"\nThe diff is {1 / comparison.ratio:.1f} times as fast.")
        if options.output:
            report = {"timings": [asdict(timing) for timing in timings], "comparisons": [comparison.to_dict()]}
            options.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()

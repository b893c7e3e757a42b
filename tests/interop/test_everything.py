"""A lake of everything, made by the reference and by us: each way to read it, and each statement that carries its rows."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from tests.interop import everything
from tests.interop.comparing import attach, detach, metadata, normal
from tests.reference import connect

pytestmark = pytest.mark.sampled(5)

MAKERS = ("theirs", "ours")
Rows = list[str]


@dataclass
class Lakes:
    """The two lakes, and what the reference reads of its own.

    Attributes:
        tables: by table, with quotes where they are needed, the snapshots that its statements left.
    """

    folder: Path
    reference: duckdb.DuckDBPyConnection
    tables: dict[str, list[int]]

    @cached_property
    def history(self) -> dict[str, Rows]:
        """Query each table at each of its snapshots, and return the rows by query."""
        found = {}
        for table, snapshots in self.tables.items():
            # attached anew: it looks for a table of one snapshot in the schema of another
            attach(self.reference, self.uri("theirs"))
            # each snapshot of parts that are altered has a test of its own
            for at in snapshots if table != "ev" else snapshots[-2:]:
                query = f"SELECT rowid, snapshot_id, * FROM {table} AT (VERSION => {at})"
                found[query] = rows(self.reference.execute(query).fetchall())
            detach(self.reference)
        return found

    def uri(self, maker: str) -> str:
        return f"ducklake:{self.folder / maker}.ducklake"

    def asked(self, query: Callable[[str], str], maker: str = "theirs") -> dict[str, Rows]:
        """The reference's answers to a query of each table."""
        attach(self.reference, self.uri(maker))
        try:
            return {table: rows(self.reference.execute(query(table)).fetchall()) for table in self.tables}
        finally:
            detach(self.reference)

    def copy(self, maker: str, folder: Path) -> str:
        """A copy of a lake, to be changed; added files stay where they are."""
        shutil.copy(self.folder / f"{maker}.ducklake", folder / f"{maker}.ducklake")
        shutil.copytree(self.folder / maker, folder / maker)
        uri = f"ducklake:{folder / maker}.ducklake"
        with duckdb.connect(str(folder / f"{maker}.ducklake")) as catalog:
            change = "UPDATE ducklake_metadata SET value = $1 WHERE key = 'data_path'"
            catalog.execute(change, [f"{folder / maker}/"])
        return uri


def rows(found: Sequence[Sequence[Any]]) -> Rows:
    """Rows that compare: as text, since NaN equals itself there, and types of values count."""
    return sorted(repr(normal(list(row))) for row in found)


def key(table: str) -> str:
    """A column of whole numbers."""
    return "a" if table == "ev" else "i"


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    folder = tmp_path_factory.mktemp("everything")
    reference = connect()
    # it fails to push filters of joins into files whose columns were added or widened
    reference.execute("SET disabled_optimizers = 'join_filter_pushdown'")
    everything.write_files(reference, folder)
    made = Lakes(folder, reference, {})
    attach(reference, made.uri("theirs"), data_path=folder / "theirs")
    for sql in everything.script(folder):
        reference.execute(sql)
        if created := re.match(r"CREATE TABLE (.+?) \(", sql):
            made.tables[created[1]] = []
        ((snapshot,),) = reference.execute("SELECT id FROM lake.current_snapshot()").fetchall()
        for table, snapshots in made.tables.items():
            if re.search(rf"(?<!\w){re.escape(table)}(?!\w)", sql) and snapshot not in snapshots:
                snapshots.append(snapshot)
    detach(reference)
    with dl.connect(made.uri("ours"), alias="lake", data_path=f"{folder}/ours", engine="duckdb") as session:
        for sql in everything.script(folder):
            session.sql(sql)
        assert not session.spark_started
    assert len(made.tables) == 22 and all(made.tables.values())
    yield made
    reference.close()


def opened(uri: str, spark: Any = None) -> dl.Session:
    session = dl.Session(spark=spark, engine="duckdb")
    session.attach(uri, alias="lake")
    session.use("lake")
    session.sql("SET TimeZone = 'UTC'")
    return session


def test_the_catalogs_are_alike(lakes: Lakes) -> None:
    theirs, ours = (metadata(lakes.reference, lakes.uri(maker)) for maker in MAKERS)
    assert theirs.keys() == ours.keys()
    for table, expected in theirs.items():
        differing = [row for row in expected if row not in ours[table]]
        if table == "ducklake_table_column_stats":
            # of parts in lists and maps footers count more NULLs than values: what we leave open there, it takes as it is
            assert {row[0] for row in differing} == {2, 7}
        elif table == "ducklake_delete_file":
            # a statement's delete files come in another order
            assert Counter(row[2:4] for row in expected) == Counter(row[2:4] for row in ours[table])
        elif table == "ducklake_schema_versions":
            # our ALTER also notes versions of inlined data tables that an INSERT made; the reference misreads them without
            made = {(row[0], row[2]) for row in ours["ducklake_inlined_data_tables"]}
            added = [row for row in ours[table] if row not in expected]
            assert not differing and added and {(row[2], row[1]) for row in added} <= made
        else:
            assert not differing and len(expected) == len(ours[table]), table


@pytest.mark.parametrize("maker", MAKERS)
def test_each_snapshot_in_process(maker: str, lakes: Lakes) -> None:
    with opened(lakes.uri(maker)) as session:
        for query, expected in lakes.history.items():
            assert rows(session.sql(query).fetchall()) == expected, query


def texts(table: pa.Table) -> list[tuple[str, ...]]:
    """All values, NaN and those beyond Python's types included."""
    return duckdb.from_arrow(table).project("CAST(COLUMNS(*) AS VARCHAR)").fetchall()


@pytest.mark.parametrize("maker", MAKERS[1:])
def test_each_way_to_read(maker: str, lakes: Lakes, spark: Any) -> None:
    expected = lakes.asked(lambda table: f"SELECT rowid, snapshot_id, * FROM {table}")
    plain = lakes.asked(lambda table: f"FROM {table}")
    with opened(lakes.uri(maker), spark) as session:
        for table in lakes.tables:
            found = session.sql(f"SELECT rowid, snapshot_id, * FROM {table}", engine="spark")
            assert rows(found.fetchall()) == expected[table], table
            handle = session.table(table)
            result = session.sql(f"FROM {table}")
            assert rows(result.fetchall()) == plain[table], table
            arrow, expected_arrow = handle.arrow(), result.arrow()
            assert arrow.schema == expected_arrow.schema, table
            assert sorted(texts(arrow), key=repr) == sorted(texts(expected_arrow), key=repr), table
            assert handle.pandas().shape == (len(plain[table]), len(result.columns)), table
            assert handle.spark().count() == len(plain[table]), table


#: Tables whose change feed the reference gets wrong: rows deleted from a merged file are updates at the snapshot of their
#: insertion, rows that were rewritten unchanged are updates.
FEEDS = ("merged", "rewritten")


def parts(table: str) -> tuple[str, str]:
    """Its schema and name."""
    *schema, name = [part.strip('"').replace('""', '"') for part in re.findall(r'"(?:[^"]|"")+"|\w+', table)]
    return (schema[0] if schema else "main"), name


def feed(lakes: Lakes, table: str) -> str:
    schema, name = parts(table)
    first, last = lakes.tables[table][0], lakes.tables[table][-1]
    return f"FROM ducklake_table_changes('lake', '{schema}', '{name}', {first}, {last})"


def derived(lakes: Lakes, table: str) -> Rows:
    """The change feed of a table, from its rows at each snapshot."""
    attach(lakes.reference, lakes.uri("theirs"))
    found: list[tuple[Any, ...]] = []
    before: dict[int, Any] = {}
    for at in lakes.tables[table]:
        read = lakes.reference.execute(f"SELECT rowid, * FROM {table} AT (VERSION => {at})").fetchall()
        now = {row[0]: row for row in read}
        for row_id in now.keys() | before.keys():
            if row_id not in before:
                found.append((at, row_id, "insert", *now[row_id][1:]))
            elif row_id not in now:
                found.append((at, row_id, "delete", *before[row_id][1:]))
            elif repr(now[row_id]) != repr(before[row_id]):
                found.append((at, row_id, "update_preimage", *before[row_id][1:]))
                found.append((at, row_id, "update_postimage", *now[row_id][1:]))
        before = now
    detach(lakes.reference)
    return rows(found)


@pytest.mark.parametrize("maker", MAKERS)
def test_changes_and_diffs(maker: str, lakes: Lakes) -> None:
    expected = lakes.asked(lambda table: feed(lakes, table))
    for table in FEEDS:
        true = derived(lakes, table)
        assert true != expected[table]
        expected[table] = true
    row_ids = {
        place: lakes.asked(lambda t, place=place: f"SELECT rowid FROM {t} AT (VERSION => {lakes.tables[t][place]})")
        for place in (1, -1)
    }
    with opened(lakes.uri(maker)) as session:
        for table, snapshots in lakes.tables.items():
            assert rows(session.sql(feed(lakes, table)).fetchall()) == expected[table], table
            handle = session.table(table)
            assert rows(handle.changes(snapshots[0], snapshots[-1]).fetchall()) == expected[table], table
            summary = handle.diff(snapshots[1], snapshots[-1]).summary
            before, after = set(row_ids[1][table]), set(row_ids[-1][table])
            assert (summary.inserted, summary.deleted) == (len(after - before), len(before - after)), table
            assert summary.updated + summary.unchanged == len(after & before), table
        assert not session.spark_started


#: Statements that carry rows: `{t}` is a table, `{k}` its column of whole numbers.
CARRIERS = (
    "UPDATE {t} SET {k} = {k} + 1000 WHERE {k} % 3 = 0",
    "MERGE INTO {t} USING (SELECT * REPLACE (({k} + {k} % 2 * 5000)::INTEGER AS {k}) FROM {t} WHERE {k} % 5 < 2) AS n "
    "ON {t}.{k} = n.{k} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO {t} SELECT * REPLACE (({k} + 10000)::INTEGER AS {k}) FROM {t} WHERE {k} % 4 = 1",
    "DELETE FROM {t} WHERE {k} % 7 = 2",
    "CREATE TABLE copied_{n} AS SELECT * FROM {t}",
    "COPY {t} TO '{folder}/{n}.parquet' (FORMAT parquet)",
)
MAINTENANCE = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.01)",
)


def carriers(tables: Sequence[str], folder: Path, statements: Sequence[str] = CARRIERS) -> Iterator[str]:
    for number, table in enumerate(tables):
        for sql in statements:
            yield sql.format(t=table, k=key(table), n=number, folder=folder)


def outcome(reference: duckdb.DuckDBPyConnection, uri: str, tables: Sequence[str], folder: Path) -> dict[str, Rows]:
    """Return the rows that the reference reads after the statements."""
    attach(reference, uri)
    copies = [f"copied_{number}" for number in range(len(tables))]
    files = [f"'{folder}/{number}.parquet'" for number in range(len(tables))]
    found = {table: rows(reference.execute(f"FROM {table}").fetchall()) for table in (*tables, *copies)}
    written = [rows(reference.execute(f"FROM {file}").fetchall()) for file in files]
    detach(reference)
    return found | dict(zip([f"file of {table}" for table in tables], written, strict=True))


@pytest.fixture(scope="module")
def carried(lakes: Lakes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """Return the rows that the reference leaves where it runs the statements."""
    folder = tmp_path_factory.mktemp("carried")
    uri, tables = lakes.copy("theirs", folder), list(lakes.tables)
    attach(lakes.reference, uri)
    try:
        for sql in (*carriers(tables, folder), *MAINTENANCE):
            lakes.reference.execute(sql)
    finally:
        detach(lakes.reference)
    return outcome(lakes.reference, uri, tables, folder)


@pytest.mark.parametrize("maker", MAKERS)
def test_each_statement_that_carries_rows(
    maker: str, lakes: Lakes, carried: dict[str, Rows], tmp_path: Path, spark: Any
) -> None:
    uri, tables = lakes.copy(maker, tmp_path), list(lakes.tables)
    with opened(uri, spark) as session:
        for sql in (*carriers(tables, tmp_path), *MAINTENANCE):
            session.sql(sql)
    found = outcome(lakes.reference, uri, tables, tmp_path)
    for table, expected in carried.items():
        assert found[table] == expected, table


def test_each_table_is_restored(lakes: Lakes, tmp_path: Path) -> None:
    def past(table: str) -> str:
        return f"SELECT rowid, * FROM {table} AT (VERSION => {lakes.tables[table][1]})"

    uri, expected = lakes.copy("theirs", tmp_path), lakes.asked(past)
    tables = list(lakes.tables)
    with opened(uri) as session:
        for table in tables:
            session.restore(table, to=lakes.tables[table][1])
    attach(lakes.reference, uri)
    for table in tables:
        assert rows(lakes.reference.execute(f"SELECT rowid, * FROM {table}").fetchall()) == expected[table], table
    detach(lakes.reference)

"""Catalogs whose rows say what cannot be: each is read, or refused in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.file_browser import FileBrowser
from ducklake_lab.widgets.schema import of_catalog
from ducklake_lab.widgets.schema_browser import SchemaBrowser
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.table_view import TableBrowser
from ducklake_lab.widgets.tables import TableListing

BIGGEST, NINES = 2**63 - 1, "9" * 5000
_COLUMN = (
    "INSERT INTO ducklake_column (column_id, begin_snapshot, table_id, column_order, column_name, column_type, nulls_allowed, "
    "parent_column) VALUES "
)
_DELETES = (
    "INSERT INTO ducklake_delete_file (delete_file_id, table_id, begin_snapshot, data_file_id, path, path_is_relative, format, "
    "delete_count, file_size_bytes, footer_size) VALUES (88, 1, 2, 0, 'none.parquet', true, 'parquet', {}, {}, {})"
)


def _typed(kind: str) -> tuple[str, ...]:
    return (f"UPDATE ducklake_column SET column_type = '{kind}' WHERE column_name = 'a'",)


def _nested(levels: int) -> tuple[str, ...]:
    rows = (
        f"({100 + i}, 1, 1, {i}, 'x', '{'struct' if i < levels - 1 else 'int32'}', true, {99 + i if i else 1})"
        for i in range(levels)
    )
    return (*_typed("struct"), _COLUMN + ", ".join(rows))


CRAFTS: dict[str, tuple[str, ...]] = {
    **{f"type {kind[:30]}": _typed(kind) for kind in (
        "decimal(38,999)", "decimal(38,99999999999999999999)", "decimal(0,0)", f"decimal({NINES},1)", "wat", "struct", "list",
        "map", "INTEGER); DROP TABLE t; --",
    )},
    "1,200 levels": _nested(1200),
    "cyclic parents": ("UPDATE ducklake_column SET parent_column = 3 - column_id WHERE column_id < 3",),
    "its own parent": ("UPDATE ducklake_column SET parent_column = 1, column_type = 'struct' WHERE column_id = 1",),
    "parts of a number": (_COLUMN + "(90, 1, 1, 90, 'x', 'int32', true, 1)",),
    "an id twice": (_COLUMN + "(1, 1, 1, 90, 'z', 'varchar', true, NULL)",),
    "a name twice": (_COLUMN + "(90, 1, 1, 90, 'a', 'varchar', true, NULL)",),
    **{f"{name} {value}": (f"UPDATE ducklake_data_file SET {name} = {value}",)
       for name in ("record_count", "file_size_bytes", "footer_size", "row_id_start") for value in (-5, BIGGEST)},
    "negative deletes": (_DELETES.format(-3, -3, -3),),
    "huge deletes": (_DELETES.format(BIGGEST, BIGGEST, 0),),
    **{f"statistics {value}": (
        f"UPDATE ducklake_table_stats SET next_row_id = {value}, record_count = {value}, file_size_bytes = {value}",)
       for value in (-7, BIGGEST)},
    "bounds": (
        f"UPDATE ducklake_file_column_stats SET min_value = 'nan', max_value = '{NINES}', null_count = -3, "
        f"value_count = {BIGGEST}, column_size_bytes = -9",
        "UPDATE ducklake_table_column_stats SET min_value = 'zz', max_value = '1e999'",
    ),
    "next ids": (f"UPDATE ducklake_snapshot SET next_catalog_id = {BIGGEST}, next_file_id = -1",),
    "changes": ("UPDATE ducklake_snapshot_changes SET changes_made = 'created_table:\"a\".\"b,,,deleted_from_table:x'",),
    "defaults": (
        f"UPDATE ducklake_column SET initial_default = '{'[' * 5000}', default_value = '{'(' * 2000}', "
        "default_value_type = 'expression'",
    ),
    "a deep view": (f"UPDATE ducklake_view SET sql = 'SELECT {'(' * 3000}1{')' * 3000}'",),
}  # fmt: skip

STATEMENTS = """
SHOW TABLES; SHOW ALL TABLES; DESCRIBE t; FROM t; FROM v; SELECT count(*), max(a), min(b) FROM t; SELECT b FROM t WHERE a > 3;
FROM t AT (VERSION => 2); FROM lake.table_info(); FROM lake.snapshots(); FROM ducklake_list_files('lake', 't');
FROM duckdb_columns(); INSERT INTO t (b) VALUES ('n'); UPDATE t SET b = 'u' WHERE b = 'x4'; DELETE FROM t WHERE b = 'x3'
"""


def _looks(session: dl.Session) -> Iterator[Callable[[], object]]:
    for statement in STATEMENTS.split(";"):
        yield lambda sql=statement: session.sql(sql).fetchall()
    yield lambda: session.sql("FROM t")._repr_html_()
    yield lambda: TableListing(tuple(session.tables()))._repr_html_()
    yield lambda: SchemaBrowser(of_catalog("lake", *session.catalog()))._repr_html_()
    yield lambda: SnapshotBrowser(session.snapshots())._repr_html_()
    yield lambda: FileBrowser(session.table("t").files(), session.health())._repr_html_()
    yield lambda: TableBrowser(session.table("t").view())._repr_html_()
    yield lambda: session.table("t").column_stats()._repr_html_()
    yield lambda: session.table("t").diff(1)._repr_html_()
    yield lambda: session.table("t").history()._repr_html_()
    yield lambda: session.snapshots().plot()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("craft", CRAFTS)
@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_each_is_read_or_refused_in_one_line(
    new_catalog: Callable[..., str], tmp_path: Path, kind: str, craft: str
) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (a DECIMAL(10,2), b VARCHAR, c STRUCT(x INTEGER)); CREATE VIEW v AS FROM t")
        session.sql("INSERT INTO t SELECT i, 'x' || i, {x: i} FROM range(30) r(i)")
        for sql in CRAFTS[craft]:
            session.sql(sql.replace(" ducklake_", " __ducklake_metadata_lake.ducklake_", 1))
    answered = 0
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        for look in _looks(session):
            try:
                look()
                answered += 1
            except dl.DuckLakeError as error:
                shown = str(error)
                assert "\n" not in shown and len(shown) < 3_100, shown
    assert answered, "nothing at all can be looked at"


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@pytest.mark.parametrize("encrypted", [False, True])
def test_rows_that_a_file_does_not_have(
    new_catalog: Callable[..., str], tmp_path: Path, kind: str, encrypted: bool
) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb", encrypted=encrypted) as session:
        session.sql("CREATE TABLE t AS SELECT i AS a FROM range(300) r(i)")
        session.sql("DELETE FROM t WHERE a < 100; CREATE TABLE u AS FROM t; DELETE FROM u WHERE a = 200")
        session.sql(f"UPDATE __ducklake_metadata_lake.ducklake_data_file SET record_count = {10**11}")
        changed = (
            "DELETE FROM t WHERE a = 150; UPDATE t SET a = 1 WHERE a = 150; SELECT sum(a) FROM t; SELECT sum(a) FROM u"
        )
        for statement in (*changed.split("; "), "CALL lake.rewrite_data_files(delete_threshold => 0)"):
            with pytest.raises(dl.DataFileError, match=r"record_count is 100000000000 .* has [23]00 rows; restore it"):
                session.sql(statement).fetchall()
        for look in (
            lambda: session.table("t").diff(1, 2).summary,
            lambda: session.table("t").changes(1, 2).arrow(),
            lambda: session.restore("t", to=1),
        ):
            with pytest.raises(dl.DataFileError, match="record_count is"):
                look()


def test_positions_outside_of_a_file(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS a FROM range(300) r(i)")
        session.sql("DELETE FROM t WHERE a IN (7, 8, 9)")
        session.sql(
            f"UPDATE __ducklake_metadata_lake.ducklake_inlined_delete_1 SET row_id = {10**13} WHERE row_id = 8;"
            "UPDATE __ducklake_metadata_lake.ducklake_inlined_delete_1 SET row_id = -5 WHERE row_id = 9"
        )
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT count(a), sum(a) FROM t").fetchone() == (299, sum(range(300)) - 7)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@pytest.mark.parametrize("count", ["-5", str(10**9), str(10**12), str(BIGGEST), "'a lot'"])
def test_counts_that_a_file_cannot_have_are_no_answers(
    count: str, kind: str, new_catalog: Callable[..., str], tmp_path: Path
) -> None:
    if kind == "duckdb" and count == "'a lot'":
        pytest.skip("the catalog's column takes numbers alone")
    with dl.connect(new_catalog(kind), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT i AS a, i % 7 = 0 AS b FROM range(300) r(i)")
        session.sql(f"UPDATE __ducklake_metadata_lake.ducklake_data_file SET record_count = {count}")
        for query in ("SELECT count(*) FROM t", "SELECT count(a) FROM t", "SELECT count(*), max(a) FROM t"):
            failure, rows = "", []
            try:
                rows = session.sql(query).fetchall()
            except dl.DuckLakeError as error:
                failure = str(error)
            assert "record_count" in failure if failure else rows[0][0] == 300

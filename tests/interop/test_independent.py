"""Lakes of 1.1 that the independent implementation writes, read by us at every snapshot."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from ducklakepy import DuckLakeCatalog, partitioning
from ducklakepy.expressions import col

import ducklake_lab as dl
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.widgets.schema import of_catalog, render
from tests.independent import KINDS, history, numbers, open_lake, schema_of

pytestmark = pytest.mark.sampled(5)

Make = Callable[..., str]


@pytest.fixture(params=KINDS)
def uri(request: pytest.FixtureRequest, new_catalog: Make) -> str:
    return new_catalog(request.param)


def ours(uri: str, **options: Any) -> dl.Session:
    return dl.connect(uri, alias="lake", engine="duckdb", **options)


def check_history(uri: str, expected: dict[tuple[int, str], list[tuple[Any, ...]]]) -> None:
    """Each table has the same rows at each snapshot."""
    found = {}
    with ours(uri) as session:
        for entry in session.snapshots():
            at = entry.info.snapshot_id
            for info in session.tables(at=at):
                table = info.table
                schema = session.catalog(at)[0].schema_of(table)
                name = ".".join(map(_spelled, (*schema.parts, table.name)))
                rows = session.sql(f"SELECT * FROM {name} AT (VERSION => {at})").arrow().to_pylist()
                found[at, name] = sorted((tuple(row.values()) for row in rows), key=repr)
    assert found == expected


def _spelled(name: str) -> str:
    return f'"{name}"' if "." in name else name


def run(uri: str, *statements: str) -> None:
    """Runs statements on the catalog's database."""
    engine = sa.create_engine(parse_uri(uri).url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def script(catalog: DuckLakeCatalog) -> None:
    """Inlined rows and files, deletions of both kinds, updates, other columns, merged and flushed rows."""
    catalog.create_table("main.n", schema=schema_of("i int32, s varchar"))

    def table() -> Any:
        return catalog.load_table("main.n")

    table().append(numbers(0, 5))
    table().append(numbers(5, 200))
    table().delete(col("i") == 3)
    table().delete(col("i") == 7)
    table().delete((col("i") >= 20) & (col("i") < 60))
    table().update(col("i") == 4, {"s": "four"})
    with table().update_schema() as change:
        change.add_column("d", schema_of("d decimal(9;2)").fields[0].field_type)
    with table().update_schema() as change:
        change.rename_column("s", "t")
    table().append(pa.table({"i": pa.array([900], pa.int32()), "t": ["x"], "d": pa.array([None], pa.decimal128(9, 2))}))
    table().delete(col("i") == 900)
    catalog.flush_inlined_data("main.n")
    table().append(numbers(300, 400).rename_columns(["i", "t"]))
    catalog.merge_adjacent_files()
    table().delete(col("i") > 390)
    catalog.rewrite_data_files()


def test_rows_are_the_same_at_every_snapshot(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    script(catalog)
    expected = history(catalog)
    assert len(expected) > 12 and max(map(len, expected.values())) > 200
    check_history(uri, expected)


def test_the_feed_and_the_history_know_inlined_rows(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    script(catalog)
    last = catalog.current_snapshot().snapshot_id
    theirs = catalog.load_table("main.n").changes(1, last).to_arrow().to_pylist()
    counted: dict[tuple[int, str], int] = {}
    for row in theirs:
        key = (row["snapshot_id"], row["change_type"])
        counted[key] = counted.get(key, 0) + 1
    with ours(uri) as session:
        feed = f"ducklake_table_changes('lake', 'main', 'n', 1, {last})"
        found = session.sql(f"SELECT snapshot_id, change_type, count(*) FROM {feed} GROUP BY ALL").fetchall()
        added = {e.info.snapshot_id: e.rows_added for e in session.snapshots()}
    assert {(at, kind): count for at, kind, count in found} == counted
    assert (added[2], added[3]) == (5, 195)


def test_bounds_that_are_not_exact_answer_no_minimum(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_table("main.n", schema=schema_of("i int32, s varchar"))
    catalog.load_table("main.n").append(numbers(5, 200))
    query = "SELECT min(i), max(i), min(s), max(s) FROM n"
    with ours(uri) as session:
        assert session.sql(query).fetchall() == [(5, 199, "row 10", "row 99")]
    for column, bound in (("min", "'-1000'"), ("max", "'1000'")):
        run(
            uri,
            f"UPDATE ducklake_file_column_stats SET {column}_value = {bound}, {column}_is_exact = "
            f"{'false' if 'postgres' in uri else 0} WHERE column_id = 1",
        )
        with ours(uri) as session:
            assert session.sql(query).fetchall() == [(5, 199, "row 10", "row 99")]
            assert session.sql("SELECT count(*) FROM n WHERE i > 500 OR i < 0").fetchall() == [(0,)]
            assert session.sql("SELECT count(*) FROM n WHERE i > 100").fetchall() == [(99,)]
            (files,) = session.table("n").files()
            assert (files.stats["i"].is_inexact, files.stats["s"].is_inexact) == (True, False)


def test_one_puffin_file_deletes_for_several_snapshots(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.set_option("write_deletion_vectors", True)
    catalog.create_table("main.n", schema=schema_of("i int32, s varchar"))
    catalog.load_table("main.n").append(numbers(0, 100))
    for i in (3, 50, 4):
        catalog.load_table("main.n").delete(col("i") == i)
    expected = history(catalog)
    catalog.flush_inlined_data("main.n")
    (path,) = (tmp_path / "data").rglob("*.puffin")
    data = path.read_bytes()
    (size,) = struct.unpack("<I", data[-12:-8])
    named = [blob["properties"]["ducklake-snapshot-id"] for blob in json.loads(data[-12 - size : -12])["blobs"]]
    assert named == ["3", "4", "5"]
    check_history(uri, history(catalog))
    assert {key: rows for key, rows in history(catalog).items() if key in expected} == expected
    with ours(uri) as session:
        deletions = session.sql("SELECT snapshot_id, i FROM ducklake_table_deletions('lake', 'main', 'n', 1, 6)")
        assert sorted(deletions.fetchall()) == [(3, 3), (4, 50), (5, 4)]
        removed = {e.info.snapshot_id: e.rows_removed for e in session.snapshots()}
        assert [removed[at] for at in (2, 3, 4, 5, 6)] == [0, 1, 1, 1, 0]
        assert [info.record_count for info in session.tables()] == [97]


def test_comments_of_view_columns(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    script(catalog)
    catalog.create_view("main.v", "SELECT i, t FROM main.n", column_aliases=("a",), comment="a view")
    catalog.load_view("main.v").set_comment("the number", column="i")
    catalog.load_view("main.v").set_comment("of another time", column="t")
    catalog.load_view("main.v").set_comment(None, column="t")
    with ours(uri) as session:
        comments = session.sql("SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'v'").fetchall()
        assert comments == [("a", "the number"), ("t", None)]
        drawn = render(of_catalog("lake", *session.catalog()))
        assert "a: the number" in drawn and "another time" not in drawn
        assert session.sql("SELECT max(a) FROM v").fetchall() == [(390,)]


@pytest.mark.parametrize("unit", ["year", "month", "day", "hour"])
def test_partitions_counted_from_1970_skip_no_row(unit: str, uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_table("main.p", schema=schema_of("t timestamp, i int32"))
    catalog.load_table("main.p").set_partitioning(getattr(partitioning, f"epoch_{unit}")("t"))
    times = [datetime(1969, 12, 31, 23, 59), datetime(1970, 1, 1), datetime(2024, 2, 29, 5), None]
    times += [datetime(2020 + i % 5, 1 + i % 12, 1 + i % 28, i % 24) for i in range(40)]
    rows = pa.table({"t": pa.array(times, pa.timestamp("us")), "i": pa.array(range(len(times)), pa.int32())})
    catalog.load_table("main.p").append(rows)
    with ours(uri) as session:
        for moment in times:
            for op in ("=", "<", "<=", ">", ">=", "!="):
                if moment is None:
                    continue
                query = f"SELECT count(*) FROM p WHERE t {op} TIMESTAMP '{moment}'"
                compare = {
                    "=": moment.__eq__,
                    "<": moment.__gt__,
                    "<=": moment.__ge__,
                    ">": moment.__lt__,
                    ">=": moment.__le__,
                    "!=": moment.__ne__,
                }[op]
                assert session.sql(query).fetchall() == [(sum(compare(t) for t in times if t is not None),)], query
        assert session.sql("SELECT i FROM p WHERE t IS NULL").fetchall() == [(3,)]


def test_a_transform_nobody_knows_skips_no_file(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_table("main.p", schema=schema_of("i int32, s varchar"))
    catalog.load_table("main.p").set_partitioning("i")
    catalog.load_table("main.p").append(pa.table({"i": pa.array([1, 2, None], pa.int32()), "s": ["a", "b", "c"]}))
    run(uri, "UPDATE ducklake_partition_column SET transform = 'truncate(7)'", "DELETE FROM ducklake_file_column_stats")
    run(uri, "UPDATE ducklake_file_partition_value SET partition_value = '7' WHERE partition_value IS NOT NULL")
    run(uri, "UPDATE ducklake_file_partition_value SET partition_value = '9' WHERE partition_value IS NULL")
    with ours(uri) as session:
        for condition, count in (("i = 1", 1), ("i < 7", 2), ("i IS NULL", 1), ("i IS NOT NULL", 2)):
            assert session.sql(f"SELECT count(*) FROM p WHERE {condition}").fetchall() == [(count,)], condition


def test_variants_and_nulls(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_table("main.v", schema=schema_of("i int32, n null, v variant"))
    values = ["text", 7, True, None, {"a": [1, None, "b"], "c": 1.5}, [], datetime(2024, 2, 29, 5)]
    rows = {"i": pa.array(range(len(values)), pa.int32()), "n": pa.nulls(len(values)), "v": _variants(values)}
    catalog.load_table("main.v").append(pa.table(rows))
    catalog.load_table("main.v").delete(col("i") == 1)
    with ours(uri) as session:
        found = session.sql("SELECT i, n, v::VARCHAR, variant_typeof(v) FROM v ORDER BY i").fetchall()
        kept = session.sql("SELECT count(*), count(n), count(v) FROM v AT (VERSION => 2)").fetchall()
        assert session.sql("SELECT v.a[1]::INTEGER FROM v WHERE i = 4").fetchall() == [(1,)]
    assert kept == [(7, 0, 6)]
    assert [row[:3] for row in found] == [
        (0, None, "text"),
        (2, None, "true"),
        (3, None, None),
        (4, None, "{'a': [1, NULL, b], 'c': 1.5}"),
        (5, None, "[]"),
        (6, None, "2024-02-29 05:00:00"),
    ]


def test_a_column_of_nulls_in_a_file(uri: str, tmp_path: Path) -> None:
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_table("main.x", schema=schema_of("i int32, n null"))
    catalog.load_table("main.x").append(pa.table({"i": pa.array(range(50), pa.int32()), "n": pa.nulls(50)}))
    with ours(uri) as session:
        assert session.sql("SELECT count(*), count(n) FROM x WHERE n IS NULL").fetchall() == [(50, 0)]
        assert session.sql("SELECT count(*) FROM x WHERE n = 1 OR n IS NOT NULL").fetchall() == [(0,)]


def _variants(values: list[Any]) -> pa.Array:
    """Values as the two buffers of Parquet's variant, made by DuckDB."""
    import duckdb

    literals = ", ".join(_literal(value) for value in values)
    parts = "CAST(variant_to_parquet_variant(v) AS STRUCT(metadata BLOB, value BLOB))"
    query = f"SELECT CASE WHEN v IS NOT NULL THEN {parts} END FROM (SELECT unnest([{literals}]) AS v)"
    return duckdb.sql(query).arrow().read_all().column(0).combine_chunks()


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{'a': [1::VARIANT, NULL, 'b'::VARIANT], 'c': 1.5::DOUBLE}::VARIANT"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'::VARIANT"
    if value == []:
        return "[]::INTEGER[]::VARIANT"
    return f"'{value}'::VARIANT" if isinstance(value, str) else "NULL" if value is None else f"{value}::VARIANT"


def nested(uri: str, folder: Path) -> DuckLakeCatalog:
    """Schemas in schemas, one with a dot in its name beside the path that is spelled so."""
    catalog = open_lake(uri, f"{folder}/data/")
    for name in ("sales", "sales.europe", "sales.europe.north", '"sales.europe"', "other"):
        catalog.create_namespace(name)
    for place, start in (("sales.europe", 0), ("sales.europe.north", 10), ('"sales.europe"', 20), ("sales", 30)):
        catalog.create_table(f"{place}.orders", schema=schema_of("i int32, s varchar"))
        catalog.load_table(f"{place}.orders").append(numbers(start, start + 2))
    catalog.load_table("sales.europe.orders").append(numbers(100, 200))
    catalog.create_view("sales.europe.v", "SELECT i FROM sales.europe.orders")
    return catalog


def first(session: dl.Session, query: str) -> object:
    return session.sql(query).fetchall()[0][0]


def test_nested_schemas_are_read_by_their_paths(uri: str, tmp_path: Path) -> None:
    catalog = nested(uri, tmp_path)
    check_history(uri, history(catalog))
    with ours(uri) as session:
        for name, low in (
            ("sales.europe.orders", 0),
            ("lake.sales.europe.orders", 0),
            ("lake.SALES.Europe.orders", 0),
            ("sales.europe.north.orders", 10),
            ("lake.sales.europe.north.orders", 10),
            ('lake."sales.europe".orders', 20),
            ('"sales.europe".orders', 20),
            ("sales.orders", 30),
            ("lake.sales.europe.v", 0),
            ("sales.europe.v", 0),
        ):
            assert first(session, f"SELECT min(i) FROM {name}") == low, name
            assert first(session, f"SELECT min({name}.i) FROM {name}") == low, name
        assert first(session, "SELECT min(europe.orders.i) FROM lake.sales.europe.orders") == 0
        joined = "SELECT count(*) FROM sales.europe.orders AS a JOIN sales.europe.north.orders AS b ON a.i + 10 = b.i"
        assert first(session, joined) == 2
        assert session.table("sales.europe.north.orders").arrow().num_rows == 2
        for missing in (
            "lake.sales.asia.orders",
            "lake.europe.orders",
            "sales.north.orders",
            'lake."sales.europe.north".orders',
        ):
            with pytest.raises(dl.BindError, match=r"There is no|No lake"):
                session.sql(f"SELECT * FROM {missing}").fetchall()


def test_functions_take_the_path_of_a_nested_schema(uri: str, tmp_path: Path) -> None:
    catalog = nested(uri, tmp_path)
    last = catalog.current_snapshot().snapshot_id
    with ours(uri) as session:
        feed = f"SELECT count(*) FROM ducklake_table_changes('lake', 'sales.europe', 'orders', 0, {last})"
        assert first(session, feed) == 102
        listed = session.sql("SELECT * FROM ducklake_list_files('lake', 'orders', schema => 'sales.europe')").fetchall()
        assert len(listed) == 1
        dotted = f"SELECT count(*) FROM ducklake_table_changes('lake', 'other', 'orders', 0, {last})"
        with pytest.raises(dl.EntryNotFoundError, match="schema other"):
            session.sql(dotted).fetchall()


def test_what_takes_no_path_refuses_one(uri: str, tmp_path: Path) -> None:
    nested(uri, tmp_path)
    with ours(uri) as session:
        for statement in ("USE lake.sales.europe", "SHOW TABLES FROM lake.sales.europe"):
            with pytest.raises(dl.SqlSyntaxError, match=r"expected catalog or catalog\.schema"):
                session.sql(statement)
        with pytest.raises(dl.UsageError, match="nested schema"):
            session.use("lake.sales.europe")


def test_nested_schemas_are_listed(uri: str, tmp_path: Path) -> None:
    nested(uri, tmp_path)
    with ours(uri) as session:
        listed = session.sql("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'").fetchall()
        assert sorted(listed) == [("europe",), ("main",), ("north",), ("other",), ("sales",), ("sales.europe",)]
        shown = {(info.schema, info.table.name) for info in session.tables()}
        assert shown == {("sales", "orders"), ("sales.europe", "orders"), ("sales.europe.north", "orders")}
        assert len(session.tables()) == 4
        drawn = render(of_catalog("lake", *session.catalog()))
        assert [drawn.count(f"<b>{name}</b>") for name in ("sales", "europe", "north", "sales.europe")] == [1, 1, 1, 1]
        assert [entry.changes for entry in session.snapshots()][3][0].endswith("sales.europe.north")


def test_a_schema_is_visible_while_all_above_it_are(uri: str, tmp_path: Path) -> None:
    catalog = nested(uri, tmp_path)
    last = catalog.current_snapshot().snapshot_id
    run(
        uri,
        f"INSERT INTO ducklake_snapshot SELECT {last + 1}, snapshot_time, schema_version + 1, next_catalog_id, "
        f"next_file_id FROM ducklake_snapshot WHERE snapshot_id = {last}",
        f"UPDATE ducklake_schema SET end_snapshot = {last + 1} WHERE schema_name = 'sales'",
        f"UPDATE ducklake_table SET end_snapshot = {last + 1} WHERE schema_id = 1",
    )
    check_history(uri, history(catalog))
    with ours(uri) as session:
        assert [(info.schema, info.table.name) for info in session.tables()] == [("sales.europe", "orders")]
        assert first(session, 'SELECT min(i) FROM "sales.europe".orders') == 20
        assert first(session, f"SELECT min(i) FROM sales.europe.orders AT (VERSION => {last})") == 0
        with pytest.raises(dl.BindError):
            session.sql("SELECT * FROM sales.europe.orders").fetchall()


def test_a_schema_inside_of_itself_is_damage(uri: str, tmp_path: Path) -> None:
    nested(uri, tmp_path)
    run(uri, "UPDATE ducklake_schema SET parent_schema_id = 3 WHERE schema_name = 'sales'")
    with ours(uri) as session, pytest.raises(dl.CatalogError, match="inside of itself"):
        session.tables()

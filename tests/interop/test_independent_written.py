"""Lakes of 1.1 that we write: their metadata is that of the independent implementation, which reads them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlalchemy as sa
from ducklakepy import partitioning
from ducklakepy.expressions import col

import ducklake_lab as dl
from ducklake_lab.catalog.uri import parse_uri
from tests.independent import KINDS, history, numbers, open_lake, schema_of
from tests.interop.test_independent import Make, check_history

pytestmark = pytest.mark.sampled(5)

#: Values that cannot be equal: names and sizes of files, UUIDs, times, the writer.
IGNORED = {
    "schema_uuid", "table_uuid", "view_uuid", "snapshot_time", "path", "file_size_bytes", "footer_size",
    "column_size_bytes", "commit_extra_info", "schedule_start",
    # the reference of 1.0 and we take an id of a file for inlined rows, ducklakepy does not
    "next_file_id",
}  # fmt: skip
#: Columns by table in which NULL and a text mean the same, or one side has more unknown values.
SPELLED = {
    # ducklakepy leaves NULL what the reference and we write as "NULL" and "literal"
    "ducklake_column": {"default_value", "default_value_type", "default_value_dialect"},
    # the reference and we leave it NULL
    "ducklake_data_file": {"file_order"},
    # of inlined rows and of types without NaN ducklakepy and we may know more or less
    "ducklake_table_column_stats": {"extra_stats", "contains_nan"},
    "ducklake_file_column_stats": {"extra_stats", "contains_nan"},
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def content(uri: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all metadata tables and tables of inlined rows, without what cannot be equal."""
    engine = sa.create_engine(parse_uri(uri).url)
    found: dict[str, list[tuple[Any, ...]]] = {}
    with engine.connect() as connection:
        names = [name for name in sa.inspect(connection).get_table_names() if name.startswith("ducklake_")]
        for name in names:
            result = connection.exec_driver_sql(f'SELECT * FROM "{name}"')
            left_out = IGNORED | SPELLED.get(name, set())
            columns = [column for column in list(result.keys()) if column not in left_out]
            rows = [tuple(_normal(getattr(row, column)) for column in columns) for row in result]
            if name.startswith(
                ("ducklake_data_file", "ducklake_delete_file", "ducklake_file_", "ducklake_inlined_delete")
            ):
                rows = _numbered(rows, columns)
            if name == "ducklake_metadata":
                rows = [row for row in rows if row[0] not in ("created_by", "data_path")]
            found[name] = [tuple(columns), *sorted(rows, key=repr)]
    engine.dispose()
    return found


def _numbered(rows: list[tuple[Any, ...]], columns: list[str]) -> list[tuple[Any, ...]]:
    """The rows with the ids of files counted from 0, in their order."""
    for place, column in enumerate(columns):
        if column in ("data_file_id", "delete_file_id", "file_id"):
            ids = sorted({row[place] for row in rows})
            rows = [(*row[:place], ids.index(row[place]), *row[place + 1 :]) for row in rows]
    return rows


def _as_known(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Fill NULL flags `max_is_exact` from the expected rows: DuckDB 1.5 does not give them for largest texts."""
    if "max_is_exact" not in found[0] or duckdb.__version__ >= "2":
        return found
    place = found[0].index("max_is_exact")
    return [
        (*row[:place], theirs[place] if row[place] is None else row[place], *row[place + 1 :])
        for row, theirs in zip(found, expected, strict=True)
    ]


def _normal(value: Any) -> Any:
    return (
        bytes(value).decode()
        if isinstance(value, bytes | memoryview)
        else int(value)
        if isinstance(value, bool)
        else value
    )


def connect(uri: str, folder: Path, **options: Any) -> dl.Session:
    options = {"ducklake_version": "1.1", "data_path": f"{folder}/ours/", **options}
    return dl.connect(uri, alias="lake", engine="duckdb", **options)


def test_the_same_script_leaves_the_same_metadata(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    theirs, ours = new_catalog(kind, "theirs"), new_catalog(kind, "ours")
    catalog = open_lake(theirs, f"{tmp_path}/theirs/")
    catalog.create_namespace("sales")
    catalog.create_namespace("sales.europe")
    catalog.create_table("sales.europe.n", schema=schema_of("i int32, s varchar"))

    def table() -> Any:
        return catalog.load_table("sales.europe.n")

    table().append(numbers(0, 5))
    table().append(numbers(5, 200))
    table().delete(col("i") == 3)
    table().delete(col("i") == 7)
    table().delete((col("i") >= 20) & (col("i") < 60))
    catalog.create_table("main.t", schema=schema_of("d date, x float64"))
    catalog.create_view("sales.europe.v", "SELECT 1 AS a")
    catalog.drop_view("sales.europe.v")
    catalog.drop_table("main.t")
    with connect(ours, tmp_path) as session:
        session.sql("CREATE SCHEMA sales")
        session.sql("CREATE SCHEMA lake.sales.europe")
        session.sql("CREATE TABLE sales.europe.n (i INTEGER, s VARCHAR)")
        for start, stop in ((0, 5), (5, 200)):
            session.sql(f"INSERT INTO lake.sales.europe.n SELECT i, 'row ' || i FROM range({start}, {stop}) AS r(i)")
        session.sql("DELETE FROM sales.europe.n WHERE i = 3")
        session.sql("DELETE FROM sales.europe.n WHERE i = 7")
        session.sql("DELETE FROM sales.europe.n WHERE i >= 20 AND i < 60")
        session.sql("CREATE TABLE t (d DATE, x DOUBLE)")
        session.sql("CREATE VIEW sales.europe.v AS SELECT 1 AS a")
        session.sql("DROP VIEW sales.europe.v")
        session.sql("DROP TABLE t")
    expected, found = content(theirs), content(ours)
    assert set(found) == set(expected)
    for name, rows in expected.items():
        assert _as_known(found[name], rows) == rows, name
    assert len(found["ducklake_snapshot"]) == 14
    check_history(ours, history(open_lake(ours, version="1.1")))


def test_deletion_vectors_of_several_snapshots_have_the_same_metadata(
    kind: str, new_catalog: Make, tmp_path: Path
) -> None:
    theirs, ours = new_catalog(kind, "theirs"), new_catalog(kind, "ours")
    catalog = open_lake(theirs, f"{tmp_path}/theirs/")
    catalog.set_option("write_deletion_vectors", True)
    catalog.create_table("main.n", schema=schema_of("i int32, s varchar"))
    catalog.load_table("main.n").append(numbers(0, 300))
    for first, stop in ((20, 60), (3, 4), (100, 150), (60, 80), (4, 5), (7, 8)):
        catalog.load_table("main.n").delete((col("i") >= first) & (col("i") < stop))
    catalog.flush_inlined_data("main.n")
    with connect(ours, tmp_path) as session:
        session.sql("CALL ducklake_set_option('lake', 'write_deletion_vectors', true)")
        session.sql("CREATE TABLE n (i INTEGER, s VARCHAR)")
        session.sql("INSERT INTO n SELECT i, 'row ' || i FROM range(300) AS r(i)")
        for first, stop in ((20, 60), (3, 4), (100, 150), (60, 80), (4, 5), (7, 8)):
            session.sql(f"DELETE FROM n WHERE i >= {first} AND i < {stop}")
        session.sql("CALL ducklake_flush_inlined_data('lake')")
    expected, found = content(theirs), content(ours)
    for name, rows in expected.items():
        assert _as_known(found[name], rows) == rows, name
    assert {path.suffix for path in (tmp_path / "ours").rglob("*-delete.*")} == {".puffin"}
    check_history(ours, history(open_lake(ours)))
    # each deletes on top of what the other wrote
    open_lake(ours).load_table("main.n").delete(col("i") > 280)
    with connect(ours, tmp_path) as session:
        session.sql("DELETE FROM n WHERE i BETWEEN 200 AND 220")
        session.sql("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
        assert len(list((tmp_path / "ours").rglob("*.puffin"))) == 1
    check_history(ours, history(open_lake(ours)))


@pytest.mark.parametrize("unit", ["year", "month", "day", "hour"])
def test_partitions_counted_from_1970_have_the_same_metadata(
    unit: str, kind: str, new_catalog: Make, tmp_path: Path
) -> None:
    theirs, ours = new_catalog(kind, "theirs"), new_catalog(kind, "ours")
    days = ("1969-12-31 23:59:00", "1970-01-01", "2024-02-29 05:00:00", "0001-01-01", "1969-12-31 00:00:00")
    catalog = open_lake(theirs, f"{tmp_path}/theirs/")
    catalog.create_table("main.p", schema=schema_of("t timestamp, i int32"))
    catalog.load_table("main.p").set_partitioning(getattr(partitioning, f"epoch_{unit}")("t"))
    for day in days:
        times = pa.array([datetime.fromisoformat(day)] * 20, pa.timestamp("us"))
        catalog.load_table("main.p").append(pa.table({"t": times, "i": pa.array(range(20), pa.int32())}))
    with connect(ours, tmp_path) as session:
        session.sql("CREATE TABLE p (t TIMESTAMP, i INTEGER)")
        session.sql(f"ALTER TABLE p SET PARTITIONED BY (epoch_{unit}(t))")
        for day in days:
            session.sql(f"INSERT INTO p SELECT TIMESTAMP '{day}', i FROM range(20) AS r(i)")
    expected, found = content(theirs), content(ours)
    for name, rows in expected.items():
        assert _as_known(found[name], rows) == rows, name
    assert len(found["ducklake_file_partition_value"]) == 6
    check_history(ours, history(open_lake(ours)))


@pytest.mark.parametrize("encrypted", [False, True])
def test_vectors_name_the_snapshot_that_commits_them(
    kind: str, new_catalog: Make, tmp_path: Path, *, encrypted: bool
) -> None:
    uri = new_catalog(kind)
    options = {"write_deletion_vectors": "plain", "encrypted": encrypted}
    with connect(uri, tmp_path, **options) as session, connect(uri, tmp_path, data_path=None) as other:
        session.sql("CREATE TABLE n AS SELECT i::INTEGER AS i FROM range(300) AS r(i); CREATE TABLE o (i INTEGER)")
        session.sql("DELETE FROM n WHERE i < 40")
        with session.transaction():
            session.sql("DELETE FROM n WHERE i BETWEEN 100 AND 150")
            session.sql("DELETE FROM n WHERE i BETWEEN 200 AND 220")
            # takes the snapshot that the transaction counted on
            other.sql("INSERT INTO o VALUES (1)")
        last = session.current_snapshot().snapshot_id
        counts = [session.sql(f"SELECT count(*) FROM n AT (VERSION => {at})").fetchall() for at in (last - 1, last)]
        assert counts == [[(260,)], [(188,)]]
        gone = session.sql(f"SELECT DISTINCT snapshot_id FROM ducklake_table_deletions('lake', 'main', 'n', 2, {last})")
        assert sorted(gone.fetchall()) == [(3,), (last,)]
    assert len(list((tmp_path / "ours").rglob("*.puffin"))) == 2
    check_history(uri, history(open_lake(uri)))


SCRIPT = """
CREATE SCHEMA sales; CREATE SCHEMA sales.europe;
CREATE TABLE sales.europe.n (row_id INTEGER, begin_snapshot VARCHAR, d DECIMAL(9,2) DEFAULT 1.5);
INSERT INTO sales.europe.n SELECT i, 'x' || i, i / 4 FROM range(5) AS r(i);
INSERT INTO sales.europe.n SELECT i, 'x' || i, i / 4 FROM range(5, 500) AS r(i);
UPDATE sales.europe.n SET begin_snapshot = 'seven' WHERE row_id = 7;
DELETE FROM sales.europe.n WHERE row_id % 50 = 3;
ALTER TABLE sales.europe.n ADD COLUMN e DATE DEFAULT '2024-02-29';
INSERT INTO sales.europe.n VALUES (1000, NULL, NULL, NULL);
CALL ducklake_flush_inlined_data('lake', schema_name => 'sales.europe');
INSERT INTO sales.europe.n (row_id) SELECT 2000 + i FROM range(50) AS r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM sales.europe.n WHERE row_id > 480;
CALL ducklake_rewrite_data_files('lake', delete_threshold => 0);
CREATE TABLE main.p (t TIMESTAMP, i INTEGER);
ALTER TABLE main.p SET PARTITIONED BY (epoch_month(t));
INSERT INTO main.p SELECT TIMESTAMP '1969-11-30 12:00:00' + to_days(i::INTEGER), i FROM range(100) AS r(i);
ALTER TABLE sales.europe.n RENAME COLUMN begin_snapshot TO _s
"""


def test_every_snapshot_is_read_by_the_independent_implementation(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with connect(uri, tmp_path) as session:
        session.sql(SCRIPT)
        rows = session.sql("SELECT count(*), sum(row_id), min(d), count(e) FROM sales.europe.n").fetchall()
    theirs = history(open_lake(uri))
    assert max(map(len, theirs.values())) > 500
    check_history(uri, theirs)
    newest = open_lake(uri).load_table("sales.europe.n").to_arrow()
    assert newest.num_rows == rows[0][0]
    with connect(uri, tmp_path) as session:
        session.sql("DROP SCHEMA sales CASCADE")
        assert [info.table.name for info in session.tables()] == ["p"]
    assert open_lake(uri).list_namespaces() == ["main"]


def test_what_they_go_on_with_is_read_and_what_we_do_then(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    catalog = open_lake(uri, f"{tmp_path}/data/")
    catalog.create_namespace("a")
    catalog.create_table("a.n", schema=schema_of("i int32, s varchar"))
    catalog.load_table("a.n").append(numbers(0, 5))
    with connect(uri, tmp_path, data_path=None) as session:
        session.sql("INSERT INTO a.n VALUES (100, 'ours')")
        session.sql("DELETE FROM a.n WHERE i = 1")
    catalog.load_table("a.n").append(numbers(5, 300))
    with connect(uri, tmp_path, data_path=None) as session:
        session.sql("DELETE FROM a.n WHERE i % 10 = 0")
        session.sql("CREATE SCHEMA a.b; CREATE TABLE a.b.c AS SELECT 1 AS i")
    check_history(uri, history(open_lake(uri)))


def test_variants_are_inlined_as_bytes(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with connect(uri, tmp_path) as session:
        session.sql("CREATE TABLE v (i INTEGER, v VARIANT)")
        session.sql("INSERT INTO v SELECT 1, {'a': [1, 2]}::VARIANT UNION ALL SELECT 2, 'text'::VARIANT")
        session.sql("INSERT INTO v VALUES (3, NULL)")
        found = session.sql("SELECT i, v::VARCHAR FROM v ORDER BY i").fetchall()
        assert found == [(1, "{'a': [1, 2]}"), (2, "text"), (3, None)]
    assert not list((tmp_path / "ours").rglob("*.parquet"))
    rows = open_lake(uri).load_table("main.v").to_arrow().sort_by("i").to_pylist()
    assert [row["v"] is None for row in rows] == [False, False, True]
    assert rows[1]["v"]["value"] == b"\x11text"


def test_variants_are_inlined_in_mysql(new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog("mysql")
    with connect(uri, tmp_path) as session:
        session.sql("CREATE TABLE v (i INTEGER, v VARIANT)")
        session.sql("INSERT INTO v SELECT 1, {'a': [1, 2]}::VARIANT UNION ALL SELECT 2, 'text'::VARIANT")
        session.sql("UPDATE v SET v = 7::VARIANT WHERE i = 1; INSERT INTO v VALUES (3, NULL)")
    with connect(uri, tmp_path, data_path=None) as session:
        found = session.sql("SELECT i, v::VARCHAR, variant_typeof(v) FROM v AT (VERSION => 2) ORDER BY i").fetchall()
        assert [row[:2] for row in found] == [(1, "{'a': [1, 2]}"), (2, "text")]
        assert session.sql("SELECT i, v::VARCHAR FROM v ORDER BY i").fetchall() == [(1, "7"), (2, "text"), (3, None)]


def test_geometries_are_in_files(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    with connect(new_catalog(kind), tmp_path) as session:
        session.sql("CREATE TABLE g (p GEOMETRY); INSERT INTO g VALUES ('POINT (1 2)'::GEOMETRY)")
        assert len(session.table("g").files()) == 1


def test_bounds_that_duckdb_cuts_are_not_exact(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with connect(uri, tmp_path) as session:
        session.sql("CREATE TABLE n AS SELECT i::INTEGER AS i, repeat('x', 300) || i AS s FROM range(50) AS r(i)")
        (file,) = session.table("n").files()
        assert [(stats.min_is_exact, stats.max_is_exact) for stats in file.stats.values()] == [
            (True, True),
            (False, False),
        ]
        assert session.sql("SELECT max(length(s)), min(s) = repeat('x', 300) || 0 FROM n").fetchall() == [(302, True)]


def test_names_with_the_prefix_of_the_format_are_reserved(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with connect(uri, tmp_path, data_inlining_row_limit=0) as session, pytest.raises(dl.BindError, match="is reserved"):
        session.sql("CREATE TABLE n (_ducklake_x INTEGER)")


def test_a_lake_of_1_0_has_nothing_of_1_1(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with connect(uri, tmp_path, ducklake_version="1.0") as session:
        session.sql("CREATE TABLE p (t TIMESTAMP)")
        before = session.current_snapshot()
        session.sql("CREATE SCHEMA sales")
        for statement, feature in (
            ("CREATE SCHEMA sales.europe", "nested schemas"),
            ("ALTER TABLE p SET PARTITIONED BY (epoch_month(t))", "epoch_month"),
        ):
            with pytest.raises(dl.UnsupportedFeatureError, match=feature):
                session.sql(statement)
        assert session.current_snapshot().snapshot_id == before.snapshot_id + 1
    tables = content(uri)
    assert "ducklake_view_column_tag" not in tables
    assert not {"row_group_count", "parent_schema_id", "min_is_exact"} & {
        name for rows in tables.values() for name in rows[0]
    }


def test_comments_of_view_columns_are_theirs(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    theirs, own = new_catalog(kind, "theirs"), new_catalog(kind, "own")
    catalog = open_lake(theirs, f"{tmp_path}/theirs/")
    catalog.create_namespace("sales")
    catalog.create_namespace("sales.europe")
    for name in ("sales.europe.v", "main.w"):
        catalog.create_view(name, "SELECT 1 AS i, 2 AS t", column_aliases=("a",))
        for column, text in (("i", "first"), ("t", "second"), ("i", "third")):
            catalog.load_view(name).set_comment(text, column=column)
    catalog.rename_view("main.w", "main.x")
    catalog.load_view("main.x").set_comment("fourth", column="i")
    catalog.drop_view("sales.europe.v")
    with connect(own, tmp_path) as session:
        session.sql("CREATE SCHEMA sales; CREATE SCHEMA sales.europe")
        for name in ("sales.europe.v", "w"):
            session.sql(f"CREATE VIEW {name} (a) AS SELECT 1 AS i, 2 AS t")
            for column, text in (("a", "'first'"), ("t", "'second'"), ("a", "'third'")):
                session.sql(f"COMMENT ON COLUMN {name}.{column} IS {text}")
        session.sql("ALTER VIEW w RENAME TO x; COMMENT ON COLUMN x.a IS 'fourth'; DROP VIEW sales.europe.v")
    expected, found = content(theirs), content(own)
    for name in ("ducklake_view_column_tag", "ducklake_view", "ducklake_snapshot", "ducklake_snapshot_changes"):
        assert found[name] == expected[name], name
    assert len(found["ducklake_view_column_tag"]) == 8
    assert open_lake(own).load_view("main.x").column_tags["i"] == {"comment": "fourth"}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_alter_table_sets_options_as_they_do(kind: str, version: str, new_catalog: Make, tmp_path: Path) -> None:
    def metadata(uri: str) -> list[tuple[object, ...]]:
        engine = sa.create_engine(parse_uri(uri).url)
        query = "SELECT key, value, scope, scope_id FROM ducklake_metadata WHERE scope IS NOT NULL ORDER BY key"
        with engine.connect() as connection:
            found = [tuple(row) for row in connection.exec_driver_sql(query)]
        engine.dispose()
        return found

    theirs, own = new_catalog(kind, "theirs"), new_catalog(kind, "own")
    catalog = open_lake(theirs, f"{tmp_path}/theirs/", version)
    table = catalog.create_table("main.t", schema=schema_of("i int32"))
    for name, value in (("parquet_compression", "gzip"), ("sort_on_insert", False), ("target_file_size", "2MB")):
        table.set_option(name, value)
    table.reset_option("sort_on_insert")
    with dl.connect(own, alias="lake", data_path=f"{tmp_path}/own/", ducklake_version=version) as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        session.sql(
            "ALTER TABLE t SET (parquet_compression = 'gzip', sort_on_insert = false, target_file_size = '2MB')"
        )
        session.sql("ALTER TABLE t RESET (sort_on_insert)")
    assert metadata(own) == metadata(theirs)
    assert len(metadata(own)) == 2
    assert open_lake(own, version=version).load_table("main.t").options()["target_file_size"] == "2000000"


def test_fields_keep_their_defaults_under_other_names_and_types(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    uri = new_catalog(kind)
    with connect(uri, tmp_path, data_inlining_row_limit=0) as session:
        session.sql("CREATE TABLE t (i INTEGER, s STRUCT(a INTEGER)); INSERT INTO t VALUES (1, {'a': 1})")
        session.sql("ALTER TABLE t ADD COLUMN s.b INTEGER DEFAULT 7; ALTER TABLE t RENAME s.b TO c")
        assert session.sql("SELECT s.c FROM t").fetchall() == [(7,)]
        session.sql(
            "ALTER TABLE t ALTER s SET TYPE STRUCT(a INTEGER, c BIGINT); INSERT INTO t VALUES (2, {'a': 2, 'c': 3})"
        )
        session.sql("UPDATE t SET i = i + 10 WHERE i = 1")
        assert session.sql("SELECT i, s.c FROM t ORDER BY i").fetchall() == [(2, 3), (11, 7)]
    check_history(uri, history(open_lake(uri)))

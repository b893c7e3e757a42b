"""add_data_files: the same calls leave the same metadata as the reference's, and everybody reads the same rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import DataFileError
from tests.interop.comparing import attach, by_row_id, detach, metadata

pytestmark = pytest.mark.sampled(4)

STATEMENTS = (
    "CREATE TABLE t(i INTEGER, s VARCHAR, st STRUCT(a BIGINT, b VARCHAR), l BIGINT[], m MAP(VARCHAR, BIGINT))",
    "CALL ducklake_add_data_files('lake', 't', ['{data}/a.parquet', '{data}/*.parquet'])",
    "CREATE TABLE h(i BIGINT, v VARCHAR, p INTEGER, extra VARCHAR DEFAULT 'e')",
    "CALL ducklake_add_data_files('lake', 'h', '{data}/hive/**/*.parquet', allow_missing => true)",
    "CREATE TABLE q(i BIGINT, v VARCHAR, p INTEGER)",
    "ALTER TABLE q SET PARTITIONED BY (p)",
    "CALL ducklake_add_data_files('lake', 'q', '{data}/hive/**/*.parquet')",
    "CREATE TABLE few(i INTEGER)",
    "CALL ducklake_add_data_files('lake', 'few', '{data}/a.parquet', ignore_extra_columns => true)",
    "CREATE TABLE g(p GEOMETRY, n STRUCT(a VARCHAR, b VARCHAR[])[])",
    "CALL ducklake_add_data_files('lake', 'g', '{data}/g.parq')",
    "ALTER TABLE t RENAME COLUMN s TO z",
    "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7",
    "DELETE FROM t WHERE i < 3",
)
TABLES = ("t", "h", "q", "few", "g")


@pytest.fixture
def data(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> Path:
    """Files of others: b.parquet has its columns in another order, other case and narrower types."""
    reference.execute(
        "COPY (SELECT i::INTEGER AS i, 'x' || i AS s, {'a': i, 'b': i::VARCHAR} AS st, [i, NULL] AS l, "
        f"MAP {{'k' || i: i}} AS m FROM range(20) r(i)) TO '{tmp_path}/a.parquet'"
    )
    reference.execute(
        "COPY (SELECT {'b': i::VARCHAR, 'A': i} AS ST, i::SMALLINT AS I, 'x' || i AS s, [i, NULL] AS l, "
        f"MAP {{'k' || i: i}} AS m FROM range(30) r(i)) TO '{tmp_path}/b.parquet'"
    )
    reference.execute(
        f"COPY (SELECT i, 'v' AS v, nullif(i % 3, 2) AS p FROM range(30) r(i)) TO '{tmp_path}/hive' "
        "(FORMAT parquet, PARTITION_BY (p))"
    )
    # with NULLs in lists that DuckDB's footers count more of than there are values
    reference.execute(
        "COPY (SELECT CASE WHEN i > 0 THEN 'POINT (1 2)'::GEOMETRY END AS p, CASE i WHEN 0 THEN NULL WHEN 1 THEN [] "
        "WHEN 2 THEN [NULL] ELSE [{'a': NULL::VARCHAR, 'b': NULL}, {'a': 'x', 'b': []::VARCHAR[]}] END AS n FROM range(4) r(i)) "
        f"TO '{tmp_path}/g.parq' (FORMAT parquet, GEOPARQUET_VERSION NONE)"
    )
    return tmp_path


def test_added_files_are_read_alike(data: Path, tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uris = {name: f"ducklake:{tmp_path}/{name}.ducklake" for name in ("theirs", "ours")}
    statements = [statement.replace("{data}", str(data)) for statement in STATEMENTS]
    attach(reference, uris["theirs"], data_path=tmp_path / "theirs")
    for statement in statements:
        reference.execute(statement)
    expected = {name: by_row_id(reference.execute(f"SELECT rowid, * FROM {name}").fetchall()) for name in TABLES}
    detach(reference)
    with dl.connect(uris["ours"], alias="lake", data_path=f"{tmp_path}/ours") as session:
        for statement in statements:
            session.sql(statement)
        assert not session.spark_started
    for uri in uris.values():
        with dl.connect(uri, alias="lake") as session:
            for name in TABLES:
                rows = session.sql(f"SELECT rowid, * FROM {name}", engine="duckdb").fetchall()
                found = [
                    [dict(v) if isinstance(v, list) and v and isinstance(v[0], tuple) else v for v in row]
                    for row in rows
                ]
                assert by_row_id([tuple(row) for row in found]) == expected[name], name
    attach(reference, uris["ours"])
    for name in TABLES:
        assert by_row_id(reference.execute(f"SELECT rowid, * FROM {name}").fetchall()) == expected[name], name
    detach(reference)
    theirs, ours = metadata(reference, uris["theirs"]), metadata(reference, uris["ours"])
    for table, wanted in theirs.items():
        assert ours[table] == wanted, table


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("i INTEGER, s VARCHAR", "", 'Column "st" exists in file .* not found in table "t".*ignore_extra_columns'),
        ("i INTEGER, n INTEGER", ", ignore_extra_columns => true", 'Column "n" exists in table "t".*allow_missing'),
        ("i SMALLINT", ", ignore_extra_columns => true", 'Failed to map column "i".*Expected SMALLINT, found type INT'),
        ("st STRUCT(a INTEGER, b VARCHAR)", ", ignore_extra_columns => true", 'column "st.a".*Expected INTEGER'),
        ("i INTEGER[]", ", ignore_extra_columns => true", 'Failed to map column "i".*Expected INTEGER'),
    ],
)
def test_what_does_not_fit_is_refused(data: Path, tmp_path: Path, table: str, options: str, message: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", alias="lake", data_path=f"{tmp_path}/l") as session:
        session.sql(f"CREATE TABLE t({table})")
        before = session.current_snapshot()
        with pytest.raises(dl.DuckLakeError, match=message):
            session.sql(f"CALL ducklake_add_data_files('lake', 't', '{data}/a.parquet'{options})")
        assert session.current_snapshot() == before


def test_rolling_back_leaves_the_files_of_others_alone(data: Path, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", alias="lake", data_path=f"{tmp_path}/l") as session:
        session.sql("CREATE TABLE t(i INTEGER)")
        session.sql("BEGIN")
        session.sql(f"CALL ducklake_add_data_files('lake', 't', '{data}/a.parquet', ignore_extra_columns => true)")
        assert session.sql("SELECT count(*) FROM t", engine="duckdb").fetchall() == [(20,)]
        session.sql("DELETE FROM t")
        session.sql("ROLLBACK")
    assert (data / "a.parquet").exists()


def test_a_file_may_be_added_twice(data: Path, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", alias="lake", data_path=f"{tmp_path}/l") as session:
        session.sql("CREATE TABLE t(i INTEGER)")
        for _ in range(2):
            session.sql(f"CALL lake.add_data_files('t', '{data}/a.parquet', ignore_extra_columns => true)")
        found = session.sql("SELECT count(*), count(DISTINCT rowid) FROM t", engine="duckdb").fetchall()
        assert found == [(40, 40)]


def test_many_files_are_described_as_each_alone(data: Path, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(550):
        for name in "ab":
            (many / f"{number}-{name}.parquet").hardlink_to(data / f"{name}.parquet")
    with dl.connect(f"ducklake:{tmp_path}/l.ducklake", alias="lake", data_path=f"{tmp_path}/l") as session:
        for table, files in (("alone", data), ("many", many)):
            session.sql(f"CREATE TABLE {table}(i INTEGER, st STRUCT(a BIGINT, b VARCHAR), s VARCHAR)")
            add = f"CALL ducklake_add_data_files('lake', '{table}', '{files}/*.parquet', ignore_extra_columns => true)"
            session.sql(add)
        described = """
            SELECT t.table_name, right(f.path, 9) AS file, f.record_count, s.* EXCLUDE (data_file_id, table_id)
            FROM {m}.ducklake_data_file AS f JOIN {m}.ducklake_file_column_stats AS s USING (data_file_id)
            JOIN {m}.ducklake_table AS t ON t.table_id = f.table_id
        """.format(m="__ducklake_metadata_lake")
        alone = session.sql(f"SELECT * EXCLUDE table_name FROM ({described}) WHERE table_name = 'alone'").fetchall()
        found = session.sql(
            f"SELECT * EXCLUDE (table_name, n), n FROM (SELECT *, count(*) AS n FROM ({described}) GROUP BY ALL) "
            "WHERE table_name = 'many'"
        ).fetchall()
        assert len(alone) == 8
        assert set(found) == {(*row, 550) for row in alone}
        (many / "549-b.parquet").unlink()
        (many / "549-b.parquet").write_bytes(b"PAR1 no footer PAR1")
        before = session.current_snapshot()
        with pytest.raises(DataFileError, match=r"549-b\.parquet cannot be read: .*nothing was added"):
            session.sql(add)
        assert session.current_snapshot() == before


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_files_with_neither_ids_nor_mapping_are_read_by_place(
    engine: Literal["duckdb", "spark"], data: Path, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = f"ducklake:{tmp_path}/old.ducklake"
    attach(reference, uri, data_path=tmp_path / "old")
    for statement in (
        "CREATE TABLE t(i INTEGER, s VARCHAR, st STRUCT(a BIGINT, b VARCHAR), l BIGINT[], m MAP(VARCHAR, BIGINT))",
        f"CALL ducklake_add_data_files('lake', 't', '{data}/a.parquet')",
        "ALTER TABLE t RENAME COLUMN s TO z",
        "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7",
        # the oldest lakes had no mappings
        "UPDATE __ducklake_metadata_lake.ducklake_data_file SET mapping_id = NULL",
        "INSERT INTO t SELECT i, 'new', NULL, [], MAP {}, i FROM range(30) r(i)",
        "DELETE FROM t WHERE i = 3",
    ):
        reference.execute(statement)
    query = "SELECT rowid, i, z, w FROM t"  # of what is nested the reference reads NULLs, or fails
    expected = by_row_id(reference.execute(query).fetchall())
    detach(reference)
    with dl.connect(uri, alias="lake", engine=engine) as session:
        assert by_row_id(session.sql(query).fetchall()) == expected
        nested = session.sql("SELECT z, st.a, l[1], map_values(m) FROM t WHERE i = 5 AND z = 'x5'")
        assert nested.fetchall() == [("x5", 5, 5, [5])]
        session.sql("DELETE FROM t WHERE i = 4")
        session.sql("ALTER TABLE t DROP COLUMN w")
        session.sql("ALTER TABLE t DROP COLUMN i")
        with pytest.raises(DataFileError, match=r"a\.parquet has no field ids"):
            session.sql("FROM t").fetchall()


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_files_of_a_lake_that_lost_their_ids_are_no_nulls(
    engine: Literal["duckdb", "spark"], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    with dl.connect(
        f"ducklake:{tmp_path}/m.ducklake", alias="lake", data_path=f"{tmp_path}/d", engine=engine
    ) as session:
        session.sql("CREATE TABLE t AS SELECT i FROM range(20) r(i)")
        (file,) = (tmp_path / "d").rglob("*.parquet")
        reference.execute(f"COPY (FROM range(20) r(i)) TO '{file}' (FORMAT parquet)")
        with pytest.raises(DataFileError, match="has no field ids, and the catalog no mapping"):
            session.sql("FROM t").fetchall()


def test_spark_reads_narrower_types(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    columns = {
        "a": ("BIGINT", "UINTEGER", 4294967295),
        "b": ("UBIGINT", "USMALLINT", 65535),
        "c": ("UINTEGER", "UTINYINT", 255),
        "d": ("TIMESTAMP", "TIMESTAMP_NS", "2020-02-03 12:23:34.123456"),
        "e": ("STRUCT(x USMALLINT, y UINTEGER[])", "STRUCT(x UTINYINT, y UTINYINT[])", {"x": 7, "y": [255]}),
        "f": ("MAP(VARCHAR, INTEGER)", "MAP(VARCHAR, USMALLINT)", "MAP {'k': 65535}"),
    }
    values = [f"{v if k == 'f' else repr(v)}::{narrow} AS {k}" for k, (_, narrow, v) in columns.items()]
    file = tmp_path / "p=1" / "narrow.parquet"
    file.parent.mkdir()
    reference.execute(f"COPY (SELECT {', '.join(values)} FROM range(5)) TO '{file}'")
    uri = f"ducklake:{tmp_path}/l.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/l", engine="spark") as session:
        session.sql(f"CREATE TABLE t ({', '.join(f'{k} {wide}' for k, (wide, _, _) in columns.items())}, p INTEGER)")
        session.sql(f"CALL lake.add_data_files('t', '{file}', hive_partitioning => true)")
        session.sql("DELETE FROM t WHERE rowid = 2")
        query = "SELECT rowid, a, b, c, d, e.x, e.y, f['k'], p FROM t ORDER BY rowid"
        found = session.sql(query).fetchall()
    attach(reference, uri)
    assert found == reference.execute(query).fetchall()
    assert [row[0] for row in found] == [0, 1, 3, 4]
    detach(reference)


@pytest.mark.parametrize(
    ("values", "target", "named"),
    [
        (pa.array(np.array([1.5], dtype=np.float16)), "FLOAT", "half-floats"),
        (pa.array([np.array([1.5], dtype=np.float16)], pa.list_(pa.float16())), "FLOAT[]", "half-floats"),
        (pa.array([Decimal("1.5")], pa.decimal256(50, 3)), "DOUBLE", "more than 38 digits"),
        (pa.array([1000], pa.time32("ms")), "TIME", "other units than microseconds"),
        (pa.array([1000], pa.time64("ns")), "TIME", "other units than microseconds"),
    ],
)
def test_types_that_not_every_engine_reads_are_refused_by_both(
    values: pa.Array, target: str, named: str, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": values}), file)
    # of a longer decimal the reference makes an internal error, and takes nothing more
    if not pa.types.is_decimal256(values.type):
        attach(reference, f"ducklake:{tmp_path}/theirs.ducklake")
        reference.execute(f"CREATE TABLE lake.t(x {target})")
        with pytest.raises(duckdb.Error):
            reference.execute(f"CALL ducklake_add_data_files('lake', 't', '{file}')")
        detach(reference)
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake") as session:
        session.sql(f"CREATE TABLE t(x {target})")
        with pytest.raises(dl.DuckLakeError, match=named) as error:
            session.sql(f"CALL lake.add_data_files('t', '{file}')")
        assert '"x' in str(error.value) and str(file) in str(error.value)
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]

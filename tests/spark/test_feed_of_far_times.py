"""The change feed of times that Python and Spark's reader lack, compared with the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits

pytestmark = pytest.mark.sampled(5)

VALUES = ("'infinity'", "'-infinity'", "'2020-02-03 04:05:06.123'", "NULL")
#: TIMESTAMP_S has infinities that the reference cannot write.
SECONDS = ("'2020-01-01 00:00:01'", "'1969-12-31 23:59:59'", "'0044-03-15 (BC) 12:00:00'", "NULL")


@pytest.mark.parametrize("limit", [0, 10])
@pytest.mark.parametrize("kind", ["TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_S", "DATE", "TIMESTAMP"])
def test_feed_is_that_of_the_reference(
    kind: str, limit: int, tmp_path: Path, spark: Any, reference: duckdb.DuckDBPyConnection
) -> None:
    values = SECONDS if kind == "TIMESTAMP_S" else VALUES
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    reference.execute(
        f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/data', DATA_INLINING_ROW_LIMIT {limit}); USE lake"
    )
    reference.execute(f"CREATE TABLE t (i INTEGER, v {kind}, s STRUCT(a {kind}), l {kind}[])")
    rows = ", ".join(f"({i}, {v}, {{'a': {v}}}, [{v}])" for i, v in enumerate(values))
    reference.execute(f"INSERT INTO t VALUES {rows}")
    reference.execute("DELETE FROM t WHERE i = 0")
    reference.execute("UPDATE t SET i = i + 10 WHERE i IN (1, 3)")
    ((last,),) = reference.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    texts = f"snapshot_id, rowid, change_type, i, v::VARCHAR, s::VARCHAR, l::VARCHAR FROM lake.table_changes('t', 0, {last})"
    expected = reference.execute(f"SELECT {texts} ORDER BY ALL").fetchall()
    reference.execute("USE memory; DETACH lake")
    with dl.connect(uri, alias="lake", spark=spark, engine="spark", limits=Limits(refused=-1)) as session:
        session.sql("SET TimeZone = 'UTC'")
        # Spark has no nanoseconds, which it refuses to compute with
        columns = texts if kind != "TIMESTAMP_NS" else texts.replace("v::VARCHAR, s::VARCHAR, l::VARCHAR", "NULL")
        found = session.sql(f"SELECT {columns} ORDER BY ALL").fetchall()
        wanted = [row if kind != "TIMESTAMP_NS" else (*row[:4], None) for row in expected]
        assert found == wanted
        on_spark = session.table("t").changes(0, last).fetchall()
        session.engine = "duckdb"
        assert session.sql(f"SELECT {texts} ORDER BY ALL").fetchall() == expected
        assert sorted(map(repr, on_spark)) == sorted(map(repr, session.table("t").changes(0, last).fetchall()))
        assert len(on_spark) == len(expected)

"""MERGE INTO on rows in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse, plan_merge
from tests.merges import MERGES, TABLES, duckdb_rows

pytestmark = pytest.mark.sampled(4)


def test_merge_on_files_as_the_reference_reads_it(
    spark: Any, new_catalog: Callable[..., str], tmp_path: Path, reference: Any
) -> None:
    uri = new_catalog()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", spark=spark, engine="spark") as session:
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS s FROM range(100) r(i)")
        session.sql("CREATE TEMP TABLE changes AS SELECT i * 2 AS i, 'new' AS s FROM range(40, 60) r(i)")
        count = session.sql(
            "MERGE INTO t USING changes AS c ON t.i = c.i WHEN MATCHED AND c.i = 80 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET s = c.s WHEN NOT MATCHED THEN INSERT VALUES (c.i, 'added')"
        ).fetchone()
        assert count == (20,)
        rows = session.sql("SELECT rowid, i, s FROM t ORDER BY i").fetchall()
        assert rows[:99] == [(i, i, "new" if i % 2 == 0 and i > 80 else f"v{i}") for i in range(100) if i != 80]
        assert [row[1:] for row in rows[99:]] == [(i, "added") for i in range(100, 120, 2)]
        assert sorted(row[0] for row in rows[99:]) == list(range(100, 110))
        with pytest.raises(dl.ConstraintError, match="several rows"):
            session.sql(
                "MERGE INTO t USING (SELECT 1 AS i FROM range(20)) u USING (i) WHEN MATCHED THEN UPDATE SET s = ''"
            )
        # several source rows for each row that goes
        twice = "(SELECT range // 2 AS i FROM range(20, 80)) u USING (i)"
        assert session.sql(f"MERGE INTO t USING {twice} WHEN MATCHED THEN DELETE").fetchone() == (60,)
        rows = [row for row in rows if not 10 <= row[1] < 40]
        assert session.sql("SELECT rowid, i, s FROM t ORDER BY i").fetchall() == rows
    reference.execute(f"ATTACH '{uri}' AS lake")
    assert reference.execute("SELECT rowid, i, s FROM lake.t ORDER BY i").fetchall() == rows


def test_rows_are_those_of_duckdb(spark: Any, tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", spark=spark, engine="spark") as session:
        for merge in MERGES:
            count = session.sql(f"{TABLES}; MERGE INTO t {merge}").fetchall()
            assert count + session.sql("SELECT * FROM t ORDER BY ALL").fetchall() == duckdb_rows(merge), merge


def test_spark_itself_computes_a_merge_of_plain_values(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/a.ducklake", alias="lake") as session:
        session.sql(
            "CREATE TABLE t (i INTEGER, s VARCHAR, d DECIMAL(15,2)); CREATE TABLE u (i INTEGER, s VARCHAR, d DECIMAL(15,2))"
        )
        names = session._statements._sources.names
        statement = parse(
            "MERGE INTO t USING u ON t.i = u.i WHEN MATCHED AND u.s = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET s = u.s, d = 1.5 "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'gone' WHEN NOT MATCHED THEN INSERT BY NAME"
        )[0].operation
        assert isinstance(statement, op.Merge)
        plan = plan_merge(statement, names.entry(statement.table).table().columns, names)
        assert not plan.for_spark().evaluations  # which need Spark 4.1

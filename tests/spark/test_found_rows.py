"""Changes whose rows workers find by the keys of a small source, or fetch in parts: all ways change the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.spark import found_rows
from tests.spark.test_row_by_row import ROWS

pytestmark = pytest.mark.sampled(4)

#: Statements over a source `u` with the columns i, s and h.
CHANGES = (
    "MERGE INTO t USING u ON t.i = u.i WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT (i, s) VALUES (u.i, u.s)",
    "MERGE INTO t USING u USING (i) WHEN MATCHED AND u.i % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET h = u.h",
    # a source that is a query, a key of another width, and a condition beside the key
    "MERGE INTO t AS a USING (SELECT max(i) AS k, s FROM u GROUP BY s) AS b ON a.i = b.k AND a.s < 'row 2' WHEN MATCHED THEN DELETE",
    # rows without a match matter
    "MERGE INTO t USING u ON t.i = u.i WHEN MATCHED THEN UPDATE SET s = 'm' WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'alone'",
    "MERGE INTO t USING u ON t.i + 1 = u.i WHEN MATCHED THEN UPDATE SET s = 'next'",
    "MERGE INTO t USING u ON t.i = u.i OR t.s = u.s WHEN MATCHED THEN UPDATE SET s = 'either'",
    "MERGE INTO t USING u ON t.h = u.h WHEN MATCHED THEN UPDATE SET s = 'wide'",
    "UPDATE t SET s = u.s || t.s FROM u WHERE t.i = u.i AND u.i > 20",
    "DELETE FROM t USING u WHERE t.i = u.i AND t.s <> u.s",
    "DELETE FROM t WHERE i IN (SELECT i FROM u)",
    "DELETE FROM t WHERE i NOT IN (SELECT i FROM u WHERE i IS NOT NULL)",
)
ALONE = (
    "UPDATE t SET s = upper(s), n = {'a': n.a + 1, 'b': n.b} WHERE i % 2 = 0 OR n IS NULL",
    "DELETE FROM t WHERE i % 2 = 0",
)


@pytest.fixture
def session(tmp_path: Path, spark: Any) -> Iterator[dl.Session]:
    """A table with several files, deletions in files and in the catalog, and inlined rows."""
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", spark=spark) as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR, n STRUCT(a INTEGER, b INTEGER[]), w UBIGINT, h HUGEINT)")
        values = "SELECT i, 'row ' || i, {'a': i % 9, 'b': [i, NULL]}, 18446744073709551615 - i, i::HUGEINT * 10**20"
        session.sql(f"INSERT INTO t {values} FROM range(60) AS r(i)")
        session.sql("ALTER TABLE t ADD COLUMN added INTEGER DEFAULT 5; ALTER TABLE t ADD COLUMN z TIMESTAMPTZ")
        session.sql("DELETE FROM t WHERE i % 13 = 0; DELETE FROM t WHERE i = 8")
        session.sql(f"INSERT INTO t {values}, 6, now() - now() + TIMESTAMPTZ '2020-01-01' FROM range(60, 100) AS r(i)")
        session.sql(f"INSERT INTO t {values}, 7, NULL FROM range(100, 104) AS r(i)")
        yield session


@pytest.mark.parametrize("kind", ["DataFrame", "Arrow table"])
def test_keys_of_a_source_find_the_rows(
    kind: str, session: dl.Session, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [*range(0, 100, 7), 102, 200, 201]
    source = pa.table(
        {
            "i": pa.array([*numbers, None], pa.int64()),
            "s": [*(f"new {i}" for i in numbers), "none"],
            "h": pa.array([*numbers, None], pa.int32()),
        }
    )
    rows = source if kind == "Arrow table" else spark.createDataFrame(source)
    for change in CHANGES if kind == "DataFrame" else CHANGES[:2]:
        wanted = _changed(session, change, "duckdb", rows)
        ways = {"by keys": (), "by keys, on Spark": (("found", 0),), "by Spark alone": (("source_rows", 0),)}
        for way, limits in ways.items():
            with monkeypatch.context() as patched:
                patched.setattr(session._engine.placing, "limits", Limits(**dict(limits)))
                if way == "by Spark alone":
                    patched.setattr(Sources, "key_query", lambda self, plan, loaded: None)
                assert _changed(session, change, "spark", rows) == wanted, (change, way)


@pytest.mark.parametrize(("most", "part"), [(64_000_000, 8 << 20), (600, 8 << 20), (1, 50), (0, 50)])
def test_few_and_many_found_rows_are_changed_alike(
    most: int, part: int, session: dl.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session._engine.placing, "limits", Limits(found=most))
    monkeypatch.setattr(found_rows, "_PART_BYTES", part)
    for change in ALONE:
        assert _changed(session, change, "spark") == _changed(session, change, "duckdb"), change


def test_a_source_is_read_once(session: dl.Session, spark: Any) -> None:
    seen = spark.sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        for batch in batches:
            seen.add(batch.num_rows)
            yield batch

    frame = spark.range(40, 45, 1, 1).selectExpr("CAST(id AS INT) AS i").mapInArrow(count, "i int")
    changed = session.sql(
        "MERGE INTO t USING f ON t.i = f.i WHEN MATCHED THEN UPDATE SET s = 'x'", engine="spark", f=frame
    )
    assert changed.fetchall() == [(5,)]
    assert seen.value == 5


def _changed(session: dl.Session, change: str, engine: Any, rows: object = None) -> str:
    """The count and all rows after a change, which is undone; row ids of added rows may differ."""
    session.sql("BEGIN")
    try:
        count = session.sql(change, engine=engine, u=rows).fetchall() if rows is not None else None
        if rows is None:
            count = session.sql(change, engine=engine).fetchall()
        table = session.sql(ROWS.replace("rowid", "CASE WHEN rowid < 104 THEN rowid END AS r"), engine="duckdb")
        return str((count, table.fetchall()))
    finally:
        session.sql("ROLLBACK")

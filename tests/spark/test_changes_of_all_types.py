"""Values that a change carries along stay equal, on each way to find the rows, for few and many rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(5)

COLUMNS = (
    "k INTEGER, v VARIANT, u UBIGINT, g GEOMETRY, j JSON, id UUID, ns TIMESTAMP_NS, iv INTERVAL, h HUGEINT, tz TIMETZ"
)
VARIANTS = ("42", "'hello'", "{'a': 42, 'c': 84}", "[1, 2, NULL]", "NULL")
OTHERS = (
    "18446744073709551615, 'POINT(1 2)', '{\"a\":1}', '550e8400-e29b-41d4-a716-446655440000', "
    "'2020-01-01 00:00:00.123456', INTERVAL 3 MONTH, 12345678901, '12:00:00+01'"
)
CHANGES = {
    "update": "UPDATE t SET k = k + 1000 WHERE k < {count}",
    "merge": "MERGE INTO t USING (SELECT i FROM range({count}) AS r(i)) AS s ON t.k = s.i "
    "WHEN MATCHED THEN UPDATE SET k = k + 1000",
}


@pytest.fixture
def session(tmp_path: Path, spark: Any) -> Any:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", spark=spark) as session:
        session.sql(f"CREATE TABLE t ({COLUMNS})")
        rows = ", ".join(f"({i}, {VARIANTS[i % 5]}::VARIANT, {OTHERS})" for i in range(60))
        session.sql(f"INSERT INTO t VALUES {rows}")
        yield session


def values(session: dl.Session) -> list[tuple[Any, ...]]:
    return session.sql("SELECT * EXCLUDE (k) FROM t ORDER BY k % 1000", engine="duckdb").fetchall()


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("by_spark", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_what_a_change_carries_along_stays(
    change: str, by_spark: bool, count: int, session: dl.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = values(session)
    if by_spark:
        monkeypatch.setattr(session, "engine", "spark")
    assert session.sql(CHANGES[change].format(count=count)).fetchall() == [(count,)]
    assert values(session) == before
    changed = session.sql("SELECT count(*), count(*) FILTER (variant_typeof(v) LIKE 'INT%') FROM t WHERE k >= 1000")
    assert changed.fetchall() == [(count, (count + 4) // 5)]


def test_large_diffs_show_variants(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("UPDATE t SET v = v::INTEGER + 1 WHERE k % 5 = 0", engine="duckdb")
    small = session.table("t").diff(2).to_dict()
    monkeypatch.setattr(session, "engine", "spark")
    # only small diffs compare conditions with the unchanged rows
    assert session.table("t").diff(2).to_dict() | {"patterns": []} == small | {"patterns": []}
    assert "43" in str(small)


def test_rows_of_spark_are_read_in_process(session: dl.Session) -> None:
    frame = session.sql("SELECT k, v FROM t WHERE k < 5", engine="spark").spark()
    session.write(frame, "copied", mode="create")
    query = "SELECT k, v, variant_typeof(v) LIKE 'INT%' FROM {} WHERE k < 5 ORDER BY k"
    found = [session.sql(query.format(name), engine="duckdb").fetchall() for name in ("t", "copied")]
    assert found[0] == found[1]

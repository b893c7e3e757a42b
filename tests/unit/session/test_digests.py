"""Counts and extremes that the catalog answers are those of the rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.version import SINCE_DUCKDB_2

pytestmark = pytest.mark.sampled(3)

QUERIES = [
    "SELECT count(*) AS n FROM {}",
    "SELECT max(i), count() + 1, min(i)::BIGINT * -1 FROM {}",
    "SELECT min(s), max(d), min(n), max(u), count(d) FROM {}",
    "SELECT count(i), count(s), max(f) FROM {}",
]
ROWS = (
    "SELECT CASE WHEN i % {0} <> 0 THEN i END AS i, DATE '2013-01-31' + i::INT AS d, (i / 7)::DECIMAL(9, 3) AS n, "
    "CASE WHEN i % 3 < 2 THEN repeat('x', {1}) || i END AS s, i / 3 AS f, TIMESTAMP '2013-01-31' + INTERVAL (i) HOUR AS u "
    "FROM range({2}, {3}) r(i)"
)
STEPS = st.one_of(
    st.builds(
        lambda nulls, width, first, count: f"INSERT INTO t {ROWS.format(nulls, width, first, first + count)}",
        st.integers(1, 3), st.sampled_from([1, 1, 80]), st.integers(-50, 50), st.integers(1, 40),
    ),
    st.builds("DELETE FROM t WHERE i % {} = 0".format, st.integers(2, 30)),
    st.builds("UPDATE t SET i = i + 100 WHERE i = {}".format, st.integers(-50, 50)),
    st.sampled_from(["CALL lake.flush_inlined_data()", "CALL lake.merge_adjacent_files()", "DELETE FROM t WHERE i > 40"]),
)  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> dl.Session:
    return dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", alias="lake", data_path=f"{tmp_path}/data")


def check(session: dl.Session, at: str = "") -> int:
    """Compares; how many of the queries were answered without a file."""
    answered = 0
    for query in QUERIES:
        result = session.sql(query.format(f"t{at}"), engine="duckdb")
        scanned = session.sql(query.format(f"(FROM t{at})"), engine="duckdb")
        assert result.fetchall() == scanned.fetchall(), query
        assert result.types == scanned.types
        answered += result.info.files_read == 0 < result.info.files_total
    return answered


@pytest.mark.slow
def test_random_changes(session: dl.Session) -> None:
    answered = []

    @settings(max_examples=3, deadline=None, phases=[Phase.generate])
    @given(st.lists(STEPS, min_size=2, max_size=4))
    def run(steps: list[str]) -> None:
        session.sql(f"CREATE OR REPLACE TABLE t AS {ROWS.format(2, 1, 0, 30)}")
        before = session.current_snapshot().snapshot_id
        for step in steps:
            session.sql(step)
        answered.append(check(session))
        answered.append(check(session, f" AT (VERSION => {before})"))
        with session.transaction():
            session.sql(f"INSERT INTO t {ROWS.format(3, 1, 60, 90)}")
            session.sql("DELETE FROM t WHERE i IN (1, 2, 61)")
            answered.append(check(session))

    run()
    # of texts DuckDB 2 says which extremes it cut
    assert max(answered) == len(QUERIES) - (1 if SINCE_DUCKDB_2 else 2), "all but extremes of floats, and of cut texts"
    assert session._engine.session is None


#: Texts that DuckDB's statistics replace by others: a cut one, or a short one that is greater.
CUT = (
    "'z' || repeat('☃', 200)",
    "'zz' || repeat('☃', 200)",
    "repeat('é', 200)",
    "repeat('z', 300)",
    "repeat(chr(1114111), 90)",
)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("text", CUT)
def test_a_bound_that_was_cut_is_no_value(tmp_path: Path, text: str, version: str) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", ducklake_version=version) as session:
        session.sql(f"CREATE TABLE t AS SELECT CASE WHEN i = 3 THEN {text} ELSE 'a' || i END AS s FROM range(40) r(i)")
        session.sql(f"CREATE TABLE u AS SELECT {text} AS s FROM range(40)")
        (value,) = session.sql(f"SELECT {text}").fetchall()[0]
        for table in ("t", "u"):
            assert session.sql(f"SELECT max(s) FROM {table}").fetchall() == [(value,)]
        assert session.sql("SELECT min(s) FROM t").fetchall() == [("a0",)]
        assert session.sql("SELECT min(s) FROM u").fetchall() == [(value,)]
        ((_, _, low, high, *_),) = session.table("t").column_stats().rows
        assert (low, high) == (None, None) or (low == "a0" and high.startswith("≤ ") and high[2:] >= value)


def test_what_needs_rows(session: dl.Session) -> None:
    session.sql(f"CREATE TABLE t AS {ROWS.format(2, 1, 0, 30)}")
    for query in (
        "SELECT count(DISTINCT i) FROM t",
        "SELECT count(*) FILTER (i > 2) FROM t",
        "SELECT sum(i) FROM t",
        "SELECT max(i + 1) FROM t",
        "SELECT count(*) FROM t WHERE i > 2",
        "SELECT count(*), d FROM t GROUP BY d LIMIT 1",
        "SELECT max(i) OVER () FROM t LIMIT 1",
        "SELECT max(f) FROM t",
        "SELECT max(rowid) FROM t",
    ):
        assert session.sql(query, engine="duckdb").info.files_read == 1, query
    session.sql("ALTER TABLE t ADD COLUMN later INTEGER DEFAULT 5")
    assert session.sql("SELECT max(later), count(later) FROM t", engine="duckdb").fetchall() == [(5, 30)]
    session.sql("DELETE FROM t WHERE i = 29")
    assert session.sql("SELECT max(i) FROM t", engine="duckdb").fetchall() == [(27,)]
    deleted = session.sql("SELECT count(*) FROM t")
    assert (deleted.fetchall(), deleted.info.files_read) == ([(29,)], 0)
    told = [
        session.sql(f"EXPLAIN ANALYZE SELECT {what} FROM t", engine="duckdb").fetchall()[0][1]
        for what in ("count(*)", "max(i)")
    ]
    assert "answered by the catalog" in told[0] and "Total Files Read: 0 of 1" in told[0]
    assert "TABLE_SCAN" in told[1] and "Total Files Read: 1 of 1" in told[1]
    assert session._engine.session is None

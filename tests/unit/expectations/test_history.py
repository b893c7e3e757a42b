"""Counts of checks over time: kept beside the data, charted below a check, and equal to plain SQL at each snapshot."""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.expectations import kept
from tests.sampling import examples

#: Expectations, and the query that counts their violations.
EXPECTED = {
    "positive": ("CHECK (v > 0)", "SELECT count(*) FROM t WHERE NOT (v > 0)"),
    "known": ("NOT NULL (v)", "SELECT count(*) FROM t WHERE v IS NULL"),
    "one": ("UNIQUE (k)", "SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM t WHERE k IS NOT NULL GROUP BY k)"),
    "few": ("QUERY (SELECT * FROM t WHERE k > 4)", "SELECT count(*) FROM t WHERE k > 4"),
}  # fmt: skip
_VALUE = st.one_of(st.none(), st.integers(-3, 6))
_CHANGE = st.one_of(
    st.lists(st.tuples(_VALUE, _VALUE), min_size=1, max_size=12).map(
        lambda rows: "INSERT INTO t VALUES " + ", ".join(str(row).replace("None", "NULL") for row in rows)
    ),
    st.integers(-3, 6).map(lambda k: f"DELETE FROM t WHERE k = {k}"),
    st.integers(-3, 6).map(lambda k: f"UPDATE t SET v = v - 1, k = k + 1 WHERE k < {k}"),
)


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as made:
        made.sql("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t VALUES (1, 1), (1, -1)")
        made.sql("ALTER TABLE t EXPECT positive CHECK (v > 0) ON VIOLATION warn")
        yield made


def _series(session: dl.Session) -> list[tuple[object, ...]]:
    return [(row[1], row[3], row[5]) for row in session.check_history("t").fetchall()]


def _drawn(html: str) -> dict[str, list[tuple[int, int]]]:
    """Returns the snapshots and counts that a chart's bars name, by expectation."""
    found = {}
    for row in BeautifulSoup(html, "html.parser").select(".dlk-ck tbody tr"):
        titles = [re.match(r"([\d,]+) violations? at snapshot (\d+),", one.text) for one in row.select("rect title")]
        found[row.td.text] = [(int(one[2]), int(one[1].replace(",", ""))) for one in titles if one]
    return found


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_CHANGE, min_size=2, max_size=5))
def test_the_counts_are_those_of_plain_sql(changes: list[str]):
    plain = duckdb.connect()
    plain.execute("CREATE TABLE t (k INTEGER, v INTEGER)")
    with (
        tempfile.TemporaryDirectory() as folder,
        dl.connect(f"ducklake:{folder}/l.ducklake", data_path=f"{folder}/d", engine="duckdb") as session,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", dl.ExpectationWarning)
        session.sql("CREATE TABLE t (k INTEGER, v INTEGER)")
        for name, (definition, _) in EXPECTED.items():
            session.sql(f"ALTER TABLE t EXPECT {name} {definition} ON VIOLATION warn")
        expected: dict[str, dict[int, int]] = {name: {} for name in EXPECTED}
        for change in changes:
            session.sql(change)
            plain.execute(change)
            at = session.current_snapshot().snapshot_id
            result = session.check("t")
            assert session.current_snapshot().snapshot_id == at
            for name, (_, query) in EXPECTED.items():
                expected[name][at] = int(plain.execute(query).fetchall()[0][0])
        wanted = {name: list(points.items()) for name, points in expected.items()}
        history = session.check_history("t").fetchall()
        assert {name: [(row[3], row[5]) for row in history if row[1] == name] for name in EXPECTED} == wanted
        assert {
            one.expectation.name: [(p.snapshot_id, p.count) for p in one.points] for one in result.outcomes
        } == wanted
        if any(len(points) > 1 for points in wanted.values()):
            assert _drawn(result._repr_html_()) == wanted


def test_what_is_kept_and_what_is_not(session: dl.Session):
    at = session.current_snapshot().snapshot_id
    assert "Violations over time" not in session.check("t")._repr_html_()  # a first check has no past
    session.check()
    assert _series(session) == [("positive", at, 1)]
    session.check("t", since=at)
    session.sql("BEGIN; UPDATE t SET v = -5")
    (outcome,) = session.check("t").outcomes
    assert (outcome.count, outcome.points) == (2, ())
    with pytest.warns(dl.ExpectationWarning):
        session.sql("COMMIT")
    assert _series(session) == [("positive", at, 1)]
    session.check("t")
    assert _series(session) == [("positive", at, 1), ("positive", at + 1, 2)]
    # another name of the column, and another treatment, make no other counts; another condition does
    session.sql("ALTER TABLE t EXPECT one UNIQUE (k)")
    session.check("t")
    session.sql("ALTER TABLE t RENAME COLUMN k TO id; ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t")
    session.sql("ALTER TABLE t DROP EXPECTATION positive; ALTER TABLE t EXPECT positive CHECK (v > -9)")
    assert [row[0] for row in _series(session)] == ["one"]
    html = session.sql("CHECK t")._repr_html_()
    assert list(_drawn(html)) == ["one"]
    assert [row[2] for row in _series(session)] == [1, 1, 0]


def test_a_lake_that_may_only_be_read_is_checked(session: dl.Session, uri: str):
    session.check("t")
    before = _series(session)
    session.close()
    with dl.Session(engine="duckdb") as reader:
        reader.attach(uri, alias="lake", read_only=True)
        assert reader.check("t").fetchall()[0][5] == 1
        assert _series(reader) == before


def test_a_text_that_is_not_ours_is_no_past(session: dl.Session):
    session.check("t")
    with session._transactions.writing(session.current_lake) as transaction:
        (key,) = [key for *_, key in transaction.options.values if key.startswith(kept.PREFIX)]
        for text in ("", "[]", "{}", '{"form": 9, "points": []}', json.dumps({"form": 1, "points": [["x", 1]]})):
            transaction.set_option(kept.SCOPE, key, text)
            assert kept.read(transaction.options, key) == ()
    assert _series(session) == []
    session.check("t")
    assert [row[2] for row in _series(session)] == [1]


def test_no_more_than_the_last_counts_are_kept():
    points: tuple[kept.Point, ...] = ()
    now = kept._moment(1_764_000_000_123_456)
    for snapshot in range(kept.MOST + 5):
        points = kept.followed(points, snapshot % 3, snapshot, now)
    assert len(points) == kept.MOST and points[0].snapshot_id == 5 and points[-1].time == now
    assert len(kept.written(points)) < 60_000

"""Diffs too big for one process: the same counts from Spark, and a sample that says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.diff import compute
from ducklake_lab.diff.model import RowChoice

pytestmark = pytest.mark.sampled(4)


@pytest.fixture
def session(tmp_path: Path, spark: SparkSession) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", alias="lake", spark=spark) as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR, m MAP(VARCHAR, INTEGER), old INTEGER)")
        session.sql("INSERT INTO t SELECT range, 'a' || range % 7, MAP {'k': range % 3}, 1 FROM range(3000)")
        session.sql("ALTER TABLE t DROP COLUMN old; ALTER TABLE t RENAME COLUMN s TO name")
        session.sql("UPDATE t SET name = 'b', m = MAP {'k': 9} WHERE i < 1000; DELETE FROM t WHERE i >= 2500")
        session.sql("INSERT INTO t SELECT range, 'new', NULL FROM range(3000, 3200)")
        yield session


@pytest.mark.parametrize("key", [None, ["i"]])
def test_spark_counts_what_a_process_counts(
    session: dl.Session, monkeypatch: pytest.MonkeyPatch, key: list[str] | None
) -> None:
    small = session.table("t").diff(2, key=key)
    monkeypatch.setattr(session, "engine", "spark")
    big = session.table("t").diff(2, key=key)
    assert big.summary == small.summary
    assert (big.summary.updated, big.summary.deleted, big.summary.inserted) == (1000, 500, 200)
    # only small diffs compare conditions with the unchanged rows
    assert big.to_dict() | {"patterns": []} == small.to_dict() | {"patterns": []}
    assert {pattern.unchanged_share for pattern in big.patterns} == {None}
    assert big.patch() == small.patch() and big.sql() == small.sql()
    choice = {"changed": "name", "sort": [("i", True)], "offset": 5}
    assert big.rows(7, **choice) == small.rows(7, **choice)

    monkeypatch.setattr(compute, "SAMPLE", 300)
    sampled = session.table("t").diff(2, key=key)
    assert sampled.summary == small.summary
    assert sampled.sampled is not None
    assert 100 < sampled.sampled < 600
    with pytest.raises(dl.UsageError, match="1,700 rows differ, and a patch holds"):
        sampled.patch()
    of_kind = RowChoice("deleted")
    assert (sampled.count(of_kind), sampled.passing(of_kind)) == (500, len(sampled.rows(1000, kind="deleted")))
    assert [column.updated for column in sampled.columns] == [column.updated for column in small.columns]
    assert f"from a sample of {sampled.sampled}" in sampled._repr_html_()
    assert any(pattern.condition == "\"name\" = 'new'" for pattern in sampled.patterns)


def test_spark_finds_equal_maps_equal(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    row = session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone()
    assert row is not None
    session.sql("UPDATE t SET name = 'c' WHERE i = 2000")
    monkeypatch.setattr(session, "engine", "spark")
    (change,) = session.table("t").diff(row[0]).rows()
    assert change.changed == ("name",)
    assert session.table("t").diff(row[0]).summary.cells == 1


def test_what_spark_gives_not_exactly_is_in_no_patch(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("CREATE TABLE n AS SELECT TIMESTAMP_NS '2020-01-01 00:00:00.123456789' AS at")
    row = session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone()
    assert row is not None
    session.sql("INSERT INTO n VALUES (TIMESTAMP_NS '2021-01-01 00:00:00.123456789')")
    assert ".123456789" in session.table("n").diff(row[0]).patch()
    monkeypatch.setattr(session, "engine", "spark")
    with pytest.raises(dl.UnsupportedFeatureError, match="Spark cuts values of at, which is TIMESTAMP_NS"):
        session.table("n").diff(row[0]).patch()

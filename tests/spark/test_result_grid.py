"""The grid of a result on Spark: no job runs before somebody asks for what it gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.session.rows import result as result_module
from ducklake_lab.session.rows.result import Result
from ducklake_lab.spark import frames
from ducklake_lab.widgets.recorded import KEY, record_of
from ducklake_lab.widgets.table_view import ResultBrowser


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", spark=spark, engine="spark") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, i % 7 AS k FROM range(200) AS r(i)")
        yield session


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that Spark handed over, one for each run."""
    found: list[int] = []
    fetch = frames.to_arrow_table

    def noted(frame: Any) -> pa.Table:
        rows = fetch(frame)
        found.append(rows.num_rows)
        return rows

    monkeypatch.setattr(frames, "to_arrow_table", noted)
    return found


def shown(result: Result) -> ResultBrowser:
    result._repr_html_()
    return ResultBrowser(result, shows=())


def column(browser: ResultBrowser, count: int) -> list[str]:
    _, (page,) = browser.answer_page({"start": 0, "count": count, "first": 0, "wide": 1})
    found: list[str] = pa.ipc.open_stream(page).read_all().column(0).to_pylist()
    return found


def test_a_job_runs_again_when_it_is_asked_for(
    session: dl.Session, jobs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_module, "MAX_SPARK_ROWS", 150)
    browser = shown(session.sql("SELECT i, k FROM t ORDER BY i"))
    assert column(browser, 50) == [str(i) for i in range(50)]
    assert (jobs, browser.whole, browser.passing) == ([51], False, 50)
    session.sql("DELETE FROM t WHERE i < 100")
    before = len(jobs)
    browser.sort = [["i", True]]
    browser.answer_profile({"column": "k"})
    assert len(jobs) == before + 1
    assert column(browser, 150) == [str(i) for i in reversed(range(150))]
    assert (browser.whole, browser.note) == (True, "looks through the first 150 rows only")
    few = shown(session.sql("SELECT i FROM t WHERE i >= 190"))
    runs = len(jobs)
    few.sort = [["i", True]]
    assert (few.whole, len(jobs)) == (True, runs)


def test_values_of_another_run_are_said_to_be_so(session: dl.Session) -> None:
    browser = shown(session.sql("SELECT i, random() AS x FROM t"))
    assert "ran again" not in browser.facts
    browser.answer_all({})
    assert browser.facts.endswith("ran again, with other values")
    same = shown(session.sql("SELECT i FROM t"))
    same.answer_all({})
    assert "ran again" not in same.facts


def test_the_record_names_what_spark_reads(session: dl.Session) -> None:
    session.sql("CREATE VIEW few AS FROM t WHERE i < 3")
    queries = (session.sql("FROM few"), session.sql("SELECT count(*) FROM few", dialect="spark"))
    for found in (record_of(result)[KEY] for result in queries):
        (state,) = found["reads"]
        assert (found["engine"], state["snapshot"]) == ("spark", 2)
        assert [entry["name"] for entry in (*state["tables"], *state["definitions"])] == ["t", "few"]

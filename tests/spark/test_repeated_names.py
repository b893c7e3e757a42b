"""Items of FROM with several columns of one name, by Spark: the same as by DuckDB in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from tests.unit.session.rows.test_repeated_names import QUERIES, SETUP


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Any:
    folder: Path = tmp_path_factory.mktemp("names")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", spark=spark) as session:
        for statement in SETUP:
            session.sql(statement)
        yield session


@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_agree(query: str, lake: dl.Session) -> None:
    here = lake.sql(query, engine="duckdb")
    there = lake.sql(query, engine="spark")
    assert there.columns == here.columns
    assert sorted(map(repr, there.fetchall())) == sorted(map(repr, here.fetchall()))

"""Views and macros over data files: the same rows by Spark as by DuckDB in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(4)

QUERIES = [
    "FROM odd ORDER BY i",
    "SELECT o.k, t.s FROM odd AS o(k) JOIN t ON o.k = t.i WHERE twice(o.k) > 10 ORDER BY ALL",
    "SELECT twice(i) AS d, above(10) AS b FROM t ORDER BY i",
    "SELECT grp, max(twice(i)) FROM summed GROUP BY grp ORDER BY grp",
    "FROM between_(3, 5) ORDER BY i",
    "SELECT count(*) FROM odd AT (VERSION => 3)",
    "FROM lists ORDER BY i",
]


@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_agree(query: str, lake: dl.Session) -> None:
    assert sorted(map(repr, lake.sql(query).fetchall())) == sorted(
        map(repr, lake.sql(query, engine="duckdb").fetchall())
    )


def test_a_condition_inside_of_a_view_prunes_files(lake: dl.Session) -> None:
    result = lake.sql("SELECT count(*) FROM late")
    assert result.fetchall() == [(20,)]
    assert 0 < result.info.files_read < result.info.files_total


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Any:
    folder: Path = tmp_path_factory.mktemp("views")
    with dl.connect(
        f"ducklake:{folder}/lake.ducklake", alias="lake", data_path=f"{folder}/data", spark=spark, engine="spark"
    ) as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, 's' || i AS s FROM range(20) r(i)")
        session.sql("INSERT INTO t SELECT i::INTEGER, 's' || i FROM range(100, 120) r(i)")
        session.sql("CREATE VIEW odd AS SELECT i FROM t WHERE i % 2 = 1 AND i < 100")
        session.sql("CREATE VIEW late AS SELECT * FROM t WHERE i >= 100")
        session.sql("CREATE VIEW summed AS SELECT i // 10 AS grp, i FROM t")
        session.sql(
            "CREATE VIEW lists AS SELECT i, list_transform([i, 1], x -> x + 1) AS x, [i, 2] AS l FROM t WHERE i < 3"
        )
        session.sql("CREATE MACRO twice(x) AS x * 2")
        session.sql("CREATE MACRO above(x) AS (SELECT count(*) FROM t WHERE t.i > x)")
        session.sql("CREATE MACRO between_(lo, hi) AS TABLE SELECT * FROM t WHERE i BETWEEN lo AND hi")
        session.sql("INSERT INTO t VALUES (7, 'again')")
        yield session

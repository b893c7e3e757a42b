"""INTERVAL, TIME WITH TIME ZONE and nested values on Spark, which has no equal of them: DuckDB computes with them."""

from __future__ import annotations

import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from tests.unit.sql import lakes

KINDS = DataType("map", (("key", DataType("varchar")), ("value", lakes.INTEGER)))
GAPS = [
    ("id", lakes.INTEGER),
    ("gap", DataType("interval")),
    ("shut", DataType("timetz")),
    ("start", DataType("timestamp")),
    ("finish", DataType("timestamp")),
    ("gaps", DataType("list", (("element", DataType("interval")),))),
    ("kinds", KINDS),
    ("s", DataType("struct", (("gap", DataType("interval")), ("n", lakes.INTEGER)))),
]


@pytest.fixture(autouse=True)
def gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lakes.TABLES, "gaps", GAPS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM gaps WHERE '1 day' IN (SELECT gap FROM gaps)",
        "SELECT DISTINCT shut FROM gaps",
        "SELECT gap, count(*) FROM gaps GROUP BY gap",
        "SELECT gap, count(*) FROM gaps GROUP BY ALL",
        "SELECT s, count(*) FROM gaps GROUP BY s",
        "SELECT id FROM gaps JOIN (SELECT gap FROM gaps) USING (gap)",
        "SELECT gap FROM gaps UNION SELECT gap FROM gaps",
        "SELECT gap FROM gaps UNION ALL SELECT gap FROM gaps ORDER BY gap",
        "SELECT gap FROM gaps EXCEPT SELECT gap FROM gaps",
        "SELECT kinds FROM gaps UNION ALL SELECT kinds FROM gaps ORDER BY 1",
        "SELECT a.id FROM gaps a LEFT JOIN gaps b ON a.gap = b.gap",
    ],
)
def test_rows_do_not_meet_by_what_spark_finds_equal_otherwise(text: str) -> None:
    planned = lakes.any_plan(text)
    assert planned.duckdb_sql
    with pytest.raises(UnsupportedFeatureError, match="is not supported on Spark"):
        planned.for_spark()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM gaps WHERE gap > INTERVAL 1 DAY",
        "SELECT id FROM gaps WHERE gap IN ('1 day')",
        "SELECT id FROM gaps WHERE shut < '10:00:00+02'",
        "SELECT id FROM gaps WHERE (SELECT min(id) FROM gaps) = 1 AND (SELECT gap FROM gaps LIMIT 1) = '1 day'",
        "SELECT id, gap AS g FROM gaps ORDER BY g",
        "FROM gaps ORDER BY ALL",
        "SELECT min(gap) FROM gaps",
        "SELECT count(DISTINCT gap) FROM gaps",
        "WITH c AS (SELECT gap AS g FROM gaps) SELECT max(g) FROM c",
        "SELECT start + s['gap'] FROM gaps",
        "SELECT s = s FROM gaps",
        "SELECT a.id FROM gaps a JOIN gaps b ON a.gap = b.gap",
        "SELECT row_number() OVER (ORDER BY gap) FROM gaps",
        "SELECT coalesce(gap, INTERVAL 1 DAY) FROM gaps",
        "SELECT max(finish - start) FROM gaps",
        "SELECT id, kinds FROM gaps ORDER BY kinds",
        "SELECT min(gaps) FROM gaps",
        "SELECT id FROM gaps WHERE gaps > [INTERVAL 1 DAY]",
    ],
)
def test_duckdb_computes_with_them(text: str) -> None:
    assert lakes.plan(text).for_spark().evaluations


@pytest.mark.parametrize(
    "text",
    [
        "FROM gaps",
        "SELECT DISTINCT id FROM gaps WHERE gap IS NOT NULL OR shut IS NULL",
        "SELECT count(gap), count(shut) FROM gaps",
        "SELECT g FROM (SELECT gap AS g, id FROM gaps) WHERE id = 1",
        "SELECT id, s.n + 1, s.gap FROM gaps ORDER BY s.n",
        "SELECT CASE WHEN id = 1 THEN gap END FROM gaps",
        "SELECT id, gap FROM gaps UNION ALL SELECT id, gap FROM gaps ORDER BY id",
        "SELECT a.gap, b.gap FROM gaps a JOIN gaps b USING (id)",
    ],
)
def test_spark_hands_them_on(text: str) -> None:
    assert not lakes.plan(text).for_spark().evaluations

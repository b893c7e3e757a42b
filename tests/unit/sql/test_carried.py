"""INTERVAL and TIME WITH TIME ZONE on Spark, which has only their text."""

from __future__ import annotations

import pytest

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from tests.unit.sql import lakes

GAPS = [
    ("id", lakes.INTEGER),
    ("gap", DataType("interval")),
    ("shut", DataType("timetz")),
    ("start", DataType("timestamp")),
    ("finish", DataType("timestamp")),
    ("gaps", DataType("list", (("element", DataType("interval")),))),
    ("s", DataType("struct", (("gap", DataType("interval")), ("n", lakes.INTEGER)))),
]
KINDS = DataType("map", (("key", DataType("varchar")), ("value", lakes.INTEGER)))


@pytest.fixture(autouse=True)
def gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lakes.TABLES, "gaps", GAPS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM gaps WHERE gap > INTERVAL 1 DAY",
        "SELECT id FROM gaps WHERE gap = '1 day'",
        "SELECT id FROM gaps WHERE gap IN ('1 day')",
        "SELECT id FROM gaps WHERE '1 day' IN (SELECT gap FROM gaps)",
        "SELECT id FROM gaps WHERE shut < '10:00:00+02'",
        "SELECT id FROM gaps WHERE (SELECT min(id) FROM gaps) = 1 AND (SELECT gap FROM gaps LIMIT 1) = '1 day'",
        "SELECT id, gap FROM gaps ORDER BY gap",
        "SELECT id, gap AS g FROM gaps ORDER BY g",
        "SELECT id, gap FROM gaps ORDER BY 2",
        "FROM gaps ORDER BY ALL",
        "SELECT min(gap) FROM gaps",
        "SELECT max(shut) FROM gaps",
        "SELECT count(DISTINCT gap) FROM gaps",
        "SELECT DISTINCT shut FROM gaps",
        "SELECT DISTINCT ON (gap) id FROM gaps",
        "SELECT gap, count(*) FROM gaps GROUP BY gap",
        "SELECT gap, count(*) FROM gaps GROUP BY ALL",
        "SELECT start + gap FROM gaps",
        "SELECT start + g FROM (SELECT start, gap AS g FROM gaps)",
        "WITH c AS (SELECT gap AS g FROM gaps) SELECT max(g) FROM c",
        "SELECT start + gaps[1] FROM gaps",
        "SELECT start + s.gap FROM gaps",
        "SELECT start + s['gap'] FROM gaps",
        "SELECT s = s FROM gaps",
        "SELECT a.id FROM gaps a JOIN gaps b ON a.gap = b.gap",
        "SELECT id FROM gaps JOIN (SELECT gap FROM gaps) USING (gap)",
        "SELECT gap FROM gaps UNION SELECT gap FROM gaps",
        "SELECT gap FROM gaps UNION ALL SELECT INTERVAL 1 DAY",
        "SELECT gap FROM gaps UNION ALL SELECT gap FROM gaps ORDER BY gap",
        "SELECT gap FROM gaps EXCEPT SELECT gap FROM gaps",
        "SELECT row_number() OVER (ORDER BY gap) FROM gaps",
        "SELECT CASE WHEN id = 1 THEN gap ELSE INTERVAL 1 DAY END FROM gaps",
        "SELECT coalesce(gap, INTERVAL 1 DAY) FROM gaps",
    ],
)
def test_what_would_compute_with_text_is_refused_by_the_column_s_name(text: str) -> None:
    planned = lakes.any_plan(text)
    assert planned.duckdb_sql
    with pytest.raises(UnsupportedFeatureError, match=r'Computing with or comparing ".*" is not supported on Spark'):
        planned.for_spark()


@pytest.mark.parametrize(
    "text",
    [
        "FROM gaps",
        "SELECT DISTINCT id FROM gaps WHERE gap IS NOT NULL OR shut IS NULL",
        "SELECT count(gap), count(shut) FROM gaps",
        "SELECT gap AS g, (shut) FROM gaps ORDER BY id",
        "SELECT g FROM (SELECT gap AS g, id FROM gaps) WHERE id = 1",
        "SELECT id, s.n + 1, s.gap FROM gaps ORDER BY s.n",
        "SELECT CASE WHEN id = 1 THEN gap END FROM gaps",
        "SELECT gap FROM gaps UNION ALL SELECT gap FROM gaps",
        "SELECT id, gap FROM gaps UNION ALL SELECT id, gap FROM gaps ORDER BY id",
        "SELECT a.gap, b.gap FROM gaps a JOIN gaps b USING (id)",
        "SELECT id FROM gaps a WHERE EXISTS (SELECT gap FROM gaps b WHERE a.id = b.id)",
        "SELECT max(finish - start) FROM gaps",
        "WITH c AS (SELECT finish - start AS took FROM gaps) SELECT max(took) FROM c WHERE took > INTERVAL 1 DAY",
        "SELECT start + INTERVAL 1 DAY FROM gaps",
        "SELECT gap FROM (VALUES (INTERVAL 1 DAY)) v(gap) ORDER BY gap",
    ],
)
def test_output_counts_and_computed_intervals_stay(text: str) -> None:
    assert lakes.plan(text).for_spark()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, kinds FROM mapped ORDER BY kinds",
        "FROM mapped ORDER BY ALL",
        "SELECT id FROM mapped ORDER BY inner_kinds",
        "SELECT row_number() OVER (ORDER BY kinds) FROM mapped",
        "SELECT kinds FROM mapped UNION ALL SELECT kinds FROM mapped ORDER BY 1",
        "SELECT id FROM mapped ORDER BY numbers LIMIT 1",
        "SELECT min(numbers) FROM mapped",
        "SELECT max(inner_kinds) OVER () FROM mapped",
        "SELECT id FROM mapped WHERE numbers > [1]",
        "SELECT greatest(numbers, [1]) FROM mapped",
    ],
)
def test_nested_values_have_no_order(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = DataType("struct", (("m", KINDS),))
    numbers = DataType("list", (("element", lakes.INTEGER),))
    columns = [("id", lakes.INTEGER), ("kinds", KINDS), ("inner_kinds", inner), ("numbers", numbers)]
    monkeypatch.setitem(lakes.TABLES, "mapped", columns)
    with pytest.raises(UnsupportedFeatureError, match="Sorting or comparing by a"):
        lakes.plan(text).for_spark()
    assert lakes.plan("SELECT id FROM mapped WHERE numbers = [1] AND kinds IS NOT NULL ORDER BY numbers[1]").for_spark()
    assert lakes.plan("SELECT kinds, row_number() OVER (ORDER BY id) FROM mapped ORDER BY id, kinds['a']").for_spark()

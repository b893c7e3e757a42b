"""Texts that call what gives something else each time."""

from __future__ import annotations

import pytest

from ducklake_lab.sql.spark.stability import differs_by_row, differs_by_run


@pytest.mark.parametrize(
    "text", ["random()", "RANDOM ()", "coalesce(a, uuid())", '"gen_random_uuid"()', "nextval('s')"]
)
def test_each_row_has_a_value_of_its_own(text: str) -> None:
    assert differs_by_row(text)
    assert differs_by_run(text)


@pytest.mark.parametrize(
    "text",
    ["now()", "today()", "current_date", "CURRENT_TIMESTAMP", "localtimestamp", "get_current_time()", "ago(INTERVAL 1 DAY)",
     "getvariable('x')", "current_setting('TimeZone')", "age(t)", "current_schema()", "transaction_timestamp()"],
)  # fmt: skip
def test_all_rows_of_a_statement_have_one_value(text: str) -> None:
    assert not differs_by_row(text)
    assert differs_by_run(text)


@pytest.mark.parametrize("text", ["a + 1", '"random" + 1', "error + stats", "lower(uuid_text)", "md5('x')"])
def test_each_run_gives_the_same(text: str) -> None:
    assert not differs_by_row(text)
    assert not differs_by_run(text)

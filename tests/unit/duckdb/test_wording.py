"""Texts of DuckDB's errors in our words: DuckDB itself raises each."""

from __future__ import annotations

import duckdb
import pytest

from ducklake_lab.duckdb.wording import as_written, position_of_error, worded
from ducklake_lab.version import SINCE_DUCKDB_2

VALUES = "(SELECT 1::INTEGER AS i, 'x' AS s, DATE '2026-01-01' AS d, [1] AS l)"
SAID = {
    "SELECT 'abc'::INTEGER": "'abc' is no INTEGER.",
    "SELECT 'it''s'::DOUBLE": "'it's' is no DOUBLE.",
    "SELECT s::BIGINT FROM t": "Column s: 'x' is no BIGINT. TRY_CAST gives NULL instead.",
    "SELECT s::DECIMAL(10, 2) FROM t": "Column s: 'x' is no DECIMAL(10,2). TRY_CAST gives NULL instead.",
    "SELECT 1 FROM t WHERE s": "Column s: 'x' is no BOOLEAN. TRY_CAST gives NULL instead.",
    "SELECT s::INTEGER[] FROM t": "Column s: 'x' is no INTEGER[]. TRY_CAST gives NULL instead.",
    "SELECT 'x'::DATE": "'x' is no DATE (YYYY-MM-DD).",
    "SELECT '2026-13-01'::DATE": "'2026-13-01' is no DATE (YYYY-MM-DD).",
    "SELECT '25:00:00'::TIME": "'25:00:00' is no TIME (HH:MM:SS).",
    "SELECT s::TIMESTAMP FROM t": "Column s: 'x' is no TIMESTAMP (YYYY-MM-DD HH:MM:SS). TRY_CAST gives NULL instead.",
    "SELECT 300::TINYINT": "300 does not fit TINYINT.",
    "SELECT (i + 300)::UTINYINT FROM t": "301 does not fit UTINYINT.",
    "SELECT 123456::DECIMAL(4, 2)": "123456 does not fit DECIMAL(4,2).",
    "SELECT (i * 123456.00)::DECIMAL(4, 2) FROM t": "123456.00 does not fit DECIMAL(4,2).",
    "SELECT i + 2147483647::INTEGER FROM t": "1 + 2147483647 is out of the range of INTEGER; cast to a larger type first.",
    "SELECT i::DATE FROM t": "Column i: INTEGER cannot be cast to DATE.",
    "SELECT i + s FROM t": "There is no INTEGER + VARCHAR; cast one of the values.",
    "SELECT -s FROM t": "There is no -VARCHAR; cast one of the values.",
    "SELECT upper(i) FROM t": "upper takes VARCHAR, not INTEGER; cast its argument.",
    "SELECT lpad(s) FROM t": "lpad takes (VARCHAR, INTEGER, VARCHAR), not (VARCHAR); its arguments are too few or too many.",
    "SELECT upper()": "upper takes VARCHAR, and is given no argument.",
    "SELECT concat_ws()": "concat_ws takes (VARCHAR, ANY, [ANY...]), and is given no argument.",
    "SELECT now(1)": "now takes no argument.",
    "SELECT map_keys(i) FROM t": "map_keys takes MAP(K, V), not INTEGER; cast its argument.",
    "SELECT map_keys({'a': 1, 'b': 2})": "map_keys takes MAP(K, V), not STRUCT(a INTEGER, b INTEGER); cast its argument.",
    "SELECT {'a': 1, 'b': 2} + i FROM t": "There is no STRUCT(a INTEGER, b INTEGER) + INTEGER; cast one of the values.",
    "SELECT s LIKE i FROM t": "There is no VARCHAR LIKE INTEGER; cast one of the values.",
    "SELECT NULL + s FROM t": "There is no NULL + VARCHAR; cast one of the values.",
    "SELECT regexp_matches(i, i) FROM t": (
        "regexp_matches takes (VARCHAR, VARCHAR) or (VARCHAR, VARCHAR, VARCHAR), not (INTEGER, INTEGER); cast an argument."
    ),
    "SELECT dayname('x')": "dayname(VARCHAR) may mean several functions; cast its argument.",
    "SELECT error('as it is')": "as it is",
    "SELECT uper(s) FROM t": 'Scalar Function with name uper does not exist! Did you mean "upper"?',
}


if not SINCE_DUCKDB_2:
    # 2.0 says of each that window functions are not supported there
    SAID["SELECT rank() FROM t"] = "rank is a window function; write rank(…) OVER (…)."


@pytest.mark.parametrize("query", SAID)
def test_errors_name_types_as_sql_does(query: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect().execute(f"WITH t AS MATERIALIZED {VALUES} {query}").fetchall()
    assert worded(caught.value) == SAID[query]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT count(select)", (1, 14)),
        ("SELECT 1,\n  count(select) FROM t", (2, 9)),
        ("SELECT 'select', count(\n1, select)", (2, 4)),
        ("SELECT '東京🦆', count(select)", (1, 21)),
        (f"SELECT {'1, ' * 100}count(select){', 2' * 100}", (1, 314)),
        (f"SELECT {'1, ' * 100}'select', count(select)", (1, 324)),
        ("SELECT '東京🦆', 'select', count(select)", None),
        ("SELECT 1 + )", (1, 12)),
    ],
)
def test_errors_of_syntax_have_a_place(query: str, place: tuple[int, int] | None) -> None:
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect().execute(query)
    found = position_of_error(caught.value, query)
    assert (found and (found.line, found.column)) == place


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT list_sum(s) FROM t", "list_sum takes a list, not VARCHAR; cast its argument."),
        ("SELECT List_Avg (i), list_avg(l) FROM t", "list_avg takes a list, not INTEGER; cast its argument."),
        (
            "SELECT list_max(l), list_min(s) FROM t",
            "list_max or list_min takes a list, not VARCHAR; cast its argument.",
        ),
        ("SELECT list_aggr(s, 'sum'), list_sum(l) FROM t", None),
    ],
)
def test_an_error_names_the_function_that_was_written(query: str, said: str | None) -> None:
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect().execute(f"WITH t AS MATERIALIZED {VALUES} {query}")
    message = worded(caught.value)
    assert as_written(message, query) == (said or message)
    assert message.startswith("list_aggr takes ")


def test_all_macros_over_lists_are_known() -> None:
    found = duckdb.sql(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE macro_definition LIKE 'list_aggr(%'"
    )
    names = [name for (name,) in found.fetchall()]
    assert len(names) > 20
    for name in names:
        assert as_written("list_aggr takes x, not (VARCHAR, VARCHAR); x", f"{name}(1)").startswith(name)


def test_a_function_with_many_signatures_shows_some() -> None:
    with pytest.raises(duckdb.Error) as caught:
        duckdb.connect().execute("SELECT date_diff(1, 2, 3)")
    said = worded(caught.value)
    assert said.startswith("date_diff takes (VARCHAR, DATE, DATE)")
    assert said.endswith(", not (INTEGER, INTEGER, INTEGER); cast an argument.")
    assert len(said) < 300


def test_numbered_columns_get_the_names_they_stand_for() -> None:
    text = "Conversion Error: Could not convert string 'x' to INT32 when casting from source column c1"
    assert worded(text, ["a", "b"]) == "Column b: 'x' is no INTEGER. TRY_CAST gives NULL instead."
    assert worded(text, ["a"]) == "Column c1: 'x' is no INTEGER. TRY_CAST gives NULL instead."


def test_arguments_of_workers_have_no_names_and_long_values_are_cut() -> None:
    text = (
        f"Conversion Error: Could not convert string '{'x' * 500}' to INT64 when casting from source column _ducklake_0"
    )
    assert worded(text) == f"'{'x' * 99}…' is no BIGINT. TRY_CAST gives NULL instead."

"""Parameters become literals of the tree."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import pytest

from ducklake_lab.errors import BindError, UsageError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.sql.dialect import DuckLakeSql


def bound(text: str, **params: object) -> str:
    operation = parse(text, params)[0].operation
    assert isinstance(operation, op.Query)
    return operation.tree.sql(dialect=DuckLakeSql)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -7,
        2**40,
        1.5,
        -2.5e-9,
        float("inf"),
        Decimal("-12.340"),
        "it's; -- not :a comment",
        "back\\slash",
        b"\x00ab\xff",
        date(2013, 1, 31),
        datetime(2013, 1, 31, 5, 6, 7, 891),
        datetime(2013, 1, 31, 5, 6, 7, tzinfo=UTC),
        time(5, 6, 7),
        [1, 2, 3],
        ["a", None],
        {"a": 1, "b": "x"},
    ],
)
def test_a_value_comes_back_from_duckdb_as_it_went_in(value: object) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        row = connection.execute(bound("SELECT :value", value=value)).fetchone()
    assert row is not None
    assert row[0] == value


def test_the_three_spellings() -> None:
    assert bound("SELECT :a, $a", a=1) == "SELECT 1, 1"
    statements = parse("SELECT ?; SELECT ?, $1", {"1": "x", "2": "y"})
    texts = [s.operation.tree.sql(dialect=DuckLakeSql) for s in statements if isinstance(s.operation, op.Query)]
    assert texts == ["SELECT 'x'", "SELECT 'y', 'x'"]


def test_only_placeholders_are_replaced() -> None:
    text = "SELECT ':a', $$:a$$, x::INT, l[1:a], l[:a], [:a], {'k': :a} FROM t WHERE 1 /* :b */ -- :c"
    bare = "SELECT ':a', ':a', CAST(x AS INT), l[1:a], l[:a], [5], {'k': 5} FROM t WHERE 1"
    assert bound(text, a=5).startswith(bare)


def test_a_list_after_in() -> None:
    assert bound("SELECT x IN :l, x NOT IN (:l)", l=[1, 2]) == "SELECT x IN (1, 2), NOT x IN (1, 2)"
    assert bound("SELECT x IN :l", l=[]) == "SELECT x IN (NULL)"


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("SELECT a FROM t ORDER BY ?, a", "ORDER BY"),
        ("SELECT a FROM t ORDER BY (?) DESC", "ORDER BY"),
        ("SELECT a FROM t UNION SELECT a FROM t ORDER BY $1", "ORDER BY"),
        ("SELECT a FROM t GROUP BY a, ?", "GROUP BY"),
        ("SELECT DISTINCT ON (?) a FROM t", "DISTINCT ON"),
        ("SELECT DISTINCT ON (a, ?) a FROM t", "DISTINCT ON"),
    ],
)
def test_a_key_is_no_parameter(text: str, clause: str) -> None:
    with pytest.raises(BindError, match=f'Parameter "1" is a whole key of {clause}'):
        parse(text, {"1": 1})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t ORDER BY a + ?",
        "SELECT list(a ORDER BY ?) FROM t",
        "SELECT row_number() OVER (ORDER BY ?) FROM t",
        "SELECT a FROM t GROUP BY a LIMIT ?",
        "SELECT DISTINCT a, ? FROM t",
    ],
)
def test_parts_of_keys_are_parameters(text: str) -> None:
    assert parse(text, {"1": 1})


def test_directly_after_a_keyword() -> None:
    assert bound("SELECT CASE :a WHEN 1 THEN :b END WHERE :a < x LIMIT :a", a=1, b=2) == (
        "SELECT CASE 1 WHEN 1 THEN 2 END WHERE 1 < x LIMIT 1"
    )


def test_time_travel_and_attach_take_parameters() -> None:
    assert bound("FROM t AT (VERSION => :v)", v=3) == "SELECT * FROM t AT (VERSION => 3)"
    assert parse("ATTACH :uri AS x (DATA_PATH :path)", {"uri": "ducklake:a", "path": "d"})[0].operation == op.Attach(
        "ducklake:a", "x", {"data_path": "d"}
    )


def test_a_missing_parameter_is_named_with_the_close_one() -> None:
    with pytest.raises(UsageError, match=r'Parameter "carier" has no value.*Did you mean carrier\?'):
        bound("SELECT :carier", carrier="UA")


def test_a_value_without_a_literal_is_refused() -> None:
    with pytest.raises(UsageError, match='Parameter "x" is a object'):
        bound("SELECT :x", x=object())


def test_an_at_sign_is_the_absolute_value() -> None:
    """DuckDB has no parameter of that sign."""
    (statement,) = parse(
        "CREATE TABLE t AS SELECT @(-5) AS a, @b AS b, @$1 AS c, @ $n AS d", {"1": -2, "n": -3, "b": 7}
    )
    assert isinstance(statement.operation, op.CreateTable) and statement.operation.query is not None
    assert statement.operation.query.written is not None
    assert statement.operation.query.written.whole() == "SELECT @(-5) AS a, @b AS b, @(-2) AS c, @ (-3) AS d"

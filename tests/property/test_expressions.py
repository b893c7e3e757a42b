"""Expressions on Spark give what DuckDB gives, or are refused.

Expressions are made at random, typed, over one small table; each example is one query of many of them, so that Spark is
asked a few times only. More of them, and others each time:

    EXPRESSION_EXAMPLES=200 python -m pytest tests/property/test_expressions.py
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.session import sources
from ducklake_lab.sql import parse_query

COLUMNS = {"i": "INTEGER", "b": "BIGINT", "d": "DECIMAL(10,2)", "f": "DOUBLE", "s": "VARCHAR"}
COLUMNS |= {"o": "BOOLEAN", "day": "DATE", "ts": "TIMESTAMP", "l": "INTEGER[]"}
COLUMNS |= {"e": "DECIMAL(18,6)", "n": "VARCHAR", "st": "STRUCT(a INTEGER, b VARCHAR)"}
ROWS = """
(0, 1, 10, 1.50, 2.5, 'abc', true, '2024-01-31', '2024-02-29 12:34:56.789', [1, 2, NULL, 3], 1.000001, '12',
 {'a': 1, 'b': 'x'}),
(1, -3, NULL, -2.25, 'nan', 'ABC déf', false, '1969-12-31', '1970-01-01 00:00:00', [], -0.5, ' -7.5 ', {'a': NULL, 'b': ''}),
(2, NULL, 5, NULL, '-inf', '', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(3, 7, 70, 3.33, 0.0, 'a,b,c', true, '2000-02-29', '2000-02-29 23:59:59', [5], 123456.789, '2024-02-29', {'a': -2, 'b': NULL}),
(4, 0, -1, 0.00, -0.75, ' b ', false, '1900-01-01', '1999-12-31 23:59:59.999999', [0, 0], 0, 'true', {'a': 0, 'b': 'b'})
"""

Text = st.SearchStrategy[str]


def _call(template: str, *arguments: Text) -> Text:
    return st.tuples(*arguments).map(lambda values: template.format(*values))


def _each(templates: str, *arguments: Text) -> list[Text]:
    """One strategy for each of the templates, which are separated by `;`."""
    return [_call(template.strip(), *arguments) for template in templates.split(";")]


def _make() -> dict[str, Text]:
    """Strategies of expressions by type."""
    kinds: dict[str, Text] = {}

    def of(name: str) -> Text:
        return st.deferred(lambda: kinds[name])

    number, text, truth, day, moment, rows, real = map(of, ("int", "str", "bool", "date", "ts", "list", "num"))
    exact, record = map(of, ("dec", "struct"))
    small = st.integers(-3, 9).map(str)
    leaf = st.sampled_from(["i", "b"]) | small
    word = st.sampled_from(["'a'", "'b'", "''", "','", "'abc'", "'é'"])
    kinds["int"] = st.one_of(
        leaf,
        *_each("({} + {}); ({} - {}); ({} % {}); ({} // {}); nullif({}, {}); greatest({}, {})", number, number),
        *_each("({} * {}); ({} & {})", leaf, leaf),
        *_each("abs({}); (-{}); coalesce({}, 4); sign({}); bit_count({})", number),
        _call("CASE WHEN {} THEN {} ELSE {} END", truth, number, number),
        *_each("length({}); ascii({}); unicode({}); strlen({})", text),
        _call("strpos({}, {})", text, word),
        *_each("year({}); month({}); dayofyear({}); isodow({}); dow({}); week({})", day),
        *_each("hour({}); minute({}); quarter({}); epoch_ms({})", moment),
        *_each("date_diff('day', {}, {}); ({} - {})", day, day),
        *_each("len({}); list_sum({}); list_min({}); {}[1]; {}[-1]; list_count({}); list_unique({})", rows),
        _call("list_position({}, {})", rows, leaf),
        *_each("TRY_CAST({} AS INTEGER); TRY_CAST({} AS SMALLINT)", st.one_of(text, st.just("n"))),
        *_each("CAST({} AS INTEGER); CAST({} AS BIGINT)", st.one_of(exact, real, truth)),
        *_each("TRY_CAST({} AS TINYINT); TRY_CAST({} AS INTEGER)", st.one_of(exact, real)),
        _call("{}.a", record),
        _call("date_diff({}, {}, {})", st.sampled_from(["'month'", "'year'", "'week'", "'hour'"]), moment, moment),
        _call("date_part({}, {})", st.sampled_from(["'decade'", "'century'", "'epoch'", "'doy'", "'second'"]), moment),
    )
    kinds["num"] = st.one_of(
        st.sampled_from(["f", "d", "1.5", "0.25"]),
        number,
        _call("({} / {})", number, number),
        *_each("floor({}); ceil({}); trunc({}); CAST({} AS DOUBLE); abs({})", real),
        _call("sqrt(abs({}))", leaf),
        _call("round(f, {})", st.integers(0, 2).map(str)),
        _call("list_avg({})", rows),
        exact,
        *_each("({} % {}); ({} * {}); ({} - {})", real, real),
        *_each("TRY_CAST({} AS DOUBLE); TRY_CAST({} AS FLOAT)", st.one_of(text, st.just("n"))),
        *_each("CAST({} AS FLOAT); greatest({0}, 0); sign({0})", real),
    )
    kinds["dec"] = st.one_of(
        st.sampled_from(["d", "e", "1.50", "-0.007"]),
        *_each("({} + {}); ({} - {}); ({} * {}); ({} % {}); coalesce({}, {}); least({}, {})", exact, exact),
        *_each("(-{}); abs({}); CAST({} AS DECIMAL(12,3)); TRY_CAST({} AS DECIMAL(5,1)); round({}, 1)", exact),
        _call("TRY_CAST({} AS DECIMAL(9,2))", st.one_of(real, number, st.just("n"))),
        _call("CASE WHEN {} THEN {} ELSE {} END", truth, exact, exact),
    )
    kinds["struct"] = st.one_of(
        st.just("st"),
        _call("{{'a': {}, 'b': {}}}", number, text),
        _call("struct_pack(a := {}, b := {})", number, text),
        _call("CASE WHEN {} THEN {} END", truth, record),
        _call("coalesce({}, {})", record, record),
    )
    kinds["str"] = st.one_of(
        st.just("s"),
        word,
        *_each("upper({}); lower({}); reverse({}); trim({}); concat({}, 'x'); md5({})", text),
        *_each("regexp_replace({}, '[ab]', 'X'); regexp_replace({}, '[ab]', 'X', 'g')", text),
        _call("({} || {})", text, text),
        _call("substring({}, {})", text, small),
        _call("s[{}]", st.integers(1, 4).map(str)),
        *_each("left({}, {}); right({}, {})", text, st.integers(-2, 4).map(str)),
        _call("replace({}, {}, {})", text, st.sampled_from(["'a'", "'b'", "','"]), word),
        _call("split_part({}, ',', {})", text, st.integers(1, 3).map(str)),
        _call("lpad({}, {}, '*')", text, st.integers(0, 6).map(str)),
        _call("CAST({} AS VARCHAR)", st.one_of(number, truth, day)),
        _call("strftime({}, '%Y-%m-%d %H:%M:%S')", moment),
        _call("CASE WHEN {} THEN {} END", truth, text),
        _call("array_to_string({}, '-')", rows),
        _call("CAST({} AS VARCHAR)", st.one_of(exact, moment, record, rows)),
        *_each("regexp_extract({}, '[a-c]+'); ltrim({}); rtrim({}); dayname(day); {0}[2:3]; {0}[-2:]", text),
        *_each("concat_ws('-', {}, {}); concat({}, {}); rpad({}, 4, {})", text, word),
        _call("repeat({}, {})", text, st.integers(-1, 3).map(str)),
        _call("strftime({}, {})", day, st.sampled_from(["'%d.%m.%y'", "'%A %j'", "'%b %-d'"])),
        _call("{}.b", record),
    )
    kinds["bool"] = st.one_of(
        st.sampled_from(["o", "true", "NULL::BOOLEAN"]),
        *_each("({} < {}); ({} = {}); ({} IS DISTINCT FROM {})", number, number),
        *_each("({} < {}); ({} = {})", text, text),
        *_each("contains({}, {}); starts_with({}, {})", text, word),
        _call("({} LIKE {})", text, st.sampled_from(["'a%'", "'%b%'", "'_b_'", "'%'"])),
        _call("({} ILIKE 'A%')", text),
        *_each("({} AND {}); ({} OR {})", truth, truth),
        *_each("(NOT {}); ({} IS NULL)", truth),
        _call("({} BETWEEN {} AND {})", number, number, number),
        _call("({} IN ({}, {}))", number, leaf, leaf),
        _call("list_contains({}, {})", rows, leaf),
        *_each("list_has_any({}, {}); list_has_all({}, {})", rows, rows),
        *_each("({} < {}); ({} = {}); ({} >= {})", st.one_of(exact, real), st.one_of(exact, real, number)),
        *_each("({} = {}); ({} IS NOT DISTINCT FROM {}); ({} < {})", record, record),
        *_each("({} = {}); ({} > {})", rows, rows),
        *_each("({} < {}); ({} = {})", st.one_of(day, moment), st.one_of(day, moment)),
        _call("CAST({} AS BOOLEAN)", number),
        _call("TRY_CAST({} AS BOOLEAN)", st.one_of(text, st.just("n"))),
        *_each("({} IS NULL); ({} IS NOT NULL)", st.one_of(record, rows, real, moment)),
        _call("regexp_matches({}, '^a.c?')", text),
    )
    kinds["date"] = st.one_of(
        st.sampled_from(["day", "DATE '2024-03-31'"]),
        _call("({} + {})", day, small),
        _call("last_day({})", day),
        _call("CAST({} AS DATE)", moment),
        _call("TRY_CAST({} AS DATE)", st.one_of(text, st.just("n"))),
        _call("make_date({}, 2, {})", st.integers(1999, 2024).map(str), st.integers(1, 28).map(str)),
    )
    kinds["ts"] = st.one_of(
        st.just("ts"),
        *_each("({} + INTERVAL 1 MONTH); ({} - INTERVAL 2 HOUR); date_trunc('week', {})", moment),
        *_each("({} + INTERVAL 1 DAY); CAST({} AS TIMESTAMP)", day),
        _call("date_trunc({}, {})", st.sampled_from(["'month'", "'year'", "'hour'", "'quarter'"]), moment),
        _call("TRY_CAST({} AS TIMESTAMP)", st.one_of(text, st.just("n"))),
        _call("greatest({}, {})", moment, moment),
    )
    kinds["list"] = st.one_of(
        st.sampled_from(["l", "[1, 2]"]),
        *_each("list_sort({}); list_reverse_sort({}); list_reverse({}); {}[1:2]", rows),
        *_each("list_transform({}, x -> x + 1); list_filter({}, x -> x > 1)", rows),
        _call("list_concat({}, {})", rows, rows),
        _call("list_append({}, {})", rows, st.integers(1, 3).map(str)),
    )
    return kinds


EXPRESSION = st.one_of(*_make().values())
AGGREGATE = st.one_of(
    *_each("count({0}); min({0}); max({0}); sum({0}); avg({0})", st.sampled_from(["i", "b", "d", "i + 1"])),
    *_each("count({0}); min({0}); max({0})", st.sampled_from(["s", "day", "ts", "o", "upper(s)"])),
    *_each("count(DISTINCT {0}); sum(DISTINCT {0})", st.sampled_from(["i", "b", "i % 2"])),
    _call("sum({}) FILTER ({})", st.sampled_from(["i", "b"]), st.sampled_from(["i > 0", "o", "s < 'b'"])),
    st.sampled_from(["bool_and(o)", "bool_or(o)", "median(i)", "stddev_pop(b)", "arg_max(s, i)", "arg_min(i, b)"]),
    st.sampled_from(["list(i ORDER BY k)", "string_agg(s, '|' ORDER BY k)", "sum(i ORDER BY k)", "bit_or(i)"]),
    *_each(
        "sum({0}); avg({0}); min({0}); max({0}); count(DISTINCT {0})", st.sampled_from(["e", "d * 2", "f", "e + d"])
    ),
    *_each("min({0}); max({0}); count({0})", st.sampled_from(["l", "st", "ts", "NOT o"])),
    *_each("any_value({0} ORDER BY k); first({0} ORDER BY k); last({0} ORDER BY k)", st.sampled_from(["i", "s", "d"])),
    _call("{}(i, k)", st.sampled_from(["corr", "covar_pop", "covar_samp", "regr_slope"])),
    _call("{}(d)", st.sampled_from(["stddev_samp", "var_pop", "variance", "mode", "product"])),
    _call("quantile_cont(i, {})", st.sampled_from(["0.25", "0.5", "1"])),
    _call("list({} ORDER BY {} DESC)", st.sampled_from(["i", "s", "DISTINCT o"]), st.sampled_from(["k", "i"])),
)
_FRAME = st.sampled_from(
    ["", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"]
    + ["RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING"]
)
_ORDER = st.sampled_from(["k", "k DESC"])
_PART = st.sampled_from(["", "PARTITION BY o", "PARTITION BY i % 2, o IS NULL"])
WINDOW = st.one_of(
    _call(
        "{}({}) OVER ({} ORDER BY {} {})",
        st.sampled_from(["sum", "count", "min", "max", "avg", "first_value", "last_value"]),
        st.sampled_from(["i", "d", "f", "b"]),
        _PART,
        _ORDER,
        _FRAME,
    ),
    _call("{}() OVER ({} ORDER BY {})", st.sampled_from(["row_number", "rank", "cume_dist"]), _PART, _ORDER),
    _call(
        "{}() OVER ({} ORDER BY {})",
        st.sampled_from(["rank", "dense_rank", "percent_rank"]),
        _PART,
        st.sampled_from(["i", "o DESC", "s", "d NULLS FIRST", "i % 2, o"]),
    ),
    _call(
        "{}({}, {}) OVER ({} ORDER BY {})",
        st.sampled_from(["lag", "lead"]),
        st.sampled_from(["i", "s", "day", "st"]),
        st.sampled_from(["1", "2", "1, NULL"]),
        _PART,
        _ORDER,
    ),
    _call("ntile({}) OVER ({} ORDER BY {})", st.integers(1, 4).map(str), _PART, _ORDER),
    _call("nth_value(i, {}) OVER ({} ORDER BY {} {})", st.integers(1, 3).map(str), _PART, _ORDER, _FRAME),
    _call("sum(i) FILTER (o) OVER ({} ORDER BY {})", _PART, _ORDER),
    _call("string_agg(s, '-') OVER ({} ORDER BY {})", _PART, _ORDER),
)


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """(a session whose table is in a file, DuckDB with the same table)."""
    folder: Path = tmp_path_factory.mktemp("expressions")
    session = dl.connect(f"ducklake:{folder}/x.ducklake", alias="lake", data_path=f"{folder}/data", spark=spark)
    plain = duckdb.connect()
    plain.execute("SET TimeZone = 'UTC'")
    session.sql("SET ducklake_default_data_inlining_row_limit = 0")
    definition = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for text in (f"CREATE TABLE t (k INTEGER, {definition})", f"INSERT INTO t VALUES {ROWS}"):
        session.sql(text)
        plain.execute(text)
    # else what Spark refuses would run in process
    limit, sources.IN_PROCESS_BYTES = sources.IN_PROCESS_BYTES, -1
    yield session, plain
    sources.IN_PROCESS_BYTES = limit
    session.close()
    plain.close()


def _value(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        number = float(value)
        return str(number) if not math.isfinite(number) else float(f"{number:.9g}") + 0.0
    if isinstance(value, dict):
        return {name: _value(part) for name, part in value.items()}
    return [_value(item) for item in value] if isinstance(value, list) else value


def _rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(_value(value) for value in row) for row in rows]


def _compare(both: Any, expressions: list[str], query: Callable[[list[str]], str]) -> int:
    """Compares all that DuckDB can compute and Spark is trusted with; how many that were."""
    session, plain = both
    able: list[str] = []
    for expression in expressions:
        try:
            plain.execute(query([expression])).fetchall()
            session._sources.plan(parse_query(query([expression]))).for_spark()
        except (duckdb.Error, dl.UnsupportedFeatureError):
            continue  # an overflow, e.g.; or refused
        able.append(expression)
    if not able:
        return 0
    note(query(able))
    wanted = _rows(plain.execute(query(able)).fetchall())
    try:
        same = _rows(session.sql(query(able)).fetchall()) == wanted
    except dl.DuckLakeError:
        same = False
    for expression in [] if same else able:
        one = query([expression])
        assert _rows(session.sql(one).fetchall()) == _rows(plain.execute(one).fetchall()), expression
    assert same
    return len(able)


_MANY = os.environ.get("EXPRESSION_EXAMPLES")
_FEW = settings(
    max_examples=int(_MANY or 5),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=_MANY is None,
    database=None,
)


@_FEW
@given(expressions=st.lists(EXPRESSION, min_size=40, max_size=60))
def test_scalar_expressions(both: Any, expressions: list[str]) -> None:
    def query(items: list[str]) -> str:
        return f"SELECT k, {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} FROM t ORDER BY k"

    assert _compare(both, expressions, query) > 5


@_FEW
@given(expressions=st.lists(AGGREGATE, min_size=10, max_size=15))
def test_aggregates(both: Any, expressions: list[str]) -> None:
    def query(items: list[str]) -> str:
        shown = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
        return f"SELECT o, {shown} FROM t GROUP BY o ORDER BY o NULLS FIRST"

    assert _compare(both, expressions, query) > 5


@_FEW
@given(expressions=st.lists(WINDOW, min_size=10, max_size=15))
def test_windows(both: Any, expressions: list[str]) -> None:
    def query(items: list[str]) -> str:
        return f"SELECT k, {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} FROM t ORDER BY k"

    assert _compare(both, expressions, query) > 5

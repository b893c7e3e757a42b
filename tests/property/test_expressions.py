"""Expressions on Spark give what DuckDB gives, or are refused.

Expressions are made at random, typed, over one small table; each example is one query of many of them, so that Spark is
asked a few times only. More of them, and others each time:

    EXPRESSION_EXAMPLES=200 python -m pytest tests/property/test_expressions.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.sql import parse_query
from tests.spark.beside import beside_duckdb, comparable

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


class _Maker(random.Random):
    """Chances, and how deep an expression may still become."""

    depth = 2


Text = Callable[[_Maker], str]


def _just(text: str) -> Text:
    return lambda maker: text


def _sampled_from(texts: Sequence[str]) -> Text:
    return lambda maker: maker.choice(texts)


def _one_of(*kinds: Text) -> Text:
    return lambda maker: maker.choice(kinds)(maker)


def _between(low: int, high: int) -> Text:
    return lambda maker: str(maker.randint(low, high))


def _call(template: str, *arguments: Text) -> Text:
    return lambda maker: template.format(*(argument(maker) for argument in arguments))


def _each(templates: str, *arguments: Text) -> list[Text]:
    """One kind of expression for each of the templates, which are separated by `;`."""
    return [_call(template.strip(), *arguments) for template in templates.split(";")]


#: By type.
LEAVES = {
    "int": ("i", "b", "3", "-1"),
    "num": ("f", "d", "1.5", "i"),
    "dec": ("d", "e", "-0.007"),
    "str": ("s", "n", "'abc'", "''"),
    "bool": ("o", "true", "NULL::BOOLEAN"),
    "date": ("day", "DATE '2024-03-31'"),
    "ts": ("ts", "TIMESTAMP '2024-03-31 23:59:59.5'"),
    "list": ("l", "[1, 2]"),
    "struct": ("st",),
}


def _make() -> dict[str, Text]:
    """Makers of expressions by type."""
    kinds: dict[str, Text] = {}

    def of(name: str) -> Text:
        def make(maker: _Maker) -> str:
            if maker.depth == 0:
                return maker.choice(LEAVES[name])
            maker.depth -= 1
            try:
                return kinds[name](maker)
            finally:
                maker.depth += 1

        return make

    number, text, truth, day, moment, rows, real = map(of, ("int", "str", "bool", "date", "ts", "list", "num"))
    exact, record = map(of, ("dec", "struct"))
    small = _between(-3, 9)
    leaf = _one_of(_sampled_from(["i", "b"]), small)
    word = _sampled_from(["'a'", "'b'", "''", "','", "'abc'", "'é'"])
    kinds["int"] = _one_of(
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
        *_each("TRY_CAST({} AS INTEGER); TRY_CAST({} AS SMALLINT)", _one_of(text, _just("n"))),
        *_each("CAST({} AS INTEGER); CAST({} AS BIGINT)", _one_of(exact, real, truth)),
        *_each("TRY_CAST({} AS TINYINT); TRY_CAST({} AS INTEGER)", _one_of(exact, real)),
        _call("{}.a", record),
        _call("date_diff({}, {}, {})", _sampled_from(["'month'", "'year'", "'week'", "'hour'"]), moment, moment),
        _call("date_part({}, {})", _sampled_from(["'decade'", "'century'", "'epoch'", "'doy'", "'second'"]), moment),
    )
    kinds["num"] = _one_of(
        _sampled_from(["f", "d", "1.5", "0.25"]),
        number,
        _call("({} / {})", number, number),
        *_each("floor({}); ceil({}); trunc({}); CAST({} AS DOUBLE); abs({})", real),
        _call("sqrt(abs({}))", leaf),
        _call("round(f, {})", _between(0, 2)),
        _call("list_avg({})", rows),
        exact,
        *_each("({} % {}); ({} * {}); ({} - {})", real, real),
        *_each("TRY_CAST({} AS DOUBLE); TRY_CAST({} AS FLOAT)", _one_of(text, _just("n"))),
        *_each("CAST({} AS FLOAT); greatest({0}, 0); sign({0})", real),
    )
    kinds["dec"] = _one_of(
        _sampled_from(["d", "e", "1.50", "-0.007"]),
        *_each("({} + {}); ({} - {}); ({} * {}); ({} % {}); coalesce({}, {}); least({}, {})", exact, exact),
        *_each("(-{}); abs({}); CAST({} AS DECIMAL(12,3)); TRY_CAST({} AS DECIMAL(5,1)); round({}, 1)", exact),
        _call("TRY_CAST({} AS DECIMAL(9,2))", _one_of(real, number, _just("n"))),
        _call("CASE WHEN {} THEN {} ELSE {} END", truth, exact, exact),
    )
    kinds["struct"] = _one_of(
        _just("st"),
        _call("{{'a': {}, 'b': {}}}", number, text),
        _call("struct_pack(a := {}, b := {})", number, text),
        _call("CASE WHEN {} THEN {} END", truth, record),
        _call("coalesce({}, {})", record, record),
    )
    kinds["str"] = _one_of(
        _just("s"),
        word,
        *_each("upper({}); lower({}); reverse({}); trim({}); concat({}, 'x'); md5({})", text),
        *_each("regexp_replace({}, '[ab]', 'X'); regexp_replace({}, '[ab]', 'X', 'g')", text),
        _call("({} || {})", text, text),
        _call("substring({}, {})", text, small),
        _call("s[{}]", _between(1, 4)),
        *_each("left({}, {}); right({}, {})", text, _between(-2, 4)),
        _call("replace({}, {}, {})", text, _sampled_from(["'a'", "'b'", "','"]), word),
        _call("split_part({}, ',', {})", text, _between(1, 3)),
        _call("lpad({}, {}, '*')", text, _between(0, 6)),
        _call("CAST({} AS VARCHAR)", _one_of(number, truth, day)),
        _call("strftime({}, '%Y-%m-%d %H:%M:%S')", moment),
        _call("CASE WHEN {} THEN {} END", truth, text),
        _call("array_to_string({}, '-')", rows),
        _call("CAST({} AS VARCHAR)", _one_of(exact, moment, record, rows)),
        *_each("regexp_extract({}, '[a-c]+'); ltrim({}); rtrim({}); dayname(day); {0}[2:3]; {0}[-2:]", text),
        *_each("concat_ws('-', {}, {}); concat({}, {}); rpad({}, 4, {})", text, word),
        _call("repeat({}, {})", text, _between(-1, 3)),
        _call("strftime({}, {})", day, _sampled_from(["'%d.%m.%y'", "'%A %j'", "'%b %-d'"])),
        _call("{}.b", record),
    )
    kinds["bool"] = _one_of(
        _sampled_from(["o", "true", "NULL::BOOLEAN"]),
        *_each("({} < {}); ({} = {}); ({} IS DISTINCT FROM {})", number, number),
        *_each("({} < {}); ({} = {})", text, text),
        *_each("contains({}, {}); starts_with({}, {})", text, word),
        _call("({} LIKE {})", text, _sampled_from(["'a%'", "'%b%'", "'_b_'", "'%'"])),
        _call("({} ILIKE 'A%')", text),
        *_each("({} AND {}); ({} OR {})", truth, truth),
        *_each("(NOT {}); ({} IS NULL)", truth),
        _call("({} BETWEEN {} AND {})", number, number, number),
        _call("({} IN ({}, {}))", number, leaf, leaf),
        _call("list_contains({}, {})", rows, leaf),
        *_each("list_has_any({}, {}); list_has_all({}, {})", rows, rows),
        *_each("({} < {}); ({} = {}); ({} >= {})", _one_of(exact, real), _one_of(exact, real, number)),
        *_each("({} = {}); ({} IS NOT DISTINCT FROM {}); ({} < {})", record, record),
        *_each("({} = {}); ({} > {})", rows, rows),
        *_each("({} < {}); ({} = {})", _one_of(day, moment), _one_of(day, moment)),
        _call("CAST({} AS BOOLEAN)", number),
        _call("TRY_CAST({} AS BOOLEAN)", _one_of(text, _just("n"))),
        *_each("({} IS NULL); ({} IS NOT NULL)", _one_of(record, rows, real, moment)),
        _call("regexp_matches({}, '^a.c?')", text),
    )
    kinds["date"] = _one_of(
        _sampled_from(["day", "DATE '2024-03-31'"]),
        _call("({} + {})", day, small),
        _call("last_day({})", day),
        _call("CAST({} AS DATE)", moment),
        _just("TRY_CAST(n AS DATE)"),
        _call("make_date({}, 2, {})", _between(1999, 2024), _between(1, 28)),
    )
    kinds["ts"] = _one_of(
        _just("ts"),
        *_each("({} + INTERVAL 1 MONTH); ({} - INTERVAL 2 HOUR); date_trunc('week', {})", moment),
        *_each("({} + INTERVAL 1 DAY); CAST({} AS TIMESTAMP)", day),
        _call("date_trunc({}, {})", _sampled_from(["'month'", "'year'", "'hour'", "'quarter'"]), moment),
        _just("TRY_CAST(n AS TIMESTAMP)"),
        _call("greatest({}, {})", moment, moment),
    )
    kinds["list"] = _one_of(
        _sampled_from(["l", "[1, 2]"]),
        *_each("list_sort({}); list_reverse_sort({}); list_reverse({}); {}[1:2]", rows),
        *_each("list_transform({}, x -> x + 1); list_filter({}, x -> x > 1)", rows),
        _call("list_concat({}, {})", rows, rows),
        _call("list_append({}, {})", rows, _between(1, 3)),
    )
    return kinds


EXPRESSION = _one_of(*_make().values())
AGGREGATE = _one_of(
    *_each("count({0}); min({0}); max({0}); sum({0}); avg({0})", _sampled_from(["i", "b", "d", "i + 1"])),
    *_each("count({0}); min({0}); max({0})", _sampled_from(["s", "day", "ts", "o", "upper(s)"])),
    *_each("count(DISTINCT {0}); sum(DISTINCT {0})", _sampled_from(["i", "b", "i % 2"])),
    _call("sum({}) FILTER ({})", _sampled_from(["i", "b"]), _sampled_from(["i > 0", "o", "s < 'b'"])),
    _sampled_from(["bool_and(o)", "bool_or(o)", "median(i)", "stddev_pop(b)", "arg_max(s, i)", "arg_min(i, b)"]),
    _sampled_from(["list(i ORDER BY k)", "string_agg(s, '|' ORDER BY k)", "sum(i ORDER BY k)", "bit_or(i)"]),
    *_each("sum({0}); avg({0}); min({0}); max({0}); count(DISTINCT {0})", _sampled_from(["e", "d * 2", "f", "e + d"])),
    *_each("min({0}); max({0}); count({0})", _sampled_from(["l", "st", "ts", "NOT o"])),
    *_each("any_value({0} ORDER BY k); first({0} ORDER BY k); last({0} ORDER BY k)", _sampled_from(["i", "s", "d"])),
    _call("{}(i, k)", _sampled_from(["corr", "covar_pop", "covar_samp", "regr_slope"])),
    _call("{}(d)", _sampled_from(["stddev_samp", "var_pop", "variance", "mode", "product"])),
    _call("quantile_cont(i, {})", _sampled_from(["0.25", "0.5", "1"])),
    _call("list({} ORDER BY {} DESC)", _sampled_from(["i", "s", "DISTINCT o"]), _sampled_from(["k", "i"])),
)
_FRAME = _sampled_from(
    [
        "",
        "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    ]
)
_ORDER = _sampled_from(["k", "k DESC"])
_PART = _sampled_from(["", "PARTITION BY o", "PARTITION BY i % 2, o IS NULL"])
WINDOW = _one_of(
    _call(
        "{}({}) OVER ({} ORDER BY {} {})",
        _sampled_from(["sum", "count", "min", "max", "avg", "first_value", "last_value"]),
        _sampled_from(["i", "d", "f", "b"]),
        _PART,
        _ORDER,
        _FRAME,
    ),
    _call("{}() OVER ({} ORDER BY {})", _sampled_from(["row_number", "rank", "cume_dist"]), _PART, _ORDER),
    _call(
        "{}() OVER ({} ORDER BY {})",
        _sampled_from(["rank", "dense_rank", "percent_rank"]),
        _PART,
        _sampled_from(["i", "o DESC", "s", "d NULLS FIRST", "i % 2, o"]),
    ),
    _call(
        "{}({}, {}) OVER ({} ORDER BY {})",
        _sampled_from(["lag", "lead"]),
        _sampled_from(["i", "s", "day", "st"]),
        _sampled_from(["1", "2", "1, NULL"]),
        _PART,
        _ORDER,
    ),
    _call("ntile({}) OVER ({} ORDER BY {})", _between(1, 4), _PART, _ORDER),
    _call("nth_value(i, {}) OVER ({} ORDER BY {} {})", _between(1, 3), _PART, _ORDER, _FRAME),
    _call("sum(i) FILTER (o) OVER ({} ORDER BY {})", _PART, _ORDER),
    _call("string_agg(s, '-') OVER ({} ORDER BY {})", _PART, _ORDER),
)


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """(a session whose table is in a file, DuckDB with the same table)."""
    tables = {"t": {"k": "INTEGER", **COLUMNS}}
    with beside_duckdb(tmp_path_factory.mktemp("expressions"), spark, tables, {"t": ROWS}) as found:
        yield found


def _made(kind: Text, seed: int, count: int) -> list[str]:
    maker = _Maker(seed)
    return list(dict.fromkeys(kind(maker) for _ in range(count)))


def _rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(comparable(value) for value in row) for row in rows]


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
#: Expressions are made from a number, as Hypothesis gives up on most of the large ones it draws part by part.
SEEDS = st.integers(0, 2**32 - 1)
_FEW = settings(
    max_examples=int(_MANY or 1),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=_MANY is None,
    # a number is not made simpler by making it smaller
    phases=[Phase.generate],
    database=None,
)


@_FEW
@given(seed=SEEDS)
def test_scalar_expressions(both: Any, seed: int) -> None:
    def query(items: list[str]) -> str:
        return f"SELECT k, {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} FROM t ORDER BY k"

    assert _compare(both, _made(EXPRESSION, seed, 40), query) > 15


@_FEW
@given(seed=SEEDS)
def test_aggregates(both: Any, seed: int) -> None:
    def query(items: list[str]) -> str:
        shown = ", ".join(f"{item} AS c{n}" for n, item in enumerate(items))
        return f"SELECT o, {shown} FROM t GROUP BY o ORDER BY o NULLS FIRST"

    assert _compare(both, _made(AGGREGATE, seed, 18), query) > 10


@_FEW
@given(seed=SEEDS)
def test_windows(both: Any, seed: int) -> None:
    def query(items: list[str]) -> str:
        return f"SELECT k, {', '.join(f'{item} AS c{n}' for n, item in enumerate(items))} FROM t ORDER BY k"

    assert _compare(both, _made(WINDOW, seed, 18), query) > 10

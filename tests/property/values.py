"""Values at the edges of each type, and conditions on a column of them: for tables of one file per value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

#: By DuckDB's name of a type: values as SQL, each cast to the type. NULL comes after them.
EDGES: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("-128", "0", "127"),
    "INTEGER": ("-2147483648", "16777217", "16777216"),
    "BIGINT": ("-9223372036854775808", "0", "9007199254740993", "9007199254740992", "9223372036854775807"),
    "UBIGINT": ("0", "9007199254740993", "18446744073709551615"),
    "HUGEINT": ("-5", "0", "9007199254740993", "9007199254740992", "12345678901234567890123456789"),
    "UHUGEINT": ("0", "9007199254740993"),
    "FLOAT": ("'NaN'", "'inf'", "'-inf'", "'-0.0'", "0", "0.1", "16777216", "3e38"),
    "DOUBLE": ("'NaN'", "'inf'", "'-inf'", "'-0.0'", "0", "0.1", "9007199254740993", "1e300", "5e-324"),
    "DECIMAL(4,2)": ("-99.99", "0", "0.01", "99.99"),
    "DECIMAL(38,10)": ("1234567890123456789012345678.0123456789", "0", "-0.0000000001"),
    "DATE": (
        "'1992-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'9999-12-31'", "'0001-01-01'",
        "'0001-12-31 (BC)'", "'10000-01-01'", "'5877642-06-25 (BC)'", "'5881580-07-10'",
    ),
    "TIME": ("'00:00:00'", "'23:59:59.999999'", "'24:00:00'", "'12:00:00'"),
    "TIMETZ": ("'12:00:00.5+02:30'", "'00:00:00-15:59'", "'10:00:00+00'"),
    "TIMESTAMP": (
        "'2020-01-01 00:00:00.123456'", "'infinity'", "'-infinity'", "'1600-01-01'", "'9999-12-31'",
        "'9999-12-31 23:59:59.999999'", "'0001-01-01'", "'0044-03-15 (BC) 01:02:03'", "'10000-01-01'",
        "'290309-12-22 (BC) 00:00:00'", "'294247-01-10 04:00:54.775806'",
    ),
    "TIMESTAMP_S": ("'2020-01-01 00:00:01'", "'1969-12-31 23:59:59'", "'9999-12-31'", "'0001-01-01'"),
    "TIMESTAMP_MS": ("'2020-01-01 00:00:00.123'", "'infinity'", "'-infinity'", "'9999-12-31'", "'0001-01-01'"),
    "TIMESTAMP_NS": ("'2020-01-01 00:00:00.123456789'", "'1969-12-31 23:59:59.999999'", "'infinity'", "'-infinity'"),
    "TIMESTAMPTZ": (
        "'2020-01-01 00:00:00+02'", "'infinity'", "'-infinity'", "'9999-12-31 00:00:00+00'",
        "'0001-01-01 00:00:00+00'", "'0044-03-15 (BC) 00:00:00+00'", "'20000-01-01 00:00:00+00'",
        "'294247-01-10 04:00:54.775806+00'",
    ),
    "INTERVAL": ("'1 year 2 months 3 days 04:05:06.007'", "'0 days'", "'30 days'", "'1 month'"),
    "VARCHAR": (
        "''", "'é☃'", "'NULL'", "'a''b'", "'a'", "'ab'", "'infinity'", "repeat('z',300)", "repeat('z',299) || 'a'",
        "repeat('é',200)", "chr(1114111)", "'Z'",
    ),
    "JSON": ("""'{"a": [1, null]}'""", "'null'", "'1'"),
    "BLOB": ("'\\x00\\xFF'", "''", "'abc'"),
    "UUID": (
        "'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'80000000-0000-0000-0000-000000000001'",
    ),
    "GEOMETRY": ("'POINT(1 2)'", "'POINT EMPTY'"),
    "VARIANT": ("42", "{'a': 1}", "'x'", "1.5"),
    "STRUCT(a INTEGER, d DATE)": (
        "{'a': 1, 'd': DATE 'infinity'}", "{'a': NULL, 'd': NULL}", "{'a': 2, 'd': DATE '9999-12-31'}",
    ),
    "INTEGER[]": ("[1, NULL]", "[]", "[NULL]", "[2]"),
    "MAP(VARCHAR, INTEGER)": ("MAP {'a': 1}", "map([], [])"),
}  # fmt: skip
#: Types that a file holds with other values than the written ones: DOUBLE, and no zone.
ROUNDED = ("HUGEINT", "UHUGEINT", "TIMETZ")
_DAYS = (
    "{x}::DATE = '9999-12-31'", "{x}::DATE > '9999-12-30'", "date_trunc('year', {x}) = '9999-01-01'",
    "date_trunc('month', {x}) >= '9999-12-01'", "year({x}) = 9999", "year({x}) > 9998", "year({x}) <= 1",
    "year({x}) = -43", "year({x}) < 1992", "isinf({x})", "isfinite({x})", "date_trunc('day', {x}) < '0001-01-02'",
    "{x} = 'epoch'", "{x} > 'Infinity'", "{x} >= '2020-1-1'", "{x}::VARCHAR = 'infinity'", "{x}::DATE = 'infinity'",
    "{x}::DATE < 'infinity'", "{x}::DATE <> 'infinity'", "date_trunc('week', {x}) <= '9999-12-27'",
    "{x} < DATE '9999-12-31' + INTERVAL 1 DAY", "{x} >= DATE '0001-01-01' - INTERVAL 1 DAY",
    "{x} IN ('infinity', '-infinity')", "{x} BETWEEN '-infinity' AND '9999-12-31'",
)  # fmt: skip
_NUMBERS = (
    "{x}::DOUBLE = 9007199254740993", "{x} = 9007199254740993.0::DOUBLE", "{x} > 9007199254740992.5", "{x} = 0.5",
    "{x} >= 1e10", "{x} = 16777216::FLOAT", "{x} > 0.1::FLOAT", "{x} + 0 = 0", "{x}::VARCHAR = '0'",
)  # fmt: skip
_FLOATS = (
    "isnan({x})", "isinf({x})", "{x} = 0.0", "{x} > 0", "{x} = 0.1", "{x}::DOUBLE = 0.1", "{x}::DOUBLE > 0.1",
    "{x} < 'nan'", "{x} <= 'nan'::DOUBLE", "NOT isnan({x})", "{x} IN (0, 0.1)", "-{x} > 0",
    "{x} = 1234567890123456789.0123456789",
)  # fmt: skip
#: Conditions of types whose functions matter.
_OF_TYPE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("DATE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"), _DAYS),
    "TIMESTAMP": (*_DAYS, "{x} = '9999-12-31'::DATE", "{x} > DATE '5877642-06-25 (BC)' OR true"),
    **dict.fromkeys(("INTEGER", "BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(4,2)", "DECIMAL(38,10)"), _NUMBERS),
    "FLOAT": _FLOATS,
    "DOUBLE": _FLOATS,
    "BOOLEAN": ("{x}", "NOT {x}", "{x} IS TRUE", "{x} IS NOT TRUE", "{x} = 1"),
    "TIME": ("{x} > '23:00:00'", "{x} = '24:00:00'", "{x} <= TIME '24:00:00'"),
    "TIMESTAMP_S": (*_DAYS, "{x} = '2020-01-01 00:00:01.4'", "{x} > TIMESTAMP '2020-01-01 00:00:00.5'"),
    "VARCHAR": (
        "{x} LIKE 'a%'", "{x} LIKE 'z%'", "{x} NOT LIKE 'a%'", "{x} ILIKE 'z%'", "starts_with({x}, 'é')",
        "{x} = repeat('z',300)", "{x} > repeat('z',260)", "upper({x}) = 'Z'", "{x} = 'z' COLLATE NOCASE",
        "prefix({x}, chr(1114111))", "length({x}) > 10",
    ),
    "UUID": ("{x}::VARCHAR LIKE '0%'", "{x} > '7fffffff-0000-0000-0000-000000000000'"),
    "STRUCT(a INTEGER, d DATE)": (
        "{x}.d < 'infinity'", "{x}.d <> 'infinity'::DATE", "{x}.a IS NULL", "{x}.a IS NOT NULL", "{x}.d IS NULL",
        "{x}['a'] > 1", "{x}.a IS DISTINCT FROM 1", "{x}.a <> 1", "{x}.d IN ('infinity'::DATE)",
    ),
    "INTEGER[]": ("{x}[1] IS NULL", "{x}[1] = 2", "len({x}) = 0", "list_contains({x}, 1)"),
    "MAP(VARCHAR, INTEGER)": ("{x}['a'] = 1", "{x}['a'] IS NULL"),
    "INTERVAL": ("{x} > INTERVAL 29 DAY", "{x} = INTERVAL 1 MONTH"),
    "JSON": ("{x}->>'a' IS NULL", "{x} = 'null'"),
}  # fmt: skip
_NULLS = (
    "{x} IS NULL", "{x} IS NOT NULL", "NOT ({x} IS NULL)", "{x} IS NULL OR id = 1", "{x} IS NULL AND id > 1",
    "coalesce({x}, NULL) IS NULL", "id IS NULL",
)  # fmt: skip
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
#: Types without an order, or without a comparison in DuckDB.
UNORDERED = ("VARIANT", "GEOMETRY")


def literal(kind: str, value: str) -> str:
    return f"CAST({value} AS {kind})"


def conditions(kind: str, x: str = "x") -> Iterator[str]:
    """Conditions on a column `x` of a type, beside `id`, which numbers the rows from 1."""
    values = [literal(kind, value) for value in EDGES[kind]]
    yield from (form.format(x=x) for form in _NULLS)
    if kind not in UNORDERED:
        for written, value in zip(EDGES[kind], values, strict=True):
            # a text is cast to the column's type by DuckDB
            for constant in (value, *([written] if written.startswith("'") else [])):
                yield from (f"{x} {operator} {constant}" for operator in _OPERATORS)
                yield f"{constant} < {x}"
                yield f"NOT {x} = {constant}"
        yield f"{x} IN ({', '.join(values)})"
        yield f"{x} IN ({values[0]}, {values[-1]}, NULL)"
        yield f"{x} NOT IN ({values[0]}, {values[-1]})"
        for low, high in permutations(values[:4], 2):
            yield f"{x} BETWEEN {low} AND {high}"
            yield f"{x} NOT BETWEEN {low} AND {high}"
            yield f"{x} = {low} OR {x} > {high}"
    yield from (form.format(x=x) for form in _OF_TYPE.get(kind, ()))

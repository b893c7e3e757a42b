"""Expressions made of DuckDB's own list of functions, for all types and values at their edges: what Spark has to equal.

python -m tests.spark.expressions > docs/expressions-on-spark.md
"""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import duckdb

from ducklake_lab.duckdb.evaluation import Settings, is_aggregate
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import parse_query, plan_query
from ducklake_lab.sql.plan import InputRows, NamedRows
from ducklake_lab.sql.types import type_or_none
from tests.unit.sql.lakes import Lakes

#: Columns: name -> (DuckDB's type, values at its edges, a value on which most functions have a result).
COLUMNS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "bo": ("BOOLEAN", ("true", "false"), "true"),
    "i1": ("TINYINT", ("-128", "127", "0"), "3"),
    "i2": ("SMALLINT", ("-32768", "32767", "-7"), "3"),
    "i4": ("INTEGER", ("-2147483648", "2147483647", "0", "-7"), "3"),
    "i8": ("BIGINT", ("-9223372036854775808", "9223372036854775807", "9007199254740993", "0"), "3"),
    "u1": ("UTINYINT", ("0", "255"), "3"),
    "u2": ("USMALLINT", ("0", "65535"), "3"),
    "u4": ("UINTEGER", ("0", "4294967295"), "3"),
    "u8": ("UBIGINT", ("0", "18446744073709551615"), "3"),
    "hu": ("HUGEINT", ("-5", "0", "9007199254740992"), "3"),
    "fl": ("FLOAT", ("'nan'", "'inf'", "'-inf'", "'-0.0'", "0.1", "16777216", "3.4e38"), "2.5"),
    "db": (
        "DOUBLE",
        ("'nan'", "'inf'", "'-inf'", "'-0.0'", "0.1", "1.005", "1e300", "-2.5", "9007199254740993"),
        "2.5",
    ),
    "d4": ("DECIMAL(4,1)", ("-999.9", "0.05", "0", "2.5"), "2.5"),
    "d9": ("DECIMAL(15,2)", ("-9999999999999.99", "1.01", "0"), "2.25"),
    "d18": ("DECIMAL(18,3)", ("999999999999999.999", "-0.005"), "2.125"),
    "d38": (
        "DECIMAL(38,10)",
        ("1234567890123456789012345678.0123456789", "-9876543210987654321098765432.9876543219", "-0.0000000001"),
        "2.5",
    ),
    "vc": (
        "VARCHAR",
        (
            "''",
            "' a '",
            "'é☃'",
            "'😀x'",
            "'ß'",
            "'İ'",
            "'a\\b%_'",
            "chr(9) || chr(10)",
            "'NaN'",
            "'1e3'",
            "'7.5'",
            "'e' || chr(769)",
        ),
        "'abc'",
    ),
    "vd": (
        "VARCHAR",
        ("'2020-02-30'", "'x'", "'12:30'", "'2020-02-29 24:00:00'", "'10000-01-01'"),
        "'2020-02-29 12:30:45'",
    ),
    "vn": ("VARCHAR", ("'-0'", "' 12 '", "'1_000'", "'0x1F'", "'.5'", "'inf'", "'99999999999999999999'"), "'12'"),
    "bl": ("BLOB", ("''::BLOB", "'\\x00\\xFF'::BLOB"), "'abc'::BLOB"),
    "da": (
        "DATE",
        ("'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'10000-01-01'", "'1969-12-31'", "'1582-10-10'"),
        "'2020-02-29'",
    ),
    "ti": ("TIME", ("'00:00:00'", "'23:59:59.999999'"), "'12:30:45.5'"),
    "tt": ("TIMETZ", ("'12:00:00.5+00'", "'00:00:00+00'"), "'12:30:45+00'"),
    "ts": (
        "TIMESTAMP",
        (
            "'infinity'",
            "'-infinity'",
            "'0044-03-15 (BC) 01:02:03'",
            "'10000-01-01'",
            "'1969-12-31 23:59:59.999999'",
            "'2020-11-01 01:30:00'",
        ),
        "'2020-02-29 12:30:45.123456'",
    ),
    "tm": ("TIMESTAMP_MS", ("'1969-12-31 23:59:59.999'",), "'2020-02-29 12:30:45.123'"),
    "tz": (
        "TIMESTAMPTZ",
        (
            "'infinity'",
            "'2020-11-01 05:30:00+00'",
            "'2020-11-01 06:30:00+00'",
            "'2020-03-08 07:00:00+00'",
            "'1900-01-01 00:00:00+00'",
        ),
        "'2020-02-29 12:30:45.5+00'",
    ),
    "iv": ("INTERVAL", ("'1 year 2 months 3 days 04:05:06.007'", "'0 days'", "'1 month'"), "'1 day 02:00:00'"),
    "uu": (
        "UUID",
        ("'00000000-0000-0000-0000-000000000000'", "'FFFFFFFF-ffff-ffff-ffff-ffffffffffff'"),
        "'12345678-1234-4234-8234-123456789abc'",
    ),
    "js": ("JSON", ("""'{"a": [1, null, "x"]}'""", "'null'", "'1.50'"), """'{"a": {"b": 2}}'"""),
    "li": ("INTEGER[]", ("[]", "[NULL]", "[3, 1, NULL, 3]"), "[1, 2, 3]"),
    "ls": ("VARCHAR[]", ("[]", "['b', NULL, '']"), "['a', 'b']"),
    "ld": ("DOUBLE[]", ("['nan', 0.5, 1e300]",), "[1.5, 2.5]"),
    "st": ("STRUCT(a INTEGER, b VARCHAR)", ("{'a': NULL, 'b': ''}",), "{'a': 1, 'b': 'x'}"),
    "ma": ("MAP(VARCHAR, INTEGER)", ("map([], [])", "MAP {'': NULL}"), "MAP {'a': 1}"),
}
TYPES = {name: kind for name, (kind, _, _) in COLUMNS.items()}
_TABLE = {"k": "INTEGER", **TYPES}
#: Constants by type, beside columns of it.
CONSTANTS = ("1", "-3", "0", "0.1", "2.50", "1e2", "'abc'", "''", "'2020-02-29'", "DATE '2020-02-29'", "'12'")
CONSTANTS += (
    "TIMESTAMP '2020-02-29 00:00:00'",
    "TIMESTAMPTZ '2020-11-01 01:30:00'",
    "INTERVAL 1 MONTH",
    "NULL",
    "true",
)
BINARY = "+ - * / // % ** & | << >> || = <> < <= > >= ^@ ~ LIKE ILIKE GLOB".split()
BINARY += ["IS DISTINCT FROM", "IS NOT DISTINCT FROM", "NOT LIKE", "SIMILAR TO"]
#: What a parameter of a function may be given: columns, then constants.
_GIVEN = {
    "BOOLEAN": ["bo"], "TINYINT": ["i1"], "SMALLINT": ["i2"], "INTEGER": ["i4", "2"], "BIGINT": ["i8", "i4", "2"],
    "UTINYINT": ["u1"], "USMALLINT": ["u2"], "UINTEGER": ["u4"], "UBIGINT": ["u8"], "HUGEINT": ["hu", "i4"],
    "UHUGEINT": ["u8"], "FLOAT": ["fl"], "DOUBLE": ["db", "d9", "i4"], "DECIMAL": ["d9", "d38"],
    "VARCHAR": ["vc", "vn", "'a'", "'month'", "'%Y-%m-%d'", "'[a-c]+'"], "BLOB": ["bl"], "DATE": ["da"], "TIME": ["ti"],
    "TIME WITH TIME ZONE": ["tt"], "TIMESTAMP": ["ts"], "TIMESTAMP WITH TIME ZONE": ["tz"], "TIMESTAMP_MS": ["tm"],
    "INTERVAL": ["iv", "INTERVAL 1 DAY"], "UUID": ["uu"], "JSON": ["js"], "ANY": ["i4", "vc", "db", "ts", "st", "li"],
    "T": ["i4", "vc", "ts"], "K": ["vc"], "V": ["i4"], "T[]": ["li", "ls", "ld"], "ANY[]": ["li"], "ANY[][]": ["[li]"],
    "STRUCT": ["st"], "MAP": ["ma"], "MAP(K, V)": ["ma"], "LAMBDA": ["lambda x: x", "lambda x: x IS NOT NULL", "lambda x, y: x"],
    "VARCHAR[]": ["ls", "['$.a', 'b']"], "DOUBLE[]": ["ld"], "INTEGER[]": ["li"], "BIGINT[]": ["li"], "ROW": ["st"], "SMALL": ["2", "i1"],
}  # fmt: skip
#: Functions that return another value at each call, or act on the process.
_LEFT_OUT = frozenset(
    "random uuid uuidv4 uuidv7 gen_random_uuid setseed sleep_ms write_log nextval currval error".split()
)
# and numbers of 39 digits, which are an error on Spark
_LEFT_OUT |= frozenset(
    "md5_number md5_number_lower md5_number_upper array_value now get_current_timestamp transaction_timestamp current_localtimestamp get_current_time".split()
)


#: Functions that take all memory there is for large numbers.
_GROWING = frozenset("range generate_series repeat lpad rpad list_resize array_resize bar generate_subscripts".split())


@dataclass(frozen=True, slots=True)
class Expression:
    """Attributes:
    group: what it is an example of: the name of a function, or an operator.
    """

    sql: str
    group: str


def operators() -> Iterator[Expression]:
    """Operators and syntax, for all pairs of types and for constants."""
    names = list(COLUMNS)
    for operator in BINARY:
        for left, right in itertools.product(names, names):
            yield Expression(f"({left} {operator} {right})", operator)
        for left, right in itertools.product(names, CONSTANTS):
            yield Expression(f"({left} {operator} {right})", operator)
            yield Expression(f"({right} {operator} {left})", operator)
    for name, (kind, _, _) in COLUMNS.items():
        for template in (
            "-{0}",
            "~{0}",
            "NOT {0}",
            "{0} IS NULL",
            "{0} IS NOT NULL",
            "{0}::BOOLEAN AND bo",
            "bo OR {0} IS NULL",
        ):
            yield Expression("(" + template.format(name) + ")", template.format("x"))
        for other, (target, _, _) in COLUMNS.items():
            yield Expression(f"CAST({name} AS {target})", "CAST")
            yield Expression(f"TRY_CAST({name} AS {target})", "TRY_CAST")
            yield Expression(f"CASE WHEN bo THEN {name} ELSE {other} END", "CASE")
            yield Expression(f"coalesce({name}, {other})", "coalesce")
            yield Expression(f"nullif({name}, {other})", "nullif")
            yield Expression(f"({name} BETWEEN {other} AND {name})", "BETWEEN")
            yield Expression(f"({name} IN ({other}, NULL))", "IN")
        for constant in CONSTANTS:
            yield Expression(f"CASE WHEN bo THEN {name} ELSE {constant} END", "CASE")
            yield Expression(f"coalesce({name}, {constant})", "coalesce")
            yield Expression(f"nullif({name}, {constant})", "nullif")
            yield Expression(f"({name} BETWEEN {constant} AND {constant})", "BETWEEN")
            yield Expression(f"({name} IN ({constant}, {constant}))", "IN")
            yield Expression(f"CAST({constant} AS {kind})", "CAST")
        for part in ("year", "month", "day", "hour", "epoch", "isodow", "week", "timezone"):
            yield Expression(f"date_part('{part}', {name})", "date_part")
            yield Expression(f"date_trunc('{part}', {name})", "date_trunc")
    for text in ("vc", "vd", "vn", "concat(vc, vn)"):
        for pattern in ("a%", "%b%", "_", "%", "", "__x", "%_\\%", "[a]", "é%", "😀_"):
            yield Expression(f"({text} LIKE '{pattern}')", "LIKE")
        for bounds in ("1, 2", "2, 1", "0, 2", "-2, 1", "1, 0", "3, 100", f"greatest(i1, -length({text})), 1"):
            # before the first character DuckDB starts elsewhere in texts that it knows to be ASCII
            yield Expression(f"substring({text}, {bounds})", "substring")
    for made in ("st.a", "st.b", "st['a']", "li[1]", "li[-1]", "li[i4]", "li[1:2]", "vc[1]", "vc[-2:]", "ma['a']", "[i4, 1]",
                 "{'x': i4, 'y': vc}", "MAP {vc: i4}", "vc ~ '[[:alpha:]]+$'", "regexp_matches(vc, '(?i)É')",
                 "list_transform(li, lambda x, i: x + i)", "round(1.005, 2)", "round(db, 2)", "[x + 1 FOR x IN li IF x > 1]",
                 "strftime(ts, '%A, %-d %B %Y %H:%M:%S.%f')", "strptime(vd, '%Y-%m-%d %H:%M:%S')", "try_strptime(vd, '%Y-%m-%d %H:%M:%S')",
                 "tz::VARCHAR", "tz::DATE", "tz + INTERVAL 1 DAY", "da + i1", "da - DATE '2000-01-01'", "ts - INTERVAL 1 MONTH",
                 "1 / db", "1 / -0.0", "ln(0)", "x'AB'::BLOB", "vc COLLATE NOCASE = 'ABC'", "js->'a'", "js->>'$.a[0]'",
                 "CASE i4 WHEN 3 THEN 'a' WHEN 0 THEN vc END", "greatest(i4, i8, 1)", "least(db, fl, 0.5)"):  # fmt: skip
        yield Expression(made, "syntax")


def functions() -> Iterator[Expression]:
    """Calls of every scalar function that DuckDB lists, for each of its signatures."""
    rows = duckdb.execute(
        "SELECT DISTINCT function_name, parameter_types, varargs, function_type FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'macro') AND NOT starts_with(function_name, 'pg_') "
        "AND NOT starts_with(function_name, '__') AND function_name SIMILAR TO '[a-z_0-9]+' ORDER BY ALL"
    ).fetchall()
    for name, kinds, varargs, sort in rows:
        if name in _LEFT_OUT or is_aggregate(name):
            continue
        grows = name in _GROWING
        kinds = [
            "SMALL" if grows and (i or "INT" in str(k)) and k != "VARCHAR" else str(k) for i, k in enumerate(kinds)
        ]
        given = [_GIVEN.get(kind, ["i4", "vc", "ts", "li"] if sort == "macro" else []) for kind in kinds]
        if varargs:
            given.append(_GIVEN.get(varargs, ["i4", "vc"]))
        for arguments in itertools.islice(itertools.product(*given), 8 if sort == "macro" else 40):
            yield Expression(f"{name}({', '.join(arguments)})", name)


def rows(*, edges: bool) -> str:
    """VALUES of the columns: with edges a row for each, in which all columns differ; else one row, and one of NULL."""
    if not edges:
        return f"({', '.join(f'CAST({plain} AS {kind})' for kind, _, plain in COLUMNS.values())})"
    maker = random.Random(0)
    lines = []
    for number in range(40):
        cells = []
        for kind, values, plain in COLUMNS.values():
            every = (*values, plain, "NULL")
            # first each value once, then by chance, so that those of two columns meet
            value = every[number % len(every)] if number < 15 else maker.choice(every)
            cells.append(f"CAST({value} AS {kind})")
        lines.append(f"({', '.join(cells)})")
    return ", ".join(lines)


class OneTable(Lakes):
    """A lake of one table, `t`, of all columns."""

    def __init__(self, settings: Settings = (("TimeZone", "UTC"),)) -> None:
        super().__init__()
        self._settings = settings

    def table(self, name: object, at: object) -> NamedRows:
        return InputRows([(column, type_or_none(kind) or DataType("varchar")) for column, kind in _TABLE.items()])

    def macros(self, place: object) -> dict[tuple[str, str], object]:  # type: ignore[override]
        return {}

    def settings(self) -> Settings:
        return self._settings


@cache
def where_it_runs(expression: str, settings: Settings = (("TimeZone", "UTC"),)) -> str:
    """Return "native" or "worker" for an expression, or the error that refuses it."""
    return where_it_runs_in(f"SELECT {expression} AS v FROM t", settings)


def where_it_runs_in(text: str, settings: Settings = (("TimeZone", "UTC"),)) -> str:
    """Return "native" or "worker" for a query, or the error that refuses it."""
    try:
        query = plan_query(parse_query(text), OneTable(settings)).for_spark()
    except DuckLakeError as error:
        return str(error)
    return "worker" if query.evaluations else "native"


# A file holds a TIMETZ without its zone, and the first of equal intervals: expressions cause neither.
def every() -> list[Expression]:
    """All that may be taken, each once."""
    return list(dict.fromkeys([*operators(), *functions()]))


def is_bound(expression: Expression, connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether DuckDB takes an expression."""
    try:
        connection.sql(f"SELECT {expression.sql} AS v FROM t")
    except duckdb.Error:
        return False
    return True


def connect(settings: Settings = ()) -> duckdb.DuckDBPyConnection:
    """DuckDB with the rows at the edges as `edges`, the row without as `plain`, and one of the two as `t`."""
    connection = duckdb.connect()
    for name, value in (("TimeZone", "UTC"), *settings):
        connection.execute(f"SET {name} = '{value}'")
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    for table in ("edges", "plain"):
        connection.execute(f"CREATE TABLE {table} (k INTEGER, {columns})")
        connection.execute(
            f"INSERT INTO {table} SELECT row_number() OVER (), * FROM (VALUES {rows(edges=table == 'edges')})"
        )
        # where statistics know that texts are ASCII, substring() counts otherwise; of files of a lake they never do
        texts = ", ".join(f"'é' AS {name}" for name, kind in TYPES.items() if kind == "VARCHAR")
        connection.execute(f"INSERT INTO {table} BY NAME SELECT {texts}")
        connection.execute(f"DELETE FROM {table} WHERE k IS NULL")
    connection.execute("CREATE VIEW t AS FROM edges")
    return connection


def chosen(
    expressions: Iterable[Expression], share: float, seed: int, fits: Callable[[Expression], bool] = lambda _: True
) -> list[Expression]:
    """A share of the expressions that fit, of each group at least two."""
    maker, seen = random.Random(seed), Counter[str]()
    found = []
    for expression in expressions:
        if (seen[expression.group] < 2 or maker.random() < share) and fits(expression):
            seen[expression.group] += 1
            found.append(expression)
    return found


def _groups(every: Iterable[Expression]) -> list[str]:
    """The sorted names of functions and operators; all collations share one name."""
    return sorted({re.sub(r"^icu_collate_\w+", "icu_collate_*", e.group) for e in every})


def page() -> str:
    """The page that says what runs where."""
    with connect() as connection:
        taken = [expression for expression in every() if is_bound(expression, connection)]
    places = {expression: where_it_runs(expression.sql) for expression in taken}
    columns = re.compile(rf"\b({'|'.join(('k', *TYPES))})\b")
    places = {
        e: "constant" if place == "native" and not columns.search(e.sql) else place for e, place in places.items()
    }
    native, workers = (_groups(e for e, found in places.items() if found == place) for place in ("native", "worker"))
    refused = {e: place for e, place in places.items() if place not in ("constant", "native", "worker")}
    counts = Counter("refused" if e in refused else place for e, place in places.items())

    def share(kind: str) -> str:
        return f"{counts[kind]:,} ({100 * counts[kind] / len(places):.1f} %)"

    lines = [
        "# Expressions on Spark",
        "",
        "`python -m tests.spark.expressions` writes this page. It counts expressions that DuckDB takes: its operators for",
        "all pairs of types, and its functions for all their signatures. A test compares them with DuckDB.",
        "",
        f"- **Constants**, computed while planning: {share('constant')}",
        f"- **Native**, computed by Spark: {share('native')}",
        f"- **In workers**, evaluated by DuckDB in Spark's Python workers: {share('worker')}",
        f"- **Refused** with `UnsupportedFeatureError`: {share('refused')}",
        "",
        "## Native, for some types at least",
        "",
        ", ".join(f"`{name}`" for name in native).replace("|", "\\|"),
        "",
        "## In workers, for some types at least",
        "",
        ", ".join(f"`{name}`" for name in workers).replace("|", "\\|"),
        "",
        "## Refused",
        "",
    ]
    for reason in sorted(set(refused.values())):
        names = _groups(e for e, place in refused.items() if place == reason)
        lines.append(f"- {', '.join(f'`{name}`' for name in names)}: {reason}".replace("|", "\\|"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())

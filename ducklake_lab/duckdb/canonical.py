"""SQL in DuckDB's own spelling, in which the catalog keeps views, macros and expressions.

DuckDB parses the text and prints it; nothing is bound, so it may name missing entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import duckdb

from ducklake_lab.duckdb.connections import of_thread
from ducklake_lab.duckdb.printed_joins import as_named, name_cross_joins, shapes
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier, quoted_if_needed


def query_text(sql: str) -> str:
    """A query as DuckDB prints it.

    Raises:
        SqlSyntaxError: it is no query.
        UnsupportedFeatureError: it is one that cannot be kept, e.g. a PIVOT whose columns depend on the data.
    """
    (serialized,) = _one("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", sql)
    parsed = json.loads(serialized, parse_constant=_refuse_infinity)
    if parsed["error"]:
        message = str(parsed["error_message"]).splitlines()[0]
        if parsed["error_type"] in ("not implemented", "serialization"):
            if re.search(r"\bPIVOT", sql, re.IGNORECASE) is not None:
                raise UnsupportedFeatureError(
                    "A view or macro takes no PIVOT whose values are read from the data or computed; "
                    "list them: ON column IN ('a', 'b')."
                )
            raise UnsupportedFeatureError(f"Views and macros cannot be kept with this query: {message}")
        raise SqlSyntaxError(f"{message[:1].upper()}{message[1:]}.")
    if len(parsed["statements"]) != 1:
        raise SqlSyntaxError("One query was expected here.")
    wanted = shapes(parsed)
    if name_cross_joins(parsed):
        serialized = json.dumps(parsed)
    (printed,) = _one("SELECT json_deserialize_sql(?::JSON)", serialized)
    text = _with_columns_of_unpivot(_quoted_types(as_named(str(printed))))
    if "->" not in sql:
        # on its way through JSON a lambda gets an arrow, which DuckDB 2.0 refuses
        text = _ARROW.sub(lambda arrow: arrow[1] or f"(lambda {arrow[2] or arrow[3]}: ", text)
    again = json.loads(_one("SELECT json_serialize_sql(?::VARCHAR)::VARCHAR", text)[0])
    if not again["error"] and shapes(again) != wanted:
        raise UnsupportedFeatureError(
            "A view or macro takes no join in parentheses that has a name, is pivoted, or is on the right of a CROSS, "
            "NATURAL or POSITIONAL JOIN; write it as a subquery: (SELECT … FROM … JOIN …) AS name."
        )
    if again["error"]:
        # a macro with it would keep the reference from reading the lake
        raise UnsupportedFeatureError(
            "This query or expression cannot be kept, as DuckDB prints it as text that it does not read; write it in "
            f"another way: {text if len(text) <= 100 else text[:99] + '…'}"
        )
    return text


def _refuse_infinity(_: str) -> None:
    """Refuses a number beyond DOUBLE, which DuckDB prints but does not read again."""
    raise UnsupportedFeatureError("Views and macros keep no number beyond the range of DOUBLE; write 'inf'::DOUBLE.")


def expression_text(sql: str) -> str:
    """An expression as DuckDB prints it.

    Raises:
        SqlSyntaxError: it is no expression.
    """
    return query_text(f"SELECT {sql}").removeprefix("SELECT ")


_NAME = r"(?:\w+|\"(?:[^\"]|\"\")*\")"
#: A text or a quoted name, or the parameters of a lambda, one or several.
_ARROW = re.compile(rf"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|\((?:\"row\"\(({_NAME}(?:, {_NAME})*)\)|({_NAME})) -> ")


@lru_cache(maxsize=10_000)
def item_name(sql: str) -> str | None:
    """Returns DuckDB's name of a column that a SELECT list computes without an alias; None if it cannot be read.

    Args:
        sql: the item, with a WINDOW clause if it needs one.
    """
    try:
        text = expression_text(sql)
    except (SqlSyntaxError, UnsupportedFeatureError, duckdb.Error):
        return None
    text = _with_written_widths(text, sql)
    folded = sql.casefold()
    if "interval" in folded:
        # these casts are DuckDB's own, so that their types were never written
        text = _OF_INTERVALS.sub(r"\1DOUBLE\2", text)
    return text


_OF_INTERVALS = re.compile(r'(\bto_\w+\(CAST\(trunc\(CAST\(.*? AS )"DOUBLE"(\)\) AS (?:INTEGER|BIGINT)\)\))')
_WIDE = "DECIMAL|NUMERIC|DEC|VARCHAR|TEXT|STRING|BPCHAR|CHAR"
_WIDTH = re.compile(
    rf"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\b({_WIDE})\b(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE
)


def _with_written_widths(text: str, sql: str) -> str:
    """The text with the widths of types as they are written; on its way through JSON, types lose or get them."""
    written = [width for width in _WIDTH.finditer(sql) if width[1]]
    printed = [width for width in _WIDTH.finditer(text) if width[1]]
    if len(written) != len(printed):
        return text
    widths = iter(written)

    def as_written(width: re.Match[str]) -> str:
        if not width[1]:
            return width[0]
        numbers = [number for number in next(widths).groups()[1:] if number is not None]
        return width[1] + (f"({', '.join(numbers)})" if numbers else "")

    return _WIDTH.sub(as_written, text)


def is_one(kind: str, sql: str) -> bool:
    """Returns whether DuckDB reads a text as one statement of a kind, such as SELECT; a hostile catalog may hold the text."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error:
        return False
    return [statement.type.name for statement in statements] == [kind]


@cache
def reserved_words() -> frozenset[str]:
    """Returns the words that DuckDB does not accept as column names, in lower case."""
    words = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    return frozenset(word for (word,) in _connection().execute(words).fetchall())


def constant_text(sql: str) -> tuple[str | None, str]:
    """(text, type) of a constant: its value cast to text, and DuckDB's name of its type.

    Raises:
        BindError: it is no constant.
    """
    try:
        value, kind = _one(f"SELECT CAST(({sql}) AS VARCHAR), typeof(({sql}))")
    except duckdb.Error as error:
        raise BindError(f"{sql} is not a constant: {worded(error)}") from error
    return value, str(kind)


def check_parameters(macro: str, lists: Sequence[str]) -> None:
    """Checks the parameters of a macro's overloads as DuckDB does, e.g. `x INTEGER, y := 5`.

    Raises:
        BindError: two have one name, a default is no constant or before one that has none, two overloads take the same.
    """
    try:
        _connection().execute(
            f"CREATE OR REPLACE TEMP MACRO {quote_identifier(macro)} {', '.join(f'({some}) AS NULL' for some in lists)}"
        )
    except duckdb.Error as error:
        raise BindError(f"{worded(error).rstrip('.')}.") from None


@lru_cache(maxsize=1_000)
def overload(parameters: Sequence[str], arguments: str) -> int | None:
    """Returns the index of the overload that DuckDB chooses for a call; None if it chooses none.

    Args:
        parameters: the parameters of each overload, e.g. `x INTEGER, y := 5`.
        arguments: the arguments of the call, constants of their types.
    """
    bodies = ", ".join(f"({some}) AS {index}" for index, some in enumerate(parameters))
    try:
        _connection().execute(f"CREATE OR REPLACE TEMP MACRO ducklake_overload {bodies}")
        (index,) = _one(f"SELECT ducklake_overload({arguments})")
    except duckdb.Error:
        return None
    return int(index)


_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|\s+|.", re.DOTALL)
_TYPE_NAMES = re.compile(
    r"\b(TIMESTAMP WITH TIME ZONE|TIME WITH TIME ZONE|TIMESTAMP_(?:S|MS|NS)|DATE|BLOB|DOUBLE|U?TINYINT|USMALLINT|UINTEGER|"
    r"UBIGINT|U?HUGEINT|UUID|BIT|VARIANT|GEOMETRY|BIGNUM)\b(?![\"(])"
)


def _quoted_types(text: str) -> str:
    """The text with the types of casts spelled as in a text that was only parsed.

    On its way through JSON a type is resolved; in the catalog, all but the types of DuckDB's grammar stand in quotes.
    """
    result: list[str] = []
    # per open parenthesis: where the type of its cast begins in `result`; None before that and elsewhere
    casts: list[bool] = []
    types: list[int | None] = []
    word = ""
    for token in _TOKEN.findall(text):
        if token == "(":
            casts.append(word.upper() in ("CAST", "TRY_CAST"))
            types.append(None)
        elif token == ")" and types:
            begin = types.pop()
            casts.pop()
            if begin is not None:
                result[begin:] = [_quoted_type("".join(result[begin:]))]
        result.append(token)
        if token == "AS" and casts and casts[-1] and types[-1] is None:
            types[-1] = len(result)
        if not token.isspace():
            word = token
    return "".join(result)


def _quoted_type(kind: str) -> str:
    """The type of a cast with names in quotes; its texts and the names of its fields stay."""
    pieces = re.split(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")", kind)
    for i in range(0, len(pieces), 2):
        pieces[i] = re.sub(r"(DECIMAL\(\d+),(\d+\))", r"\1, \2", _TYPE_NAMES.sub(r'"\1"', pieces[i]))
    return "".join(pieces)


def _with_columns_of_unpivot(text: str) -> str:
    """The text with the columns of UNPIVOT as names, which they are in a text that was only parsed.

    On its way through JSON they become texts.
    """
    if "UNPIVOT" not in text:
        return text
    result: list[str] = []
    # per open parenthesis: whether it is that of UNPIVOT, or of its columns
    kinds: list[str] = []
    words = ["", ""]
    tokens = _TOKEN.findall(text)
    for place, token in enumerate(tokens):
        kind = kinds[-1] if kinds else ""
        if token == "(":
            of_unpivot = "UNPIVOT" in (words[-1], *(words[-3:-2] if words[-2:] == ["INCLUDE", "NULLS"] else ()))
            in_columns = kind == "columns" and words[-1] in ("(", ",") and _is_list_of_texts(tokens[place + 1 :])
            if of_unpivot:
                kinds.append("unpivot")
            else:
                kinds.append("columns" if in_columns or (kind == "unpivot" and words[-1] == "IN") else "")
                token = 'main."row"(' if in_columns else token
        elif token == ")" and kinds:
            kinds.pop()
        elif kind == "columns" and token.startswith("'") and words[-1] in ("(", ","):
            token = quoted_if_needed(token[1:-1].replace("''", "'"))
        result.append(token)
        if not token.isspace():
            words.append(token[-1:] if token.endswith("(") else token)
    return "".join(result)


def _is_list_of_texts(tokens: Sequence[str]) -> bool:
    """Whether tokens begin with texts and commas alone, up to a closing parenthesis: columns, and no expression."""
    for number, token in enumerate(token for token in tokens if not token.isspace()):
        if number % 2 == 1 and token == ")":
            return True
        if not (token == "," if number % 2 else token.startswith("'")):
            return False
    return False


def _connection() -> duckdb.DuckDBPyConnection:
    return of_thread("canonical", [("TimeZone", "UTC")])


def _one(sql: str, *parameters: object) -> tuple[Any, ...]:
    (row,) = _connection().execute(sql, list(parameters)).fetchall()
    return tuple(row)

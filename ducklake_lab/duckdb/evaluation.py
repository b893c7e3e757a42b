"""Expressions that DuckDB evaluates for another engine: bound here, run in its workers.

An expression names its arguments `_ducklake_0`, `_ducklake_1`, … Settings of DuckDB that change its meaning belong
to it: they are set wherever it is bound or run.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import duckdb

from ducklake_lab.duckdb.casting import from_duckdb
from ducklake_lab.duckdb.connections import UNSOUND_OPTIMIZERS, sealed
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import BindError, SqlError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.types import DataType

#: Settings of a session that differ from DuckDB's own, by name.
Settings = tuple[tuple[str, str], ...]

#: The type of NULL, where nothing gives it another.
NULL = DataType('"null"')
#: Result of a deferred evaluation: a value, and the error of a row that has none.
VALUE, ERROR = "v", "e"
#: Characters of an expression up to which an error shows it.
_WIDTH = 80
#: Connections that a thread keeps.
_KEPT = 8
_local = threading.local()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An expression for workers.

    Attributes:
        sql: in DuckDB's SQL.
        arguments: their types.
        volatile: each row, and each use, has a value of its own.
        deferred: a row whose value cannot be computed gets an error beside it, which counts where the value is used.
        columns: names of its arguments in errors; "" for one that is no column.
        written: SQL of its arguments for errors; "" where it is not known.
    """

    sql: str
    arguments: tuple[DataType, ...]
    result: DataType
    settings: Settings
    volatile: bool = False
    deferred: bool = False
    columns: tuple[str, ...] = ()
    written: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name that no other expression, and no other settings, have."""
        kinds = (kind.sql() for kind in (*self.arguments, self.result))
        parts = (self.sql, *kinds, self.settings, self.deferred, self.columns, self.written)
        return f"_ducklake_eval_{hashlib.sha256(repr(parts).encode()).hexdigest()[:20]}"


def argument(index: int) -> str:
    """The name of an expression's argument."""
    return f"_ducklake_{index}"


#: A name of an argument in the text of an expression, quoted or not.
_ARGUMENT = re.compile(r"(\"?)\b_ducklake_(\d+)\b\1")


def error_text(evaluation: Evaluation, error: duckdb.Error) -> str:
    """Returns the message of an evaluation's error, in one line, by its column or expression."""
    text = worded(error, evaluation.columns)
    if not isinstance(error, duckdb.ConversionException) or text.startswith("Column "):
        return text
    written = evaluation.written
    if len(written) != len(evaluation.arguments) or not all(written) or "SELECT" in evaluation.sql:
        return text
    expression = _ARGUMENT.sub(lambda match: written[int(match[2])], evaluation.sql)
    shown = printed(expression) or expression
    return f"{shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + '…'}: {text}"


def connection(settings: Settings) -> duckdb.DuckDBPyConnection:
    """Return this thread's database for some settings, which reaches nothing outside of it."""
    kept: dict[Settings, duckdb.DuckDBPyConnection] = _local.__dict__.setdefault("kept", {})
    database = kept.pop(settings, None)
    if database is None:
        database = sealed(settings, threads=1)
    kept[settings] = database
    while len(kept) > _KEPT:
        kept.pop(next(iter(kept))).close()
    return database


def forgiving(settings: Settings) -> duckdb.DuckDBPyConnection:
    """Turn common subexpressions off for TRY: DuckDB computes them before it, outside of it."""
    return connection((*settings, ("disabled_optimizers", ",".join(("common_subexpressions", *UNSOUND_OPTIMIZERS)))))


def _drop(settings: Settings) -> None:
    """Closes a thread's database: an error may leave a transaction in it that takes no more statements."""
    database = _local.kept.pop(settings, None)
    if database is not None:
        database.close()


@lru_cache(maxsize=10_000)
def result_type(sql: str, arguments: tuple[DataType, ...], settings: Settings) -> DataType:
    """The type that DuckDB gives an expression.

    Raises:
        BindError: DuckDB does not know a function, or not for such arguments.
        UnsupportedFeatureError: lakes have no equal of the type.
    """
    for given in arguments:
        check_named(given)
    columns = [f'CAST(NULL AS {kind.sql()}) AS "{argument(i)}"' for i, kind in enumerate(arguments)]
    try:
        relation = connection(settings).sql(f"SELECT ({sql}) FROM (SELECT {', '.join(columns) or '1 AS one'})")
    except duckdb.Error as error:
        _drop(settings)
        raise BindError(worded(error)) from error
    kinds = relation.types
    if len(kinds) != 1:
        raise UnsupportedFeatureError(f"{sql} gives {len(kinds)} columns, which is not supported in Spark.")
    kind = kinds[0]
    if str(kind) == '"NULL"':
        return NULL
    data_type = from_duckdb(kind)
    if data_type is None:
        raise UnsupportedFeatureError(f"Values of type {kind} are not supported on Spark.")
    if _has(kind, "enum"):
        raise UnsupportedFeatureError(f"Values of type {kind} are not supported on Spark; cast them to VARCHAR.")
    if _has(kind, "array"):
        raise UnsupportedFeatureError(f"Values of type {kind} are not supported on Spark; cast them to lists.")
    return data_type


def _has(kind: duckdb.sqltypes.DuckDBPyType, name: str) -> bool:
    """Return whether one of DuckDB's types has a kind that Spark lacks, or a part of that kind.

    Args:
        name: `enum`, whose values are not in the order of their texts, or `array`, whose length is fixed.
    """
    if kind.id in ("struct", "list", "array", "map"):
        children = (child for _, child in kind.children)
        return kind.id == name or any(
            _has(child, name) for child in children if isinstance(child, duckdb.sqltypes.DuckDBPyType)
        )
    return bool(kind.id == name)


def check_named(kind: DataType) -> None:
    """Raises where fields of a struct have no names: no SQL casts to such a type, and Spark has none."""
    if any(not name for part in kind.walk() for name, _ in part.children):
        raise UnsupportedFeatureError(
            "Values of several parts without names, such as (1, 2), are not supported on Spark; write {a: 1, b: 2}."
        )


@lru_cache(maxsize=10_000)
def constant(sql: str, kind: DataType, settings: Settings) -> object:
    """The value of an expression without arguments: an integer, bool or float as itself, times as their number, else text.

    Raises:
        SqlError: it has none.
    """
    form = _FORMS.get(kind.name, "VARCHAR")
    shown = form.format(f"CAST(({sql}) AS {kind.sql()})") if "{}" in form else f"CAST(({sql}) AS {kind.sql()})::{form}"
    try:
        ((value,),) = connection(settings).execute(f"SELECT {shown}").fetchall()
    except duckdb.Error as error:
        _drop(settings)
        raise SqlError(worded(error)) from error
    return value


#: The number that a time is kept as; `epoch_us` has none for infinities.
_MICROSECONDS = (
    "(SELECT CASE WHEN isinf(v) THEN CASE WHEN v > TIMESTAMP '1970-01-01' THEN 1 ELSE -1 END * 9223372036854775807 "
    "ELSE epoch_us(v) END FROM (SELECT {} AS v))"
)
#: SQL that reads a constant of a type; others are read as VARCHAR.
_FORMS = {
    "boolean": "BOOLEAN",
    "float32": "DOUBLE",
    "float64": "DOUBLE",
    "blob": "hex({})",
    "date": "({} - DATE '1970-01-01')",
    "timestamp": _MICROSECONDS,
    "timestamptz": _MICROSECONDS,
}


@lru_cache(maxsize=1)
def stabilities() -> dict[str, str]:
    """The stability of DuckDB's scalar functions by name, without those that are consistent.

    Functions that vary for times with a zone alone are left out: they depend on `TimeZone`, and that setting goes with
    every query.
    """
    rows = (
        connection(())
        .execute(
            "SELECT lower(function_name), max(stability) FROM duckdb_functions() "
            "WHERE function_type = 'scalar' GROUP BY ALL HAVING bool_and(stability <> 'CONSISTENT')"
        )
        .fetchall()
    )
    return dict(rows)


#: Macros of DuckDB's own that stand for aggregates.
_AGGREGATING_MACROS = frozenset(
    "json_group_array json_group_object json_group_structure variant_group_array wavg weighted_avg geomean "
    "geometric_mean".split()
)


@lru_cache(maxsize=1)
def aggregates() -> frozenset[str]:
    """The names of DuckDB's aggregates and window functions."""
    rows = connection(()).execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type IN ('aggregate', 'window')"
    )
    return frozenset(name for (name,) in rows.fetchall()) | _AGGREGATING_MACROS


def is_aggregate(name: str) -> bool:
    """Return whether a function of DuckDB aggregates rows, or is one of windows."""
    return name.lower() in aggregates() or name.lower() in ("grouping", "grouping_id")


def names_like(names: Sequence[str], pattern: str) -> set[str]:
    """Return the names in which a regular expression of DuckDB matches.

    Raises:
        BindError: DuckDB cannot read the pattern.
    """
    rows = ", ".join(f"({quote_text(name)})" for name in names)
    query = f"SELECT n FROM (VALUES {rows}) AS t(n) WHERE regexp_matches(n, {quote_text(pattern)})"
    try:
        return {name for (name,) in connection(()).execute(query).fetchall()} if names else set()
    except duckdb.Error as error:
        raise BindError(worded(error)) from error


@lru_cache(maxsize=10_000)
def printed(sql: str) -> str | None:
    """The first columns of `SELECT sql` as DuckDB writes them in names of columns; None where it cannot read them."""
    query = f"SELECT json_deserialize_sql(json_serialize_sql({quote_text(f'SELECT {sql}')}))"
    try:
        row = connection(()).execute(query).fetchone()
    except duckdb.Error:
        return None
    return str(row[0]).removeprefix("SELECT ") if row is not None else None


def value_sql(evaluation: Evaluation) -> str:
    """An evaluation's expression, in the type of its result."""
    return f"CAST(({evaluation.sql}) AS {evaluation.result.sql()})"


def rows_sql(shown: str, arguments: Sequence[str]) -> str:
    """Write a query of expressions over `batch`, whose columns give the arguments."""
    columns = [f'{sql} AS "{argument(i)}"' for i, sql in enumerate(arguments)]
    return f"SELECT {shown} FROM (SELECT {', '.join(columns) or '1 AS one'} FROM batch)"

"""Reads of a table for Spark, with its files pruned by the conditions that Spark pushes down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import (
    COMPARED_ALIKE,
    MIRRORED,
    And,
    Comparison,
    InList,
    NullTest,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from ducklake_lab.model.quoting import quote_for_spark, quote_identifier
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.session.rows.digests import digest_of
from ducklake_lab.session.spark_tables.keyed import by_key
from ducklake_lab.session.spark_tables.parts import Parts, Request
from ducklake_lab.sql.planning.metadata_aggregates import ROWS

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame

#: Operators by Spark's names.
_COMPARISONS: dict[str, Operator] = {"=": "=", "<=>": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<>": "!="}
_VALUES: dict[str, Callable[[str], object]] = {
    "boolean": lambda text: text == "true",
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    "string": str,
    "date": lambda text: Moment.counted(int(text), "date"),
    "timestamp": lambda text: Moment.counted(int(text), "timestamptz"),
    "timestamp_ntz": lambda text: Moment.counted(int(text), "timestamp"),
}


def scan(parts: Parts, request: Request) -> DataFrame:
    """Returns the rows of a table, with the columns of a request in order."""
    return _frames(parts, request, [_planned(parts, request)])[0]


def keys(parts: Parts, request: Request) -> dict[str, Any] | None:
    """Returns the values of a partition key, and the bytes to read; None where the key of some rows is not known."""
    plan = _planned(parts, request)
    plans = _by_key(plan, request)
    return None if plans is None else {"values": list(plans), "bytes": plan.bytes_read}


def keyed_scan(parts: Parts, request: Request) -> list[DataFrame]:
    """Returns the rows of each of some values of a partition key, with the columns of a request in order.

    Raises:
        UsageError: another commit has changed the files, so that the key of some rows is not known.
    """
    plan = _planned(parts, request)
    plans = _by_key(plan, request)
    values: list[str | None] = request["values"]
    if plans is None or not set(plans) <= set(values):
        raise UsageError(f"The partitions of {request['table']['name']} have changed; run the query again.")
    empty = replace(plan, files=(), inlined=None)
    return _frames(parts, request, [plans.get(value, empty) for value in values])


def _by_key(plan: ScanPlan, request: Request) -> Mapping[str | None, ScanPlan] | None:
    key = request["key"]
    text = f"bucket({key['buckets']})" if "buckets" in key else str(key["transform"])
    return by_key(plan, key["column"], text)


def _planned(parts: Parts, request: Request) -> ScanPlan:
    state, table = table_of(parts, request["table"])
    predicates = [condition for entry in request["conditions"] if (condition := _predicate(entry, table)) is not None]
    predicate = And(tuple(predicates)) if predicates else None
    parts.lakes.reads.note(parts.lake, table, predicate, is_target=ROW_ID in request["columns"])
    return parts.sources.scans.plan(parts.lake, state, table, predicate)


def _frames(parts: Parts, request: Request, plans: Sequence[ScanPlan]) -> list[DataFrame]:
    columns: list[str] = request["columns"]
    virtual = any(name in VIRTUAL_COLUMNS and plans[0].table.column(name) is None for name in columns)
    with parts.engine.running() as spark:
        frames = [Scan(plan, virtual).frame(spark) for plan in plans]
        return [frame.select(*map(quote_for_spark, columns)) for frame in frames]


def aggregate(parts: Parts, request: Request) -> DataFrame:
    """Returns one row with counts and extremes of a whole table, from the catalog if it knows them exactly."""
    state, table = table_of(parts, request["table"])
    parts.lakes.reads.note(parts.lake, table, None, is_target=False)
    plan = parts.sources.scans.plan(parts.lake, state, table)
    wanted = [(entry["function"], entry.get("column")) for entry in request["aggregates"]]
    counted = [name for function, name in wanted if function == "count" and name is not None]
    extremes = {name for function, name in wanted if function != "count"}
    alike = all((column := table.column(name)) is not None and _is_alike(column) for name in extremes)
    rows = digest_of(parts.lake, state, plan, sorted(extremes), counted) if alike and plan.files else None
    with parts.engine.running() as spark:
        if rows is not None:
            values = ", ".join(f"{_digested(*one)} AS a{place}" for place, one in enumerate(wanted))
            return InMemory(evaluate(f"SELECT {values} FROM rows", {"rows": rows})).frame(spark)
        frame = Scan(plan).frame(spark)
        columns = (quote_for_spark(name) if name is not None else "1" for _, name in wanted)
        texts = (f"{function}({column})" for (function, _), column in zip(wanted, columns, strict=True))
        return frame.selectExpr(*(f"{text} AS a{place}" for place, text in enumerate(texts)))


def _digested(function: str, column: str | None) -> str:
    """Returns DuckDB's SQL of an aggregate over a digest."""
    if function == "count":
        return f"CAST(coalesce(sum({quote_identifier(ROWS + (column or ''))}), 0) AS BIGINT)"
    return f"{function}({quote_identifier(str(column))})"


def _is_alike(column: Column) -> bool:
    """Returns whether Spark and DuckDB compare the values of a column alike."""
    return column.type in COMPARED_ALIKE or column.data_type.decimal is not None


def table_of(parts: Parts, token: Request) -> tuple[CatalogState, Table]:
    """Returns the state in which a table is read, and the table.

    A table without AS OF is read with the changes of the open transaction, else at the snapshot of its resolution.

    Raises:
        UsageError: the table's columns are no longer those that the query was resolved with.
    """
    state = parts.state(None if parts.in_own_transaction and not token["fixed"] else token["snapshot"])
    table = state.table(token["schema"], token["name"])
    if [[column.column_id, column.name, column.data_type.sql()] for column in table.columns] != token["columns"]:
        raise UsageError(f"The columns of {state.qualified_name(table)} have changed; run the query again.")
    return state, table


def _predicate(entry: Request, table: Table) -> Predicate | None:
    """Returns a condition that a pushed one implies; None if there is none."""
    operator, children = entry.get("operator"), entry.get("children", [])
    if operator in ("AND", "OR"):
        terms = [_predicate(child, table) for child in children]
        known_terms = tuple(term for term in terms if term is not None)
        if operator == "AND":
            return And(known_terms) if known_terms else None
        return Or(known_terms) if len(known_terms) == len(terms) else None
    exchanged = len(children) == 2 and "column" in children[1]
    column, *others = reversed(children) if exchanged else children or [{}]
    path = tuple(column.get("column", ()))
    compared = table.column(path[0]) if len(path) == 1 else None
    if compared is None or not _is_alike(compared):
        return None
    if operator in ("IS_NULL", "IS_NOT_NULL"):
        return NullTest(path, operator == "IS_NULL")
    values = [_value(other) for other in others]
    if not values or any(value is None or isinstance(value, str) != (compared.type == "varchar") for value in values):
        return None
    if operator in _COMPARISONS and len(values) == 1:
        name = _COMPARISONS[operator]
        return Comparison(path, MIRRORED[name] if exchanged else name, values[0])
    if operator == "IN":
        return InList(path, tuple(values))
    if operator == "STARTS_WITH" and isinstance(values[0], str):
        return StartsWith(path, values[0])
    return None


def _value(entry: Request) -> Any:
    """Returns a literal of Spark; None for NULL, NaN, and types that files are not pruned by."""
    kind, text = str(entry.get("type")), entry.get("value")
    if text is None:
        return None
    if kind.startswith("decimal"):
        return Decimal(text)
    if kind in ("float", "double"):
        number = float(text)
        return number if abs(number) < float("inf") else None
    return _VALUES[kind](text) if kind in _VALUES else None

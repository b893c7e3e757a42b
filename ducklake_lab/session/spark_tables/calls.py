"""CALL of a lake's functions by Spark."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import EntryNotFoundError, UnsupportedFeatureError, did_you_mean
from ducklake_lab.session.functions import FUNCTIONS
from ducklake_lab.session.spark_tables.parts import Parts, Request, schema_of
from ducklake_lab.sql import operations as op

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame


def procedures(parts: Parts, request: Request) -> list[str]:
    return sorted(FUNCTIONS)


def check(parts: Parts, request: Request) -> None:
    """Raises if a lake has no function of that name.

    Raises:
        EntryNotFoundError: there is none.
    """
    name = request["name"]
    if name.casefold() not in FUNCTIONS:
        raise EntryNotFoundError(f"The lake {parts.alias} has no function {name}.{did_you_mean(name, FUNCTIONS)}")


def call(parts: Parts, request: Request) -> DataFrame:
    """Runs a function of the lake; returns its rows."""
    namespace = request["namespace"]
    schema = None if namespace in ([], ["system"]) else schema_of(namespace)
    # DuckDB names a lake's function by the lake alone, else by its schema too
    name = op.TableName(parts.alias if schema else None, schema or parts.alias, request["name"])
    given = [(argument["name"], _value(argument)) for argument in request["arguments"]]
    args = tuple(value for key, value in given if key is None)
    kwargs = {key: value for key, value in given if key is not None}
    result = parts.statements.run(op.Call(name, args, kwargs))
    if result.in_process:
        with parts.engine.running() as spark:
            return InMemory(result.arrow()).frame(spark)
    return result.spark()


def _value(argument: Request) -> Any:
    try:
        return _converted(argument["value"], json.loads(argument["type"]))
    except KeyError:
        name = argument["name"] or "of this CALL"
        kind = argument["type"].strip('"')
        raise UnsupportedFeatureError(f"The argument {name} has the type {kind}, which CALL does not take.") from None


def _converted(text: Any, kind: Any) -> Any:
    """Returns a value of a type of Spark in JSON, from Spark's internal form of it."""
    if text is None:
        return None
    if kind == "boolean":
        return text == "true"
    if kind in ("byte", "short", "integer", "long"):
        return int(text)
    if kind in ("float", "double"):
        return float(text)
    if kind == "string":
        return text
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=int(text))
    if kind == "timestamp":
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(text))
    if isinstance(kind, str) and kind.startswith("decimal"):
        return Decimal(text)
    if isinstance(kind, dict) and kind["type"] == "array":
        return [_converted(part, kind["elementType"]) for part in text]
    raise KeyError(kind)

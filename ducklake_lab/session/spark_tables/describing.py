"""Descriptions of tables for Spark: columns, partition keys, properties."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import quote_for_spark, quoted_path
from ducklake_lab.model.staged import VIRTUAL_COLUMNS
from ducklake_lab.model.transforms import Bucket, parse_transform
from ducklake_lab.session.spark_tables import metadata_tables
from ducklake_lab.session.spark_tables.parts import Parts, RefusedError, Request, moment, schema_of, token_of
from ducklake_lab.sql import parse

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame

#: Types whose texts mean the same in a CAST of Spark as in DuckDB.
_PLAIN = re.compile(r"boolean|u?int(8|16|32|64)|float(32|64)|decimal\(.*\)|varchar|date|timestamp(_s|_ms)?|uuid|json")
_numbers = itertools.count(1)


def load(parts: Parts, request: Request) -> dict[str, Any]:
    """Describes a table at a snapshot, or a metadata table of it.

    Raises:
        RefusedError: there is no table of that name.
    """
    at = moment(request)
    state = parts.state(at)
    namespace, name = request["namespace"], request["name"]
    table = _find(parts, state, schema_of(namespace), name)
    if table is not None:
        pinned = at is not None or not parts.in_own_transaction
        token = token_of(state, table, at, pinned=pinned, number=next(_numbers))
        # the refusal of a write says how to unpin the lake
        writable = at is None and (not parts.lake.read_only or parts.lake.pinned is not None)
        return _described(parts, request, token, table, writable=writable)
    if namespace and name.casefold() in metadata_tables.TABLES:
        owner = _find(parts, state, schema_of(namespace[:-1]), namespace[-1])
        if owner is not None:
            token = token_of(state, owner, at, pinned=True, number=0)
            token["metadata"] = name.casefold()
            return _frame_described(parts, request, token, metadata_tables.frame(parts, token))
    view = state.find_view(schema_of(namespace), name) if state.find_schema(schema_of(namespace)) is not None else None
    if view is not None:
        if at is not None:
            raise UnsupportedFeatureError(f"AS OF is not supported on {name}, which is a view of {parts.alias}.")
        token = {"schema": schema_of(namespace), "name": view.name, "view": True, "number": next(_numbers)}
        return _frame_described(parts, request, token, view_rows(parts, token))
    raise RefusedError("no table", f"There is no table {name} in the lake {parts.alias}.")


def _find(parts: Parts, state: Any, schema: str, name: str) -> Table | None:
    table: Table | None = state.find_table(schema, name) if state.find_schema(schema) is not None else None
    return table


def _described(
    parts: Parts, request: Request, token: dict[str, Any], table: Table, *, writable: bool
) -> dict[str, Any]:
    from ducklake_lab.spark.types import spark_type

    namespace = request["namespace"] or ["main"]
    return {
        "token": token,
        "name": quoted_path(parts.alias, token["schema"], table.name),
        "path": ".".join(quote_for_spark(part) for part in (parts.alias, *namespace, table.name)),
        "columns": [
            {
                "name": column.name,
                "type": spark_type(column.data_type).json(),
                "comment": column.comment,
                "default": default_sql(column),
            }
            for column in table.columns
        ],
        "partitioning": _keys(table),
        "properties": _properties(table),
        "metadata": [name for name in VIRTUAL_COLUMNS if table.column(name) is None],
        "writable": writable,
    }


def view_rows(parts: Parts, token: Request) -> DataFrame:
    """Returns the rows of a view as they are now; its SQL has DuckDB's meaning."""
    (statement,) = parse(f"SELECT * FROM {quoted_path(parts.alias, token['schema'], token['name'])}")
    return parts.statements.run_statement(statement).spark()


def _frame_described(parts: Parts, request: Request, token: dict[str, Any], frame: DataFrame) -> dict[str, Any]:
    name = quoted_path(parts.alias, token["schema"], token["name"])
    return {
        "token": token,
        "name": ".".join((name, token["metadata"])) if "metadata" in token else name,
        "columns": [{"name": field.name, "type": field.dataType.json()} for field in frame.schema.fields],
        "partitioning": [],
        "properties": {"provider": "ducklake"},
        "metadata": [],
        "writable": False,
    }


def _properties(table: Table) -> dict[str, str]:
    properties = {"provider": "ducklake"}
    return properties if table.comment is None else {**properties, "comment": table.comment}


def _keys(table: Table) -> list[dict[str, Any]]:
    """Returns the partition keys by names of Spark's transforms, where it has them."""
    keys: list[dict[str, Any]] = []
    for key in table.partition.fields if table.partition is not None else ():
        column, transform = table.column_by_id(key.column_id), parse_transform(key.transform)
        if column is None:
            continue  # no query needs the key of a dropped column
        if isinstance(transform, Bucket):
            keys.append({"transform": "bucket", "buckets": transform.count, "column": column.name})
        else:
            keys.append({"transform": str(transform), "column": column.name})
    return keys


def default_sql(column: Column) -> str | None:
    """Returns the Spark SQL of a column's default; for one that Spark cannot express, SQL that raises an error."""
    from ducklake_lab.spark.types import spark_type

    if column.default_value is None or (column.default_value == "NULL" and column.default_value_type != "expression"):
        return None
    if column.default_value_type == "literal" and _PLAIN.fullmatch(column.type):
        text = column.default_value.replace("\\", "\\\\").replace("'", "\\'")
        return f"CAST('{text}' AS {spark_type(column.data_type).simpleString()})"
    name = column.name.replace("\\", "\\\\").replace("'", "\\'")
    return f"raise_error('The default of column {name} is SQL of DuckDB; give the column a value.')"

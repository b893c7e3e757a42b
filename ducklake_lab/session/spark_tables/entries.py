"""Namespaces and tables for Spark: CREATE, DROP, ALTER, RENAME."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.transforms import IN_SPARK
from ducklake_lab.model.types import DataType
from ducklake_lab.session.spark_tables.describing import load
from ducklake_lab.session.spark_tables.parts import Parts, RefusedError, Request, schema_of
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.sql import operations as op

#: Properties that Spark sets by itself.
_OWN_PROPERTIES = ("provider", "owner", "comment", "is_managed_location", "external", "table_type", "collation")
_LITERAL = re.compile(
    r"(?P<number>[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)|'(?P<text>[^'\\]*)'|(?P<word>true|false)"
    r"|date\s*'(?P<date>\d{4}-\d\d-\d\d)'",
    re.IGNORECASE,
)

#: The default of another table, as `default_sql` spells it.
_KNOWN = re.compile(r"CAST\('(?P<text>(?:[^'\\]|\\['\\])*)' AS (?P<type>[^']+)\)")

# Namespaces


def namespaces(parts: Parts, request: Request) -> list[list[str]]:
    """Lists the schemas directly below a namespace."""
    parent = request["namespace"]
    if parent and parts.state().find_schema(schema_of(parent)) is None:
        raise _no_namespace(parts, parent)
    paths = [list(schema.parts) for schema in parts.state().schemas.values()]
    return sorted(path for path in paths if path[:-1] == parent)


def namespace_exists(parts: Parts, request: Request) -> bool:
    return parts.state().find_schema(schema_of(request["namespace"])) is not None


def load_namespace(parts: Parts, request: Request) -> dict[str, str]:
    if not namespace_exists(parts, request):
        raise _no_namespace(parts, request["namespace"])
    return {}


def create_namespace(parts: Parts, request: Request) -> None:
    for name in request["properties"]:
        if name not in _OWN_PROPERTIES or name == "comment":
            raise UnsupportedFeatureError(f"CREATE NAMESPACE with {name}: schemas of a lake have no properties.")
    if namespace_exists(parts, request):
        raise RefusedError("namespace exists", f"There is a schema {schema_of(request['namespace'])} already.")
    parts.statements.run(op.CreateSchema(_schema(parts, request)))


def drop_namespace(parts: Parts, request: Request) -> bool:
    state = parts.state()
    schema = state.find_schema(schema_of(request["namespace"]))
    if schema is None:
        return False
    if not request["cascade"] and any(True for _ in state.tables_of(schema.schema_id)):
        raise RefusedError("namespace not empty", f"The schema {schema.name} has tables; drop it with CASCADE.")
    parts.statements.run(op.DropSchema(_schema(parts, request), cascade=request["cascade"]))
    return True


def _schema(parts: Parts, request: Request) -> op.TableName:
    return op.TableName(None, parts.alias, schema_of(request["namespace"]))


def _no_namespace(parts: Parts, namespace: list[str]) -> RefusedError:
    return RefusedError("no namespace", f"There is no schema {path_title(schema_of(namespace))} in {parts.alias}.")


# Tables


def tables(parts: Parts, request: Request) -> list[str]:
    """Lists the tables of a namespace."""
    state = parts.state()
    schema = state.find_schema(schema_of(request["namespace"]))
    if schema is None:
        raise _no_namespace(parts, request["namespace"])
    return sorted(table.name for table in state.tables_of(schema.schema_id))


def create_table(parts: Parts, request: Request) -> None:
    _check_free(parts, request)
    until_committed(parts.transactions, partial(_create_alone, parts, request), reads=True)


def stage(parts: Parts, request: Request) -> dict[str, Any]:
    """Keeps the definition of a table until its rows come; returns its description."""
    name = parts.name(request)
    exists = _find(parts, name) is not None
    if request["mode"] == "create":
        _check_free(parts, request)
    elif request["mode"] == "replace" and not exists:
        raise RefusedError("no table", f"There is no table {name} to replace.")
    _definition(parts, request)  # errors come before anything runs
    number = max(parts.staged, default=0) + 1
    parts.staged[number] = {**request, "done": []}
    columns = [{"name": column["name"], "type": column["type"]} for column in request["columns"]]
    return {
        "token": {"staged": number},
        "name": str(name),
        "columns": columns,
        "partitioning": [],
        "properties": {},
        "metadata": [],
        "writable": True,
    }


def commit_staged(parts: Parts, request: Request) -> None:
    """Creates a staged table that got no rows, as REPLACE TABLE without a query."""
    definition = parts.staged.pop(request["table"]["staged"])
    if not definition["done"]:
        until_committed(parts.transactions, partial(_create_alone, parts, definition), reads=True)


def abort_staged(parts: Parts, request: Request) -> None:
    parts.staged.pop(request["table"]["staged"], None)


def _create_alone(parts: Parts, request: Request) -> None:
    with parts.transactions.writing(parts.lake):
        create(parts, request)


def create(parts: Parts, request: Request) -> None:
    """Creates a table in the transaction that is open for writing."""
    statement, comments, options = _definition(parts, request)
    parts.statements.run(statement)
    for comment in comments:
        parts.statements.run(comment)
    if options:
        parts.statements.run(op.SetOptions(statement.name, options))
    if "done" in request:
        request["done"].append(True)


def _definition(parts: Parts, request: Request) -> tuple[op.CreateTable, list[op.Comment], dict[str, object]]:
    name, properties = parts.name(request), request["properties"]
    provider = properties.get("provider", "ducklake").casefold()
    if provider not in ("ducklake", "parquet"):
        raise UnsupportedFeatureError(
            f"USING {provider} is not supported: a lake's tables have Parquet files; leave it out."
        )
    if "location" in properties:
        raise UnsupportedFeatureError("LOCATION is not supported: a lake places its files itself; leave it out.")
    options: dict[str, object] = {
        key: value for key, value in properties.items() if key not in _OWN_PROPERTIES and not key.startswith("option.")
    }
    columns = tuple(_column(column) for column in request["columns"])
    keys = tuple(key for entry in request["partitioning"] for key in _keys(entry))
    comments = [
        op.Comment("column", name, column["comment"], column["name"])
        for column in request["columns"]
        if column.get("comment") is not None
    ]
    if properties.get("comment") is not None:
        comments.append(op.Comment("table", name, properties["comment"]))
    replaces = request.get("mode", "create") != "create" and _find(parts, name) is not None
    return op.CreateTable(name, columns, replace=replaces, partitioned_by=keys), comments, options


def _find(parts: Parts, name: op.TableName) -> object:
    state = parts.state()
    if state.find_schema(str(name.schema)) is None:
        raise _no_namespace(parts, [str(name.schema)])
    return state.find_table(str(name.schema), name.name)


def _check_free(parts: Parts, request: Request) -> None:
    name = parts.name(request)
    if _find(parts, name) is not None or parts.state().find_view(str(name.schema), name.name) is not None:
        raise RefusedError("table exists", f"There is a table or view {name} already.")


def _column(column: Request) -> op.ColumnDef:
    text = column.get("default")
    default = None if text is None else _default(text, column["name"], column["type"])
    return op.ColumnDef(column["name"], _type(column["type"]), column.get("nullable", True), default)


def _spark_name(kind: str) -> str:
    """Returns Spark's name of a type that is given in JSON."""
    from ducklake_lab.spark.types import spark_type

    return spark_type(_type(kind)).simpleString()


def _type(text: str) -> DataType:
    from ducklake_lab.spark.types import from_json

    return from_json(text)


def _default(text: str, column: str, kind: str | None = None) -> str | None:
    """Returns the value of a literal, or of a default that another table has.

    Args:
        kind: the column's type in JSON.

    Raises:
        UnsupportedFeatureError: it is an expression.
    """
    if text.strip().casefold() == "null":
        return None
    literal = _LITERAL.fullmatch(text.strip())
    stored = _KNOWN.fullmatch(text.strip()) if kind is not None else None
    if stored is not None and kind is not None and stored["type"] == _spark_name(kind):
        return re.sub(r"\\(.)", r"\1", stored["text"])
    if literal is None:
        raise UnsupportedFeatureError(
            f"DEFAULT {text} of column {column} is not supported: give a number, a text or a truth value. "
            "Expressions are set by ALTER TABLE … SET DEFAULT in SQL of DuckDB."
        )
    return next(value for value in literal.groupdict().values() if value is not None)


def _keys(entry: Request) -> list[op.PartitionKey]:
    """Returns the partition keys of a transform of Spark."""
    transform, arguments = entry["transform"], entry["arguments"]
    path = next((argument for argument in arguments if isinstance(argument, list)), [])
    if len(path) != 1:
        raise UnsupportedFeatureError(f"Partitioning by {transform} of {'.'.join(path)} is not supported.")
    if transform == "bucket":
        counts = [argument for argument in arguments if isinstance(argument, int)]
        if len(arguments) != 2 or len(counts) != 1:
            raise UnsupportedFeatureError("Partitioning by a bucket of several columns is not supported.")
        return [op.PartitionKey(path[0], f"bucket({counts[0]})")]
    return [op.PartitionKey(path[0], part) for part in IN_SPARK.get(transform, (transform,))]


def drop_table(parts: Parts, request: Request) -> bool:
    name = parts.name(request)
    state = parts.state()
    if state.find_schema(str(name.schema)) is None or state.find_table(str(name.schema), name.name) is None:
        return False
    parts.statements.run(op.DropTable(name))
    return True


def rename_table(parts: Parts, request: Request) -> None:
    name = parts.name(request)
    if _find(parts, name) is None:
        raise RefusedError("no table", f"There is no table {name}.")
    # Spark hands on the new name as written, which may begin with the catalog
    target = request["new_namespace"]
    target = target[1:] if target[:1] == [parts.alias] and len(target) > 1 else target
    if target and schema_of(target).casefold() != str(name.schema).casefold():
        raise UnsupportedFeatureError(
            f"Moving {name} to another schema is not supported; create it there from a query."
        )
    parts.statements.run(op.RenameTable(name, request["new_name"]))


def truncate(parts: Parts, request: Request) -> bool:
    token = request["table"]
    parts.statements.run(op.Truncate(op.TableName(parts.alias, token["schema"], token["name"])))
    return True


def alter_table(parts: Parts, request: Request) -> None:
    """Runs the changes of an ALTER TABLE, in one snapshot."""
    load(parts, request)  # a missing table is an error of its own
    name = parts.name(request)
    statements = [statement for change in request["changes"] for statement in _changes(name, change)]

    def run() -> None:
        with parts.transactions.writing(parts.lake):
            for statement in statements:
                parts.statements.run(statement)

    until_committed(parts.transactions, run, reads=True)


def _changes(name: op.TableName, change: Request) -> Sequence[op.Operation]:
    kind, path = change["kind"], tuple(change.get("path", ()))
    if kind == "SetProperty":
        return [_set_property(name, change["key"], change["value"])]
    if kind == "RemoveProperty":
        is_comment = change["key"] == "comment"
        return [op.Comment("table", name, None) if is_comment else op.ResetOptions(name, (change["key"],))]
    if not path:
        raise UnsupportedFeatureError(f"ALTER TABLE with {kind} is not supported on tables of a lake.")
    *parents, column = path
    match kind:
        case "AddColumn":
            return _add(name, change, tuple(parents), column)
        case "DeleteColumn":
            return [op.DropColumn(name, column, if_column_exists=bool(change["if_exists"]), parents=tuple(parents))]
        case "RenameColumn":
            return [op.RenameColumn(name, column, change["new_name"], parents=tuple(parents))]
    if parents:
        raise UnsupportedFeatureError(f"ALTER TABLE with {kind} of the field {'.'.join(path)} is not supported.")
    match kind:
        case "UpdateColumnType":
            return [op.SetColumnType(name, column, _type(change["type"]))]
        case "UpdateColumnNullability":
            return [op.SetNotNull(name, column, required=not change["nullable"])]
        case "UpdateColumnComment":
            return [op.Comment("column", name, change["comment"], column)]
        case "UpdateColumnDefaultValue":
            text = change["default"]
            return [op.SetDefault(name, column, _default(text, column) if text else None)]
    raise UnsupportedFeatureError(f"ALTER TABLE with {kind} is not supported on tables of a lake.")


def _add(name: op.TableName, change: Request, parents: tuple[str, ...], column: str) -> Sequence[op.Operation]:
    if change.get("position"):
        raise UnsupportedFeatureError("ADD COLUMN … FIRST or AFTER is not supported; a new column comes last.")
    added = op.AddColumn(name, _column({**change, "name": column}), parents=parents)
    if change.get("comment") is None:
        return [added]
    if parents:
        raise UnsupportedFeatureError("A comment on a field of a struct is not supported.")
    return [added, op.Comment("column", name, change["comment"], column)]


def _set_property(name: op.TableName, key: str, value: str) -> op.Operation:
    if key == "comment":
        return op.Comment("table", name, value)
    if key in _OWN_PROPERTIES or key == "location":
        raise UsageError(f"The property {key} of a lake's table cannot be set.")
    return op.SetOptions(name, {key: value})

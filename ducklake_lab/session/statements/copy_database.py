"""COPY FROM DATABASE: copies entries and rows of a lake, or of a local database, into another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.errors import BindError, EntryNotFoundError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation, MacroParameter
from ducklake_lab.model.quoting import path_title, quote_identifier, quote_text
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.stored_definitions import resolved
from ducklake_lab.session.names.system_tables import create_table_sql
from ducklake_lab.session.rows.result import Result, nothing
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse

Run = Callable[[op.Statement], Result]


@dataclass(slots=True)
class _Database:
    """The contents of a database, in an order for creation; `{}` is the placeholder for the qualifier.

    Attributes:
        tables: (schema, name, CREATE TABLE).
        others: CREATE MACRO and CREATE VIEW.
    """

    schemas: list[str] = field(default_factory=list)
    tables: list[tuple[str, str, str]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def copy_database(
    transactions: Transactions, database: SessionDatabase, statement: op.CopyDatabase, sql: str, run: Run
) -> Result:
    """Copies schemas, tables, macros, views and rows, as the statement asks; one snapshot if the target is a lake.

    Args:
        sql: the statement as written.
        run: runs a statement.

    Returns:
        The number of rows by table, if only rows are copied; else nothing.
    """
    lakes = transactions.lakes
    for name in (statement.source, statement.target):
        if lakes.find(name) is None and not database.is_attached(name):
            raise EntryNotFoundError(f'No database "{name}" is attached.')
    source = lakes.find(statement.source)
    if source is None and lakes.find(statement.target) is None:
        rows = database.run(sql).table
        return nothing() if statement.entries else Result(InMemory(rows), is_query=False)
    contents = _of_lake(lakes, source, statement.target) if source is not None else _of_own(database, statement.source)
    target = quote_identifier(statement.target)
    counts: list[int] = []
    with _transaction(transactions):
        if statement.entries:
            for schema in contents.schemas:
                _run(run, f"CREATE SCHEMA IF NOT EXISTS {target}.{schema}")
        for schema, name, create in contents.tables:
            if statement.entries:
                _run(run, create.replace("{}", target, 1))
            if statement.rows:
                rows = f"INSERT INTO {target}.{schema}.{name} FROM {quote_identifier(statement.source)}.{schema}.{name}"
                counts.append(int(_run(run, rows).fetchall()[0][0]))
        if statement.entries:
            for create in contents.others:
                _run(run, create.replace("{}", target, 1))
    if statement.entries:
        return nothing()
    return Result(InMemory(pa.table({"Count": pa.array(counts or [0], pa.int64())})), is_query=False)


def _run(run: Run, sql: str) -> Result:
    return run(parse(sql, keep_refused=True)[0])


@contextmanager
def _transaction(transactions: Transactions) -> Iterator[None]:
    """Joins the open transaction, or opens one for the block."""
    if transactions.lakes.in_transaction:
        yield
        return
    transactions.begin()
    try:
        yield
    except BaseException:
        transactions.rollback()
        raise
    transactions.commit()


def _of_lake(lakes: Lakes, lake: Lake, target: str) -> _Database:
    """Returns the contents of a lake; its views will read the copy, not the lake."""
    state = lakes.state(lake)
    nested = next((schema for schema in state.schemas.values() if schema.parent_id is not None), None)
    if nested is not None:
        raise UnsupportedFeatureError(
            f"COPY FROM DATABASE cannot copy the nested schema {path_title(nested.name)}; create its tables by CREATE TABLE AS."
        )
    contents = _Database([quote_identifier(schema.parts[-1]) for schema in state.schemas.values()])
    for table in state.tables.values():
        schema = quote_identifier(state.schema_of(table).parts[-1])
        create = create_table_sql(table, f"{{}}.{schema}.", quote_identifier)
        contents.tables.append((schema, quote_identifier(table.name), create))
    for macro in state.macros.values():
        path = f"{{}}.{quote_identifier(state.schema_of(macro).parts[-1])}.{quote_identifier(macro.name)}"
        bodies = ", ".join(_overload(part, macro.kind) for part in macro.implementations)
        contents.others.append(f"CREATE MACRO {path}{bodies}")
    for view in sorted(state.views.values(), key=lambda view: view.view_id):
        path = f"{{}}.{quote_identifier(state.schema_of(view).parts[-1])}.{quote_identifier(view.name)}"
        contents.others.append(_create_view(path, view.column_names, resolved(view.sql, target)))
    return contents


def _create_view(path: str, columns: tuple[str, ...], sql: str) -> str:
    names = f" ({', '.join(map(quote_identifier, columns))})" if columns else ""
    return f"CREATE VIEW {path}{names} AS {sql}"


def _overload(part: MacroImplementation, kind: str) -> str:
    parameters = ", ".join(map(_parameter, part.parameters))
    return f"({parameters}) AS {'TABLE ' if kind == 'table' else ''}{part.sql}"


def _parameter(parameter: MacroParameter) -> str:
    text = quote_identifier(parameter.name)
    if parameter.is_optional:
        value = quote_text(parameter.default_value)
        text += f" := CAST({value} AS {parameter.default_value_type})"
    return text


def _of_own(database: SessionDatabase, name: str) -> _Database:
    where = f"database_name = {quote_text(name)}"
    constrained = database.run(
        f"SELECT table_name, constraint_type FROM duckdb_constraints() WHERE {where} AND constraint_type <> 'NOT NULL'"
    ).table.to_pylist()
    if constrained:
        first = constrained[0]
        raise BindError(
            f"{first['table_name']} has a {first['constraint_type']} constraint; lakes have NOT NULL and DEFAULT only."
        )
    contents = _Database()
    for row in database.run(f"SELECT schema_name FROM duckdb_schemas() WHERE {where}").table.to_pylist():
        if row["schema_name"] not in ("information_schema", "pg_catalog"):
            contents.schemas.append(quote_identifier(row["schema_name"]))
    for row in _rows(database, f"schema_name, table_name, sql FROM duckdb_tables() WHERE {where} AND NOT internal"):
        schema, table = quote_identifier(row["schema_name"]), quote_identifier(row["table_name"])
        columns = row["sql"][row["sql"].index("(") :].rstrip("; \n")
        contents.tables.append((schema, table, f"CREATE TABLE {{}}.{schema}.{table}{columns}"))
    for row in _rows(
        database,
        "schema_name, function_name, function_type, parameters <> [] AS has_parameters, macro_definition "
        f"FROM duckdb_functions() WHERE {where} AND NOT internal",
    ):
        if row["has_parameters"]:
            raise UnsupportedFeatureError(
                f"The macro {row['function_name']} cannot be copied from {name}: DuckDB does not tell the defaults of "
                "its parameters; drop it, and create it in the target."
            )
        path = f"{{}}.{quote_identifier(row['schema_name'])}.{quote_identifier(row['function_name'])}"
        what = "TABLE " if row["function_type"] == "table_macro" else ""
        contents.others.append(f"CREATE MACRO {path}() AS {what}{row['macro_definition']}")
    for row in _rows(
        database, f"schema_name, view_name, sql FROM duckdb_views() WHERE {where} AND NOT internal ORDER BY view_oid"
    ):
        view = parse(row["sql"])[0].operation
        assert isinstance(view, op.CreateView)
        path = f"{{}}.{quote_identifier(row['schema_name'])}.{quote_identifier(row['view_name'])}"
        contents.others.append(_create_view(path, view.columns, view.sql))
    return contents


def _rows(database: SessionDatabase, selection: str) -> list[dict[str, str]]:
    return database.run(f"SELECT {selection}").table.to_pylist()  # type: ignore[no-any-return]

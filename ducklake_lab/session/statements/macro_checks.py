"""Checks new macros: a lake stores no macro that DuckDB refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ducklake_lab.duckdb import canonical
from ducklake_lab.errors import BindError, DuckLakeError, SqlError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.bind.expansion import sample_call
from ducklake_lab.sql.plan import StoredMacro
from ducklake_lab.sql.planning.planner import plan_query

if TYPE_CHECKING:
    from ducklake_lab.session.rows.sources import Sources

#: The end of DuckDB's message for an unknown name; argument types are known only in a call.
_UNKNOWN = "does not exist"


def check_parameters(statement: op.CreateMacro) -> None:
    """Checks the parameters of all overloads.

    Raises:
        BindError: DuckDB refuses them.
    """
    canonical.check_parameters(
        statement.name.name, [", ".join(map(_declared, overload.parameters)) for overload in statement.overloads]
    )


def _declared(parameter: op.MacroParameter) -> str:
    kind = f" {parameter.type.sql()}" if parameter.type is not None else ""
    default = f" := {parameter.default_sql}" if parameter.default_sql is not None else ""
    return f"{quote_identifier(parameter.name)}{kind}{default}"


def check_bodies(sources: Sources, statement: op.CreateMacro, implementations: Sequence[MacroImplementation]) -> None:
    """Binds the bodies of a macro.

    Raises:
        BindError: a body names an unknown table, column, function or type.
    """
    entry = sources.names.entry(statement.name, sought="new")
    macro = StoredMacro(entry.name, tuple(implementations), entry.lake.alias, entry.schema)
    for implementation in implementations:
        try:
            query = sample_call(macro, implementation, table=statement.kind == "table")
            plan = plan_query(query, sources.names, (macro.lake, macro.schema))
        except (UnsupportedFeatureError, SqlError) as error:
            if isinstance(error, BindError):
                raise
            continue  # other clients may support it, and a file may exist when the macro is called
        try:
            sources.run(plan, describe=True)
        except DuckLakeError as error:
            if isinstance(error, BindError) and _UNKNOWN in str(error):
                raise

"""The parts of tables that a query surely confines itself to, for the record of its output."""

from __future__ import annotations

from collections.abc import Mapping

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.reads import ReadPart
from ducklake_lab.session.depth import room_for_depth
from ducklake_lab.session.rows.named_rows import LakeTable
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.named_columns import NamedColumns, named_columns
from ducklake_lab.sql.spark.stability import differs_by_run

#: Parts by the alias of the lake and the id of the table, each with the table as it was read.
Parts = Mapping[tuple[str, int], tuple[Table, ReadPart]]


def read_parts(query: op.Query, plan: QueryPlan) -> Parts:
    """Returns the part of each table that a query reads in the statement's state.

    Predicates are left out where a value in one may not be in the query's text: with parameters, and with views and
    macros. They are also left out where a value may differ by run.
    """
    differs = differs_by_run(plan.own_sql)
    is_literal = query.written is not None and not query.written.values and not plan.definitions
    named = None if differs else _named(plan)
    parts: dict[tuple[str, int], tuple[Table, ReadPart]] = {}
    for source in plan.sources:
        rows = source.rows
        if not isinstance(rows, LakeTable) or rows.at is not None:
            continue
        columns, names = (None, frozenset[str]()) if named is None else _columns(rows.table, named)
        predicate = source.predicate if is_literal and not differs else None
        part = ReadPart(columns, names, predicate, by_place=source.virtual or source.located)
        key = (rows.lake.alias, rows.table.table_id)
        parts[key] = (rows.table, parts[key][1].united(part) if key in parts else part)
    return parts


def _named(plan: QueryPlan) -> NamedColumns | None:
    try:
        with room_for_depth():
            return named_columns(plan)
    except UnsupportedFeatureError:
        return None  # it is nested too deeply


def _columns(table: Table, named: NamedColumns) -> tuple[frozenset[int], frozenset[str]]:
    """Returns the columns of a table that a query may read, and the names that no new column may have."""
    ids = {column.name.casefold(): column.column_id for column in table.columns}
    return frozenset(ids[name] for name in named.names & ids.keys()), named.references - ids.keys()

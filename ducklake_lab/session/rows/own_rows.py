"""Finds the rows of a table that a query's rows are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.casting import differs_sql
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import EntryNotFoundError, UnsupportedFeatureError, UsageError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.quoting import quote_identifier, quote_text, quoted_path
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.rows.lives import FindRows, Lives, TableBehind
from ducklake_lab.session.rows.named_rows import LakeTable
from ducklake_lab.session.rows.result import Result
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.own_rows import OwnRows, own_rows
from ducklake_lab.sql.spark.stability import differs_by_run

#: Most characters of a text that a condition names.
_TEXT = 300
#: Runs a query in process.
RunHere = Callable[[op.Query], Result]


def table_behind(
    lakes: Lakes, run: RunHere, query: op.Query, plan: QueryPlan, state: CatalogState, result: Result
) -> TableBehind | None:
    """Returns the table of which each row of a result is one; None where the query does not say so.

    Args:
        run: runs a query in process.
        state: the committed state that the plan has read.
    """
    (source,) = plan.sources
    rows = source.rows
    if not isinstance(rows, LakeTable) or source.stored or plan.definitions or not plan.bound:
        return None
    table = state.tables.get(rows.table.table_id)
    own = own_rows(query, [column.name for column in table.columns]) if table is not None else None
    if table is None or own is None or len(own.columns) != len(result.columns) or differs_by_run(plan.own_sql):
        return None
    names = [None if name == ROW_ID else name for name in own.columns]
    if ROW_ID in own.columns:
        place = own.columns.index(ROW_ID)
        return Lives(lakes).behind(rows.lake, state, table, names, lambda shown: shown.column(place).to_pylist())
    path = quoted_path(rows.lake.alias, state.schema_of(table).name, table.name)
    placement = result.info.placement
    find = _finder(
        lakes,
        rows.lake,
        run,
        own,
        table,
        path,
        state.snapshot.snapshot_id,
        in_process=placement is None or placement.is_here,
    )
    return Lives(lakes).behind(rows.lake, state, table, names, find)


def _finder(
    lakes: Lakes,
    lake: Lake,
    run: RunHere,
    own: OwnRows,
    table: Table,
    path: str,
    snapshot_id: int,
    *,
    in_process: bool,
) -> FindRows:
    def find(shown: pa.Table) -> Sequence[int]:
        if not in_process:
            raise UnsupportedFeatureError(
                f"Spark has read {table.name}, and no row of it is looked for by its values; select rowid as well, and click again."
            )
        if lakes.find(lake.alias) is not lake:
            raise UsageError(f"{lake.alias} is another lake or branch now; run the query again.")
        places = [place for place, name in enumerate(own.columns) if name is not None]
        columns = [table.column(str(own.columns[place])) for place in places]
        known_columns = [column for column in columns if column is not None]
        clicked = shown.select(places).rename_columns([f"c{i}" for i in range(len(places))])
        with lakes.working(), lakes.statement():
            candidates = run(own.search(path, snapshot_id, _conditions(clicked, known_columns))).carried()
        same = "".join(
            f" AND NOT ({differs_sql(f'f.c{i}', f'k.c{i}', c.data_type)})" for i, c in enumerate(known_columns)
        )
        ids = engine.evaluate(
            f"SELECT f.row_id FROM found AS f, clicked AS k WHERE true{same} ORDER BY f.row_id",
            {"found": candidates, "clicked": clicked},
        )
        if not ids.num_rows:
            raise EntryNotFoundError(
                f"{table.name} has no row with these values at snapshot {snapshot_id}; select rowid as well, and click again."
            )
        return [int(one) for one in ids.column(0).to_pylist()]

    return find


def _conditions(clicked: pa.Table, columns: Sequence[Column]) -> dict[str, str]:
    """Returns conditions for DuckDB that the row fulfils; they skip files, and need not name all values."""
    listed = ", ".join(f"CAST(c{i} AS VARCHAR) AS c{i}" for i in range(len(columns)))
    texts = engine.evaluate(f"SELECT {listed} FROM clicked", {"clicked": clicked})
    conditions = {}
    for column, values in zip(columns, texts.columns, strict=True):
        name, (text,) = quote_identifier(column.name), values.to_pylist()
        if text is None:
            conditions[column.name] = f"{name} IS NULL"
        elif _is_named(column.data_type, text):
            conditions[column.name] = f"{name} = {text if column.data_type.name in INTEGERS else quote_text(text)}"
    return conditions


def _is_named(kind: DataType, text: str) -> bool:
    """Returns whether a literal of that text is the value, and no other one."""
    return kind.name in INTEGERS or (kind.name == "varchar" and len(text) <= _TEXT and "\0" not in text)

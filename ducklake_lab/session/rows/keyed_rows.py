"""Finds the rows of a changed table by the join keys of rows in memory."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.placement import Placing
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.files.reader import RowQuery
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.sql.plan import QueryPlan


def key_query(plan: QueryPlan, loaded: Mapping[str, Rows], time_zone: str) -> RowQuery | None:
    """Returns a query for workers over the changed table, for the rows whose join keys occur in rows in memory.

    None if there are no such keys, or files are not on this machine.
    """
    source = next((source for source in plan.sources if source.virtual and source.keys), None)
    rows = loaded.get(source.view) if source is not None else None
    if source is None or not isinstance(rows, Scan) or source.located or facts_of_rows([rows]).is_fetched:
        return None
    tables, conditions = [], []
    for number, key in enumerate(source.keys):
        other = loaded.get(key.view)
        if len(key.column) == len(key.other) == 1 and isinstance(other, InMemory):
            name = next((name for name, _ in other.columns if name.casefold() == key.other[0].casefold()), None)
            if name is not None:
                keys = other.query(f"SELECT DISTINCT {quote_identifier(name)} AS v FROM rows").arrow()
                tables.append((f"{source.view}_keys_{number}", keys))
                conditions.append(f"{quote_identifier(key.column[0])} IN (SELECT v FROM {tables[-1][0]})")
    if not conditions:
        return None
    sql = f"SELECT * FROM {quote_identifier(source.view)} WHERE {' AND '.join(conditions)}"
    return RowQuery(sql, source.view, tuple(rows.columns), time_zone, tuple(tables))


def small_side(rows: Rows, target: Scan, placing: Placing) -> ScanPlan | pa.Table | None:
    """Returns rows that are read first, to skip files of a larger table; None if they are too large."""
    if isinstance(rows, InMemory):
        return rows.table
    if not isinstance(rows, Scan):
        return None
    size = rows.plan.bytes_read
    return rows.plan if placing.is_small_side(size) and size < target.plan.bytes_read else None

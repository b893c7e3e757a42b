"""MERGE INTO: divides the rows of its plan into deleted, replaced and added rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from ducklake_lab.engine.rows import Here, InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import ConstraintError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.session.statements.dml import Dml, Matched, new_values
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.merge import ACTION, MESSAGE


def merge(dml: Dml, engine: SparkEngine, table: Table, plan: QueryPlan) -> int:
    """Runs the plan of a MERGE INTO in the transaction that is open for writing; returns the number of affected rows.

    Replaced rows keep their row ids. Added rows always go to files, as in the reference.

    Raises:
        ConstraintError: several source rows match one target row, or WHEN … THEN ERROR applies.
    """
    with dml.matching(plan) as matched:
        counts = _counts(matched, engine)
        if counts.get("error"):
            (found,) = _fetch(matched, engine, _ERROR)
            message = found["m"] or "a row meets the condition of WHEN … THEN ERROR."
            raise ConstraintError(f"MERGE INTO {table.name}: {message}")
        if counts.get("update", 0) + counts.get("delete", 0) > 1 and _fetch(matched, engine, _TWICE):
            raise ConstraintError(
                f"MERGE INTO {table.name}: a row is matched by several rows of the source; make the source's keys unique."
            )
        changed = _part(matched, engine, ("update", "delete"), counts)
        dml.delete_matched(table, changed)
        updated = changed if not counts.get("delete") else _part(matched, engine, ("update",), counts)
        if updated.count:
            dml.append_new_versions(table, updated)
        added = _part(matched, engine, ("insert",), counts)
        if added.count and added.held is not None:
            dml.append_arrow(table, new_values(added.held, table), inline=False)
        elif added.count:
            dml.append_frame(table, added.frame.drop(*VIRTUAL_COLUMNS), inline=False)
        return sum(counts.values())


_COUNTS = f"SELECT {ACTION} AS action, count(*) AS n FROM rows GROUP BY {ACTION}"
_ERROR = f"SELECT min({MESSAGE}) AS m FROM rows WHERE {ACTION} = 'error'"
_TWICE = (
    f"SELECT {ROW_ID} FROM rows WHERE {ACTION} IN ('update', 'delete') GROUP BY {ROW_ID} HAVING count(*) > 1 LIMIT 1"
)


def _counts(matched: Matched, engine: SparkEngine) -> dict[str, int]:
    """Returns the number of rows by action."""
    if matched.held is not None:  # counting a few rows is faster than binding a query
        found = pc.value_counts(matched.held.column(ACTION)).to_pylist()
        return {entry["values"]: entry["counts"] for entry in found}
    return {row["action"]: row["n"] for row in _fetch(matched, engine, _COUNTS)}


def _fetch(matched: Matched, engine: SparkEngine, sql: str) -> list[dict[str, Any]]:
    with _running(matched.rows, engine):
        return matched.rows.query(sql).arrow().to_pylist()  # type: ignore[no-any-return]


def _part(matched: Matched, engine: SparkEngine, actions: Sequence[str], counts: dict[str, int]) -> Matched:
    """Returns the rows of some actions, without the action columns; fetches them if they are few."""
    count = sum(counts.get(action, 0) for action in actions)
    with _running(matched.rows, engine):
        found = matched.rows.pick(ACTION, actions, (ACTION, MESSAGE))
        few = count <= matched.few and not isinstance(found, Here)
        return replace(matched, count=count, rows=InMemory(found.arrow()) if few else found)


def _running(rows: Rows, engine: SparkEngine) -> AbstractContextManager[object]:
    return nullcontext() if isinstance(rows, Here) else engine.running()

"""MERGE INTO: divides the rows of its plan into deleted, replaced and added rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ducklake_lab.errors import ConstraintError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.session.statements.dml import Dml, Matched
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.merge import ACTION, MESSAGE


def merge(dml: Dml, table: Table, plan: QueryPlan) -> int:
    """Runs the plan of a MERGE INTO in the transaction that is open for writing; returns the number of affected rows.

    Replaced rows keep their row ids. Added rows always go to files, as in the reference.

    Raises:
        ConstraintError: several source rows match one target row, or WHEN … THEN ERROR applies.
    """
    with dml.matching(table, plan) as matched:
        counts = matched.rows.counts(ACTION)
        if counts.get("error"):
            (row,) = _fetch(matched, _ERROR)
            message = row["m"] or "a row meets the condition of WHEN … THEN ERROR."
            raise ConstraintError(f"MERGE INTO {table.name}: {message}")
        if counts.get("update", 0) + counts.get("delete", 0) > 1 and _fetch(matched, _TWICE):
            raise ConstraintError(
                f"MERGE INTO {table.name}: a row is matched by several rows of the source; make the source's keys unique."
            )
        changed = _part(matched, ("update", "delete"), counts)
        dml.delete_matched(table, changed)
        updated = changed if not counts.get("delete") else _part(matched, ("update",), counts)
        if updated.count:
            dml.append_new_versions(table, updated)
        added = _part(matched, ("insert",), counts)
        if added.count:
            dml.append(table, added.rows.rest(len(VIRTUAL_COLUMNS)), inline=False)
        return sum(counts.values())


_ERROR = f"SELECT min({MESSAGE}) AS m FROM rows WHERE {ACTION} = 'error'"
_TWICE = (
    f"SELECT {ROW_ID} FROM rows WHERE {ACTION} IN ('update', 'delete') GROUP BY {ROW_ID} HAVING count(*) > 1 LIMIT 1"
)


def _fetch(matched: Matched, sql: str) -> list[dict[str, Any]]:
    return matched.rows.query(sql).arrow().to_pylist()  # type: ignore[no-any-return]


def _part(matched: Matched, actions: Sequence[str], counts: dict[str, int]) -> Matched:
    """Returns the rows of some actions, without the action columns; fetches them if they are few."""
    count = sum(counts.get(action, 0) for action in actions)
    rows = matched.rows.pick(ACTION, actions, (ACTION, MESSAGE))
    return replace(matched, count=count, rows=rows.here() if count <= matched.few else rows)

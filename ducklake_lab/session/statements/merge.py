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

    Replaced rows keep their row ids. Added rows always go to files, as in the reference. A row that several source rows
    delete is deleted once, and counts for each of them.

    Raises:
        ConstraintError: a source row updates a row that another one updates or deletes, or WHEN … THEN ERROR applies.
    """
    with dml.matching(table, plan) as matched:
        counts = matched.rows.counts(ACTION)
        if counts.get("error"):
            (row,) = _fetch(matched, _ERROR)
            message = row["m"] or "a row meets the condition of WHEN … THEN ERROR."
            raise ConstraintError(f"MERGE INTO {table.name}: {message}")
        updates, deletes = counts.get("update", 0), counts.get("delete", 0)
        repeated = _fetch(matched, _REPEATED)[0] if updates + deletes > 1 else {}
        if repeated.get("updated"):
            raise ConstraintError(
                f"MERGE INTO {table.name}: a row is matched by several rows of the source; make the source's keys unique."
            )
        changed = _part(matched, ("update", "delete"), counts)
        more = repeated.get("more") or 0
        gone = replace(changed, count=changed.count - more, rows=changed.rows.query(_ONCE)) if more else changed
        dml.delete_matched(table, gone)
        updated = changed if not deletes else _part(matched, ("update",), counts)
        if updated.count:
            dml.append_new_versions(table, updated)
        added = _part(matched, ("insert",), counts)
        if added.count:
            dml.append(table, added.rows.rest(len(VIRTUAL_COLUMNS)), inline=False)
        return sum(counts.values())


_ERROR = f"SELECT min({MESSAGE}) AS m FROM rows WHERE {ACTION} = 'error'"
#: Rows of the table that several source rows change: how many source rows are too many, and how many rows are updated.
_REPEATED = (
    "SELECT CAST(sum(n - 1) AS BIGINT) AS more, count(*) FILTER (WHERE updates > 0) AS updated FROM ("
    f"SELECT count(*) AS n, count(*) FILTER (WHERE {ACTION} = 'update') AS updates FROM rows "
    f"WHERE {ACTION} IN ('update', 'delete') GROUP BY {ROW_ID} HAVING count(*) > 1)"
)
_ONCE = f"SELECT DISTINCT {', '.join(VIRTUAL_COLUMNS)} FROM rows"


def _fetch(matched: Matched, sql: str) -> list[dict[str, Any]]:
    return matched.rows.query(sql).arrow().to_pylist()  # type: ignore[no-any-return]


def _part(matched: Matched, actions: Sequence[str], counts: dict[str, int]) -> Matched:
    """Returns the rows of some actions, without the action columns; fetches them if they are few."""
    count = sum(counts.get(action, 0) for action in actions)
    rows = matched.rows.pick(ACTION, actions, (ACTION, MESSAGE))
    return replace(matched, count=count, rows=rows.here() if count <= matched.few else rows)

"""MERGE INTO: the rows of its plan, split into what is deleted, replaced and added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import ConstraintError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.session.statements.dml import Dml, Matched, new_values
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.sql.planning.merge import ACTION, MESSAGE


def merge(dml: Dml, engine: SparkEngine, table: Table, plan: QueryPlan) -> int:
    """Runs the plan of a MERGE INTO in the transaction that is open for writing; how many rows it acted on.

    Rows that are replaced keep their row ids. Added ones go to files, however few, as the reference writes them.

    Raises:
        ConstraintError: a row of the target is matched by several of the source, or WHEN … THEN ERROR applies.
    """
    with dml.matching(plan) as matched:
        counts = _counts(matched, engine)
        if counts.get("error"):
            raise ConstraintError(f"MERGE INTO {table.name}: {_message(matched, engine)}")
        changed = _part(matched, engine, ("update", "delete"), counts)
        if changed.count:
            _check_once(table, changed, engine)
            dml.delete_matched(table, changed)
        updated = _part(matched, engine, ("update",), counts)
        if updated.count:
            dml.append_new_versions(table, updated)
        added = _part(matched, engine, ("insert",), counts)
        if added.count:
            if added.rows is not None:
                dml.append_arrow(table, new_values(added.rows, table), inline=False)
            elif added.frame is not None:
                dml.append_frame(table, added.frame.drop(*VIRTUAL_COLUMNS), inline=False)
        return sum(counts.values())


def _counts(matched: Matched, engine: SparkEngine) -> dict[str, int]:
    """Action -> number of rows."""
    if matched.rows is not None:
        counted = matched.rows.column(ACTION).value_counts()
        return {item["values"].as_py(): item["counts"].as_py() for item in counted}
    assert matched.frame is not None  # either holds the rows
    with engine.running():
        rows = matched.frame.groupBy(ACTION).count().collect()
    return {row[0]: row[1] for row in rows}


def _part(matched: Matched, engine: SparkEngine, actions: Sequence[str], counts: dict[str, int]) -> Matched:
    """The rows with one of these actions, without the columns that say so."""
    count = sum(counts.get(action, 0) for action in actions)
    rows, frame = matched.rows, matched.frame
    if frame is not None:
        frame = frame.where(frame[ACTION].isin(*actions)).drop(ACTION, MESSAGE)
    if rows is not None:
        rows = rows.filter(pc.is_in(rows.column(ACTION), pa.array(actions))).drop_columns([ACTION, MESSAGE])
    elif frame is not None and 0 < count <= matched.few:
        from ducklake_lab.spark.frames import to_arrow_table

        with engine.running():
            rows = to_arrow_table(frame)
    return replace(matched, count=count, rows=rows, frame=frame)


def _message(matched: Matched, engine: SparkEngine) -> str:
    rows = matched.rows
    if rows is None:
        assert matched.frame is not None  # either holds the rows
        with engine.running():
            rows = matched.frame.where(matched.frame[ACTION] == "error").limit(1).toArrow()
    texts = rows.filter(pc.equal(rows.column(ACTION), "error")).column(MESSAGE).to_pylist()
    return texts[0] or "a row meets the condition of WHEN … THEN ERROR."


def _check_once(table: Table, changed: Matched, engine: SparkEngine) -> None:
    if changed.rows is not None:
        twice = pc.count_distinct(changed.rows.column(ROW_ID)).as_py() < changed.count
    else:
        assert changed.frame is not None  # either holds the rows
        with engine.running():
            twice = changed.frame.groupBy(ROW_ID).count().where("count > 1").limit(1).count() > 0
    if twice:
        raise ConstraintError(
            f"MERGE INTO {table.name}: a row is matched by several rows of the source; make the source's keys unique."
        )

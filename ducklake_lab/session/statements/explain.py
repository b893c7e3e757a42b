"""EXPLAIN: the tables, files and engine of a statement. Only EXPLAIN ANALYZE runs it."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pyarrow as pa

from ducklake_lab.engine.placement import Placement, Purpose
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.labels import state_title
from ducklake_lab.session.rows.named_rows import HandedInRows, LakeTable
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import plan_delete, plan_insert, plan_update
from ducklake_lab.sql.plan import QueryPlan, Source


def explain(operation: op.Operation, sources: Sources, *, analyze: bool = False) -> Result:
    """Returns one row (explain_key, explain_value), as DuckDB does; the value has a line per table, then the query.

    Args:
        analyze: run the query, drop its rows, and report files and time.

    Raises:
        UnsupportedFeatureError: the statement reads nothing, cannot be explained, or `analyze` gets no query.
    """
    if analyze and not isinstance(operation, op.Query):
        raise UnsupportedFeatureError(
            "EXPLAIN ANALYZE of a statement that is no query is not supported; run it instead."
        )
    plan = _plan(operation, sources)
    if isinstance(operation, op.Query) and (called := sources.acting(operation, plan)) is not None:
        if analyze:
            raise UnsupportedFeatureError(
                f"EXPLAIN ANALYZE of {called.name}, which changes the lake, is not supported; run the statement instead."
            )
        return _explained("physical_plan", [f"{called.name}: runs once, when the statement does", plan.duckdb_sql])
    info = RunInfo()
    lines = []
    purpose: Purpose = "look" if isinstance(operation, op.Query) else "change"
    loaded = sources.load_all(plan, info, purpose=purpose)
    answer = sources.from_catalog(plan, loaded)
    for source in plan.sources:
        if source.kind == "local":
            lines.append(f"{source.name}: the session's own")
            continue
        rows = loaded[source.view]
        if answer is not None:
            lines.append(f"{source.name}: snapshot {_snapshot(sources, source, info)}, answered by the catalog")
            info.files_read = info.bytes_read = 0
        elif isinstance(rows, Scan):
            scan_plan = rows.plan
            # DuckDB's name of the operator
            scan = "TABLE_SCAN " if scan_plan.files else ""
            inlined = scan_plan.inlined.rows.num_rows if scan_plan.inlined is not None else 0
            deletes = sum(file.has_deletes for file in scan_plan.files)
            lines.append(
                f"{scan}{source.name}: snapshot {_snapshot(sources, source, info)}, reads {len(scan_plan.files)} of {scan_plan.files_total} files "
                f"({scan_plan.bytes_read:,} of {scan_plan.bytes_total:,} bytes, {deletes} with deletes) and {inlined} inlined rows"
            )
            if source.predicate is not None:
                lines.append(f"  files skipped by {source.predicate}")
        else:
            name = source.rows.shown if isinstance(source.rows, HandedInRows) else source.name
            lines.append(
                f"{name}: {f'{rows.table.num_rows:,} rows' if isinstance(rows, InMemory) else 'rows by Spark'}"
            )
    placement = Placement("catalog") if answer is not None else sources.placed(plan, loaded, info, purpose)
    here = placement.is_here
    if here:
        lines += [f"runs {placement}:" if placement.where == "process" else "runs in process:", plan.duckdb_sql]
    elif isinstance(operation, op.Update | op.Delete) and sources.row_query(plan, loaded) is not None:
        lines += [f"runs in Spark's workers, by DuckDB · {placement.reason}:", plan.duckdb_sql]
    else:
        sources.check_for_spark(plan)
        lines += [f"runs on {placement}:", plan.for_spark().sql]
    if analyze:
        started = time.monotonic()
        if answer is None:
            _run(plan, sources, loaded, here=here)
        summary = f"Total Files Read: {info.files_read} of {info.files_total} ({info.bytes_read:,} bytes)"
        lines = [f"Total Time: {time.monotonic() - started:.3f}s", summary, *lines]
    key = "analyzed_plan" if analyze else "physical_plan"
    return _explained(key, lines, info)


def _explained(key: str, lines: list[str], info: RunInfo | None = None) -> Result:
    return Result(InMemory(pa.table({"explain_key": [key], "explain_value": ["\n".join(lines)]})), info=info)


def _snapshot(sources: Sources, source: Source, info: RunInfo) -> str:
    assert isinstance(source.rows, LakeTable)  # only scans have a snapshot
    read = source.rows.lake.alias, sources.loader.state(source.rows).snapshot.snapshot_id
    return state_title(read[1], uncommitted=source.at is None and read in info.uncommitted)


def _run(plan: QueryPlan, sources: Sources, loaded: Mapping[str, Rows], *, here: bool) -> None:
    if here:
        sources.run_in_process(plan, loaded)
        return
    sources.run_frame(sources.spark_frame(plan, loaded))


def _plan(operation: op.Operation, sources: Sources) -> QueryPlan:
    match operation:
        case op.Query():
            return sources.plan(operation)
        case op.Insert():
            return plan_insert(operation, sources.names.entry(operation.table).table().columns, sources.names)
        case op.Update():
            return plan_update(operation, sources.names.entry(operation.table).table().columns, sources.names)
        case op.Delete():
            return plan_delete(operation, sources.names)
        case op.CreateTable() if operation.query is not None:
            return sources.plan(operation.query)
    raise UnsupportedFeatureError(f"EXPLAIN of {type(operation).__name__} is not supported.")

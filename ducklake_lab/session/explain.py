"""EXPLAIN: what a statement would read, and where; nothing is run."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.session.result import Result, RunInfo
from ducklake_lab.session.sources import Scan, Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import plan_delete, plan_insert, plan_update
from ducklake_lab.sql.plan import QueryPlan


def explain(operation: op.Operation, sources: Sources, engine: str) -> Result:
    """One row, as in DuckDB: (explain_key, explain_value); the value has a line for each table, then the query.

    Raises:
        UnsupportedFeatureError: the statement reads nothing, or cannot be explained.
    """
    plan = _plan(operation, sources)
    info = RunInfo()
    lines = []
    loaded = sources.load_all(plan, info)
    for source in plan.sources:
        if source.kind == "local":
            lines.append(f"{source.name}: the session's own")
            continue
        rows = loaded[source.view]
        if isinstance(rows, Scan):
            found = rows.plan
            inlined = found.inlined.rows.num_rows if found.inlined is not None else 0
            deletes = sum(file.has_deletes for file in found.files)
            lines.append(
                f"{source.name}: snapshot {info.snapshot_id}, reads {len(found.files)} of {found.files_total} files "
                f"({found.bytes_read:,} of {found.bytes_total:,} bytes, {deletes} with deletes) and {inlined} inlined rows"
            )
            if source.predicate is not None:
                lines.append(f"  files skipped by {source.predicate}")
        else:
            lines.append(f"{source.name}: {rows.num_rows if isinstance(rows, pa.Table) else 'rows by Spark'} rows")
    here = sources.runs_here(loaded, info, engine, plan.refusal)
    if not here:
        sources.check_for_spark(plan)
    lines += ["runs in process:", plan.duckdb_sql] if here else ["runs on Spark:", plan.for_spark()]
    return Result(arrow=pa.table({"explain_key": ["physical_plan"], "explain_value": ["\n".join(lines)]}), info=info)


def _plan(operation: op.Operation, sources: Sources) -> QueryPlan:
    match operation:
        case op.Query():
            return sources.plan(operation)
        case op.Insert():
            return plan_insert(operation, sources.place(operation.table).table().columns, sources)
        case op.Update():
            return plan_update(operation, sources.place(operation.table).table().columns, sources)
        case op.Delete():
            return plan_delete(operation, sources)
        case op.CreateTable() if operation.query is not None:
            return sources.plan(operation.query)
    raise UnsupportedFeatureError(f"EXPLAIN of {type(operation).__name__} is not supported.")

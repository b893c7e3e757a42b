"""Options of a lake that steer maintenance (spec: usage/configuration)."""

from __future__ import annotations

from datetime import UTC, datetime

from ducklake_lab.catalog.options import Options
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import UsageError
from ducklake_lab.maintenance.rewrite_data_files import DEFAULT_DELETE_THRESHOLD
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_text


def is_compacted(options: Options, table: Table) -> bool:
    """Returns whether the table takes part in maintenance of the whole lake (`auto_compact`)."""
    return (options.get("auto_compact", schema_id=table.schema_id, table_id=table.table_id) or "true") == "true"


def delete_threshold(options: Options, table: Table, given: float | None = None) -> float:
    """The share of deleted rows from which a file is rewritten.

    Raises:
        UsageError: it is not between 0 and 1.
    """
    text = options.get("rewrite_delete_threshold", schema_id=table.schema_id, table_id=table.table_id)
    threshold = given if given is not None else float(text) if text is not None else DEFAULT_DELETE_THRESHOLD
    if not 0 <= threshold <= 1:
        raise UsageError("The delete_threshold must be between 0 and 1.")
    return threshold


def moment_before(interval: str) -> datetime:
    """The time an interval such as `2 days` ago.

    Raises:
        SqlError, ConstraintError: it is no interval.
    """
    now = datetime.now(UTC).isoformat()
    answer = evaluate(f"SELECT TIMESTAMPTZ '{now}' - CAST({quote_text(interval)} AS INTERVAL) AS v", {})
    moment: datetime = answer.column("v")[0].as_py()
    return moment

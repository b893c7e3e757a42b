"""Writes rows of the program: a Spark or pandas DataFrame, or an Arrow table."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.rows import Rows
from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.session.names.attached_lakes import Lakes, NamedEntry
from ducklake_lab.session.rows.handed_in import check_folded, rows_of
from ducklake_lab.session.rows.result import Result
from ducklake_lab.session.statements.row_statements import counted
from ducklake_lab.session.statements.runner import Statements
from ducklake_lab.sql import operations as op

WriteMode = Literal["append", "overwrite", "create", "create_or_replace"]


def write_rows(
    lakes: Lakes,
    statements: Statements,
    rows: object,
    table: str,
    mode: WriteMode,
    transaction: Callable[[], AbstractContextManager[object]],
) -> Result:
    """Writes rows to a table; matches columns by name; see `Session.write`.

    Args:
        transaction: opens a transaction that commits at the end of its block.
    """
    if mode not in ("append", "overwrite", "create", "create_or_replace"):
        modes = ("append", "overwrite", "create", "create_or_replace")
        raise UsageError(f'"{mode}" is not a write mode; use one of {", ".join(modes)}.{did_you_mean(mode, modes)}')
    with lakes.reads.noting("change"):
        entry = lakes.parse(table, sought="relation" if mode == "append" else "new")
    given = rows_of(rows, "rows")
    # a DataFrame of Spark may read the lake
    with nullcontext() if given.is_on_spark else lakes.reads.noting("change"):
        return _write(lakes, statements, given, entry, mode, transaction)


def _write(
    lakes: Lakes,
    statements: Statements,
    given: Rows,
    entry: NamedEntry,
    mode: WriteMode,
    transaction: Callable[[], AbstractContextManager[object]],
) -> Result:
    name = op.TableName(entry.lake.alias, entry.schema, entry.name)
    if mode == "overwrite" and isinstance(given, OnSpark):
        from ducklake_lab.spark.overwriting import check_static

        check_static(given.data)
    check_folded(given, "rows")
    if mode in ("create", "create_or_replace"):
        return statements.create(name, given, replace=mode == "create_or_replace")
    if mode == "append":
        return statements.append(name, given)
    if lakes.in_transaction:
        statements.run(op.Truncate(name))
        return statements.append(name, given)
    with transaction():
        statements.run(op.Truncate(name))
        written = statements.append(name, given)
        own = lakes.transaction
    assert own is not None
    (count,) = written.carried().column(0).to_pylist()
    return counted(count, own, entry)  # expectations leave rows out at the commit

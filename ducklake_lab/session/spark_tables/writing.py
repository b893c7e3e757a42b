"""Writes of Spark's rows to a table, each in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from ducklake_lab.engine.key_predicates import MAX_VALUES, of_partitions
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.live import check_not_live
from ducklake_lab.model.quoting import quoted_path
from ducklake_lab.model.staged import FILE_ID, POSITION, ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from ducklake_lab.session.names.read_states import Use
from ducklake_lab.session.spark_tables import entries, query_options
from ducklake_lab.session.spark_tables.parts import Parts, Request
from ducklake_lab.session.spark_tables.reading import table_of
from ducklake_lab.session.statements.dml import Matched
from ducklake_lab.session.transactions.rerunning import until_committed
from ducklake_lab.session.writing import write_rows
from ducklake_lab.sql import operations as op
from ducklake_lab.transaction.transaction import Transaction

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame

_OPERATION = "_ducklake_operation"
#: Seconds after which a write that conflicts does not run again, however often it ran: jobs of Spark that write partitions of
#: their own take minutes, and meet others of their kind.
_SECONDS = 3600.0
_Write = Callable[[Parts, Transaction, Table, Request, list["DataFrame"]], None]


def write(parts: Parts, request: Request, frames: list[DataFrame]) -> None:
    """Writes rows as a statement says; makes one snapshot, or stages the changes in the open transaction.

    A statement that conflicts with another commit plans its reads again and runs again.

    Args:
        frames: the rows, and for an overwrite by a condition the rows that they replace.
    """
    query_options.check_write(request["options"], request["mode"])
    attempt = partial(_attempt, parts, request, frames)
    until_committed(parts.transactions, attempt, reads=True, seconds=_SECONDS, is_counted=False)


def _attempt(parts: Parts, request: Request, frames: list[DataFrame]) -> None:
    from ducklake_lab.spark.catalog import planned, reads_other_sources
    from ducklake_lab.spark.frames import of_session

    token = request["table"]
    is_own = not parts.transactions.is_writing
    use: Use = "change each" if request.get("command") in ("DELETE", "UPDATE") else "change"
    # frames of an open transaction may have been made of rows that it read before
    noting = parts.lakes.reads.noting(use) if is_own else nullcontext()
    with noting, parts.transactions.writing(parts.lake) as transaction:
        if any(map(reads_other_sources, frames)):
            parts.lakes.reads.note_unknown()
        # reads of lakes are planned before anything changes
        with parts.engine.running() as spark:
            rows = [of_session(spark, planned(frame)) for frame in frames]
        if "staged" in token:
            entries.create(parts, parts.staged[token["staged"]])
            name = parts.name(parts.staged[token["staged"]])
            table = transaction.state.table(str(name.schema), name.name)
        else:
            _, table = table_of(parts, token)
            check_not_live(table, transaction.state.qualified_name(table))
            transaction.is_one_statement = is_own
        query_options.note(request["options"], transaction)
        _MODES[request["mode"]](parts, transaction, table, request, rows)


def _append(parts: Parts, transaction: Transaction, table: Table, request: Request, frames: list[DataFrame]) -> None:
    names = [column.name for column in table.columns]
    path = quoted_path(parts.alias, transaction.state.schema_of(table).name, table.name)
    rows = frames[0].toDF(*names)
    write_rows(parts.lakes, parts.statements, rows, path, "append", nullcontext)


def _overwrite(parts: Parts, transaction: Transaction, table: Table, request: Request, frames: list[DataFrame]) -> None:
    name = op.TableName(parts.alias, transaction.state.schema_of(table).name, table.name)
    parts.statements.run(op.Truncate(name))
    _append(parts, transaction, table, request, frames)


def _overwrite_where(
    parts: Parts, transaction: Transaction, table: Table, request: Request, frames: list[DataFrame]
) -> None:
    _delete(parts, transaction, table, frames[1])
    _append(parts, transaction, table, request, frames)


def _overwrite_partitions(
    parts: Parts, transaction: Transaction, table: Table, request: Request, frames: list[DataFrame]
) -> None:
    """Replaces the rows of the partitions that get rows; a table without partition keys is one partition."""
    if not (table.partition and table.partition.fields):
        _overwrite(parts, transaction, table, request, frames)
        return
    from ducklake_lab.spark import partitions

    partitions.check_partition(table)
    plan = parts.sources.scans.plan(parts.lake, transaction.state, table)
    rows = frames[0].toDF(*(column.name for column in table.columns)).persist()
    try:
        with parts.engine.running() as spark:
            keys = partitions.key_names(table)
            given = partitions.with_keys(rows, table).select(*keys).distinct()
            found = partitions.values_of(given.limit(MAX_VALUES + 1), table)
            if found:
                within = of_partitions(table, found) if len(found) <= MAX_VALUES else None
                parts.lakes.reads.note(parts.lake, table, within, is_target=True)
            present = partitions.with_keys(Scan(plan, virtual=True).frame(spark), table)
            replaced = present.join(given, keys, "left_semi")
        _delete(parts, transaction, table, replaced)
        _append(parts, transaction, table, request, [rows])
    finally:
        rows.unpersist()


def _delete(parts: Parts, transaction: Transaction, table: Table, frame: DataFrame) -> None:
    """Deletes the rows of a DataFrame with the virtual columns."""
    places = frame.select(*VIRTUAL_COLUMNS).persist()
    try:
        with parts.engine.running():
            count = places.count()
        parts.dml.delete_matched(table, _matched(parts, transaction, table, places, count))
    finally:
        places.unpersist()


def _change(parts: Parts, transaction: Transaction, table: Table, request: Request, frames: list[DataFrame]) -> None:
    """Applies the rows of a DELETE, UPDATE or MERGE, each with its operation and its place."""
    operations = {int(number): name for name, number in request["operations"].items()}
    changes = _with_places(frames[0], table, request).persist()
    try:
        with parts.engine.running():
            counts = {row[0]: row[1] for row in changes.groupBy(_OPERATION).count().collect()}
        unknown = set(counts) - set(operations)
        if unknown:
            raise UnsupportedFeatureError(
                f"Spark plans a change of rows with operation {min(unknown)}, which is unknown."
            )
        named = {operations[number]: count for number, count in counts.items()}

        def part(*names: str) -> Matched:
            chosen = [number for number, name in operations.items() if name in names]
            rows = changes.where(changes[_OPERATION].isin(chosen)).drop(_OPERATION)
            return _matched(parts, transaction, table, rows, sum(named.get(name, 0) for name in names))

        parts.dml.delete_matched(table, part("delete", "update"))
        if named.get("update"):
            parts.dml.append_new_versions(table, part("update"))
        if named.get("insert"):
            parts.dml.append(table, part("insert").rows.rest(len(VIRTUAL_COLUMNS)), inline=False)
    finally:
        changes.unpersist()


def _with_places(frame: DataFrame, table: Table, request: Request) -> DataFrame:
    """Returns the operation of each row, the virtual columns, then the table's columns.

    Spark's plan has them by position; a DELETE has no values.
    """
    width = len(frame.columns)
    numbered = frame.toDF(*(f"c{i}" for i in range(width)))
    (row_id,), places, values = request["row_id"], request["place"], request["row"]
    file_id, position = places or (None, None)
    chosen = [numbered[f"c{0}"].alias(_OPERATION)]
    for name, place in ((FILE_ID, file_id), (POSITION, position), (ROW_ID, row_id), (SNAPSHOT_ID, None)):
        column = numbered[f"c{place}"] if place is not None else numbered[f"c{row_id}"]
        chosen.append(column.cast("bigint").alias(name))
    if values:
        chosen += [numbered[f"c{place}"].alias(c.name) for place, c in zip(values, table.columns, strict=True)]
    return numbered.select(*chosen)


def _matched(parts: Parts, transaction: Transaction, table: Table, frame: DataFrame, count: int) -> Matched:
    rows = OnSpark(frame, engines=parts.engine)
    fetched = parts.engine.placing.fetches_changed_rows(count)
    plan = parts.sources.scans.plan(parts.lake, transaction.state, table)
    return Matched(parts.dml.target(table), plan, rows.here() if fetched else rows, count, count)


_MODES: dict[str, _Write] = {
    "append": _append,
    "overwrite": _overwrite,
    "overwrite where": _overwrite_where,
    "overwrite partitions": _overwrite_partitions,
    "change": _change,
}

"""Writes rows from Python workers: each task writes files of its own, the driver commits them at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.preparing import Source, prepare, sources
from ducklake_lab.datasource.replacing import Replaced
from ducklake_lab.duckdb.casting import cast_columns
from ducklake_lab.errors import CommitUnknownError, TransactionConflictError, UsageError
from ducklake_lab.expectations.settling import settle
from ducklake_lab.files.deletes import restamped
from ducklake_lab.files.options import WriteOptions, write_options
from ducklake_lab.files.partition_overwrite import check_overwritable, overwrite_partitions
from ducklake_lab.files.writer import write_rows
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.spark.overwriting import SETTING, OverwriteMode, overwrite_mode
from ducklake_lab.spark.workers.start import begin_task
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.batches import BatchCommittedError, StreamBatch, check_not_committed
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction

#: Bytes of rows in memory that a task collects for a file.
_FILE_BYTES = 512 << 20


#: The local property of tasks that holds the id of their streaming query, the one in the checkpoint's `metadata`.
_QUERY_ID = "sql.streaming.queryId"


@dataclass
class TaskFiles(ds.WriterCommitMessage):
    """The files that one task wrote, with what only tasks know.

    Attributes:
        query_id: the id of the streaming query it was a task of.
        overwriting: Spark's setting of partitionOverwriteMode.
    """

    files: list[WrittenFile]
    query_id: str | None = None
    overwriting: str | None = None


class TableWriting:
    """Common part of the writers of batches and streams. The query's planning makes it; tasks get copies."""

    def __init__(self, target: Target, schema: StructType, overwrite: bool) -> None:
        if target.at is not None:
            raise UsageError("A lake is written at its newest snapshot; leave out version and timestamp.")
        target.writing.check(overwrite=overwrite)
        self._target = target
        self._schema = schema
        self._overwrite = overwrite
        with target.open(read_only=False) as lake:
            transaction = Transaction(lake)  # never committed: the tasks need the table as it will be
            base = transaction.state.find_table(target.schema, target.table)
            self._table: Table = prepare(transaction, target, schema, overwrite=overwrite)
            self._folder: str = lake.folder(transaction.state, self._table)
            options = write_options(transaction.options, self._table)
        codec = target.writing.compression
        self._options: WriteOptions = replace(options, compression=codec, compression_level=None) if codec else options
        self._sources: list[Source] = sources(self._table, schema.names, fill=target.writing.merge_schema)
        condition = target.writing.replace_where
        self._replaced = Replaced.of(condition, base or self._table) if condition is not None else None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Runs in a Python worker. The files belong to nobody until they are committed."""
        begin_task()
        written: list[WrittenFile] = []
        types = {column.name: column.data_type for column in self._table.columns}
        try:
            for batches in _chunks(iterator):
                rows = pa.Table.from_batches(batches)
                values = [source.values(rows, kind) for source, kind in zip(self._sources, types.values(), strict=True)]
                typed = cast_columns(pa.table(values, list(types)), types)
                if self._replaced is not None:
                    self._replaced.check(typed)
                most = self._target.writing.max_records or max(typed.num_rows, 1)
                for start in range(0, typed.num_rows, most):
                    written += write_rows(self._table, typed.slice(start, most), self._folder, self._options)
        except BaseException:
            self._remove(written)
            raise
        return TaskFiles(written, _property(_QUERY_ID), _property(SETTING))

    def _commit(self, messages: Sequence[ds.WriterCommitMessage | None], batch: StreamBatch | None) -> None:
        files = files_of(messages)
        with self._target.open(read_only=False) as lake:
            transaction = Transaction(lake, restamp=restamped, checks=settle)
            notes = self._target.writing
            batch = batch or notes.batch
            transaction.author, transaction.message, transaction.extra_info = (
                notes.author,
                notes.message,
                notes.extra_info,
            )
            try:
                if batch is not None:
                    with lake.connect() as connection:
                        check_not_committed(connection, batch)
                    transaction.batch = batch
                    transaction.extra_info = transaction.extra_info or batch.extra_info
                self._stage(transaction, files, _mode(self._target, messages))
                commit(transaction)
            except CommitUnknownError:
                raise
            except BaseException as error:
                transaction.rollback()
                self._remove(files)
                # the stream was stopped between the commit and the note in its checkpoint
                if not isinstance(error, BatchCommittedError):
                    raise

    def _stage(self, transaction: Transaction, files: Sequence[WrittenFile], mode: OverwriteMode) -> None:
        target = self._target
        base = transaction.state.find_table(target.schema, target.table)
        table = prepare(transaction, target, self._schema, overwrite=self._overwrite, uuid=self._table.uuid)
        if not self._is_planned(transaction, table):
            raise TransactionConflictError(
                f"{target.schema}.{target.table} was altered or dropped while rows were written to it; write again."
            )
        if self._overwrite and base is not None and transaction.is_committed(table):
            if self._replaced is not None:
                self._replaced.delete(transaction, base, self._folder, self._options)
            elif mode == "dynamic":
                overwrite_partitions(transaction, base, files, self._options)
            else:
                self._truncate(transaction, base)
        transaction.append_files(table, files)

    def _is_planned(self, transaction: Transaction, table: Table) -> bool:
        """Whether the files fit the table as it is now."""
        planned = self._table
        same = not transaction.is_committed(planned) or table.table_id == planned.table_id
        return (
            same
            and _shape(table) == _shape(planned)
            and transaction.lake.folder(transaction.state, table) == self._folder
        )

    @staticmethod
    def _truncate(transaction: Transaction, table: Table) -> None:
        with transaction.lake.connect() as connection:
            plan = plan_scan(transaction.lake, connection, transaction.base, table)
        row_ids = plan.inlined.rows.column(ROW_ID).to_pylist() if plan.inlined is not None else []
        transaction.truncate(table, [file.data_file.data_file_id for file in plan.files], row_ids)

    def _abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        # Spark calls this after a failed commit too, which has removed the files, or keeps them as it may have landed
        if any(message is None for message in messages):
            self._remove(files_of(messages))

    def _remove(self, files: Sequence[WrittenFile]) -> None:
        Storage().discard(self._folder + file.path for file in files)


class TableWriter(TableWriting, ds.DataSourceArrowWriter):
    """A batch, one snapshot.

    Raises:
        UnsupportedFeatureError: an overwrite is to replace some partitions, whose keys have several texts.
    """

    def __init__(self, target: Target, schema: StructType, overwrite: bool) -> None:
        super().__init__(target, schema, overwrite)
        if overwrite and overwrite_mode(target.writing.overwriting) == "dynamic":
            check_overwritable(self._table)

    def commit(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks."""
        self._commit(messages, None)

    def abort(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Remove the files of tasks that wrote before another one failed."""
        self._abort(messages)


def _property(name: str) -> str | None:
    """A local property of this task."""
    context = TaskContext.get()
    return context.getLocalProperty(name) if context is not None else None


def _mode(target: Target, messages: Sequence[ds.WriterCommitMessage | None]) -> OverwriteMode:
    """The mode of an overwrite: the option, else Spark's setting, which only tasks know."""
    if target.writing.overwriting is not None:
        return overwrite_mode(target.writing.overwriting)
    settings = [message.overwriting for message in messages if isinstance(message, TaskFiles)]
    return overwrite_mode(next(iter(settings), None), SETTING)


def files_of(messages: Sequence[ds.WriterCommitMessage | None]) -> list[WrittenFile]:
    return [file for message in messages if isinstance(message, TaskFiles) for file in message.files]


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches, as many together as make a file."""
    chunk: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        chunk.append(batch)
        size += batch.nbytes
        if size >= _FILE_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _shape(table: Table) -> tuple[object, ...]:
    """All of a table that its files depend on."""
    parts = [(part.column_id, part.name, part.type) for part in table.all_columns()]
    required = [not column.nulls_allowed for column in table.columns]
    keys = table.partition.fields if table.partition is not None else ()
    return parts, required, keys

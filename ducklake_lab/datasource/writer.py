"""Writes rows from Python workers: each task writes files of its own, the driver commits them at the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from ducklake_lab.catalog.casting import cast_columns
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.reader import read_history
from ducklake_lab.datasource.options import Target
from ducklake_lab.errors import BindError, CommitUnknownError, TransactionConflictError, UsageError, did_you_mean
from ducklake_lab.files.options import WriteOptions, write_options
from ducklake_lab.files.writer import write_rows
from ducklake_lab.model.entries import Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.model.staged import ROW_ID
from ducklake_lab.scan.planner import plan_scan
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.commit import commit
from ducklake_lab.transaction.transaction import Transaction

#: Bytes of rows in memory that a task collects for a file.
_FILE_BYTES = 512 << 20


@dataclass
class TaskFiles(ds.WriterCommitMessage):
    """The files that one task wrote."""

    files: list[WrittenFile]


class _Writing:
    """What a batch and a stream have in common. It is made where the query is planned and sent to the tasks."""

    def __init__(self, target: Target, schema: StructType, overwrite: bool) -> None:
        if target.at is not None:
            raise UsageError("A lake is written at its newest snapshot; leave out version and timestamp.")
        self._target = target
        self._overwrite = overwrite
        with target.open(read_only=False) as lake, lake.connect() as connection:
            lake.check_writable()
            state = lake.state(connection, lake.snapshot(connection))
            self._table: Table = state.table(target.schema, target.table)
            self._folder: str = lake.folder(state, self._table)
            self._options: WriteOptions = write_options(lake.options(connection), self._table)
        self._places: list[int] = _places(self._table, schema.names)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        """Runs in a Python worker. The files belong to nobody until they are committed."""
        written: list[WrittenFile] = []
        try:
            for batches in _chunks(iterator):
                rows = pa.Table.from_batches(batches).select(self._places)
                names = [column.name for column in self._table.columns]
                types = {column.name: column.data_type for column in self._table.columns}
                typed = cast_columns(rows.rename_columns(names), types)
                written += write_rows(self._table, typed, self._folder, self._options)
        except BaseException:
            self._remove(written)
            raise
        return TaskFiles(written)

    def _commit(self, messages: Sequence[ds.WriterCommitMessage | None], stream: tuple[str, int] | None) -> None:
        files = _files(messages)
        with self._target.open(read_only=False) as lake:
            if stream is not None and _is_committed(lake, stream):
                # the stream was stopped between the commit and the note in its checkpoint
                self._remove(files)
                return
            transaction = Transaction(lake)
            try:
                self._stage(lake, transaction, files)
                if stream is not None:
                    transaction.extra_info = json.dumps({"stream": stream[0], "batch": stream[1]})
                commit(transaction)
            except CommitUnknownError:
                raise
            except BaseException:
                transaction.rollback()
                self._remove(files)
                raise

    def _stage(self, lake: Lake, transaction: Transaction, files: Sequence[WrittenFile]) -> None:
        table = transaction.state.tables.get(self._table.table_id)
        if table is None or table.columns != self._table.columns or table.partition != self._table.partition:
            name = f"{self._target.schema}.{self._target.table}"
            raise TransactionConflictError(f"{name} was altered or dropped while rows were written to it; write again.")
        if self._overwrite:
            with lake.connect() as connection:
                plan = plan_scan(lake, connection, transaction.state, table)
            row_ids = plan.inlined.rows.column(ROW_ID).to_pylist() if plan.inlined is not None else []
            transaction.truncate(table, [file.data_file.data_file_id for file in plan.files], row_ids)
        transaction.append_files(table, files)

    def _abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        # Spark calls this after a failed commit too, which has removed the files, or keeps them as it may have landed
        if any(message is None for message in messages):
            self._remove(_files(messages))

    def _remove(self, files: Sequence[WrittenFile]) -> None:
        Storage().delete(self._folder + file.path for file in files)


class TableWriter(_Writing, ds.DataSourceArrowWriter):
    """A batch, one snapshot."""

    def commit(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Commits what all tasks wrote."""
        self._commit(messages, None)

    def abort(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Removes what tasks wrote before another one failed."""
        self._abort(messages)


class TableStreamWriter(_Writing, ds.DataSourceStreamArrowWriter):
    """A stream, one snapshot for each micro-batch.

    A snapshot's `commit_extra_info` names the stream and the batch. A batch that is run again after a failure is
    recognised by that and left out.
    """

    def __init__(self, target: Target, schema: StructType, overwrite: bool) -> None:
        if target.stream_id is None:
            raise UsageError('A stream needs the option "checkpointLocation", or "stream_id".')
        super().__init__(target, schema, overwrite)
        self._stream: str = target.stream_id

    def commit(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commits a micro-batch, unless that has been done."""
        self._commit(messages, (self._stream, batchId))

    def abort(self, messages: list[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Removes what tasks wrote before another one failed."""
        self._abort(messages)


def _files(messages: Sequence[ds.WriterCommitMessage | None]) -> list[WrittenFile]:
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


def _places(table: Table, names: Sequence[str]) -> list[int]:
    """Where each of the table's columns is among the rows' columns, found by name."""
    given = {name.casefold(): index for index, name in enumerate(names)}
    known = [column.name for column in table.columns]
    for name in names:
        if table.column(name) is None:
            raise BindError(f'{table.name} has no column "{name}".{did_you_mean(name, known)}')
    for name in known:
        if name.casefold() not in given:
            raise BindError(f'The rows have no column "{name}" of {table.name}; add it, NULL where there is no value.')
    return [given[name.casefold()] for name in known]


def _is_committed(lake: Lake, stream: tuple[str, int]) -> bool:
    with lake.connect() as connection:
        return any(_batch_of(info.commit_extra_info, stream[0]) == stream[1] for info in read_history(connection))


def _batch_of(extra_info: str | None, stream: str) -> int | None:
    """The batch of that stream which a snapshot's extra info names, if any."""
    try:
        noted = json.loads(extra_info or "null")
    except ValueError:
        return None
    if isinstance(noted, dict) and noted.get("stream") == stream and isinstance(noted.get("batch"), int):
        return int(noted["batch"])
    return None

"""Writes data files with DuckDB's Parquet writer, in process and in Spark's Python workers.

It has every type of the format in its exact Parquet form, gives all parts of nested columns their field ids, and
reports the statistics of what it wrote, those of NaN, variants and geometries included: nothing is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import typed_sql
from ducklake_lab.duckdb.file_access import connect, load_encryption
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.duckdb.wording import worded
from ducklake_lab.errors import ConstraintError, DataFileError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_local, join
from ducklake_lab.files.constraints import broken, check_statistics, required_sql, uncounted
from ducklake_lab.files.options import WriteOptions
from ducklake_lab.files.partitions import groups, hive_folder, key_sql
from ducklake_lab.files.statistics import column_statistics
from ducklake_lab.model.entries import ROW_ID_COLUMN, ROW_ID_FIELD, SNAPSHOT_ID_COLUMN, SNAPSHOT_ID_FIELD, Column, Table
from ducklake_lab.model.files import WrittenFile
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.encryption import encryption_sql, new_key
from ducklake_lab.storage import Storage

#: The column by which DuckDB splits rows into files, lengthened where a table has it; no file holds it.
_GROUP = "_ducklake_lab_group"
_group = itemgetter(0)
#: Rows of a row group by default.
_ROW_GROUP_SIZE = 122_880


def write_rows(
    table: Table, rows: pa.Table, folder: str, options: WriteOptions, row_ids: pa.Array | None = None
) -> list[WrittenFile]:
    """Writes rows that are in memory as data files of a table. Creates no snapshot.

    Args:
        rows: the table's columns by name, in the Arrow forms of their types.
        folder: the table's folder, an absolute path or URL.
        row_ids: of the rows, where they keep those they have.

    Returns:
        One per combination of partition keys, several where they reach the size that files aim at; none for no rows.
        Paths are relative to `folder`.

    Raises:
        UnsupportedFeatureError: a partition key cannot be computed here; nothing was written.
        ConstraintError: a row has NULL in a column that is NOT NULL; the written files are removed.
    """
    if rows.num_rows == 0:
        return []
    keys = key_sql(table, options.time_zone)
    written: list[WrittenFile] = []
    storage = Storage()
    with Writer(table, options, keeps_ids=row_ids is not None, is_new=True) as writer:
        parts = list(groups(writer.evaluate(rows, keys), table)) if keys else [((), None)]
        places = [hive_folder(table, values) if options.hive_file_pattern else "" for values, _ in parts]
        rows = rows if row_ids is None else rows.append_column(ROW_ID_COLUMN, row_ids)
        try:
            # one statement has one key, and each encrypted file has its own
            if len(parts) > 1 and rows.nbytes <= options.target_file_size and not options.encrypted:
                numbers = [numbers for _, numbers in parts]
                files = writer.write_groups(rows, numbers, folder, places, storage)
                written = [_described(file, places[i] + file.path, parts[i][0]) for i, file in files]
            else:
                for (values, numbers), place in zip(parts, places, strict=True):
                    part = rows if numbers is None else rows.take(numbers)
                    files_of_part = _files_of(writer, part, folder, place, storage)
                    written += [_described(file, place + file.path, values) for file in files_of_part]
            check_statistics(table, [file.column_stats for file in written])
        except BaseException:
            storage.discard(join(folder, file.path) for file in written)
            raise
    return written


def _files_of(writer: Writer, rows: pa.Table, folder: str, subfolder: str, storage: Storage) -> list[WrittenFile]:
    """One file, or several where the rows reach the size that files aim at; with paths relative to the place."""
    if rows.nbytes > writer.options.target_file_size:
        return writer.write_split(rows, join(folder, subfolder), storage)
    name = f"ducklake-{new_uuid()}.parquet"
    return [replace(writer.write(rows, join(folder, subfolder + name), storage), path=name)]


def _described(file: WrittenFile, path: str, values: tuple[str | None, ...]) -> WrittenFile:
    return replace(file, path=path, partition_values=values)


@dataclass
class Writer:
    """A connection that writes files of one table.

    Attributes:
        keeps_ids: the rows come with their row ids, which the file holds.
        keeps_snapshots: the files hold the ids of the snapshots that inserted the rows.
        convert: gives the SQL that makes a value of a type of what the rows hold; by default they hold the Arrow forms.
        is_new: the rows are new to the table. A NULL in a column that is NOT NULL is an error where no statistics count
            it; `check_statistics` looks at the others. Old rows that only move may be older than the constraint.
    """

    table: Table
    options: WriteOptions
    keeps_ids: bool = False
    keeps_snapshots: bool = False
    convert: Callable[[str, DataType], str] = typed_sql
    is_new: bool = False
    connection: duckdb.DuckDBPyConnection = field(init=False)

    def __enter__(self) -> Writer:
        self.connection = connect()
        if self.options.row_group_size_bytes is not None:
            # DuckDB counts bytes of row groups only then; one thread keeps the order all the same
            self.connection.execute("SET SESSION preserve_insertion_order = false")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def evaluate(self, rows: pa.Table, expressions: Sequence[str]) -> pa.Table:
        """Some expressions over the table's columns of the rows, in the rows' order."""
        self.connection.register("source", _positional(rows))
        try:
            listed = ", ".join(f"{text} AS e{i}" for i, text in enumerate(expressions))
            return arrow(self.connection, f"SELECT {listed} FROM ({self._query(())})")
        finally:
            self.connection.unregister("source")

    def _query(self, kept: Iterable[str]) -> str:
        selected = [f"{self._value(i)} AS {quote_identifier(c.name)}" for i, c in enumerate(self.table.columns)]
        for name in kept:
            selected.append(f"c{len(selected)} AS {name}")
        return f"SELECT {', '.join(selected)} FROM source"

    def _value(self, index: int) -> str:
        column = self.table.columns[index]
        value = self.convert(f"c{index}", column.data_type)
        return required_sql(value, self.table, column) if self.is_new and column in uncounted(self.table) else value

    def _kept(self) -> dict[str, int]:
        """Return the field ids of the file's columns beside the table's."""
        kept = {ROW_ID_COLUMN: ROW_ID_FIELD} if self.keeps_ids else {}
        return {**kept, SNAPSHOT_ID_COLUMN: SNAPSHOT_ID_FIELD} if self.keeps_snapshots else kept

    def write(
        self,
        rows: pa.Table | pa.RecordBatchReader,
        path: str,
        storage: Storage,
    ) -> WrittenFile:
        """Writes one file; `path` of the result is the one given.

        Args:
            rows: the table's columns in order, then the row ids and the snapshot ids if they are kept.

        Raises:
            ConstraintError: a value does not fit its column's type, or is NULL where that is not allowed.
            DataFileError: the file cannot be written.
        """
        if is_local(path):
            target = path.removeprefix("file://")
            storage.make_folder(path.rpartition("/")[0])
            try:
                return self._copy_one(rows, target, path)
            except BaseException:
                storage.discard([path])
                raise
        with TemporaryDirectory() as folder:
            local = str(Path(folder) / "file.parquet")
            file = self._copy_one(rows, local, path)
            storage.upload(local, path)
            return file

    def write_split(self, rows: pa.Table | pa.RecordBatchReader, folder: str, storage: Storage) -> list[WrittenFile]:
        """Writes files into a folder, each closed with the row group that reaches the size that files aim at.

        Args:
            rows: as for `write`.

        Returns:
            In the rows' order, with paths relative to `folder`.

        Raises:
            ConstraintError, DataFileError: as for `write`; nothing was written.
        """
        with _beside(folder, storage) as made:
            files = self._copy(rows, f"{made}/parts", f"FILE_SIZE_BYTES {self.options.target_file_size}")
            return _placed([(file, folder) for file in files], storage)

    def write_groups(
        self, rows: pa.Table, groups: Sequence[pa.Array], folder: str, places: Sequence[str], storage: Storage
    ) -> list[tuple[int, WrittenFile]]:
        """Writes the files of several groups of rows by one statement.

        Args:
            rows: as for `write`, of all groups.
            groups: the numbers of each group's rows.
            places: the folder of each group's files, relative to `folder`.

        Returns:
            (number of the group, file) in the order of the groups, with paths relative to the group's folder.

        Raises:
            ConstraintError, DataFileError: as for `write`; nothing was written.
        """
        of_row = np.zeros(rows.num_rows, np.int64)
        for group, numbers in enumerate(groups):
            of_row[numbers.to_numpy()] = group
        rows = rows.append_column(_GROUP, pa.array(of_row))
        column = _GROUP
        while self.table.column(column) is not None:
            column += "_"
        with _beside(folder, storage) as made:
            files = self._copy(rows, f"{made}/groups", f"PARTITION_BY ({column})", others=[column])
            by_group = sorted(
                ((int(Path(file.path).parent.name.partition("=")[2]), file) for file in files), key=_group
            )
            placed = _placed([(file, join(folder, places[group])) for group, file in by_group], storage)
            return [(group, file) for (group, _), file in zip(by_group, placed, strict=True)]

    def _copy_one(self, rows: pa.Table | pa.RecordBatchReader, target: str, path: str) -> WrittenFile:
        (file,) = self._copy(rows, target, "USE_TMP_FILE false")
        return replace(file, path=path)

    def _copy(
        self, rows: pa.Table | pa.RecordBatchReader, target: str, manner: str, others: Sequence[str] = ()
    ) -> list[WrittenFile]:
        key = new_key() if self.options.encrypted else None
        if key is not None:
            load_encryption(self.connection)
            manner += f", ENCRYPTION_CONFIG {encryption_sql(self.connection, key, target)}"
        self.connection.register("source", _positional(rows))
        try:
            written = self.connection.execute(
                f"COPY ({self._query([*self._kept(), *others])}) TO {quote_text(target)} ({self._options()}, {manner})"
            ).fetchall()
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise ConstraintError(worded(error)) from None
        except (duckdb.NotImplementedException, duckdb.InvalidInputException) as error:
            said = worded(error)
            if any(broken(self.table, column) in said for column in uncounted(self.table)):
                raise ConstraintError(said) from None
            raise UnsupportedFeatureError(f"{self.table.name} cannot be written: {said}") from None
        except duckdb.IOException as error:
            raise DataFileError(f"A data file cannot be written: {worded(error)}") from None
        finally:
            self.connection.unregister("source")
        return [
            WrittenFile(
                path=path,
                record_count=count,
                file_size_bytes=size,
                footer_size=footer,
                column_stats=column_statistics(self.table.columns, reports),
                has_row_ids=self.keeps_ids,
                encryption_key=key,
                row_group_count=self._row_groups(path, count),
            )
            for path, count, size, footer, reports, *_ in written
        ]

    def _row_groups(self, path: str, rows: int) -> int | None:
        options = self.options
        if options.row_group_size_bytes is None and rows <= (options.row_group_size or _ROW_GROUP_SIZE):
            return 1  # DuckDB begins another one only where this one is full
        # nothing here reads the footer of an encrypted file
        return None if options.encrypted else pq.read_metadata(path).num_row_groups

    def _options(self) -> str:
        ids = {**_ids(self.table.columns), **self._kept()}
        options = self.options
        parts = [
            "FORMAT parquet",
            "RETURN_STATS",
            "GEOPARQUET_VERSION 'NONE'",
            f"FIELD_IDS {_literal(ids)}",
            f"COMPRESSION '{options.compression}'",
        ]
        if options.compression_level is not None:
            parts.append(f"COMPRESSION_LEVEL {options.compression_level}")
        if options.row_group_size is not None:
            parts.append(f"ROW_GROUP_SIZE {options.row_group_size}")
        if options.row_group_size_bytes is not None:
            parts.append(f"ROW_GROUP_SIZE_BYTES '{options.row_group_size_bytes} bytes'")
        if options.version is not None:
            parts.append(f"PARQUET_VERSION '{options.version}'")
        return ", ".join(parts)


@contextmanager
def _beside(folder: str, storage: Storage) -> Iterator[str]:
    """Yield a folder for new files, which are then renamed into a folder beside it, or uploaded."""
    local = folder.removeprefix("file://") if is_local(folder) else None
    if local is not None:
        storage.make_folder(local)
    with TemporaryDirectory(prefix="ducklake-", dir=local) as made:
        yield made


def _placed(files: Iterable[tuple[WrittenFile, str]], storage: Storage) -> list[WrittenFile]:
    """Puts files into folders under new names, which become their paths; all of them or none."""
    placed: list[WrittenFile] = []
    paths: list[str] = []
    try:
        for file, folder in files:
            name = f"ducklake-{new_uuid()}.parquet"
            if is_local(folder):
                local = folder.removeprefix("file://")
                storage.make_folder(local)
                Path(file.path).rename(Path(local) / name)
            else:
                storage.upload(file.path, join(folder, name))
            paths.append(join(folder, name))
            placed.append(replace(file, path=name))
    except BaseException:
        storage.discard(paths)
        raise
    return placed


def _positional(rows: pa.Table | pa.RecordBatchReader) -> pa.Table | pa.RecordBatchReader:
    """The rows under names c0, c1, …: DuckDB folds case, the table's columns need not."""
    if isinstance(rows, pa.Table):
        return unsliced(rows).rename_columns([f"c{i}" for i in range(rows.num_columns)])
    return rows


def _ids(columns: Sequence[Column]) -> dict[str, object]:
    """Field ids by name; of nested columns with those of their parts."""
    return {
        column.name: {"__duckdb_field_id": column.column_id, **_ids(column.children)}
        if column.children
        else column.column_id
        for column in columns
    }


def _literal(ids: Mapping[str, object]) -> str:
    parts = []
    for name, value in ids.items():
        parts.append(f"{quote_text(name)}: {_literal(value) if isinstance(value, dict) else value}")
    return "{" + ", ".join(parts) + "}"

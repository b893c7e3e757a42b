"""Reads a ScanPlan as a DataFrame, with Spark's own vectorised Parquet reader.

Files are grouped by their treatment, and each group is one scan:

- a file without deletes is read as it is: the plan is that of `spark.read.parquet` over the same files;
- for a file with deletes, one bit per row marks deleted rows, looked up by `_metadata.row_index`. The bits of a few
  files are a constant; those of many are broadcast and joined by a key of the file;
- a file older than a column with an initial default gets the default as a constant. Its footer shows whether it has the
  column; footers are read only for tables with such columns.

Columns are found by field id, under any name in the file (spec: tables/ducklake_column).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ducklake_lab.duckdb.casting import constant_column
from ducklake_lab.errors import DataFileError
from ducklake_lab.file_paths import hadoop_uri, is_local
from ducklake_lab.files.parts import of_other_types, under_other_names, with_structs
from ducklake_lab.model.entries import ROW_ID_FIELD, SNAPSHOT_ID_FIELD, Column
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.quoting import quote_for_spark
from ducklake_lab.model.staged import (
    FILE_ID,
    FILE_INDEX,
    FILE_NAME,
    POSITION,
    ROW_ID,
    SNAPSHOT_ID,
    VIRTUAL_COLUMNS,
)
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.footers import far_times, file_column_ids, with_columns_by_place
from ducklake_lab.scan.paths import path_values
from ducklake_lab.scan.plan import DeletedRows, InlinedRows, ScanFile, ScanPlan
from ducklake_lab.scan.positions import (
    check_files,
    deleted_positions,
    distinct_files,
    distinct_paths,
    newly_deleted_positions,
    pack,
)
from ducklake_lab.spark import added_files, duckdb_reads, listing
from ducklake_lab.spark.frames import from_arrow_table
from ducklake_lab.spark.objects import reach
from ducklake_lab.spark.types import FIELD_ID, differs, from_stored, spark_type, stored_field
from ducklake_lab.storage import Storage

_storage = Storage()

#: Most files for which an expression on each row finds its file.
_FEW_FILES = 32
# names that exist only inside the plan; a table's own columns cannot clash with them, see _read_name
_FILE = "_ducklake_file"
_INDEX = "_ducklake_row_index"
_WORDS = "_ducklake_deleted"
_STORED_ROW_ID = "_ducklake_stored_row_id"
_STORED_SNAPSHOT = "_ducklake_stored_snapshot_id"
_BEGIN_SNAPSHOT = "_ducklake_begin_snapshot"
_FIRST_ROW_ID = "_ducklake_first_row_id"


def read(spark: SparkSession, plan: ScanPlan, virtual: bool = False, located: bool = False) -> DataFrame:
    """Returns the rows of a table: its columns in order, then on request the virtual columns, then the row locations.

    Only delete files are read yet, and footers for tables with defaults of added columns.

    Raises:
        UnsupportedFeatureError: a column's type, or a feature of a file, is not supported.
        DataFileError: a delete file is missing.
    """
    if located:
        return _located(spark, plan)
    check_files(plan.files)
    parts = []
    for files in distinct_paths(plan.files):
        parts += scans(spark, plan, files, virtual, deleted_positions(files, _storage), keep_deleted=False)
    if plan.inlined is not None:
        parts.append(_inlined(spark, plan, plan.inlined, virtual))
    return union(spark, plan, parts, virtual)


def _located(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    name, place = T.StringType(), spark_type(DataType("uint64"))
    parts = []
    if plan.files:
        rows = read(spark, replace(plan, inlined=None), virtual=True)
        files = pa.table(
            {
                FILE_NAME: pa.array([file.path for file in plan.files], pa.string()),
                FILE_INDEX: pa.array(range(len(plan.files)), pa.int64()),
                _FILE: pa.array([file.data_file.data_file_id for file in plan.files], pa.int64()),
            }
        )
        joined = rows.join(F.broadcast(spark.createDataFrame(files)), rows[FILE_ID] == F.col(_FILE)).drop(_FILE)
        parts.append(joined.withColumn(FILE_INDEX, F.col(FILE_INDEX).cast(place)))
    if plan.inlined is not None:
        extra = {FILE_NAME: plan.inlined.rows.column(FILE_NAME), FILE_INDEX: plan.inlined.places(len(plan.files))}
        parts.append(_inlined(spark, plan, plan.inlined, True, extra))
    if parts:
        return reduce(DataFrame.union, parts)
    empty = union(spark, plan, [], True)
    return empty.withColumns({FILE_NAME: F.lit(None).cast(name), FILE_INDEX: F.lit(None).cast(place)})


def read_deleted(spark: SparkSession, plan: ScanPlan, deleted: Sequence[DeletedRows]) -> DataFrame:
    """Returns the rows deleted between two states, with their old values; columns as in `read(…, virtual=True)`.

    Args:
        plan: a plan of the table with the wanted columns; its files are ignored.
        deleted: one entry per data file; `_ducklake_snapshot_id` shows its `snapshot_id`.

    Raises:
        UnsupportedFeatureError: see `read`.
        DataFileError: a delete file is missing.
    """
    check_files(file for rows in deleted for file in (rows.after, rows.before))
    parts = []
    for group in distinct_files(deleted):
        positions = newly_deleted_positions(group, _storage)
        files = [rows.after for rows in group if len(positions[rows.after.path])]
        snapshots = {rows.after.path: rows.snapshot_id for rows in group}
        parts += scans(spark, plan, files, True, positions, keep_deleted=True, snapshots=snapshots)
    return union(spark, plan, parts, True)


def scans(
    spark: SparkSession,
    plan: ScanPlan,
    files: Sequence[ScanFile],
    virtual: bool,
    positions: Mapping[str, Positions],
    *,
    keep_deleted: bool,
    snapshots: Mapping[str, int] | None = None,
) -> list[DataFrame]:
    """Returns a DataFrame per group of files that lack the same columns and are read for the same snapshots.

    DuckDB reads all files that Spark's reader does not support, in one DataFrame.
    """
    files = with_columns_by_place(plan.columns, files, _storage)
    beyond = {f.path for f in files if f.data_file.encryption_key is not None or listing.is_hidden(f.path)}
    beyond |= added_files.beyond_spark(plan.columns, files, _storage)
    beyond |= under_other_names(plan.columns, files, _storage)
    beyond |= _without_zones(plan, files)
    if any(part.type in ("timestamp_ms", "timestamp_ns") for column in plan.columns for part in column.walk()):
        # Spark makes microseconds of them, and fails on infinity
        beyond |= far_times((file.path for file in files if file.path not in beyond), _storage)
    if any(_clashes(column) for column in with_structs(plan.columns)):
        beyond.update(file.path for file in files)
    missing, without_parts = _missing_columns(plan.columns, [file for file in files if file.path not in beyond])
    beyond |= without_parts
    others = [file for file in files if file.path in beyond]
    plain = [file for file in files if file.path not in beyond]
    groups: dict[tuple[tuple[int, ...], bool, object], list[ScanFile]] = defaultdict(list)
    for file in plain:
        bounds = (file.rows_from, file.rows_up_to, file.rows_except, file.data_file.mapping)
        groups[missing.get(file.path, ()), file.path in positions, bounds].append(file)
    scans = []
    for (absent, has_positions, _), group in groups.items():
        bits = {file.path: positions[file.path] for file in group} if has_positions else {}
        scans.append(_scan(spark, plan, group, absent, virtual, bits, keep_deleted, snapshots or {}))
    if others:
        scans.append(duckdb_reads.scan(spark, plan, others, virtual, positions, keep_deleted, snapshots or {}))
    return scans


def _may_lack_zones(column: Column, plan: ScanPlan) -> bool:
    """Whether files may hold times without a zone for a column with one."""
    return any(
        part.type == "timestamptz" and (plan.retyped is None or part.column_id in plan.retyped)
        for part in column.walk()
    )


def _without_zones(plan: ScanPlan, files: Sequence[ScanFile]) -> set[str]:
    """Returns the paths of files whose times get a zone on reading, which Spark would choose differently."""
    ids = {column.column_id for column in plan.columns if column.type == "timestamptz"}
    paths = of_other_types([column for column in plan.columns if _may_lack_zones(column, plan)], files, _storage)
    for file in files:
        entries = file.data_file.mapping.columns if file.data_file.mapping is not None else ()
        if any(entry.is_partition and entry.target_field_id in ids for entry in entries):
            paths.add(file.path)
    return paths


def _scan(
    spark: SparkSession,
    plan: ScanPlan,
    files: Sequence[ScanFile],
    absent: tuple[int, ...],
    virtual: bool,
    positions: Mapping[str, Positions],
    keep_deleted: bool,
    snapshots: Mapping[str, int],
) -> DataFrame:
    present = [column for column in plan.columns if column.column_id not in absent]
    names = {column.column_id: _read_name(column, plan.reused_names) for column in present}
    mapping = files[0].data_file.mapping
    fields = [stored_field(column, names[column.column_id]) for column in present]
    reach(spark, (file.path for file in files))
    if mapping is not None:
        fields = added_files.read_fields(plan.columns, mapping)
    bounded = files[0].is_bounded
    has_ids = virtual and mapping is None
    if has_ids:
        fields.append(T.StructField(_STORED_ROW_ID, T.LongType(), True, {FIELD_ID: ROW_ID_FIELD}))
    if has_ids or bounded:
        fields.append(T.StructField(_STORED_SNAPSHOT, T.LongType(), True, {FIELD_ID: SNAPSHOT_ID_FIELD}))
    frame = listing.relation(spark, plan, files, fields)
    if bounded:
        frame = frame.where(_in_bounds(frame[_STORED_SNAPSHOT], files[0]))
    in_paths = mapping is not None and any(entry.is_partition for entry in mapping.columns)
    sizes = _sizes(files) if positions or virtual or in_paths else None
    if positions and not virtual and sizes is not None and len(files) <= _FEW_FILES:
        words = _constant_words(spark, frame["_metadata.file_size"], sizes, [positions[file.path] for file in files])
        deleted = _is_deleted(words, frame["_metadata.row_index"])
        frame, positions = frame.where(deleted if keep_deleted else ~deleted), {}
    as_read = mapping is None and not (virtual or positions or bounded or _computed(plan, absent))
    if as_read and [field.name for field in fields] == [column.name for column in plan.columns]:
        return frame
    key = _file_key(frame["_metadata.file_path"]) if sizes is None else frame["_metadata.file_size"]
    info = [key.alias(_FILE), frame["_metadata.row_index"].alias(_INDEX)]
    if in_paths:
        # values in the files' paths must be known before the columns are built
        frame = frame.select("*", *info).join(F.broadcast(_path_table(spark, files, sizes)), _FILE)
        info = [F.col(_FILE), F.col(_INDEX)]
    if mapping is not None:
        outputs = [
            added_files.output(column, mapping, frame, None if column.initial_default is None else _default(column))
            for column in plan.columns
        ]
    else:
        outputs = [_output(column, names, frame) for column in plan.columns]
    if not positions and not virtual:
        return frame.select(*outputs)
    nothing = F.lit(None).cast("bigint")
    stored = [
        (frame[name] if has_ids else nothing).alias(name) for name in (_STORED_ROW_ID, _STORED_SNAPSHOT) if virtual
    ]
    frame = frame.select(*outputs, *stored, *info)
    frame = frame.join(F.broadcast(_file_table(spark, files, sizes, positions, snapshots, virtual)), _FILE)
    if positions:
        deleted = _is_deleted(F.col(_WORDS), F.col(_INDEX))
        frame = frame.where(deleted if keep_deleted else ~deleted)
    columns = [F.col(quote_for_spark(column.name)) for column in plan.columns]
    if virtual:
        row_id = F.coalesce(_STORED_ROW_ID, F.col(_FIRST_ROW_ID) + F.col(_INDEX))
        snapshot = F.coalesce(SNAPSHOT_ID, _STORED_SNAPSHOT, _BEGIN_SNAPSHOT)
        columns += [F.col(FILE_ID), F.col(_INDEX).alias(POSITION), row_id.alias(ROW_ID), snapshot.alias(SNAPSHOT_ID)]
    return frame.select(*columns)


def _in_bounds(stored_snapshot: SparkColumn, file: ScanFile) -> SparkColumn:
    """Whether a row belongs to the snapshots to read; its file has the snapshot id of each row."""
    bounds = []
    if file.rows_from is not None:
        bounds.append(stored_snapshot >= file.rows_from)
    if file.rows_up_to is not None:
        bounds.append(stored_snapshot <= file.rows_up_to)
    if file.rows_except:
        bounds.append(~stored_snapshot.isin(*file.rows_except))
    return reduce(SparkColumn.__and__, bounds)


def _read_name(column: Column, reused: frozenset[int] | None) -> str:
    """Returns the name under which to read a column.

    Spark skips row groups by the statistics of the file's column with that name, although it reads the column
    by id. A name that another column has or had must not reach the file, so that its statistics skip nothing.
    """
    if with_structs([column]):
        return column.name  # also the files' name: Spark forgets the column's id if a query reads only some parts
    if _clashes(column) or reused is None or any(part.column_id in reused for part in column.walk()):
        return f"_ducklake_column_{column.column_id}"
    return column.name


def _clashes(column: Column) -> bool:
    """Whether Spark has a column of its own with that name."""
    return column.name.casefold() in ("_metadata", _STORED_ROW_ID, _STORED_SNAPSHOT)


def _output(column: Column, names: Mapping[int, str], frame: DataFrame) -> SparkColumn:
    name = names.get(column.column_id)
    if name is None:
        return _default(column).alias(column.name)
    return from_stored(frame[quote_for_spark(name)], column.data_type).alias(column.name)


def _computed(plan: ScanPlan, absent: tuple[int, ...]) -> bool:
    return bool(absent) or any(differs(column.data_type) for column in plan.columns)


def _is_deleted(words: SparkColumn, index: SparkColumn) -> SparkColumn:
    # nothing is deleted past the end of the words, where get() is NULL
    word = F.coalesce(F.get(words, F.shiftright(index, 6).cast("int")), F.lit(0))
    bit = F.call_function("shiftright", word, index.bitwiseAND(F.lit(63)).cast("int"))
    return bit.bitwiseAND(F.lit(1)) == F.lit(1)


def _constant_words(
    spark: SparkSession, size: SparkColumn, sizes: Sequence[int], positions: Sequence[Positions]
) -> SparkColumn:
    """Returns the bits of the file with that size, from a scalar subquery: it is computed once, and needs no join."""
    words = pa.array([[pack(in_file) for in_file in positions]], pa.list_(pa.list_(pa.int64())))
    place = reduce(lambda cases, i: cases.when(size == sizes[i], i), range(1, len(sizes)), F.when(size == sizes[0], 0))
    return F.get(spark.createDataFrame(pa.table({_WORDS: words})).scalar(), place)


def _file_table(
    spark: SparkSession,
    files: Sequence[ScanFile],
    sizes: Sequence[int] | None,
    positions: Mapping[str, Positions],
    snapshots: Mapping[str, int],
    virtual: bool,
) -> DataFrame:
    """Returns a DataFrame with the constants of each file, by its key."""
    data: dict[str, pa.Array] = {}
    if positions:
        data[_WORDS] = pa.array([pack(positions[file.path]) for file in files], pa.list_(pa.int64()))
    if virtual:
        shown = [snapshots.get(f.path, None if f.shows_own_snapshots else f.snapshot_id) for f in files]
        data[FILE_ID] = pa.array([file.data_file.data_file_id for file in files], pa.int64())
        data[_FIRST_ROW_ID] = pa.array([file.data_file.row_id_start for file in files], pa.int64())
        data[SNAPSHOT_ID] = pa.array(shown, pa.int64())
        data[_BEGIN_SNAPSHOT] = pa.array([file.snapshot_id for file in files], pa.int64())
    return _by_key(spark, files, sizes, data)


def _path_table(spark: SparkSession, files: Sequence[ScanFile], sizes: Sequence[int] | None) -> DataFrame:
    """Returns a DataFrame with the values in the files' paths, by key."""
    values = [[(str(column), text) for column, text in path_values(file)] for file in files]
    return _by_key(spark, files, sizes, {added_files.PATH_VALUES: pa.array(values, pa.map_(pa.string(), pa.string()))})


def _by_key(
    spark: SparkSession, files: Sequence[ScanFile], sizes: Sequence[int] | None, data: dict[str, pa.Array]
) -> DataFrame:
    if sizes is not None:
        return spark.createDataFrame(pa.table({_FILE: pa.array(sizes, pa.int64()), **data}))
    uris = pa.array([hadoop_uri(file.path) for file in files], pa.string())
    table = spark.createDataFrame(pa.table({_FILE: uris, **data}))
    return table.withColumn(_FILE, _file_key(table[_FILE]))


def _sizes(files: Sequence[ScanFile]) -> list[int] | None:
    """Returns the sizes of files in bytes if they are all different and available; otherwise None.

    Rows of a scan are joined with facts about their file. Spark knows its size as a number; a hash of the path
    for each row takes as long as a read of some columns. The size in the catalog is not reliable enough.
    """
    if not all(is_local(file.path) for file in files):
        return None
    try:
        sizes = [_storage.size(file.path) for file in files]
    except DataFileError:
        return None  # Spark raises the error of the file
    return sizes if len(set(sizes)) == len(sizes) else None


def _file_key(uri: SparkColumn) -> SparkColumn:
    """Returns a number to join files by: twice as fast as a join by text.

    Only files of the same scan are joined. Of 100,000 files, two have the same key with probability 1 in 3,000,000,000.
    """
    return F.xxhash64(uri)


def _missing_columns(
    columns: Sequence[Column], files: Sequence[ScanFile]
) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """Returns, by file path, the ids of columns with an initial default that the file lacks.

    Also returns the files that lack a nested column, or part of one, with a default: Spark has no constant for those.
    """
    defaulted = [part for column in columns for part in column.walk() if part.initial_default is not None]
    if not defaulted:
        return {}, set()
    whole = {column.column_id for column in columns if not column.children}
    ids_by_path = file_column_ids([file.path for file in files if file.data_file.mapping is None], _storage)
    ids_by_path |= {f.path: f.data_file.mapping.target_ids() for f in files if f.data_file.mapping is not None}
    lacking = {
        path: tuple(part.column_id for part in defaulted if part.column_id not in ids)
        for path, ids in ids_by_path.items()
    }
    return lacking, {path for path, ids in lacking.items() if not whole.issuperset(ids)}


def _default(column: Column) -> SparkColumn:
    kind = spark_type(column.data_type)
    if isinstance(kind, T.BinaryType):
        return F.lit(bytearray(constant_column(column.initial_default, column.data_type, 1)[0].as_py()))
    if isinstance(kind, T.TimestampType):
        # a text without a zone is in UTC, as in the reference
        instant = constant_column(column.initial_default, column.data_type, 1).cast(pa.int64())[0].as_py()
        return F.timestamp_micros(F.lit(instant))
    return F.lit(column.initial_default).cast(kind)


def _inlined(
    spark: SparkSession,
    plan: ScanPlan,
    inlined: InlinedRows,
    virtual: bool,
    more: Mapping[str, pa.Array | pa.ChunkedArray] | None = None,
) -> DataFrame:
    names = [column.name for column in plan.columns]
    fields = [column.data_type.field(column.name) for column in plan.columns]
    rows = inlined.rows.select([*names, ROW_ID, SNAPSHOT_ID] if virtual else names)
    if virtual:
        nulls = pa.nulls(rows.num_rows, pa.int64())
        rows = rows.append_column(FILE_ID, nulls).append_column(POSITION, nulls).select([*names, *VIRTUAL_COLUMNS])
        fields += [kind.field(name) for name, kind in VIRTUAL_COLUMNS.items()]
    for name, values in (more or {}).items():
        rows = rows.append_column(name, values)
        fields.append(pa.field(name, values.type))
    return from_arrow_table(spark, rows.cast(pa.schema(fields)), lazily=True)


def union(spark: SparkSession, plan: ScanPlan, parts: Sequence[DataFrame], virtual: bool) -> DataFrame:
    if parts:
        return reduce(DataFrame.union, parts)
    fields = [T.StructField(c.name, spark_type(c.data_type)) for c in plan.columns]
    fields += [T.StructField(name, T.LongType()) for name in VIRTUAL_COLUMNS] if virtual else []
    return spark.createDataFrame([], T.StructType(fields))

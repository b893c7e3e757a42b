"""Rows of a table as a query of DuckDB's: of its data files, without those deleted, and of rows the catalog holds.

DuckDB reads a lake by such queries only: queries and previews in process, and parts of large tables in Spark's workers.
Values that differ by file are lists, indexed by the file's number, in the text for few files and in a table of one row for
many; deleted positions are bits in that table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import shown_sql, with_shown
from ducklake_lab.duckdb.connections import in_memory
from ducklake_lab.duckdb.wording import is_of_damage, worded, worded_of_file
from ducklake_lab.errors import DataFileError
from ducklake_lab.file_paths import is_local
from ducklake_lab.files.mapped import part_sql, value_sql
from ducklake_lab.files.parts import Parts, holds_type, renamed_parts, stored_type
from ducklake_lab.model.entries import ROW_ID_FIELD, SNAPSHOT_ID_FIELD, Column
from ducklake_lab.model.mapping import NameMapping
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.staged import FILE_INDEX, FILE_NAME, ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from ducklake_lab.scan.footers import file_schemas, with_columns_by_place
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
from ducklake_lab.storage import Storage

_BY_NAME = "filename = '_ducklake_path', file_row_number = true, union_by_name = true, hive_partitioning = false"
_INDEX = "file_index"
#: Words of 64 bits up to which each file has as many as the largest one, so that its first is known by its number.
_EVEN_WORDS = 1 << 20
#: Files in one query: DuckDB copies the lists of all files for each block of rows, so that long lists are slow.
_AT_ONCE = 1000
#: Files up to which numbers of theirs are in the text of a query, which takes half the time of a table with one row.
_WRITTEN = 32
_NUMBERS = {pa.int64(): "BIGINT", pa.uint64(): "UBIGINT"}
_storage = Storage()


@dataclass(frozen=True, slots=True)
class DuckDbQuery:
    """Rows as a query of DuckDB's, in the types they have in the lake.

    Attributes:
        sql: the query.
        tables: rows in Arrow that it names.
        places: where each data file is on this machine, by path.
    """

    sql: str
    tables: Mapping[str, pa.Table]
    places: Mapping[str, str]

    def failure(self, error: duckdb.Error) -> DataFileError | None:
        """Return the error of a data file that DuckDB's error names; None where it is about something else."""
        text = str(error).splitlines()[0]
        named = next((path for path, place in self.places.items() if place in text), None)
        if named is None and is_of_damage(error):
            named = next((path for path, place in self.places.items() if not _is_whole(place)), None)
        return None if named is None else DataFileError(worded_of_file(error, named, "data file"))


def unreadable(error: duckdb.Error, places: Mapping[str, str], *, encrypted: bool = False) -> DataFileError:
    """Return the error of an unreadable data file, with its path instead of its place on this machine."""
    text = str(error)
    named = [path for path, place in places.items() if place in text] or (list(places) if len(places) == 1 else [])
    if named:
        return DataFileError(worded_of_file(error, named[0], "data file", encrypted=encrypted))
    return DataFileError(f"A data file cannot be read: {worded(error)}")


def _is_whole(place: str) -> bool:
    """Return whether all values of a file can be read."""
    with in_memory(threads=1) as connection:
        try:
            connection.execute("SELECT count(COLUMNS(*)) FROM read_parquet($1)", [place])
        except duckdb.Error:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Group:
    """Files with the same columns and parts, names and key; no path is there twice."""

    files: tuple[ScanFile, ...]
    parts: Parts


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns and rows to read from some files.

    Attributes:
        names: the names of the columns.
        virtual: the virtual columns follow.
        numbers: the number of each file by its id; where given, two columns follow that say where a row is.
        keep_deleted: only the rows at deleted positions, rather than only the others.
        rows: the position of the first of the rows of each file, and that after the last; None for all to the end.
    """

    names: Sequence[str]
    virtual: bool = False
    numbers: Mapping[int, int] | None = None
    keep_deleted: bool = False
    rows: tuple[int, int | None] = (0, None)


def is_direct(files: Iterable[ScanFile]) -> bool:
    """Return whether DuckDB reads files where they are: none is remote or encrypted."""
    return all(is_local(file.path) and file.data_file.encryption_key is None for file in files)


def query_of(
    plan: ScanPlan,
    name: str,
    *,
    virtual: bool = False,
    located: bool = False,
    deleted: Sequence[DeletedRows] = (),
    only: Mapping[int, Positions] | None = None,
) -> DuckDbQuery:
    """Return the rows of a plan with direct files, under the table's columns, then virtual ones if asked for.

    Args:
        name: prefix of the names of its tables.
        virtual: the virtual columns follow.
        located: and then those that say where a row is.
        deleted: more rows, of files that are read where they are too.
        only: the positions to read of each file, by its id; None for those that are not deleted.

    Raises:
        DataFileError: a file of the plan is missing or unreadable.
        UnsupportedFeatureError: a file or type of the plan cannot be read yet.
    """
    check_files([*plan.files, *(rows.after for rows in deleted)])
    numbers = {file.data_file.data_file_id: i for i, file in enumerate(plan.files)} if located else None
    names = [column.name for column in plan.columns]
    wanted = Wanted(names, virtual or located, numbers)
    chosen = replace(wanted, keep_deleted=only is not None)
    places = {file.path: file.path.removeprefix("file://") for file in plan.files}
    parts = [
        rows_of(f"{name}_{part}_{i}", plan.columns, group, marked_positions(group.files, only), places, chosen)
        for part, files in enumerate(distinct_paths(plan.files))
        for i, group in enumerate(alike(plan.columns, files))
    ]
    if plan.inlined is not None:
        parts.append(_inlined(f"{name}_inlined", plan.columns, plan.inlined, len(plan.files), wanted))
    for part, rows in enumerate(distinct_files(deleted)):
        positions = newly_deleted_positions(rows, _storage)
        gone = [replace(one.after, snapshot_id=one.snapshot_id) for one in rows if len(positions[one.after.path])]
        places |= {file.path: file.path.removeprefix("file://") for file in gone}
        kept = replace(wanted, keep_deleted=True)
        parts += [
            rows_of(f"{name}_deleted_{part}_{i}", plan.columns, group, positions, places, kept)
            for i, group in enumerate(alike(plan.columns, gone))
        ]
    if not parts:
        kinds = [column.data_type.sql() for column in plan.columns] + ["BIGINT"] * 4 * wanted.virtual
        kinds += ["VARCHAR", "UBIGINT"] * located
        nulls = (f"CAST(NULL AS {kind}) AS {n}" for kind, n in zip(kinds, _quoted(wanted), strict=True))
        return DuckDbQuery(f"SELECT {', '.join(nulls)} LIMIT 0", {}, {})
    tables = {table: rows for one in parts for table, rows in one.tables.items()}
    return DuckDbQuery(" UNION ALL ".join(one.sql for one in parts), tables, places)


def marked_positions(files: Sequence[ScanFile], only: Mapping[int, Positions] | None) -> dict[str, Positions]:
    """The positions of files to leave out, or where `only` has the ones to read, these; by path."""
    if only is None:
        return deleted_positions(files, _storage)
    return {file.path: only[file.data_file.data_file_id] for file in files}


def alike(columns: Sequence[Column], files: Sequence[ScanFile]) -> list[Group]:
    """Group files by the names of their columns and parts; encrypted ones singly, as each has its key."""
    groups: dict[object, tuple[list[ScanFile], Parts]] = {}
    files = with_columns_by_place(columns, files, _storage)
    renamed = renamed_parts(columns, files, _storage)
    for file in files:
        data_file, parts = file.data_file, renamed.get(file.path, ())
        groups.setdefault((data_file.mapping, parts, data_file.encryption_key), ([], parts))[0].append(file)
    return [
        Group(tuple(members[start : start + _AT_ONCE]), parts)
        for members, parts in groups.values()
        for start in range(0, len(members), _AT_ONCE)
    ]


def rows_of(
    name: str,
    columns: Sequence[Column],
    group: Group,
    positions: Mapping[str, Positions],
    places: Mapping[str, str],
    wanted: Wanted,
    encryption: str | None = None,
) -> DuckDbQuery:
    """The rows of a group of files.

    Args:
        name: of the table that holds the lists.
        positions: deleted positions by path.
        places: where each file is on this machine, by path.
        encryption: the value of DuckDB's option for an encrypted file.
    """
    files, mapping = group.files, group.files[0].data_file.mapping
    lists: dict[str, pa.Array] = {}

    def of_file(field: str, values: Iterable[Any], kind: pa.DataType) -> str:
        """Return the SQL of the value for a row's file; many values become a list with one for each file."""
        listed = list(values)
        if kind in _NUMBERS and len(listed) <= _WRITTEN:
            texts = ["NULL" if value is None else f"{value:d}" for value in listed]
            value = texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}][{number} + 1]"
            return f"CAST({value} AS {_NUMBERS[kind]})"
        lists[field] = pa.array([listed], pa.list_(kind))
        return f"f.{field}[{number} + 1]"

    number = _number(files)
    if number is None:
        lists["path"] = pa.array([[places[file.path] for file in files]], pa.list_(pa.string()))
        number = "(list_position(f.path, r._ducklake_path) - 1)"
    conditions = []
    first, end = wanted.rows
    if first:
        conditions.append(f"r.file_row_number >= {first}")
    if end is not None:
        conditions.append(f"r.file_row_number < {end}")
    listed = [positions.get(file.path, np.zeros(0, np.int64)) for file in files]
    if any(len(one) for one in listed):
        if wanted.keep_deleted:
            # row groups without any of them are not read
            ends = [(int(one[0]), int(one[-1])) for one in listed if len(one)]
            conditions.append(f"r.file_row_number BETWEEN {min(low for low, _ in ends)} AND {max(h for _, h in ends)}")
        words, starts = _bits(files, listed)
        lists["words"] = pa.array([words], pa.list_(pa.int64()))
        even = starts == [i * starts[1] for i in range(len(starts))] if len(starts) > 1 else True
        start = f"{number} * {starts[1] if len(starts) > 1 else 0}" if even else of_file("start", starts, pa.int64())
        bit = f"(f.words[{start} + (r.file_row_number >> 6) + 1] >> (r.file_row_number & 63)) & 1"
        conditions.append(f"coalesce({bit}, 0) = {int(wanted.keep_deleted)}")
    elif wanted.keep_deleted:
        conditions.append("false")
    if any(file.is_bounded for file in files):
        of_row = "r.ducklake_snapshot_id"
        lower = of_file("rows_from", (file.rows_from for file in files), pa.int64())
        upper = of_file("rows_up_to", (file.rows_up_to for file in files), pa.int64())
        others = of_file("rows_except", (list(file.rows_except) for file in files), pa.list_(pa.int64()))
        conditions.append(f"coalesce({of_row} <= {upper}, true) AND coalesce({of_row} >= {lower}, true)")
        conditions.append(f"NOT coalesce(list_contains({others}, {of_row}), false)")
    renamed = {entry.target_field_id: entry for entry in group.parts}
    hive = [dict(path_values(file)) for file in files]
    values = []
    for i, column in enumerate(columns):
        if mapping is not None:
            text = "NULL"
            if any(column.column_id in one for one in hive):
                text = of_file(f"hive_{i}", (one.get(column.column_id) for one in hive), pa.string())
            values.append(_compared_as(value_sql(column, mapping, text), kept=len(files) == 1))
        elif column.column_id in renamed:
            values.append(part_sql(f"r.c{i}", column, renamed[column.column_id]))
        else:
            kept = all(holds_type(column, file, _storage) for file in files)
            values.append(_compared_as(f"CAST(r.c{i} AS {column.data_type.sql()})", kept=kept))
    if wanted.virtual:
        of_row_id = "r.ducklake_row_id, " if mapping is None else ""
        own = ", r.ducklake_snapshot_id" if mapping is None else ""
        row_id = of_file("row_id_start", (file.data_file.row_id_start for file in files), pa.int64())
        shown = (None if file.shows_own_snapshots else file.snapshot_id for file in files)
        begins = of_file("begin_snapshot", (file.snapshot_id for file in files), pa.int64())
        values += [
            of_file("file_id", (file.data_file.data_file_id for file in files), pa.int64()),
            "r.file_row_number",
            f"coalesce({of_row_id}{row_id} + r.file_row_number)",
            f"coalesce({of_file('snapshot_id', shown, pa.int64())}{own}, {begins})",
        ]
    if wanted.numbers is not None:
        values.append(of_file("file_name", (file.path for file in files), pa.string()))
        numbers = wanted.numbers
        values.append(of_file("file_number", (numbers[file.data_file.data_file_id] for file in files), pa.uint64()))
    selected = ", ".join(f"{value} AS {n}" for value, n in zip(values, _quoted(wanted), strict=True))
    paths = ", ".join(quote_text(places[file.path]) for file in files)
    options = _BY_NAME if mapping is not None else _by_id(columns, renamed)
    # given a schema, the reader looks into no footer, and joins would be put in an order for empty tables
    config = f", explicit_cardinality = {sum(file.data_file.record_count for file in files)}"
    if encryption is not None:
        config += f", encryption_config = {encryption}"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    per_file = f", {quote_identifier(name)} AS f" if lists else ""
    sql = f"SELECT {selected} FROM read_parquet([{paths}], {options}{config}) AS r{per_file}{where}"
    return DuckDbQuery(sql, {name: pa.table(lists)} if lists else {}, places)


def _compared_as(value: str, *, kept: bool) -> str:
    """The value, compared in the column's type where its files may hold another.

    DuckDB's reader casts the constant of a comparison to the file's type, in which 1.5 is the integer 2.
    """
    return value if kept else f"CASE WHEN r.file_row_number >= 0 THEN {value} END"


def _number(files: Sequence[ScanFile]) -> str | None:
    """The number of a row's file in the list, from 0; None where a column of a file hides it."""
    if len(files) == 1:
        return "0"
    if files[0].data_file.mapping is not None:
        schemas = file_schemas([file.path for file in files], _storage)
        if any(name.casefold() == _INDEX for schema in schemas.values() for name in schema.names):
            return None
    return f"r.{_INDEX}::BIGINT"


def _bits(files: Sequence[ScanFile], listed: Sequence[Positions]) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Return the deleted positions as words of 64 bits, one file after the other, and the first word of each file."""
    packed = [pack(positions) for positions in listed]
    sizes = [
        max(len(words), (file.data_file.record_count + 63) >> 6) for file, words in zip(files, packed, strict=True)
    ]
    if max(sizes) * len(sizes) <= _EVEN_WORDS:
        sizes = [max(sizes)] * len(sizes)
    words = np.zeros(sum(sizes), np.int64)
    starts = [0, *accumulate(sizes)][:-1]
    for start, own in zip(starts, packed, strict=True):
        words[start : start + len(own)] = own
    return words, starts


def _inlined(name: str, columns: Sequence[Column], inlined: InlinedRows, first: int, wanted: Wanted) -> DuckDbQuery:
    rows = inlined.rows
    held = {f"c{i}": rows.column(column.name) for i, column in enumerate(columns)}
    held |= {"row_id": rows.column(ROW_ID), "snapshot_id": rows.column(SNAPSHOT_ID)}
    values = [shown_sql(f"c{i}", column.data_type, held[f"c{i}"]) for i, column in enumerate(columns)]
    own: list[str] = []
    if wanted.virtual:
        values += ["CAST(NULL AS BIGINT)", "CAST(NULL AS BIGINT)"]
        own += ["row_id", "snapshot_id"]
    if wanted.numbers is not None:
        held |= {"file_name": rows.column(FILE_NAME), "file_number": inlined.places(first)}
        own += ["file_name", "file_number"]
    values += [shown_sql(column, None, held[column]) for column in own]
    selected = ", ".join(f"{value} AS {n}" for value, n in zip(values, _quoted(wanted), strict=True))
    return DuckDbQuery(f"SELECT {selected} FROM {quote_identifier(name)}", {name: with_shown(pa.table(held))}, {})


def _quoted(wanted: Wanted) -> list[str]:
    names = [*wanted.names, *(VIRTUAL_COLUMNS if wanted.virtual else ())]
    return [quote_identifier(n) for n in (*names, *((FILE_NAME, FILE_INDEX) if wanted.numbers is not None else ()))]


def _by_id(columns: Sequence[Column], renamed: Mapping[int, NameMapping]) -> str:
    """Write options of a read_parquet that finds columns by field id, names them c0, c1, … and fills missing ones.

    Parts of nested columns it finds by name: those in `renamed` by the names that the file has.

    `filename` and `file_row_number` come from the reader; asked for by option, they clash with columns of files.
    """

    def stored_sql(column: Column) -> str:
        entry = renamed.get(column.column_id)
        return (column.data_type if entry is None else stored_type(column, entry)).sql()

    fields = [
        f"{column.column_id}: {{'name': 'c{index}', 'type': {quote_text(stored_sql(column))}, "
        f"'default_value': {quote_text(column.initial_default)}}}"
        for index, column in enumerate(columns)
    ]
    for field, name in ((ROW_ID_FIELD, "ducklake_row_id"), (SNAPSHOT_ID_FIELD, "ducklake_snapshot_id")):
        fields.append(f"{field}: {{'name': '{name}', 'type': 'BIGINT', 'default_value': NULL}}")
    return f"schema = MAP {{{', '.join(fields)}}}"

"""The rows of a table at a snapshot -> Parquet files in a folder that a table of another format names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from ducklake_lab.catalog.backends import new_uuid
from ducklake_lab.engine.in_process import reader
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.file_paths import is_local
from ducklake_lab.files.options import WriteOptions
from ducklake_lab.files.writer import Writer
from ducklake_lab.foreign.links import link_or_copy
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.footers import field_id, file_schemas
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.storage import Storage

#: Bytes and number of files of the lake whose rows are written to one file.
_WRITTEN_AT_ONCE, _FILES_AT_ONCE = 64_000_000, 1000
_INFINITE = ("date", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A data file of an export.

    Attributes:
        name: relative to the folder of the export.
        size: bytes.
        is_linked: it is another name of a file of the lake.
    """

    name: str
    records: int
    size: int
    is_linked: bool


@dataclass(frozen=True, slots=True)
class Exported:
    """An export that was made.

    Attributes:
        location: what readers are given: the folder of a Delta table, the metadata file of an Iceberg table.
        snapshot_id: the snapshot of the lake whose rows it has.
        linked, written: its data files that are second names of the lake's, and those that were written for it.
    """

    format: str
    location: str
    snapshot_id: int
    rows: int
    linked: int
    written: int


@dataclass(frozen=True, slots=True)
class FormatRules:
    """Demands of a format on data files.

    Attributes:
        title: its name, such as `an Iceberg table`.
        types: types of a lake that it has, beside decimals and nested ones.
        by_id: readers find columns by their field ids, rather than by their names.
    """

    title: str
    types: frozenset[str]
    by_id: bool


def check_target(path: str) -> Path:
    """Return the folder of an export.

    Raises:
        UnsupportedFeatureError: it is not on this machine's disks.
    """
    if not is_local(path):
        raise UnsupportedFeatureError(f"Exporting to {path} is not supported: it is not on this machine's disks.")
    return Path(path.removeprefix("file://")).expanduser().absolute()


def check_columns(columns: Sequence[Column], name: str, rules: FormatRules) -> None:
    """Raises UnsupportedFeatureError for the first column, or part of one, whose type a format lacks."""
    for column in columns:
        for part in column.walk():
            kind = part.data_type
            if kind.name not in rules.types and kind.decimal is None and not kind.is_nested:
                raise UnsupportedFeatureError(
                    f"Exporting {name} is not supported: {rules.title} has no type for {column.name} of type "
                    f"{column.data_type.sql()}; cast it to another type in a table of its own."
                )


def check_values(plan: ScanPlan, name: str, rules: FormatRules) -> None:
    """Raises UnsupportedFeatureError where rows have values that a format lacks: infinite times, and 24:00:00."""
    conditions = [
        (column, condition)
        for column in plan.columns
        if (condition := _unknown(quote_identifier(column.name), column.data_type)) is not None
    ]
    if not conditions:
        return
    asked = ", ".join(f"coalesce(bool_or({condition}), false) AS c{i}" for i, (_, condition) in enumerate(conditions))
    answers = Scan(plan).query(f"SELECT {asked} FROM rows").arrow()
    for (column, _), answer in zip(conditions, answers.columns, strict=True):
        if answer[0].as_py():
            raise UnsupportedFeatureError(
                f"Exporting {name} is not supported: {column.name} has an infinite time or 24:00:00, which {rules.title} lacks."
            )


def _unknown(value: str, kind: DataType, depth: int = 0) -> str | None:
    """Return the SQL of whether a value, or a part of it, is unknown to other formats; None where none can be."""
    if kind.name in _INFINITE:
        return f"isinf({value})"
    if kind.name == "time":
        return f"{value} > TIME '23:59:59.999999'"
    each = f"x{depth}"
    if kind.name == "struct":
        parts = [
            part
            for name, child in kind.children
            if (part := _unknown(f"({value}).{quote_identifier(name)}", child, depth + 1)) is not None
        ]
        return f"({' OR '.join(f'coalesce({part}, false)' for part in parts)})" if parts else None
    lists = {"list": (value,), "map": (f"map_keys({value})", f"map_values({value})")}.get(kind.name, ())
    parts = [
        f"coalesce(len(list_filter({items}, lambda {each}: coalesce({part}, false))) > 0, false)"
        for items, (_, child) in zip(lists, kind.children, strict=False)
        if (part := _unknown(each, child, depth + 1)) is not None
    ]
    return f"({' OR '.join(parts)})" if parts else None


def put_files(plan: ScanPlan, folder: Path, rules: FormatRules, made: list[str]) -> Iterator[ExportedFile]:
    """Link the files of a plan into a folder, or write their rows there.

    Files are linked where the format reads the same rows from them. Rows of others, and inlined ones, are written.

    Args:
        made: gets the path of each file as soon as it may be there.
    """
    storage = Storage()
    linkable = _linkable(plan, rules, storage)
    rest: list[ScanFile] = []
    for file in plan.files:
        data_file = file.data_file
        if file.path not in linkable:
            rest.append(file)
            continue
        name, target = _new_file(folder, made)
        is_linked = link_or_copy(file.path.removeprefix("file://"), target)
        yield ExportedFile(name, data_file.record_count, data_file.file_size_bytes, is_linked)
    parts = list(_parts(rest)) or [()]
    for i, files in enumerate(parts):
        size = sum(file.data_file.file_size_bytes for file in files)
        inlined = plan.inlined if i == 0 else None
        rows = reader.read(replace(plan, files=files, inlined=inlined, files_total=len(files), bytes_total=size))
        if rows.num_rows == 0:
            continue
        name, target = _new_file(folder, made)
        with Writer(plan.table, WriteOptions()) as writer:
            written = writer.write(rows, target, storage)
        yield ExportedFile(name, written.record_count, written.file_size_bytes, is_linked=False)


def _new_file(folder: Path, made: list[str]) -> tuple[str, str]:
    """Return the name and the path of a new file, and note it."""
    name = f"ducklake-{new_uuid()}.parquet"
    made.append(str(folder / name))
    return name, made[-1]


def _parts(files: Sequence[ScanFile]) -> Iterator[tuple[ScanFile, ...]]:
    """Yield files in groups that become one file each, as they are small; a large one is alone."""
    part: list[ScanFile] = []
    size = 0
    for file in files:
        size += file.data_file.file_size_bytes
        if part and (size > _WRITTEN_AT_ONCE or len(part) == _FILES_AT_ONCE):
            yield tuple(part)
            part, size = [], file.data_file.file_size_bytes
        part.append(file)
    if part:
        yield tuple(part)


def _is_changed(file: ScanFile) -> bool:
    """Return whether a file's rows are not those of the table."""
    return file.has_deletes or file.is_bounded


def _linkable(plan: ScanPlan, rules: FormatRules, storage: Storage) -> set[str]:
    """Return the paths of files whose columns a reader of the format finds as the lake does."""
    asked = [
        file.path
        for file in plan.files
        if is_local(file.path)
        and file.data_file.mapping is None
        and file.data_file.encryption_key is None
        and not _is_changed(file)
    ]
    schemas = file_schemas(asked, storage)
    return {path for path, schema in schemas.items() if _suits(plan.columns, list(schema), rules.by_id, is_top=True)}


def _suits(columns: Sequence[Column], fields: Sequence[pa.Field], by_id: bool, *, is_top: bool) -> bool:
    ids = {field_id(field): field for field in fields}
    names = {field.name.casefold() for field in fields}
    for column in columns:
        field = ids.get(column.column_id)
        if field is None:
            # a reader gives NULL for a column that is not there
            if column.initial_default is not None or not (by_id or (is_top and column.name.casefold() not in names)):
                return False
        elif not (by_id or field.name == column.name) or not _suits_type(column, field.type, by_id):
            return False
    return True


def _suits_type(column: Column, kind: pa.DataType, by_id: bool) -> bool:
    if column.type == "struct":
        return pa.types.is_struct(kind) and _suits(column.children, list(kind), by_id, is_top=False)
    if column.type == "list":
        return pa.types.is_list(kind) and _suits_part(column.children[0], kind.value_field, by_id)
    if column.type == "map":
        key, value = column.children
        return (
            pa.types.is_map(kind)
            and _suits_part(key, kind.key_field, by_id)
            and _suits_part(value, kind.item_field, by_id)
        )
    if column.type == "uuid":
        return isinstance(kind, pa.UuidType)
    return bool(kind == column.data_type.arrow())


def _suits_part(column: Column, field: pa.Field, by_id: bool) -> bool:
    """Return whether the elements of a list, or keys or values of a map, are found and of the column's type."""
    return (not by_id or field_id(field) == column.column_id) and _suits_type(column, field.type, by_id)


def make(folder: Path, data: Path, work: Callable[[list[str]], Exported]) -> Exported:
    """Make an export; what it wrote, and the folders that it made, go where it fails.

    Args:
        folder: of the export.
        data: the folder in it for data files.
        work: writes the export; it adds each file that it makes to the list.

    Raises:
        UsageError: a file cannot be written.
    """
    made: list[str] = []
    new = [path for path in (data, *data.parents) if not path.exists()]
    try:
        data.mkdir(parents=True, exist_ok=True)
        return work(made)
    except BaseException as error:
        Storage().discard(made)
        for path in (*(child for child in (folder / "metadata", folder / "_delta_log")), *new):
            if path in new or folder in new:
                _remove_empty(path)
        if isinstance(error, OSError):
            raise UsageError(f'"{folder}" cannot be written: {error.strerror or error}.') from None
        raise


def _remove_empty(path: Path) -> None:
    if path.is_dir() and not os.listdir(path):
        path.rmdir()

"""A snapshot of an Iceberg table, by the package pyiceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import texts
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.duckdb.wording import worded_of_file
from ducklake_lab.errors import DataFileError, UnsupportedFeatureError, UsageError
from ducklake_lab.foreign.library import local_path, module, worded
from ducklake_lab.foreign.model import ForeignColumn, ForeignFile, ForeignTable
from ducklake_lab.model import deletion_vectors
from ducklake_lab.model.positions import Positions, ascending
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.footers import field_id, file_schemas
from ducklake_lab.storage import Storage

#: Types of Iceberg without parts -> types of a lake.
TYPES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "timestamp_ns": "timestamp_ns",
    "string": "varchar",
    "uuid": "uuid",
    "binary": "blob",
}
_NUMBER = re.compile(r"(?:.*/)?v?(\d+)(?:-[^/]*)?\.metadata\.json")


def read(source: object, snapshot_id: int | None) -> ForeignTable:
    """Read the metadata of an Iceberg table; no file of rows is opened, but position deletes.

    Args:
        source: a metadata file, the table's folder, or a table that a catalog of pyiceberg has loaded.
        snapshot_id: None for the current snapshot.

    Raises:
        UnsupportedFeatureError: the package is missing, or the table has something that a lake cannot take over.
        UsageError: there is no such table or snapshot.
    """
    tables = module("iceberg", "pyiceberg.table")
    if isinstance(source, tables.Table):
        table, title = source, f"the Iceberg table {'.'.join(map(str, source.name()))}"
    else:
        title = f"the Iceberg table {source}"
        table = _opened(str(source), tables, title)
    if snapshot_id is not None and table.metadata.snapshot_by_id(snapshot_id) is None:
        raise UsageError(f"There is no snapshot {snapshot_id} of {title}; it may have expired.")
    snapshot = table.metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else table.current_snapshot()
    with worded(lambda said: DataFileError(f"The metadata of {title} cannot be read: {said}.")):
        return _read(table, snapshot, title)


def _opened(source: str, tables: Any, title: str) -> Any:
    path = Path(local_path(source, title)).expanduser().absolute()
    if path.is_dir():
        path = newest_metadata(path, title)
    if not path.is_file():
        raise UsageError(f"There is no file {path}; name the table's newest metadata file, or its folder.")
    with worded(lambda said: UsageError(f"{path} is no metadata of an Iceberg table that can be read: {said}.")):
        return tables.StaticTable.from_metadata(str(path))


def newest_metadata(folder: Path, title: str) -> Path:
    """Return the newest metadata file in a table's folder.

    Raises:
        UsageError: there is none, or nothing says which of several with one number it is.
    """
    inner = folder / "metadata"
    try:
        hint = (inner / "version-hint.text").read_text().strip()
    except (OSError, UnicodeDecodeError):
        hint = ""
    if hint.isdigit() and (inner / f"v{hint}.metadata.json").is_file():
        return inner / f"v{hint}.metadata.json"
    numbered = [
        (int(match[1]), path) for path in inner.glob("*.metadata.json") if (match := _NUMBER.fullmatch(str(path)))
    ]
    newest = [path for number, path in numbered if number == max(number for number, _ in numbered)]
    if len(newest) != 1:
        raise UsageError(
            f"{len(newest)} files are the newest metadata of {title}; name the metadata file."
            if newest
            else f"{folder} is no folder of an Iceberg table: it has no metadata file."
        )
    return newest[0]


def _read(table: Any, snapshot: Any, title: str) -> ForeignTable:
    metadata = table.metadata
    schema = metadata.schema()
    if snapshot is not None and snapshot.schema_id is not None and snapshot is not table.current_snapshot():
        schema = metadata.schema_by_id(snapshot.schema_id)
    names: dict[int, list[str]] = {}
    mapping = table.name_mapping()
    if mapping is not None:
        _add_names(mapping.root, names)
    columns = tuple(_column(field, names, title, "") for field in schema.fields)
    if snapshot is None:
        return ForeignTable(title, columns, ())
    _check_deletes(table, snapshot, title)
    tasks = list(table.scan(snapshot_id=snapshot.snapshot_id).plan_files())
    deleted: dict[str, dict[str, Positions]] = {}
    places: dict[str, str] = {}
    for task in tasks:
        file = task.file
        if str(getattr(file.file_format, "value", file.file_format)).upper() != "PARQUET":
            raise UnsupportedFeatureError(f"Adding {title} is not supported: {file.file_path} is no Parquet file.")
        places[file.file_path] = local_path(file.file_path, title)
        for delete in task.delete_files:
            if delete.file_path not in deleted:
                deleted[delete.file_path] = _positions(delete.file_path, title)
    constants = _constants(metadata, schema, tasks, columns, places, title)
    files = []
    for task in tasks:
        file = task.file
        parts = [
            part for delete in task.delete_files if (part := deleted[delete.file_path].get(file.file_path)) is not None
        ]
        gone = ascending(np.concatenate(parts)) if parts else None
        values = constants.get(file.file_path, {})
        files.append(ForeignFile(places[file.file_path], file.file_size_in_bytes, file.record_count, values, gone))
    return ForeignTable(title, columns, tuple(files))


def _add_names(fields: Sequence[Any], names: dict[int, list[str]]) -> None:
    for field in fields:
        if field.field_id is not None:
            names.setdefault(field.field_id, []).extend(field.names)
        _add_names(field.fields, names)


def _column(field: Any, names: Mapping[int, Sequence[str]], title: str, prefix: str) -> ForeignColumn:
    whole = f"{prefix}{field.name}"
    if getattr(field, "initial_default", None) is not None:
        raise UnsupportedFeatureError(
            f"Adding {title} is not supported: its column {whole} has a default for earlier rows."
        )
    kind, children = _type(field.field_type, names, title, whole)
    keys = (field.field_id, *names.get(field.field_id, ()))
    return ForeignColumn(field.name, kind, keys, not field.required, children)


def _type(
    kind: Any, names: Mapping[int, Sequence[str]], title: str, whole: str
) -> tuple[DataType, tuple[ForeignColumn, ...]]:
    """Return the type of a lake for one of Iceberg, and its parts."""
    types = module("iceberg", "pyiceberg.types")
    if isinstance(kind, types.StructType):
        parts = tuple(_column(field, names, title, f"{whole}.") for field in kind.fields)
        return DataType("struct", tuple((part.name, part.type) for part in parts)), parts
    if isinstance(kind, types.ListType):
        element, below = _type(kind.element_type, names, title, f"{whole}.element")
        return DataType("list", (("element", element),)), (ForeignColumn("element", element, children=below),)
    if isinstance(kind, types.MapType):
        key, below_key = _type(kind.key_type, names, title, f"{whole}.key")
        value, below_value = _type(kind.value_type, names, title, f"{whole}.value")
        parts = (ForeignColumn("key", key, children=below_key), ForeignColumn("value", value, children=below_value))
        return DataType("map", (("key", key), ("value", value))), parts
    if isinstance(kind, types.DecimalType):
        return DataType(f"decimal({kind.precision},{kind.scale})"), ()
    if isinstance(kind, types.FixedType):
        return DataType("blob"), ()
    if str(kind) in TYPES:
        return DataType(TYPES[str(kind)]), ()
    raise UnsupportedFeatureError(
        f"Adding {title} is not supported: its column {whole} has the type {kind}, which a lake's table cannot take over."
    )


def _check_deletes(table: Any, snapshot: Any, title: str) -> None:
    """Raises UnsupportedFeatureError where rows are deleted by their values."""
    manifests = module("iceberg", "pyiceberg.manifest")
    for manifest in snapshot.manifests(table.io):
        if manifest.content != manifests.ManifestContent.DELETES:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            if entry.data_file.content == manifests.DataFileContent.EQUALITY_DELETES:
                raise UnsupportedFeatureError(
                    f"Adding {title} is not supported: it has equality deletes. Rewrite its data files, which applies them."
                )


def _positions(location: str, title: str) -> dict[str, Positions]:
    """Return the positions in a file of deletes, by the data file's name in it."""
    path = local_path(location, title)
    if path.endswith(".puffin"):
        try:
            return deletion_vectors.by_data_file(Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise DataFileError(f"The deletion vectors {path} of {title} cannot be read: {error}.") from None
    if not path.endswith(".parquet"):
        raise UnsupportedFeatureError(f"Adding {title} is not supported: {path} is no Parquet or Puffin file.")
    with connect() as connection:
        try:
            sql = "SELECT file_path, list(pos) AS pos FROM read_parquet([$1], hive_partitioning = false) GROUP BY file_path"
            rows = arrow(connection, sql, [path])
        except duckdb.Error as error:
            raise DataFileError(worded_of_file(error, path, "delete file")) from None
    listed = zip(rows.column(0).to_pylist(), rows.column(1), strict=True)
    return {name: ascending(positions.values.to_numpy().astype(np.int64)) for name, positions in listed}


def _constants(
    metadata: Any,
    schema: Any,
    tasks: Sequence[Any],
    columns: Sequence[ForeignColumn],
    places: Mapping[str, str],
    title: str,
) -> dict[str, dict[int, str | None]]:
    """Return the partition values of columns that a file lacks, by the file's name and the column's number."""
    transforms = module("iceberg", "pyiceberg.transforms")
    numbers = {field.field_id: i for i, field in enumerate(schema.fields)}
    identity = {
        spec_id: [
            (place, numbers[field.source_id], field.source_id)
            for place, field in enumerate(spec.fields)
            if isinstance(field.transform, transforms.IdentityTransform) and field.source_id in numbers
        ]
        for spec_id, spec in metadata.specs().items()
    }
    asked = [task.file for task in tasks if identity[task.file.spec_id]]
    schemas = file_schemas((places[file.file_path] for file in asked), Storage())
    values: dict[str, dict[int, str | None]] = {}
    for file in asked:
        own = schemas[places[file.file_path]]
        ids = {field_id(entry) for entry in own} - {None}
        for place, number, source_id in identity[file.spec_id]:
            has_column = source_id in ids if ids else not set(own.names).isdisjoint(map(str, columns[number].keys))
            if not has_column:
                value = _text(file.partition[place], columns[number], title)
                values.setdefault(file.file_path, {})[number] = value
    return values


def _text(value: Any, column: ForeignColumn, title: str) -> str | None:
    """Return a partition value as DuckDB's text; times and dates are counts, as the format stores them."""
    kind = column.type
    if value is None:
        return None
    if kind.name == "blob":
        raise UnsupportedFeatureError(
            f"Adding {title} is not supported: it is partitioned by {column.name}, whose values are binary."
        )
    if kind.name == "uuid":
        return str(value)
    try:
        made = pa.array([value], kind.arrow())
    except (pa.ArrowException, TypeError, ValueError):
        raise DataFileError(f"A partition value of {column.name} in {title} is no {kind.sql()}.") from None
    return texts(pa.table({"v": made}), {"v": kind})[0][0]

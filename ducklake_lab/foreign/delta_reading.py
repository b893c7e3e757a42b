"""A version of a Delta table, by the package deltalake."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ducklake_lab.duckdb.casting import texts
from ducklake_lab.errors import DataFileError, UnsupportedFeatureError, UsageError
from ducklake_lab.foreign.library import local_path, module, worded
from ducklake_lab.foreign.model import ForeignColumn, ForeignFile, ForeignTable
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.types import DataType

#: Types of Delta without parts -> types of a lake.
TYPES = {
    "boolean": "boolean",
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "string": "varchar",
    "binary": "blob",
}
#: What a table may ask of readers, as far as the package reads it too.
_FEATURES = frozenset(
    "columnMapping deletionVectors timestampNtz v2Checkpoint vacuumProtocolCheck "
    "variantType variantType-preview variantShredding-preview".split()
)
_PHYSICAL, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"


def read(path: str, version: int | None) -> ForeignTable:
    """Read the log of a Delta table; no file of rows is opened, but those of deletion vectors.

    Args:
        version: of the table; None for the newest.

    Raises:
        UnsupportedFeatureError: the package is missing, or the table has something that a lake cannot take over.
        UsageError: there is no such table or version.
    """
    title = f"the Delta table {path}"
    root = str(Path(local_path(path, title)).expanduser().absolute())
    package = module("delta", "deltalake")
    at = "" if version is None else f" at version {version}"
    with worded(lambda said: UsageError(f"{path} is no Delta table that can be read{at}: {said}.")):
        table = package.DeltaTable(Path(root).as_uri(), version=version)
        schema = json.loads(table.schema().to_json())
        protocol = table.protocol()
        mode = (table.metadata().configuration or {}).get("delta.columnMapping.mode") or "none"
    unknown = sorted(set(protocol.reader_features or ()) - _FEATURES)
    if unknown:
        raise UnsupportedFeatureError(f"Adding {title} is not supported: it uses {', '.join(unknown)}.")
    columns = tuple(_column(entry, mode, title, "") for entry in schema["fields"])
    with worded(lambda said: DataFileError(f"The log of {title} cannot be read: {said}.")):
        added = pa.table(table.get_add_actions())
        vectors = _vectors(table, title) if "deletionVectors" in (protocol.reader_features or ()) else {}
    files = _files(added, columns, root, vectors, title)
    unmatched = vectors.keys() - {file.path for file in files}
    if unmatched:
        raise DataFileError(f"A deletion vector of {title} is for {min(unmatched)}, which the table does not name.")
    return ForeignTable(title, columns, files)


def _column(entry: Mapping[str, Any], mode: str, title: str, prefix: str) -> ForeignColumn:
    metadata, name = entry.get("metadata") or {}, entry["name"]
    keys: tuple[int | str, ...] = (name,)
    if mode == "name":
        keys = (metadata.get(_PHYSICAL, name),)
    elif mode == "id":
        keys = (int(metadata[_ID]),)
    elif mode != "none":
        raise UnsupportedFeatureError(f"Adding {title} is not supported: it maps columns by {mode}.")
    whole = f"{prefix}{name}"
    kind, children = _type(entry["type"], mode, title, whole)
    return ForeignColumn(name, kind, keys, bool(entry.get("nullable", True)), children)


def _type(kind: Any, mode: str, title: str, whole: str) -> tuple[DataType, tuple[ForeignColumn, ...]]:
    """Return the type of a lake for one of Delta, and its parts."""
    if isinstance(kind, str):
        if kind in TYPES:
            return DataType(TYPES[kind]), ()
        if kind == "decimal" or kind.startswith("decimal("):
            decimal = DataType(kind.replace(" ", "") if "(" in kind else "decimal(10,0)")
            if decimal.decimal is not None:
                return decimal, ()
        raise UnsupportedFeatureError(
            f"Adding {title} is not supported: its column {whole} has the type {kind}, which a lake's table cannot take over."
        )
    if kind["type"] == "struct":
        parts = tuple(_column(entry, mode, title, f"{whole}.") for entry in kind["fields"])
        return DataType("struct", tuple((part.name, part.type) for part in parts)), parts
    names = {"array": {"element": "elementType"}, "map": {"key": "keyType", "value": "valueType"}}[kind["type"]]
    parts = tuple(_part(name, kind[key], mode, title, whole) for name, key in names.items())
    name = "list" if kind["type"] == "array" else "map"
    return DataType(name, tuple((part.name, part.type) for part in parts)), parts


def _part(name: str, kind: Any, mode: str, title: str, whole: str) -> ForeignColumn:
    data_type, children = _type(kind, mode, title, f"{whole}.{name}")
    return ForeignColumn(name, data_type, (name,), True, children)


def _vectors(table: Any, title: str) -> dict[str, Positions]:
    """Return the deleted positions of files, by path."""
    deleted: dict[str, Positions] = {}
    for batch in table.deletion_vectors():
        rows = pa.table(batch)
        for path, kept in zip(rows.column(0).to_pylist(), rows.column(1), strict=True):
            values = kept.values.to_numpy(zero_copy_only=False)
            deleted[local_path(path, title, quoted=path.startswith("file:"))] = np.flatnonzero(~values.astype(np.bool_))
    return deleted


def _files(
    added: pa.Table, columns: Sequence[ForeignColumn], root: str, vectors: Mapping[str, Positions], title: str
) -> tuple[ForeignFile, ...]:
    values = _partition_texts(added, columns, title)
    counts = added.column("num_records").to_pylist() if "num_records" in added.column_names else [None] * len(added)
    files = []
    for i, (named, size) in enumerate(zip(*(added.column(n).to_pylist() for n in ("path", "size_bytes")), strict=True)):
        path = local_path(named, title, quoted=True)
        whole = path if path.startswith("/") else f"{root}/{path}"
        constants = {number: column[i] for number, column in values.items()}
        files.append(ForeignFile(whole, size, counts[i], constants, vectors.get(whole)))
    return tuple(files)


def _partition_texts(added: pa.Table, columns: Sequence[ForeignColumn], title: str) -> dict[int, Sequence[str | None]]:
    """Return the texts of partition values of all files, by the column's number."""
    if "partition" not in added.column_names:
        return {}
    numbers = {column.name: i for i, column in enumerate(columns)}
    value_texts: dict[int, Sequence[str | None]] = {}
    column = added.column("partition").combine_chunks()
    for field in column.type:
        number = numbers[field.name]
        kind = columns[number].type
        if kind.name == "blob":
            raise UnsupportedFeatureError(
                f"Adding {title} is not supported: it is partitioned by {field.name}, whose values are binary."
            )
        values = column.field(field.name).cast(kind.arrow())
        value_texts[number] = [text for (text,) in texts(pa.table({"v": values}), {"v": kind})]
    return value_texts

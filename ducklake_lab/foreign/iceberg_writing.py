"""Metadata of an Iceberg table over exported files, in the layout of a table in a folder (format version 2)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError
from ducklake_lab.foreign.exporting import (
    Exported,
    ExportedFile,
    FormatRules,
    check_columns,
    check_target,
    check_values,
    make,
    put_files,
)
from ducklake_lab.foreign.library import module, worded
from ducklake_lab.model.entries import Column
from ducklake_lab.scan.plan import ScanPlan

#: Types of a lake -> names of Iceberg's types.
_TYPES = {
    "boolean": "BooleanType",
    "int32": "IntegerType",
    "int64": "LongType",
    "float32": "FloatType",
    "float64": "DoubleType",
    "date": "DateType",
    "time": "TimeType",
    "timestamp": "TimestampType",
    "timestamptz": "TimestamptzType",
    "varchar": "StringType",
    "uuid": "UUIDType",
    "blob": "BinaryType",
}
RULES = FormatRules("an Iceberg table", frozenset(_TYPES), by_id=True)


def export(plan: ScanPlan, name: str, path: str, snapshot_id: int, *, overwrite: bool) -> Exported:
    """Export the rows of a plan as an Iceberg table; its metadata comes last.

    Args:
        name: of the lake's table, for errors.
        path: the folder of the table.
        snapshot_id: of the lake.
        overwrite: replace the table in the folder, if it was exported there; its files stay.

    Raises:
        UnsupportedFeatureError: the package is missing, or Iceberg lacks a type or a value. Nothing was written.
        EntryExistsError: there is something in the folder already.
        UsageError: a file cannot be written.
    """
    folder = check_target(path)
    if "?" in str(folder) or "#" in str(folder):
        # the package takes what follows for a part of a URL, and would write elsewhere
        raise UnsupportedFeatureError(f'Exporting to "{folder}" is not supported: names of its folders have ? or #.')
    module("iceberg", "pyiceberg.table")
    check_columns(plan.columns, name, RULES)
    schema = _schema(plan.columns, name)
    number = _next_number(folder, overwrite=overwrite)
    check_values(plan, name, RULES)

    def work(made: list[str]) -> Exported:
        files = list(put_files(plan, folder / "data", RULES, made))
        location = _write(folder, schema, files, number, snapshot_id, made)
        linked = sum(file.is_linked for file in files)
        rows = sum(file.records for file in files)
        return Exported("iceberg", location, snapshot_id, rows, linked, len(files) - linked)

    return make(folder, folder / "data", work)


def _next_number(folder: Path, *, overwrite: bool) -> int:
    """Return the number of the metadata file to write."""
    if not folder.exists() or (folder.is_dir() and not os.listdir(folder)):
        return 1
    if not overwrite:
        raise EntryExistsError(f"There is something in {folder} already; export elsewhere, or with overwrite=True.")
    metadata = folder / "metadata"
    numbers = [int(path.name[1:].partition(".")[0]) for path in metadata.glob("v*.metadata.json") if _is_numbered(path)]
    if not (metadata / "version-hint.text").is_file() or not numbers:
        raise EntryExistsError(
            f"{folder} has no Iceberg table that is found by its folder, so it is not overwritten; export elsewhere."
        )
    return max(numbers) + 1


def _is_numbered(path: Path) -> bool:
    return path.name[1:].partition(".")[0].isdigit()


def _schema(columns: tuple[Column, ...], name: str) -> Any:
    """Return the schema; its field ids are the column ids, which the lake's files have."""
    schemas = module("iceberg", "pyiceberg.schema")
    refused = "Exporting {} is not supported: Iceberg refuses its columns ({}); rename them."
    with worded(lambda said: UnsupportedFeatureError(refused.format(name, said))):
        schema = schemas.Schema(*(_field(column) for column in columns), schema_id=0)
        schemas.index_by_name(schema)
        return schema


def _field(column: Column) -> Any:
    types = module("iceberg", "pyiceberg.types")
    return types.NestedField(column.column_id, column.name, _type(column), required=False)


def _type(column: Column) -> Any:
    types = module("iceberg", "pyiceberg.types")
    if column.type == "struct":
        return types.StructType(*(_field(child) for child in column.children))
    if column.type == "list":
        (element,) = column.children
        return types.ListType(element.column_id, _type(element), element_required=False)
    if column.type == "map":
        key, value = column.children
        return types.MapType(key.column_id, _type(key), value.column_id, _type(value), value_required=False)
    if (size := column.data_type.decimal) is not None:
        return types.DecimalType(*size)
    return getattr(types, _TYPES[column.type])()


def _write(
    folder: Path, schema: Any, files: list[ExportedFile], number: int, lake_snapshot: int, made: list[str]
) -> str:
    """Write manifest, manifest list, metadata and the hint, in this order; return the metadata file's path."""
    manifests, pyarrow_io = module("iceberg", "pyiceberg.manifest"), module("iceberg", "pyiceberg.io.pyarrow")
    specs, records = module("iceberg", "pyiceberg.partitioning"), module("iceberg", "pyiceberg.typedef")
    io, metadata = pyarrow_io.PyArrowFileIO(), folder / "metadata"
    metadata.mkdir(exist_ok=True)
    snapshot_id, now, mark = uuid4().int >> 65, int(time.time() * 1000), uuid4()
    listed = []
    if files:
        path = _new(metadata / f"{mark}-m0.avro", made)
        spec = specs.UNPARTITIONED_PARTITION_SPEC
        with manifests.write_manifest(2, spec, schema, io.new_output(path), snapshot_id, "deflate") as writer:
            for file in files:
                entry = manifests.DataFile.from_args(
                    content=manifests.DataFileContent.DATA,
                    file_path=_uri(folder / "data" / file.name),
                    file_format=manifests.FileFormat.PARQUET,
                    partition=records.Record(),
                    record_count=file.records,
                    file_size_in_bytes=file.size,
                    spec_id=0,
                )
                writer.add(
                    manifests.ManifestEntry.from_args(
                        status=manifests.ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=entry
                    )
                )
        listed.append(writer.to_manifest_file())
    path = _new(metadata / f"snap-{snapshot_id}-1-{mark}.avro", made)
    with manifests.write_manifest_list(2, io.new_output(path), snapshot_id, None, 1, "deflate") as manifest_list:
        manifest_list.add_manifests(listed)
    text = _metadata(folder, schema, files, snapshot_id, path, now, lake_snapshot)
    target = metadata / f"v{number}.metadata.json"
    # another export that takes the number at this time fails, or this one does
    with target.open("x", encoding="utf-8") as sink:
        made.append(str(target))
        sink.write(text)
    hint = metadata / f"{mark}.hint"
    made.append(str(hint))
    hint.write_text(str(number))
    try:
        os.replace(hint, metadata / "version-hint.text")
    except BaseException:
        if not hint.exists():
            made.clear()  # an interrupt came when readers had found it
        raise
    return str(target)


def _metadata(
    folder: Path, schema: Any, files: list[ExportedFile], snapshot_id: int, listed: str, now: int, lake_snapshot: int
) -> str:
    tables, snapshots = module("iceberg", "pyiceberg.table.metadata"), module("iceberg", "pyiceberg.table.snapshots")
    summary = {
        "operation": "append",
        "total-data-files": str(len(files)),
        "total-records": str(sum(file.records for file in files)),
        "ducklake-snapshot-id": str(lake_snapshot),
    }
    snapshot = snapshots.Snapshot(
        **{
            "snapshot-id": snapshot_id,
            "sequence-number": 1,
            "timestamp-ms": now,
            "manifest-list": listed,
            "summary": summary,
            "schema-id": 0,
        }
    )
    made = tables.TableMetadataV2(
        **{
            "location": _uri(folder),
            "table-uuid": uuid4(),
            "last-updated-ms": now,
            "last-column-id": schema.highest_field_id,
            "schemas": [schema],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "properties": {},
            "current-snapshot-id": snapshot_id,
            "snapshots": [snapshot],
            "snapshot-log": [{"snapshot-id": snapshot_id, "timestamp-ms": now}],
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
            "last-sequence-number": 1,
        }
    )
    return str(made.model_dump_json())


def _new(path: Path, made: list[str]) -> str:
    made.append(str(path))
    return _uri(path)


def _uri(path: Path) -> str:
    """Return a location that names the local filesystem; the format does not encode characters."""
    return f"file://{path}"

"""Tables of other formats, made by their own packages, and comparisons with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ducklake_lab import Session


def check_same(found: pa.Table, expected: pa.Table) -> None:
    """Both have the same columns and rows, in any order; all values are compared by DuckDB, NaN and NULL included."""
    assert found.column_names == expected.column_names
    assert found.num_rows == expected.num_rows
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, rows in (("found", found), ("expected", expected)):
            connection.register(f"{name}_rows", rows)
            connection.execute(f"CREATE TABLE {name} AS FROM {name}_rows")
        for one, other in (("found", "expected"), ("expected", "found")):
            differing = connection.execute(f"FROM {one} EXCEPT ALL FROM {other}").fetchall()
            assert not differing, (one, differing[:5])


def lake_rows(session: Session, table: str) -> pa.Table:
    return session.sql(f"FROM {table}").arrow()


def delta_rows(path: Path, version: int | None = None) -> pa.Table:
    """Rows of a Delta table as its package reads them, column mapping and deletion vectors included."""
    from deltalake import DeltaTable

    return pa.table(DeltaTable(path.as_uri(), version=version).scan().read_all())


def log_of(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020}.json"


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_of(path, version).read_text().splitlines()]


def action(path: Path, name: str) -> dict[str, Any]:
    """The newest action of a kind in a log without checkpoints."""
    logs = sorted((path / "_delta_log").glob("*.json"), reverse=True)
    return next(entry[name] for log in logs for entry in map(json.loads, log.read_text().splitlines()) if name in entry)


def commit(path: Path, entries: Sequence[Mapping[str, Any]]) -> int:
    """Append a version to a Delta table's log."""
    version = len(list((path / "_delta_log").glob("*.json")))
    log_of(path, version).write_text("\n".join(json.dumps(entry) for entry in entries))
    return version


def alter_schema(path: Path, fields: Sequence[Mapping[str, Any]], **changes: Any) -> int:
    """Commit another schema of a Delta table, and other changes of its metadata."""
    metadata = {**action(path, "metaData"), **changes}
    metadata["schemaString"] = json.dumps({"type": "struct", "fields": list(fields)})
    return commit(path, [{"metaData": metadata}])


def fields_of(path: Path) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(action(path, "metaData")["schemaString"])["fields"]
    return fields


def field(name: str, kind: Any, number: int, physical: str) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def commit_files(table: Any, files: Sequence[Any], *, deletes: bool = False) -> Path:
    """Write metadata of a next snapshot of an Iceberg table that adds data files, or files of deletes; return its path."""
    from pyiceberg.manifest import (
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )

    class Writer(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES if deletes else ManifestContent.DATA

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes" if deletes else "data"}

    old = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(old.read_text())
    snapshot, number = table.current_snapshot(), metadata["last-sequence-number"] + 1
    snapshot_id = (snapshot.snapshot_id if snapshot is not None else 1) + 1
    folder, io = old.parent, table.io
    output = io.new_output(f"{folder}/manifest-{snapshot_id}.avro")
    with Writer(table.spec(), table.schema(), output, snapshot_id, "null") as writer:
        for file in files:
            writer.add(
                ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file)
            )
    listed = f"{folder}/list-{snapshot_id}.avro"
    parent = snapshot.snapshot_id if snapshot is not None else None
    with write_manifest_list(2, io.new_output(listed), snapshot_id, parent, number, "null") as manifest_list:
        manifest_list.add_manifests(
            [*(snapshot.manifests(io) if snapshot is not None else ()), writer.to_manifest_file()]
        )
    metadata.setdefault("snapshots", []).append(
        {
            "snapshot-id": snapshot_id,
            "sequence-number": number,
            "timestamp-ms": metadata["last-updated-ms"] + 1,
            "manifest-list": listed,
            "summary": {"operation": "overwrite"},
            "schema-id": metadata["current-schema-id"],
        }
    )
    metadata |= {"last-sequence-number": number, "current-snapshot-id": snapshot_id}
    metadata["refs"] = {"main": {"snapshot-id": snapshot_id, "type": "branch"}}
    new = folder / f"9{number:04}-made.metadata.json"
    new.write_text(json.dumps(metadata))
    return new


def iceberg_file(path: Path, rows: int, content: Any, partition: Any, **others: Any) -> Any:
    from pyiceberg.manifest import DataFile, FileFormat

    return DataFile.from_args(
        content=content,
        file_path=str(path),
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=rows,
        file_size_in_bytes=path.stat().st_size,
        spec_id=0,
        **others,
    )

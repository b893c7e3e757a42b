"""The independent implementation: ducklakepy, which reads and writes 1.0 and 1.1 on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from ducklakepy import DuckLakeCatalog
from ducklakepy.schema import Schema
from ducklakepy.types import Column, parse_primitive_type

from ducklake_lab.catalog.uri import parse_uri

#: Kinds of catalogs that it knows.
KINDS = ("sqlite", "postgres")


def open_lake(uri: str, data_path: str | None = None, version: str = "1.1", **options: Any) -> DuckLakeCatalog:
    """A lake as ducklakepy sees it; made if a data path is given."""
    url = parse_uri(uri).url
    if data_path is None:
        engine = sa.create_engine(url)
        with engine.connect() as connection:
            query = sa.text("SELECT value FROM ducklake_metadata WHERE key = 'data_path'")
            stored = connection.execute(query).scalar_one()
        engine.dispose()
    place = url.render_as_string(hide_password=False)
    catalog = DuckLakeCatalog("lake", url=place, data_path=data_path or stored, spec_version=version, **options)
    if data_path is not None:
        catalog.initialize()
    return catalog


def schema_of(columns: str) -> Schema:
    """A schema of `name type` parts, separated by commas outside of parentheses: `i int32, d decimal(9;2)`."""
    parts = [part.split() for part in columns.split(",")]
    return Schema(*(Column(name, parse_primitive_type(kind.replace(";", ","))) for name, kind in parts))


def rows_at(catalog: DuckLakeCatalog, table: str, snapshot: Any) -> list[tuple[Any, ...]]:
    """All rows of a table at a snapshot, in the order of their texts."""
    found = catalog.load_table(table, snapshot=snapshot).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=repr)


def history(catalog: DuckLakeCatalog) -> dict[tuple[int, str], list[tuple[Any, ...]]]:
    """The rows of every table at every snapshot."""
    return {
        (snapshot.snapshot_id, str(table)): rows_at(catalog, table, snapshot)
        for snapshot in catalog.snapshots()
        for namespace in catalog.list_namespaces(snapshot=snapshot)
        for table in catalog.list_tables(namespace, snapshot=snapshot)
    }


def numbers(start: int, stop: int) -> pa.Table:
    """Rows of `i int32, s varchar`."""
    listed = range(start, stop)
    return pa.table({"i": pa.array(listed, pa.int32()), "s": [f"row {i}" for i in listed]})

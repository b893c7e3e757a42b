"""Compares what we read with what the reference reads, and the metadata that both write."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb

import ducklake_lab as dl
from ducklake_lab.catalog import versions

#: Columns whose values cannot be equal, and why.
IGNORED = {
    "schema_uuid": "random",
    "table_uuid": "random",
    "view_uuid": "random",
    "snapshot_time": "the time of the run",
    "schedule_start": "the time of the run",
    "path": "file names are random",
    "file_size_bytes": "the Parquet writers differ",
    "footer_size": "the Parquet writers differ",
    "column_size_bytes": "the Parquet writers differ",
}
#: Options that name the writer or a folder of the test.
IGNORED_OPTIONS = ("created_by", "data_path")


#: In a text of nested values the reference quotes texts, and casts dates, of a struct that is in no list; both read both.
_QUOTED = re.compile(r"(?<=: )(?:CAST\('([^']*)' AS \w+\)|'([^']*)')")

#: Entries that a transaction created: the reference lists those of a schema in the order of their addresses in memory.
_CREATED = re.compile(r'created_(?:table|view|scalar_macro|table_macro):"(?:[^"]|"")*"\."(?:[^"]|"")*"')


def normal(value: Any) -> Any:
    """A value that compares: NaN equals NaN, maps, lists and UUIDs alike from both clients."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict):
        return [[normal(key), normal(item)] for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    return value


def by_row_id(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return sorted((normal(row) for row in rows), key=lambda row: (row[0], row[1] or 0))


def attach(reference: duckdb.DuckDBPyConnection, uri: str, *, data_path: Path | None = None) -> None:
    options = f" (DATA_PATH '{data_path}')" if data_path is not None else ""
    reference.execute(f"ATTACH '{uri}' AS lake{options}; USE lake")


def detach(reference: duckdb.DuckDBPyConnection) -> None:
    """Lets go of the lake, so that a DuckDB catalog file can be opened elsewhere."""
    reference.execute("USE memory; DETACH lake")


def reference_history(reference: duckdb.DuckDBPyConnection, uri: str) -> dict[tuple[int, str], list[list[Any]]]:
    """Every table at every snapshot as the reference reads it: (snapshot, schema.table) -> rows with lineage."""
    found = {}
    with _reading(reference, uri):
        last = _scalar(reference, "SELECT id FROM lake.current_snapshot()")
        for snapshot_id in range(last + 1):
            names = _tables_at(reference, snapshot_id)
            for name in names:
                rows = reference.execute(
                    f"SELECT rowid, snapshot_id, * FROM lake.{name} AT (VERSION => {snapshot_id})"
                ).fetchall()
                found[snapshot_id, name] = by_row_id(rows)
    assert found
    return found


@contextlib.contextmanager
def _reading(reference: duckdb.DuckDBPyConnection, uri: str) -> Iterator[None]:
    """Attaches a lake for queries in one transaction, which takes a quarter of the time of one for each."""
    attach(reference, uri)
    try:
        reference.execute("BEGIN")
        yield
    finally:
        reference.execute("ROLLBACK")
        detach(reference)


def _tables_at(reference: duckdb.DuckDBPyConnection, snapshot_id: int) -> list[str]:
    meta = "__ducklake_metadata_lake"
    visible = "{0}.begin_snapshot <= {1} AND ({0}.end_snapshot IS NULL OR {0}.end_snapshot > {1})"
    rows = reference.execute(
        f"SELECT s.schema_name, t.table_name FROM {meta}.ducklake_table AS t JOIN {meta}.ducklake_schema AS s "
        f"USING (schema_id) WHERE {visible.format('t', snapshot_id)} AND {visible.format('s', snapshot_id)}"
    ).fetchall()
    return sorted(f'"{schema}"."{table}"' for schema, table in rows)


def _scalar(reference: duckdb.DuckDBPyConnection, sql: str) -> Any:
    row = reference.execute(sql).fetchone()
    assert row is not None
    return row[0]


def our_history(session: dl.Session, engine: str) -> dict[tuple[int, str], list[list[Any]]]:
    """Read every table at every snapshot with a session: (snapshot, schema.table) -> rows with lineage."""
    found = {}
    for entry in session.snapshots():
        snapshot_id = entry.info.snapshot_id
        for info in session.tables(at=snapshot_id):
            name = f'"{info.schema}"."{info.table.name}"'
            result = session.sql(
                f"SELECT rowid, snapshot_id, * FROM {name} AT (VERSION => {snapshot_id})",
                engine=engine,  # type: ignore[arg-type]
            )
            found[snapshot_id, name] = by_row_id(result.fetchall())
    return found


def metadata(reference: duckdb.DuckDBPyConnection, uri: str) -> dict[str, list[tuple[Any, ...]]]:
    """All metadata tables of a lake as the reference sees them, without the columns that cannot be equal."""
    found = {}
    with _reading(reference, uri):
        catalog = "__ducklake_metadata_lake"
        for table in _metadata_tables(reference, catalog):
            result = reference.execute(f'FROM {catalog}."{table}"')
            columns = [column[0] for column in result.description]
            kept = [i for i, column in enumerate(columns) if column not in IGNORED]
            rows = [tuple(_unquoted(normal(row[i])) for i in kept) for row in result.fetchall()]
            if table == "ducklake_column":
                # of an altered column of a new table the reference leaves a row that no snapshot sees
                rows = [row for row in rows if row[1] != row[2]]
            if table == "ducklake_snapshot_changes":
                rows = [(row[0], _created_in_order(row[1]), *row[2:]) for row in rows]
            if table == "ducklake_metadata":
                rows = [row for row in rows if row[0] not in IGNORED_OPTIONS]
            found[table] = sorted(rows, key=repr)
    assert found["ducklake_snapshot_changes"]
    return found


def _unquoted(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{'"):
        return _QUOTED.sub(lambda match: match[1] or match[2] or "", value)
    return value


def _created_in_order(changes: str | None) -> str | None:
    if changes is None:
        return None  # lakes before 0.4 did not tell of their first snapshot
    created = iter(sorted(_CREATED.findall(changes)))
    return _CREATED.sub(lambda match: next(created), changes)


def _metadata_tables(reference: duckdb.DuckDBPyConnection, catalog: str) -> list[str]:
    """The names of all tables of a catalog, which DuckDB lists nowhere: it hides that database."""
    names = sorted(versions.tables(versions.DEFAULT).tables)
    listed = reference.execute(f"SELECT table_name FROM {catalog}.ducklake_inlined_data_tables").fetchall()
    names += sorted(name for (name,) in listed)
    ids = reference.execute(f"SELECT DISTINCT table_id FROM {catalog}.ducklake_table ORDER BY 1").fetchall()
    for (table_id,) in ids:
        name = f"ducklake_inlined_delete_{table_id}"
        with contextlib.suppress(duckdb.CatalogException):
            reference.execute(f"FROM {catalog}.{name} LIMIT 0")
            names.append(name)
    return names

"""Rows kept in the catalog (spec: ducklake_inlined_data_tables, advanced_features/data_inlining)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.backends import holds_columns, inlined_type
from ducklake_lab.catalog.below_sqlalchemy import raw_duckdb, run_text
from ducklake_lab.catalog.columns import read_columns
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.catalog.projection import project
from ducklake_lab.catalog.uri import Backend
from ducklake_lab.catalog.versions.version import Version
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.duckdb import variants
from ducklake_lab.duckdb.casting import cast_columns, cast_sql
from ducklake_lab.duckdb.results import arrow
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import FILE_NAME, ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.types import DataType

#: The column of the snapshot that deleted an inlined row.
END_SNAPSHOT = "_ducklake_end_snapshot"


def can_inline(columns: Sequence[Column], backend: Backend, version: Version) -> bool:
    """Return whether rows with these columns can be kept in a catalog; the same rule as the reference's."""

    def can_keep(part: Column, *, nested: bool) -> bool:
        if part.type == "variant":
            # other databases keep it as bytes, for which nested values have no place
            return backend == "duckdb" or (version.inlines_variants and not nested)
        return part.type != "geometry"

    if not all(can_keep(part, nested=part is not column) for column in columns for part in column.walk()):
        return False
    return holds_columns(backend, {column.name: column.data_type for column in columns}, len(version.inlined_columns))


def data_table_name(table_id: int, schema_version: int) -> str:
    return f"ducklake_inlined_data_{table_id}_{schema_version}"


def inlined_tables(connection: sa.Connection, table_id: int) -> list[tuple[str, int]]:
    """(name, schema version) of a table's inlined data tables, oldest first."""
    i = t.inlined_data_tables
    query = sa.select(i.c.table_name, i.c.schema_version).where(i.c.table_id == table_id).order_by(i.c.schema_version)
    return [(name, version) for name, version in connection.execute(query)]


def number_of_tables(table_id: int) -> sa.Select[Any]:
    """Count a table's inlined data tables."""
    i = t.inlined_data_tables
    return sa.select(sa.func.count()).select_from(i).where(i.c.table_id == table_id)


def live_at(connection: sa.Connection, snapshot_id: int) -> str:
    """Condition: rows visible at the snapshot."""
    _, begin, end = versions.of(connection).inlined_columns
    return f"{begin} <= {snapshot_id:d} AND ({end} IS NULL OR {end} > {snapshot_id:d})"


def read_rows(
    connection: sa.Connection,
    database: CatalogDatabase,
    table_id: int,
    columns: Sequence[Column],
    condition: str,
    *,
    ended: bool = False,
    with_ends: bool = False,
    unaltered: range = range(0),
    time_zone: str = "UTC",
) -> pa.Table | None:
    """The inlined rows for which a condition on the format's own columns holds, in row id order.

    Args:
        with_ends: return the snapshot that deleted each row too.
        unaltered: snapshots at which the table certainly has `columns`, which are not read again.
        time_zone: in which times of columns that had no zone are read.

    Returns:
        `_ducklake_row_id`, `_ducklake_snapshot_id` (the first snapshot, or with `ended` that of the deletion), on request
        `_ducklake_end_snapshot`, then `columns`, then `_ducklake_file_name`: the table that has the row; None where there
        are no such rows.
    """
    parts = []
    for name, version, begin in _tables_with_begins(connection, table_id):
        if begin in unaltered:
            stored = tuple(columns)
        elif _has_rows(connection, name, condition):
            stored = _columns_of_version(connection, table_id, version)
        else:
            continue
        rows = _read_table(connection, database, name, stored, condition, ended=ended, with_ends=with_ends)
        if rows.num_rows:
            parts.append(with_place(project(rows, stored, columns, time_zone), name))
    if not parts:
        return None
    return pa.concat_tables(parts).sort_by(ROW_ID)


def _tables_with_begins(connection: sa.Connection, table_id: int) -> list[tuple[str, int, int | None]]:
    """Inlined tables as `inlined_tables` gives them, each with its first snapshot if the catalog has it."""
    i, v = t.inlined_data_tables, t.schema_versions
    joined = i.outerjoin(v, sa.and_(v.c.table_id == i.c.table_id, v.c.schema_version == i.c.schema_version))
    query = sa.select(i.c.table_name, i.c.schema_version, v.c.begin_snapshot).select_from(joined)
    query = query.where(i.c.table_id == table_id).order_by(i.c.schema_version, v.c.begin_snapshot.desc())
    tables = {name: (name, version, begin) for name, version, begin in connection.execute(query)}
    return list(tables.values())


def has_rows(connection: sa.Connection, table_id: int, condition: str) -> bool:
    """Returns whether a table has inlined rows for which a condition on the format's own columns holds."""
    return any(_has_rows(connection, name, condition) for name, _ in inlined_tables(connection, table_id))


def _has_rows(connection: sa.Connection, name: str, condition: str) -> bool:
    row = run_text(connection, f"SELECT 1 FROM {quote_identifier(name)} WHERE {condition} LIMIT 1").first()
    return row is not None


def with_place(rows: pa.Table, name: str) -> pa.Table:
    """The rows with the name of the table that has them as their last column."""
    return rows.append_column(FILE_NAME, pa.repeat(name, rows.num_rows))


@dataclass(frozen=True, slots=True)
class InlinedVersion:
    """The rows of one inlined data table, deleted ones included.

    Attributes:
        begin_snapshot: a snapshot at which the table had the columns these rows have.
        rows: `_ducklake_row_id`, `_ducklake_snapshot_id` (that of the insertion), `end_snapshot`, then the
            columns.
    """

    name: str
    begin_snapshot: int
    columns: tuple[Column, ...]
    rows: pa.Table


def read_versions(
    connection: sa.Connection, database: CatalogDatabase, table_id: int, up_to: int
) -> list[InlinedVersion]:
    """All rows that snapshots up to and including one inserted, by inlined data table, oldest first."""
    inlined_versions = []
    row_id, first, end = versions.of(connection).inlined_columns
    condition = f"{first} <= {up_to:d}"
    for name, version in inlined_tables(connection, table_id):
        begin = _begin_of_version(connection, table_id, version)
        columns = read_columns(connection, table_id, begin)
        rows = _read_table(connection, database, name, columns, condition)
        ends: Sequence[Any] = run_text(
            connection,
            f"SELECT {row_id}, {first}, {end} FROM {quote_identifier(name)} WHERE {condition}",
        ).all()
        end_of = {(row[0], row[1]): row[2] for row in ends}
        keys = zip(rows.column(ROW_ID).to_pylist(), rows.column(SNAPSHOT_ID).to_pylist(), strict=True)
        rows = rows.add_column(2, "end_snapshot", pa.array([end_of[key] for key in keys], pa.int64()))
        inlined_versions.append(InlinedVersion(name, begin, columns, rows))
    return inlined_versions


@dataclass(frozen=True, slots=True)
class NewestTable:
    """The newest inlined data table of a table.

    Attributes:
        schema_version: that it is made for.
        altered: the newest schema version in which the table was altered; None where the catalog has none.
    """

    name: str
    schema_version: int
    altered: int | None


def newest_table(of: sa.BindParameter[int]) -> tuple[sa.ScalarSelect[Any], ...]:
    """The values of a `NewestTable`, each as a query; the first two are NULL where there is none."""
    i, v = t.inlined_data_tables.c, t.schema_versions.c
    newest = sa.select(i.table_name).where(i.table_id == of).order_by(i.schema_version.desc()).limit(1)
    version = sa.select(sa.func.max(i.schema_version)).where(i.table_id == of)
    altered = sa.select(sa.func.max(v.schema_version)).where(v.table_id == of)
    return newest.scalar_subquery(), version.scalar_subquery(), altered.scalar_subquery()


def takes_rows(connection: sa.Connection, table_id: int, newest: NewestTable, columns: Sequence[Column]) -> bool:
    """Return whether the newest inlined data table of a table takes rows with these columns."""
    if newest.altered is None or newest.altered <= newest.schema_version:
        return True
    stored = _columns_of_version(connection, table_id, newest.schema_version)
    return _stored_form(stored) == _stored_form(columns)


def _columns_of_version(connection: sa.Connection, table_id: int, version: int) -> tuple[Column, ...]:
    return read_columns(connection, table_id, _begin_of_version(connection, table_id, version))


def _stored_form(columns: Sequence[Column]) -> list[tuple[int, str, str]]:
    """Return the properties of columns that decide how rows are stored: not defaults, not NOT NULL."""
    return [(part.column_id, part.name, part.type) for column in columns for part in column.walk()]


def _begin_of_version(connection: sa.Connection, table_id: int, version: int) -> int:
    """A snapshot at which a table has the columns that it has at a schema version of the lake."""
    v, s = t.schema_versions, t.snapshot
    query = sa.select(v.c.schema_version, v.c.begin_snapshot).where(
        v.c.table_id == table_id, v.c.schema_version <= version
    )
    schema_version = connection.execute(query.order_by(v.c.schema_version.desc()).limit(1)).first()
    if schema_version is not None and schema_version[0] == version:
        return int(schema_version[1])
    # the table's version has no row where only its inlined data table was made, or where an older writer left it out
    begin = connection.scalar(sa.select(sa.func.min(s.c.snapshot_id)).where(s.c.schema_version == version))
    if begin is None and schema_version is None:
        raise CatalogError(f"ducklake_schema_versions has no row for table {table_id} up to schema version {version}.")
    return int(schema_version[1] if begin is None and schema_version is not None else begin)


def unnoted_versions(connection: sa.Connection, table_ids: Collection[int]) -> dict[int, list[tuple[int, int]]]:
    """The schema versions of inlined data tables that `ducklake_schema_versions` lacks.

    An INSERT makes such a data table where inlining was off when the table got its columns.

    Returns:
        For each version, a snapshot at which the table had its columns, and the version, by table id.
    """
    i, v = t.inlined_data_tables.c, t.schema_versions
    noted = sa.exists().where(v.c.table_id == i.table_id, v.c.schema_version == i.schema_version)
    query = sa.select(i.table_id, i.schema_version).where(t.one_of(connection, i.table_id, table_ids), ~noted)
    unnoted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for table_id, version in connection.execute(query).all():
        unnoted[table_id].append((_begin_of_version(connection, table_id, version), version))
    return unnoted


def _read_table(
    connection: sa.Connection,
    database: CatalogDatabase,
    name: str,
    columns: Sequence[Column],
    condition: str,
    *,
    ended: bool = False,
    with_ends: bool = False,
) -> pa.Table:
    row_id, begin, end = versions.of(connection).inlined_columns
    names = [ROW_ID, SNAPSHOT_ID, *([END_SNAPSHOT] if with_ends else [])]
    own = ", ".join([row_id, end if ended else begin, end][: len(names)])
    types = {column.name: column.data_type for column in columns}
    source = f"FROM {quote_identifier(name)} WHERE {condition}"
    system = pa.schema([(name, pa.int64()) for name in names])
    if database.backend == "duckdb":
        raw = raw_duckdb(connection)

        def read(depth: int) -> pa.Table:
            casts = "".join(
                f", {cast_sql(quote_identifier(column), data_type, depth)} AS c{i}"
                for i, (column, data_type) in enumerate(types.items())
            )
            return arrow(raw, f"SELECT {own}{casts} {source}")

        table = variants.read_all(read, [*(None for _ in names), *types.values()])
        schema = pa.schema([*system, *(data_type.field(column) for column, data_type in types.items())])
        return table.rename_columns(schema.names).cast(schema)
    selected = "".join(f", {_readable(database, column, data_type)}" for column, data_type in types.items())
    rows = run_text(connection, f"SELECT {own}{selected} {source}").all()
    arrays = [
        pa.array(
            [_from_driver(row[i + len(names)], kind.name) for row in rows],
            pa.binary() if kind.name == "variant" else None,
        )
        for i, kind in enumerate(types.values())
    ]
    fields = [
        kind.field(column) if kind.name == "variant" else pa.field(column, array.type)
        for (column, kind), array in zip(types.items(), arrays, strict=True)
    ]
    values = cast_columns(_untyped_nulls_as_text(pa.table(arrays, schema=pa.schema(fields))), types)
    ids = [pa.array([row[i] for row in rows], pa.int64()) for i in range(len(names))]
    return pa.table([*ids, *values.columns], names=[*system.names, *types])


def _readable(database: CatalogDatabase, column: str, data_type: DataType) -> str:
    """Return the column's expression for reading: PostgreSQL's driver turns an interval's months into days."""
    name = quote_identifier(column)
    if database.location.backend != "postgresql" or data_type.name != "interval":
        return name
    value = f"CAST({name} AS interval)"
    months = f"extract(year FROM {value}) * 12 + extract(month FROM {value})"
    clock = f"extract(hour FROM {value}) * 3600000000 + extract(minute FROM {value}) * 60000000"
    return (
        f"({months}) || ' months ' || extract(day FROM {value}) || ' days ' || "
        f"trunc({clock} + extract(microseconds FROM {value})) || ' microseconds'"
    )


def _from_driver(value: object, type_name: str) -> object:
    """A driver's value in a form that DuckDB casts to the column's type: itself for bytes and numbers, else text."""
    if isinstance(value, bytes | memoryview):
        return bytes(value) if type_name in ("blob", "variant") else bytes(value).decode()
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _untyped_nulls_as_text(table: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def are_live(connection: sa.Connection, table_id: int, row_ids: Collection[int]) -> bool:
    """Returns whether inlined rows are all there, and none is deleted."""
    key, _, end = versions.of(connection).inlined_columns
    live: set[int] = set()
    for name, _ in inlined_tables(connection, table_id):
        query = sa.text(f"SELECT {key} FROM {quote_identifier(name)} WHERE {end} IS NULL")
        live.update(row_id for (row_id,) in connection.execute(query))
    return live.issuperset(row_ids)


def create_data_table(
    connection: sa.Connection, database: CatalogDatabase, table_id: int, schema_version: int, columns: Sequence[Column]
) -> None:
    """Creates and registers the table that takes inlined rows from this schema version on."""
    name = data_table_name(table_id, schema_version)
    backend = database.location.backend
    definitions = "".join(
        f", {quote_identifier(column.name)} {inlined_type(backend, column.data_type)}" for column in columns
    )
    own = " BIGINT, ".join(versions.of(connection).inlined_columns)
    database.create_table(connection, name, f"{own} BIGINT{definitions}")
    connection.execute(
        t.inlined_data_tables.insert(), {"table_id": table_id, "table_name": name, "schema_version": schema_version}
    )


def end_rows(connection: sa.Connection, name: str, row_ids: Sequence[int], snapshot_id: int) -> None:
    """Marks live rows of an inlined data table as deleted by a snapshot."""
    key, begin, end = versions.of(connection).inlined_columns
    listed = ", ".join(f"{row_id:d}" for row_id in row_ids)
    run_text(
        connection,
        f"UPDATE {quote_identifier(name)} SET {end} = {snapshot_id:d} "
        f"WHERE {end} IS NULL AND {begin} < {snapshot_id:d} AND {key} IN ({listed})",
        options=UNREAD,
    )


def remove_rows(connection: sa.Connection, name: str, up_to: int) -> None:
    """Removes the rows of an inlined data table that snapshots up to and including one inserted."""
    _, begin, _ = versions.of(connection).inlined_columns
    run_text(connection, f"DELETE FROM {quote_identifier(name)} WHERE {begin} <= {up_to:d}")


def drop_superseded_tables(writes: Writes, flushed: Mapping[str, int]) -> None:
    """Drops the inlined data tables of earlier columns that are empty, of all tables.

    Args:
        flushed: tables whose rows the transaction removes, and the last snapshot that inserted such a row.
    """
    i, connection = t.inlined_data_tables, writes.connection
    _, begin, _ = versions.of(connection).inlined_columns
    newest: dict[int, int] = {}
    rows = connection.execute(sa.select(i.c.table_id, i.c.schema_version, i.c.table_name)).all()
    for table_id, version, _ in rows:
        newest[table_id] = max(version, newest.get(table_id, version))
    for table_id, version, name in rows:
        if version == newest[table_id]:
            continue
        if not _has_rows(connection, name, f"{begin} > {flushed[name]:d}" if name in flushed else "1 = 1"):
            writes.write(i.delete().where(i.c.table_id == table_id, i.c.schema_version == version))
            writes.text(f"DROP TABLE IF EXISTS {quote_identifier(name)}")

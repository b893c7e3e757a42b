"""Listings over all lakes of a session, and over the options of one lake."""

from __future__ import annotations

from dataclasses import dataclass

from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import path_title
from ducklake_lab.scan.counts import TableCounts, table_counts
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.read_states import At


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table as a listing shows it.

    Attributes:
        record_count: rows without deleted ones.
        file_size_bytes: total size of the data files.
    """

    lake: str
    schema: str
    table: Table
    record_count: int
    file_size_bytes: int


def all_tables(lakes: Lakes, at: At) -> list[TableInfo]:
    """Returns the tables of all lakes, by lake, schema and name; those of the current lake as of `at`."""
    tables = []
    for lake in lakes:
        state = lakes.state(lake, at if lake is lakes.get() else None)
        with lake.connect() as connection:
            counts = table_counts(lake, connection, state.snapshot.snapshot_id)
        for table in state.tables.values():
            count = counts.get(table.table_id, TableCounts())
            tables.append(
                TableInfo(lake.alias, path_title(state.schema_of(table).name), table, count.rows, count.bytes)
            )
    return sorted(tables, key=lambda info: (info.lake, info.schema, info.table.name))


def options_of(lakes: Lakes) -> Listing:
    """Lists the options of the current lake, its schemas and its tables."""
    lake = lakes.get()
    state = lakes.state(lake)
    with lake.connect() as connection:
        values = lake.options(connection).values
    names: dict[tuple[str, int | None], str] = {}
    names |= {("schema", number): path_title(schema.name) for number, schema in state.schemas.items()}
    names |= {("table", number): name for number, name in state.table_names().items()}
    rows = [
        (key, value, "lake" if scope is None else f"{scope} {names.get((scope, number), str(number))}")
        for (scope, number, key), value in sorted(values.items(), key=lambda item: (item[0][2], str(item[0])))
    ]
    return Listing(f"Options of {lake.alias}", ("option", "value", "of"), rows, noun="option")

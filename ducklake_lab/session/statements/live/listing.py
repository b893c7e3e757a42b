"""Explains refreshes, and lists live tables. Reads no rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from ducklake_lab.catalog import attachments
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.live.definition import Definition, read_definition
from ducklake_lab.live.history import since
from ducklake_lab.live.order import in_order
from ducklake_lab.model.entries import Table
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.live.look import LiveLook, Look
from ducklake_lab.sql import operations as op


class LiveListing:
    """Explains and lists the live tables of a session's lakes."""

    def __init__(self, lakes: Lakes, sources: Sources, engine: SparkEngine, look: LiveLook) -> None:
        self._lakes = lakes
        self._sources = sources
        self._engine = engine
        self._look = look

    def definitions(self, lake: Lake, state: CatalogState) -> list[tuple[Table, Definition]]:
        """Returns the live tables of a lake with their definitions, each after those that it reads."""
        with lake.connect() as connection:
            tags = attachments.table_tags(connection, state.snapshot.snapshot_id, attachments.LIVE)
        live_tables = []
        for (table_id, key), text in tags.items():
            if key == attachments.LIVE and table_id in state.tables:
                table = state.tables[table_id]
                live_tables.append((table, read_definition(text, state.qualified_name(table))))
        return in_order(live_tables, state.qualified_name)

    def explain(self, name: op.TableName | None) -> Result:
        """Returns a row per source of a live table: how a refresh would read it. Reads no rows, and changes nothing."""
        if name is not None:
            entry = self._sources.names.entry(name)
            tables = [(entry.lake, entry.state, entry.table())]
        else:
            lake = self._lakes.get()
            state = self._lakes.state(lake)
            tables = [(lake, state, table) for table, _ in self.definitions(lake, state)]
        rows: list[tuple[object, ...]] = []
        info = RunInfo()
        for lake, state, table in tables:
            definition, begun = self._look.definition(lake, state, table)
            look = self._look.look(lake, state, table, definition, begun)
            info.note(lake.title, state.snapshot.snapshot_id)
            rows += self._explained(lake, state, table, definition, look)
        shapes = [
            ("table", "varchar"), ("mode", "varchar"), ("reason", "varchar"), ("source", "varchar"), ("read", "varchar"),
            ("files", "int64"), ("bytes", "int64"),
        ]  # fmt: skip
        return Result(listed_rows(shapes, rows), info=info, engine=self._engine)

    def _explained(
        self, lake: Lake, state: CatalogState, table: Table, definition: Definition, look: Look
    ) -> Iterator[tuple[object, ...]]:
        title = state.qualified_name(table)
        if look.mode == "nothing":
            yield (title, look.mode, look.reason, None, None, 0, 0)
            return
        if look.mode == "full":
            for source in look.tables.values():
                plan = self._sources.scans.plan(lake, state, source)
                size = plan.bytes_read
                yield (title, look.mode, look.reason, state.qualified_name(source), "all rows", len(plan.files), size)
            if not look.tables:
                yield (title, look.mode, look.reason, None, "all rows", None, None)
            return
        others = "rows that they join" if look.adds else "rows of affected keys"
        first, last = definition.snapshot + 1, state.snapshot.snapshot_id
        for source, feed in {own.table_id: (own, plan) for own, plan in look.changes.values()}.values():
            files = {file.path: file.data_file.file_size_bytes for file in feed.files}
            read = f"changes of snapshots {first} to {last}, and {others}"
            size = sum(files.values())
            yield (title, look.mode, look.reason, state.qualified_name(source), read, len(files), size)
        unchanged = look.tables.keys() - {own.table_id for own, _ in look.changes.values()}
        for table_id in sorted(unchanged):
            read = others if look.changes else "nothing"
            yield (title, look.mode, look.reason, state.qualified_name(look.tables[table_id]), read, None, None)
        if not look.tables:
            yield (title, look.mode, look.reason, None, None, 0, 0)

    def listed(self) -> Result:
        """Returns a row per live table of the current lake: its query, sources, and the snapshots it is behind."""
        lake = self._lakes.get()
        state = self._lakes.state(lake)
        rows: list[tuple[object, ...]] = []
        for table, definition in self.definitions(lake, state):
            with lake.connect() as connection:
                tag = attachments.tag_of(connection, state.snapshot.snapshot_id, table.table_id, attachments.LIVE)
                behind = self._behind(lake, state, definition)
            sources = ", ".join(sorted(definition.sources.values()))
            query = definition.sql.replace("{DUCKLAKE_CATALOG}.", "")
            refreshed = tag[1] if tag is not None else None
            rows.append((state.qualified_name(table), definition.snapshot, refreshed, behind, sources, query))
        shapes = [
            ("table", "varchar"), ("snapshot", "int64"), ("refreshed", "int64"), ("behind", "int64"),
            ("sources", "varchar"), ("query", "varchar"),
        ]  # fmt: skip
        info = RunInfo()
        info.note(lake.title, state.snapshot.snapshot_id)
        return Result(listed_rows(shapes, rows), info=info, engine=self._engine)

    def _behind(self, lake: Lake, state: CatalogState, definition: Definition) -> int | None:
        """Returns the number of snapshots that changed rows of its sources since; None if some have expired."""
        history = since(lake, definition.snapshot, state.snapshot.snapshot_id)
        if history is None:
            return None
        changed = history.tables() & state.tables.keys()
        ids = [table_id for table_id in changed if state.tables[table_id].uuid in definition.sources]
        return len({snapshot for table_id in ids for snapshot in history.of_rows(table_id)})


def listed_rows(shapes: Sequence[tuple[str, str]], rows: Sequence[tuple[object, ...]]) -> InMemory:
    """Returns rows with some columns, given by name and type."""
    fields = [DataType(kind).field(name) for name, kind in shapes]
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(fields)]
    return InMemory(pa.table(arrays, schema=pa.schema(fields)))

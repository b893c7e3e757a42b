"""Decides how a live table is refreshed: not at all, by the keys that changes affect, or as a whole. Reads no rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ducklake_lab.catalog import attachments
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.changes import Feed
from ducklake_lab.errors import BindError, EntryNotFoundError, UnsupportedFeatureError, UsageError
from ducklake_lab.live.definition import Definition, read_definition
from ducklake_lab.live.history import SinceThen, reason_to_recompute, since
from ducklake_lab.model.entries import Table
from ducklake_lab.model.predicates import NullTest
from ducklake_lab.model.quoting import quoted_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.changes import plan_feed
from ducklake_lab.scan.plan import ChangePlan
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.stored_definitions import independent, resolved
from ducklake_lab.session.rows.named_rows import HandedInRows, LakeTable
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.live.changes import has_one_form
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.plan import QueryPlan, StoredView
from ducklake_lab.sql.refresh.affected import RefreshQueries, SourceTexts, refresh_queries
from ducklake_lab.sql.refresh.binding import BoundQuery, bind
from ducklake_lab.sql.refresh.blocks import NotProven
from ducklake_lab.sql.refresh.signed import SignedRows, signed_rows
from ducklake_lab.sql.refresh.sums import Sums, sum_query
from ducklake_lab.sql.spark.stability import differs_by_run
from ducklake_lab.sql.types import type_or_none

Mode = Literal["incremental", "full", "nothing"]


@dataclass(frozen=True)
class Look:
    """The work of a refresh, as it is planned.

    Attributes:
        definition: the definition as of the refresh.
        changes: the changes of its sources, by the view that its bound query has for each.
        adds: counts and sums of changed rows are added to those of their groups, or rows are added and taken away; ""
            for neither.
        stands_at: the snapshot that its rows stand at.
    """

    mode: Mode
    reason: str
    plan: QueryPlan
    definition: Definition
    tables: Mapping[int, Table]
    stands_at: int = -1
    bound: BoundQuery | None = None
    changes: Mapping[str, tuple[Table, ChangePlan]] = field(default_factory=dict)
    adds: Literal["", "sums", "rows"] = ""


class LiveLook:
    """Looks at the live tables of a session's lakes."""

    def __init__(self, lakes: Lakes, sources: Sources) -> None:
        self._lakes = lakes
        self._sources = sources

    def definition(self, lake: Lake, state: CatalogState, table: Table) -> tuple[Definition, int]:
        """Returns the definition of a live table, and the snapshot that set it.

        Raises:
            UsageError: the table is no live table.
        """
        with lake.connect() as connection:
            tag = attachments.tag_of(connection, state.snapshot.snapshot_id, table.table_id, attachments.LIVE)
        if tag is None:
            raise UsageError(f"{state.qualified_name(table)} is no live table; CREATE LIVE TABLE makes one.")
        return read_definition(tag[0], state.qualified_name(table)), tag[1]

    def planned(self, lake: Lake, definition: Definition) -> tuple[op.Query, QueryPlan]:
        """Returns the query of a definition and its plan; names are looked up where the caller stands."""
        query = parse_query(resolved(definition.sql, lake.alias))
        query = replace(query, distinct_names=True)
        return query, self._sources.plan(query)

    def look(self, lake: Lake, state: CatalogState, table: Table, definition: Definition, begun: int) -> Look:
        """Decides how a live table is refreshed.

        Args:
            state: the entries of a snapshot, without uncommitted changes.
            begun: the snapshot that set the definition.
        """
        title = state.qualified_name(table)
        with self._lakes.standing_in(lake, definition.schema):
            try:
                query, plan = self.planned(lake, definition)
                tables, foreign = tables_of(plan, lake)
                now = self.now(lake, definition, state, plan, tables)
            except EntryNotFoundError as error:
                raise EntryNotFoundError(f"{title} cannot be refreshed: {error}") from error
            except BindError as error:
                raise BindError(f"{title} cannot be refreshed: {error}") from error

            def full(reason: str) -> Look:
                return Look("full", reason, plan, now, tables)

            if table.table_id in tables:
                raise UsageError(f"{title} reads itself; use CREATE OR REPLACE LIVE TABLE with another query.")
            if differs_by_run(plan.own_sql):
                return full("its query gives other rows each time, as with now() or random()")
            if foreign is not None:
                return full(f"its query reads {foreign}, of which no changes are known")
            changed = self._what_changed(lake, state, table, definition, now, begun, tables)
            if isinstance(changed, str):
                return full(changed)
            columns = self._sources.columns(plan)
            if columns is not None and not fits(table, columns):
                return full("the columns of its query have changed")
            if not changed.changes or not any(changed.of_rows(i) for i in tables):
                return Look("nothing", "its sources have not changed", plan, definition, tables)
            return self._incremental(lake, state, table, now, query, plan, tables, changed)

    def now(
        self, lake: Lake, definition: Definition, state: CatalogState, plan: QueryPlan, tables: Mapping[int, Table]
    ) -> Definition:
        """Returns the definition of rows that are computed at a snapshot."""
        entries = {}
        for entry, _ in plan.definitions:
            if isinstance(entry, StoredView):
                text = independent(entry.sql, lake.alias)
                entries[f"view {entry.schema}.{entry.name}"] = f"{text} {list(entry.columns)}"
            else:
                parts = [f"{list(i.parameters)} {i.sql}" for i in entry.implementations]
                entries[f"macro {entry.schema}.{entry.name}"] = "; ".join(parts)
        return replace(
            definition,
            snapshot=state.snapshot.snapshot_id,
            sources={table.uuid: state.qualified_name(table) for table in tables.values()},
            entries=entries,
            settings=dict(self._sources.names.settings()),
        )

    def _what_changed(
        self,
        lake: Lake,
        state: CatalogState,
        table: Table,
        before: Definition,
        now: Definition,
        begun: int,
        tables: Mapping[int, Table],
    ) -> SinceThen | str:
        """Returns what happened since the rows were computed, or the reason why that does not say what to change."""
        if before.snapshot < 0 or before.snapshot > now.snapshot:
            return "it has not been computed from this history"
        for name in before.entries.keys() | now.entries.keys():
            if before.entries.get(name) != now.entries.get(name):
                return f"the {name} has changed"
        for name in before.settings.keys() | now.settings.keys():
            if before.settings.get(name) != now.settings.get(name):
                return f"the setting {name} is {now.settings.get(name)}, and was {before.settings.get(name)}"
        gone = [name for uuid, name in before.sources.items() if uuid not in now.sources]
        if gone or before.sources.keys() != now.sources.keys():
            return f"{', '.join(sorted(gone)) or 'a source'} is another table than before"
        history = since(lake, before.snapshot, now.snapshot)
        if history is None:
            return f"snapshots since {before.snapshot}, which its rows stand at, have expired"
        with lake.connect() as connection:
            then = lake.state(connection, lake.snapshot(connection, before.snapshot))
        others = [
            snapshot
            for snapshot in history.of_rows(table.table_id, without=(begun,))
            if not history.may_flush(snapshot, table.table_id) or self._changes_rows(lake, state, table, snapshot)
        ]
        if others:
            return f"snapshot {others[0]} changed its rows, and was no refresh"
        for source in tables.values():
            reason = reason_to_recompute(history, then, state, source)
            if reason is not None:
                return reason
        return history

    def _changes_rows(self, lake: Lake, state: CatalogState, table: Table, snapshot_id: int) -> bool:
        """Returns whether the change feed of one snapshot has rows; reads them."""
        with lake.connect() as connection:
            plan = plan_feed(lake, connection, state, table, snapshot_id, snapshot_id)
        return any(Feed(name, plan).arrow().num_rows for name in ("table_insertions", "table_deletions"))

    def _incremental(
        self,
        lake: Lake,
        state: CatalogState,
        table: Table,
        now: Definition,
        query: op.Query,
        plan: QueryPlan,
        tables: Mapping[int, Table],
        history: SinceThen,
    ) -> Look:
        try:
            if "default_collation" in now.settings:
                raise NotProven("texts of a default_collation, which makes different ones equal")
            bound = bind(query, self._sources.names)
            changes: dict[str, tuple[Table, ChangePlan]] = {}
            for source in bound.sources:
                if not isinstance(source.rows, LakeTable) or not history.of_rows(source.rows.table.table_id):
                    continue
                own = state.tables[source.rows.table.table_id]
                with lake.connect() as connection:
                    feed = plan_feed(lake, connection, state, own, history.first + 1, history.last, source.predicate)
                if feed.files or any(side.inlined is not None for side in (feed.inserted, feed.removed)):
                    changes[source.view] = (own, feed)
            look = Look("incremental", "", plan, now, tables, history.first, bound, changes)
            if not changes:
                return replace(look, reason="no changed row of its sources matters to its query")
            sums = self._provable_sums(lake, state, table, look)
            if sums is not None:
                shown = ", ".join(table.columns[place].name for place in sums.keys)
                return replace(look, adds="sums", reason=f"counts and sums of changed rows are added by {shown}")
            if self._is_signed(lake, state, table, look):
                return replace(look, adds="rows", reason="rows are added and taken away as in its sources")
            queries = self.queries(lake, state, table, look, dict.fromkeys(changes, "changes"))
        except NotProven as reason:
            return Look("full", f"its query has {reason}", plan, now, tables)
        except (BindError, UnsupportedFeatureError) as error:
            return Look("full", f"its query is not analysed: {error}", plan, now, tables)
        columns = ", ".join(table.columns[place].name for place in queries.keys)
        return replace(look, reason=f"rows are replaced by {columns}")

    def queries(
        self, lake: Lake, state: CatalogState, table: Table, look: Look, changed: Mapping[str, str]
    ) -> RefreshQueries:
        """Returns the queries of an incremental refresh.

        Args:
            changed: the SQL for the changed rows of a source, by its view.

        Raises:
            NotProven: no rule says which rows the changes affect.
        """
        assert look.bound is not None
        return refresh_queries(
            look.bound.tree, self._texts(lake, state, look, changed), types_of(table), _eligible(table)
        )

    def sums(self, lake: Lake, state: CatalogState, table: Table, look: Look, changed: Mapping[str, str]) -> Sums:
        """Returns the query for what changed rows add to counts and sums; arguments are as in `queries`.

        Raises:
            NotProven: the query has other values, or not by groups of its own columns.
        """
        assert look.bound is not None
        return sum_query(look.bound.tree, self._texts(lake, state, look, changed), types_of(table), _eligible(table))

    def signed(
        self, lake: Lake, state: CatalogState, table: Table, look: Look, changed: Mapping[str, str]
    ) -> SignedRows:
        """Returns the query for the rows that it gains and loses; arguments are as in `queries`.

        Raises:
            NotProven: its rows are no rows of its sources, or of their inner joins.
        """
        assert look.bound is not None
        if not all(has_one_form(column.data_type) for column in table.columns):
            raise NotProven("columns whose equal values may differ")
        return signed_rows(look.bound.tree, self._texts(lake, state, look, changed), types_of(table))

    def _is_signed(self, lake: Lake, state: CatalogState, table: Table, look: Look) -> bool:
        try:
            self.signed(lake, state, table, look, dict.fromkeys(look.changes, "changes"))
        except NotProven:
            return False
        return True

    def _provable_sums(self, lake: Lake, state: CatalogState, table: Table, look: Look) -> Sums | None:
        """Returns the query of `sums`; None if it is not exact."""
        assert look.bound is not None
        try:
            sums = self.sums(lake, state, table, look, dict.fromkeys(look.changes, "changes"))
        except NotProven:
            return None
        tables = {s.view: s.rows.table.table_id for s in look.bound.sources if isinstance(s.rows, LakeTable)}
        with lake.connect() as connection:
            then = lake.state(connection, lake.snapshot(connection, look.stands_at))
        is_strict = all(
            self._has_no_null(lake, at, at.tables[tables[view]], name)
            for view, name in sums.strict
            for at in (then, state)
        )
        return sums if is_strict else None

    def _has_no_null(self, lake: Lake, state: CatalogState, table: Table, name: str) -> bool:
        """Returns whether the catalog rules out that a column has NULL."""
        plan = self._sources.scans.plan(lake, state, table, NullTest((name,), is_null=True))
        inlined = plan.inlined.rows if plan.inlined is not None else None
        own = table.column(name)
        return not plan.files and (inlined is None or (own is not None and inlined.column(own.name).null_count == 0))

    def _texts(self, lake: Lake, state: CatalogState, look: Look, changed: Mapping[str, str]) -> dict[str, SourceTexts]:
        assert look.bound is not None
        at = f" AT (VERSION => {look.stands_at:d})"
        texts = {}
        for source in look.bound.sources:
            if isinstance(source.rows, LakeTable):
                own = state.tables[source.rows.table.table_id]
                path = quoted_path(lake.alias, state.schema_of(own).name, own.name)
                texts[source.view] = SourceTexts(path, path + at, changed.get(source.view))
        return texts


def types_of(table: Table) -> list[str]:
    """Returns DuckDB's types of a table's columns."""
    return [column.data_type.sql() for column in table.columns]


def _eligible(table: Table) -> list[int]:
    """Returns the positions of columns whose equal values are the same."""
    return [i for i, column in enumerate(table.columns) if has_one_form(column.data_type)]


def fits(table: Table, columns: list[tuple[str, str]]) -> bool:
    """Returns whether a query with some columns gives rows of a table."""
    own = [(column.name, column.data_type) for column in table.columns]
    return own == [(name, type_or_none(kind)) for name, kind in columns]


def tables_of(plan: QueryPlan, lake: Lake) -> tuple[dict[int, Table], str | None]:
    """Returns the tables that a plan reads as they are now, by id, and the name of anything else that it reads.

    Raises:
        UnsupportedFeatureError: it reads what other sessions do not have.
    """
    tables: dict[int, Table] = {}
    foreign: str | None = None if plan.bound else "what is not analysed"
    for definition, at in plan.definitions:
        if isinstance(definition, StoredView) and definition.temporary:
            raise UnsupportedFeatureError(f"A live table cannot read the temporary view {definition.name}.")
        if at is not None:
            foreign = f"{definition.name} at a snapshot"
    for source in plan.sources:
        rows = source.rows
        if isinstance(rows, HandedInRows):
            raise UnsupportedFeatureError(f"A live table cannot read {rows.shown}, which other sessions do not have.")
        if isinstance(rows, LakeTable) and rows.lake is not lake:
            raise UnsupportedFeatureError(
                f"A live table reads tables of its own lake; {source.name} is in {rows.lake.alias}."
            )
        if isinstance(rows, LakeTable) and rows.at is None and not source.virtual and not source.located:
            tables[rows.table.table_id] = rows.table
        else:
            foreign = str(source.name) if source.kind != "local" else "files or functions"
    return tables, foreign

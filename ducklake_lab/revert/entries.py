"""Schemas, views and macros that a snapshot made, dropped or changed: what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ducklake_lab.errors import EntryExistsError, EntryNotFoundError, UnsupportedFeatureError
from ducklake_lab.model.entries import Macro, Schema, Table, View
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState
from ducklake_lab.revert.conflicts import Conflict, Found, Rules
from ducklake_lab.transaction.transaction import Transaction

Entry = TypeVar("Entry", Table, View, Macro)


@dataclass(slots=True)
class EntryPlan:
    """Changes of entries that are not tables.

    Attributes:
        schemas: those that come back.
        gone_schemas: those that go, each with whether what is left in them goes too; else such a one stays.
        views: those that come back or become as they were.
        gone_views, gone_macros: ids of those that go.
        macros: those that come back.
    """

    schemas: list[Schema] = field(default_factory=list)
    gone_schemas: list[tuple[Schema, bool]] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    gone_views: list[int] = field(default_factory=list)
    macros: list[Macro] = field(default_factory=list)
    gone_macros: list[int] = field(default_factory=list)
    _new_ids: dict[int, int] = field(default_factory=dict)

    def in_schema(self, entry: Entry) -> Entry:
        """Return an entry in the schema that has come back under a new id, if its own has."""
        return replace(entry, schema_id=self._new_ids.get(entry.schema_id, entry.schema_id))

    def begin(self, transaction: Transaction) -> None:
        """Stages what tables depend on, before they change."""
        for schema in self.schemas:
            if transaction.state.find_schema(schema.name) is not None:
                raise EntryExistsError(
                    f"The schema {path_title(schema.name)} cannot come back: there is another of its name."
                )
            # a catalog has each id of a schema once
            parent = (
                schema.parent_id if schema.parent_id is None else self._new_ids.get(schema.parent_id, schema.parent_id)
            )
            new = replace(schema, schema_id=transaction.local_id(), parent_id=parent)
            self._new_ids[schema.schema_id] = new.schema_id
            transaction.state = transaction.state.with_schema(new)
        for view_id in self.gone_views:
            transaction.state = transaction.state.without_view(view_id)
        for macro_id in self.gone_macros:
            transaction.state = transaction.state.without_macro(macro_id)

    def end(self, transaction: Transaction) -> None:
        """Stages the rest, after tables changed."""
        for view in map(self.in_schema, self.views):
            known = transaction.state.views.get(view.view_id)
            schema = _schema_of(transaction, view)
            if known is None or known.name.casefold() != view.name.casefold():
                transaction.check_name_is_free(schema, view.name)
            transaction.state = transaction.state.with_view(view)
        for macro in map(self.in_schema, self.macros):
            schema = _schema_of(transaction, macro)
            if transaction.state.find_macro(schema.name, macro.name, macro.kind) is not None:
                raise EntryExistsError(f"The macro {macro.name} cannot come back: there is another of its name.")
            # the parts of a macro belong to no snapshot, so that its old id would get them twice
            transaction.state = transaction.state.with_macro(replace(macro, macro_id=transaction.local_id()))
        nothing = CatalogState(transaction.state.snapshot)
        for schema, cascade in sorted(self.gone_schemas, key=lambda one: -len(one[0].parts)):
            is_there = schema.schema_id in transaction.state.schemas
            if is_there and (cascade or not any(_younger(nothing, transaction.state, schema))):
                transaction.drop_schema(schema, cascade=True)


def plan_entries(
    before: CatalogState, then: CatalogState, now: CatalogState, snapshot_id: int, rules: Rules, found: Found
) -> EntryPlan:
    """Plan what becomes of schemas, views and macros; notes conflicts that no rule settles.

    Raises:
        UnsupportedFeatureError: a view was changed in a way that is not taken back.
    """
    plan = EntryPlan()
    for schema_id in before.schemas.keys() - then.schemas.keys() - now.schemas.keys():
        plan.schemas.append(before.schemas[schema_id])
    plan.schemas.sort(key=lambda schema: len(schema.parts))
    for schema_id in (then.schemas.keys() - before.schemas.keys()) & now.schemas.keys():
        schema = now.schemas[schema_id]
        younger = sorted(_younger(then, now, schema))
        title = path_title(schema.name)
        rule = rules.of(title).whole
        if younger and rule is None:
            found.add(Conflict(title, None, None, None, "", ", ".join(younger), "schema created, and filled since"))
        if not younger or rule == "revert":
            plan.gone_schemas.append((schema, rule == "revert"))
    _plan_views(plan, before, then, now, rules, found, snapshot_id)
    for macro_id in (then.macros.keys() - before.macros.keys()) & now.macros.keys():
        plan.gone_macros.append(macro_id)
    for macro_id in before.macros.keys() - then.macros.keys() - now.macros.keys():
        plan.macros.append(before.macros[macro_id])
    return plan


def changed_entries(before: CatalogState, then: CatalogState) -> list[str]:
    """The names of schemas, views and macros that differ between two states."""
    names = []
    for old, new in ((before, then), (then, before)):
        names += [path_title(schema.name) for key, schema in old.schemas.items() if key not in new.schemas]
        names += [old.qualified_name(view) for key, view in old.views.items() if new.views.get(key) != view]
        names += [old.qualified_name(macro) for key, macro in old.macros.items() if key not in new.macros]
    return sorted(set(names))


def _younger(then: CatalogState, now: CatalogState, schema: Schema) -> Iterator[str]:
    """Yield the names of entries of a schema that it did not have then."""
    for table_id, (schema_id, name) in now.tables.names.items():
        if schema_id == schema.schema_id and table_id not in then.tables:
            yield name
    for view in now.views.values():
        if view.schema_id == schema.schema_id and view.view_id not in then.views:
            yield view.name
    for macro in now.macros.values():
        if macro.schema_id == schema.schema_id and macro.macro_id not in then.macros:
            yield macro.name
    for other in now.schemas.values():
        if other.parent_id == schema.schema_id and other.schema_id not in then.schemas:
            yield path_title(other.name)


def _plan_views(
    plan: EntryPlan,
    before: CatalogState,
    then: CatalogState,
    now: CatalogState,
    rules: Rules,
    found: Found,
    snapshot_id: int,
) -> None:
    for view_id in sorted(before.views.keys() | then.views.keys()):
        old, made, today = (state.views.get(view_id) for state in (before, then, now))
        if old == made or today == old:
            continue
        if made is None:
            if today is None and old is not None:
                plan.views.append(old)
            continue
        title = then.qualified_name(made)
        if today is None and old is None:
            continue
        if old is not None and (old.sql, old.column_aliases, old.dialect) != (
            made.sql,
            made.column_aliases,
            made.dialect,
        ):
            raise UnsupportedFeatureError(
                f"The query of the view {title}, which snapshot {snapshot_id} changed in its place, is not changed back; "
                "CREATE OR REPLACE VIEW does."
            )
        rule = rules.of(title).whole
        if today != made and rule is None:
            reason = "dropped since" if today is None else "changed since"
            found.add(Conflict(title, None, None, _text(old), _text(made), _text(today), f"view {reason}"))
        if today != made and rule != "revert":
            continue
        if old is None:
            plan.gone_views.append(view_id)
        else:
            plan.views.append(old)


def _text(view: View | None) -> str | None:
    return None if view is None else f"{view.name}: {view.comment or view.sql}"


def _schema_of(transaction: Transaction, entry: View | Macro) -> Schema:
    schema = transaction.state.schemas.get(entry.schema_id)
    if schema is None:
        raise EntryNotFoundError(f"The schema of {entry.name} has been dropped since, so that it cannot come back.")
    return schema

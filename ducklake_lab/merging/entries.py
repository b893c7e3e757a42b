"""Schemas, views and macros that differ between two states: what becomes of them in a third."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ducklake_lab.errors import EntryExistsError, EntryNotFoundError, UnsupportedFeatureError
from ducklake_lab.merging.conflicts import Conflict, Reason, Rules, Unsettled, Words
from ducklake_lab.model.entries import Macro, Schema, Table, View
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState
from ducklake_lab.transaction.transaction import Transaction

Entry = TypeVar("Entry", Table, View, Macro)


@dataclass(slots=True)
class EntryPlan:
    """Changes of entries that are not tables.

    Attributes:
        schemas: those that come.
        gone_schemas: those that go, each with whether what is left in them goes too; else such a one stays.
        views: those that come or change.
        gone_views, gone_macros: ids of those that go.
        macros: those that come.
    """

    words: Words
    schemas: list[Schema] = field(default_factory=list)
    gone_schemas: list[tuple[Schema, bool]] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    gone_views: list[int] = field(default_factory=list)
    macros: list[Macro] = field(default_factory=list)
    gone_macros: list[int] = field(default_factory=list)
    _new_ids: dict[int, int] = field(default_factory=dict)

    def in_schema(self, entry: Entry) -> Entry:
        """Return an entry in the schema that has come under a new id, if its own has."""
        return replace(entry, schema_id=self._new_ids.get(entry.schema_id, entry.schema_id))

    def begin(self, transaction: Transaction) -> None:
        """Stages what tables depend on, before they change."""
        for schema in self.schemas:
            if transaction.state.find_schema(schema.name) is not None:
                raise EntryExistsError(
                    f"The schema {path_title(schema.name)} cannot {self.words.comes}: there is another of its name."
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

    def check(self, state: CatalogState) -> None:
        """Check the macros that come in a state after `begin`.

        Raises:
            EntryExistsError: there is another of the name.
            EntryNotFoundError: the schema is gone.
        """
        for macro in map(self.in_schema, self.macros):
            schema = self.schema_of(state, macro)
            if state.find_macro(schema.name, macro.name, macro.kind) is not None:
                raise EntryExistsError(
                    f"The macro {macro.name} cannot {self.words.comes}: there is another of its name."
                )

    def schema_of(self, state: CatalogState, entry: Table | View | Macro) -> Schema:
        """Return the schema of an entry that comes, in a state.

        Raises:
            EntryNotFoundError: it is gone.
        """
        schema = state.schemas.get(entry.schema_id)
        if schema is None:
            raise EntryNotFoundError(
                f"The schema of {entry.name} has been dropped since, so that it cannot {self.words.comes}."
            )
        return schema

    def end(self, transaction: Transaction) -> None:
        """Stages the rest, after tables changed."""
        for view in map(self.in_schema, self.views):
            transaction.state = transaction.state.with_view(view)
        for macro in map(self.in_schema, self.macros):
            # the parts of a macro belong to no snapshot, so that its old id would get them twice
            transaction.state = transaction.state.with_macro(replace(macro, macro_id=transaction.local_id()))
        nothing = CatalogState(transaction.state.snapshot)
        for schema, cascade in sorted(self.gone_schemas, key=lambda one: -len(one[0].parts)):
            is_there = schema.schema_id in transaction.state.schemas
            if is_there and (cascade or not any(_younger(nothing, transaction.state, schema))):
                transaction.drop_schema(schema, cascade=True)


def plan_entries(
    theirs: CatalogState, base: CatalogState, ours: CatalogState, words: Words, rules: Rules, unsettled: Unsettled
) -> EntryPlan:
    """Plan what becomes of schemas, views and macros; notes conflicts that no rule settles.

    Raises:
        UnsupportedFeatureError: a view was changed in a way that cannot be written.
    """
    plan = EntryPlan(words)
    for schema_id in theirs.schemas.keys() - base.schemas.keys() - ours.schemas.keys():
        plan.schemas.append(theirs.schemas[schema_id])
    plan.schemas.sort(key=lambda schema: len(schema.parts))
    for schema_id in (base.schemas.keys() - theirs.schemas.keys()) & ours.schemas.keys():
        schema = ours.schemas[schema_id]
        younger = sorted(_younger(base, ours, schema))
        title = path_title(schema.name)
        rule = rules.of(title).whole
        if younger and rule is None:
            reason = words.reason(Reason.SCHEMA_DROPPED)
            unsettled.add(Conflict(title, None, None, "", ", ".join(younger), None, reason))
        if not younger or rule == "theirs":
            plan.gone_schemas.append((schema, rule == "theirs"))
    _plan_views(plan, theirs, base, ours, rules, unsettled)
    for macro_id in (base.macros.keys() - theirs.macros.keys()) & ours.macros.keys():
        plan.gone_macros.append(macro_id)
    for macro_id in theirs.macros.keys() - base.macros.keys() - ours.macros.keys():
        plan.macros.append(theirs.macros[macro_id])
    return plan


def changed_entries(before: CatalogState, after: CatalogState) -> list[str]:
    """The names of schemas, views and macros that differ between two states."""
    names = []
    for old, new in ((before, after), (after, before)):
        names += [path_title(schema.name) for key, schema in old.schemas.items() if key not in new.schemas]
        names += [old.qualified_name(view) for key, view in old.views.items() if new.views.get(key) != view]
        names += [old.qualified_name(macro) for key, macro in old.macros.items() if key not in new.macros]
    return sorted(set(names))


def titles_of_schemas(*states: CatalogState) -> set[str]:
    """Return the titles of all schemas in some states."""
    return {path_title(schema.name) for state in states for schema in state.schemas.values()}


def _younger(base: CatalogState, ours: CatalogState, schema: Schema) -> Iterator[str]:
    """Yield the names of entries of a schema that the base does not have."""
    for table_id, (schema_id, name) in ours.tables.names.items():
        if schema_id == schema.schema_id and table_id not in base.tables:
            yield name
    for view in ours.views.values():
        if view.schema_id == schema.schema_id and view.view_id not in base.views:
            yield view.name
    for macro in ours.macros.values():
        if macro.schema_id == schema.schema_id and macro.macro_id not in base.macros:
            yield macro.name
    for other in ours.schemas.values():
        if other.parent_id == schema.schema_id and other.schema_id not in base.schemas:
            yield path_title(other.name)


def _plan_views(
    plan: EntryPlan,
    theirs: CatalogState,
    base: CatalogState,
    ours: CatalogState,
    rules: Rules,
    unsettled: Unsettled,
) -> None:
    words = plan.words
    for view_id in sorted(theirs.views.keys() | base.views.keys()):
        their, old, our = (state.views.get(view_id) for state in (theirs, base, ours))
        if their == old or our == their:
            continue
        if old is None:
            if our is None and their is not None:
                plan.views.append(their)
            continue
        title = base.qualified_name(old)
        if our is None and their is None:
            continue
        if their is not None and (their.sql, their.column_aliases, their.dialect) != (
            old.sql,
            old.column_aliases,
            old.dialect,
        ):
            raise UnsupportedFeatureError(
                f"The query of the view {title} was changed in its place by {words.title}, which is not merged; "
                "CREATE OR REPLACE VIEW does it."
            )
        rule = rules.of(title).whole
        if our != old and rule is None:
            reason = words.reason(Reason.VIEW_DROPPED if our is None else Reason.VIEW_CHANGED)
            unsettled.add(Conflict(title, None, None, _text(old), _text(our), _text(their), reason))
        if our != old and rule != "theirs":
            continue
        if their is None:
            plan.gone_views.append(view_id)
        else:
            plan.views.append(their)


def _text(view: View | None) -> str | None:
    return None if view is None else f"{view.name}: {view.comment or view.sql}"

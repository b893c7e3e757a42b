"""Plans and stages a merge: what theirs changed since both sides began, on top of a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.diff.compute import diff_sides
from ducklake_lab.diff.diff_states import Side
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import EntryExistsError, UnsupportedFeatureError, UsageError
from ducklake_lab.merging.conflicts import Conflict, Reason, Rules, TableRules, Unsettled, Words
from ducklake_lab.merging.definitions import Definition, Filled, Merging, check_types, types_differ, with_new_keys
from ducklake_lab.merging.entries import EntryPlan, plan_entries
from ducklake_lab.merging.row_checks import Operations
from ducklake_lab.merging.rows import RowChanges
from ducklake_lab.merging.sides import Pair, RowIds, Version
from ducklake_lab.merging.tags import MergedTags
from ducklake_lab.model.entries import Column, Table, View
from ducklake_lab.model.expectations import Expectation, changed_tags
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState
from ducklake_lab.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Line:
    """The snapshots of a lake from where two sides began to a state.

    Attributes:
        base: where both began.
        tip: the state.
    """

    lake: Lake
    base: CatalogState
    tip: CatalogState


@dataclass(frozen=True, slots=True)
class _Both:
    """A table that is there in all three versions."""

    title: str
    changes: RowChanges
    theirs: Pair
    definition: Definition
    operations: Operations | None
    tags: Mapping[str, str | None]


@dataclass(slots=True)
class Plan:
    """Everything that becomes of a lake.

    Attributes:
        dropped: tables that go.
        both: tables that stay.
        came: tables of theirs alone.
    """

    entries: EntryPlan
    dropped: list[Table] = field(default_factory=list)
    both: list[_Both] = field(default_factory=list)
    came: list[Table] = field(default_factory=list)


class Merge:
    """The merge of one side into a transaction.

    Args:
        theirs: the side that is merged. Entries that came on it under ids which ours may have too are not in its tip.
        base: where both sides began, in the transaction's lake.
        ids: gives the ids of rows and columns of a shared table, by theirs and ours.
        unsettled: gets the conflicts that no rule settles.
        stack: frees what Spark keeps.
        is_earlier: theirs is an earlier state of the same lake, so that columns that ours dropped are not compared.
    """

    def __init__(
        self,
        transaction: Transaction,
        theirs: Line,
        base: CatalogState,
        engines: Engines,
        words: Words,
        rules: Rules,
        unsettled: Unsettled,
        stack: ExitStack,
        *,
        ids: Callable[[Table, Table], RowIds] | None = None,
    ) -> None:
        self._transaction = transaction
        self._theirs = theirs
        self._base = base
        self._engines = engines
        self._words = words
        self._rules = rules
        self._unsettled = unsettled
        self._stack = stack
        self._ids = ids
        self._given: dict[str, Mapping[int, int]] = {}
        self.plan = Plan(EntryPlan(words))

    def plan_entries(self) -> None:
        """Plans schemas, views and macros."""
        self.plan.entries = plan_entries(
            self._theirs.tip, self._theirs.base, self._transaction.state, self._words, self._rules, self._unsettled
        )

    def plan_table(self, table_id: int, title: str, row_ids: Collection[int] | None = None) -> None:
        """Plans a table that theirs changed.

        Args:
            row_ids: only these rows, and no definition; None for all.
        """
        rules, ours = self._rules.of(title), self._transaction.state.tables.get(table_id)
        their, old = (state.tables.get(table_id) for state in (self._theirs.tip, self._theirs.base))
        if row_ids is not None and (their is None or old is None):
            raise UsageError(f"{self._words.start} created or dropped {title} as a whole; leave rows out.")
        if old is None:
            if their is not None and (ours is None or self._comes_for(title, ours, their, rules)):
                self.plan.came.append(their)
        elif their is None:
            if ours is not None and self._goes(title, self._base.tables[table_id], ours, rules):
                self.plan.dropped.append(ours)
        elif ours is None:
            self._check_dropped(title, rules)
        else:
            self._plan_both(their, old, ours, title, rules, row_ids)

    def _comes_for(self, title: str, ours: Table, theirs: Table, rules: TableRules) -> bool:
        """Whether a table of theirs comes for ours, after it came back on both sides of a branch."""
        if self._ids is None:
            return False  # ours is the same table, which came back before
        if rules.whole is None:
            reason = self._words.reason(Reason.NAME_TAKEN)
            self._unsettled.add(Conflict(title, None, None, None, ours.name, theirs.name, reason))
        if rules.whole == "theirs":
            self.plan.dropped.append(ours)
        return rules.whole == "theirs"

    def _check_dropped(self, title: str, rules: TableRules) -> None:
        if rules.whole is None:
            reason = self._words.reason(Reason.TABLE_CHANGED)
            self._unsettled.add(Conflict(title, None, None, "", None, "", reason))
        elif rules.whole == "theirs":
            raise UnsupportedFeatureError(
                f"{title} has been dropped, and does not come back with {self._words.title}; restore it first."
            )

    def _plan_both(
        self,
        their: Table,
        old: Table,
        ours: Table,
        title: str,
        rules: TableRules,
        row_ids: Collection[int] | None,
    ) -> None:
        transaction, theirs, state = self._transaction, self._theirs, self._transaction.state
        ids = self._ids(their, ours) if self._ids is not None else RowIds()
        self._given[their.uuid] = ids.columns.ours
        known = ids.columns.to_ours(their, max((column.order for column in ours.columns), default=0))
        rules = rules.by_our_names(title, ours.columns, [*old.columns, *known.columns])
        changes = RowChanges(transaction, self._engines, self._stack, title, self._words, rules, self._unsettled)
        pair = Pair(Version(theirs.lake, theirs.base, old), Version(theirs.lake, theirs.tip, their))
        is_same = theirs.lake is transaction.lake
        base = pair.base if is_same else Version(transaction.lake, self._base, self._base.tables[ours.table_id])
        own = Pair(base, Version(transaction.lake, state, ours, transaction.peek(ours)))
        definition = Definition(ours)
        settled = self._unsettled.total
        if row_ids is None:
            filled = self._filled(changes, pair, own, known)
            definition = Merging(title, self._words, rules, self._unsettled, filled).merge(known, old, ours)
            if definition.reshaped and self._ids is None:
                changes.checks.check_unwritten(pair.tip, own.tip, definition.reshaped)
        if self._unsettled.total > settled and types_differ(known, ours):
            return  # values of one side may not be ones of the other's type
        if self._ids is not None:
            check_types(title, definition.table, (known, ours), self._words)
        operations = changes.find(pair, own, definition, ids, row_ids)
        tags: Mapping[str, str | None] = {}
        if row_ids is None:
            tags = self._tags.plan(transaction, their, ours, title, rules, self._words, self._unsettled)
        self.plan.both.append(_Both(title, changes, pair, definition, operations, tags))

    @cached_property
    def _tags(self) -> MergedTags:
        return MergedTags.read(self._theirs.lake, self._theirs.tip, self._theirs.base)

    def _filled(self, changes: RowChanges, theirs: Pair, ours: Pair, known: Table) -> Filled:
        """Count values in columns that the other side dropped.

        Args:
            known: their table, with our ids.
        """
        dropped = _columns_only_in(ours.base.table, known, ours.tip.table)
        if self._ids is not None:
            dropped += _fields_only_in(ours.base.table, known, ours.tip.table)
        in_ours = changes.filled(ours, dropped) if dropped else {}
        if self._ids is None:
            return Filled(in_ours)
        dropped = _columns_only_in(theirs.base.table, ours.tip.table, theirs.tip.table)
        dropped += _fields_only_in(theirs.base.table, ours.tip.table, theirs.tip.table)
        return Filled(in_ours, changes.filled(theirs, dropped) if dropped else {})

    def _goes(self, title: str, base: Table, ours: Table, rules: TableRules) -> bool:
        """Whether a table that theirs lacks is dropped."""
        if base == ours and self._has_same_rows(title, base, ours):
            return True
        if rules.whole is None:
            reason = self._words.reason(Reason.TABLE_DROPPED)
            self._unsettled.add(Conflict(title, None, None, base.name, ours.name, None, reason))
        return rules.whole == "theirs"

    def _has_same_rows(self, title: str, base: Table, ours: Table) -> bool:
        transaction = self._transaction
        after = Side(transaction.lake, transaction.state, ours, transaction.peek(ours))
        if transaction.state.snapshot.snapshot_id == self._base.snapshot.snapshot_id and after.staged is None:
            return True
        before = Side(transaction.lake, self._base, base)
        return diff_sides(before, after, title, engines=self._engines).is_empty

    def stage(self, bring: Callable[[Table], None]) -> None:
        """Stages the plan.

        Args:
            bring: stages a table of theirs alone.

        Raises:
            EntryExistsError, EntryNotFoundError: a name that is needed is taken, or not there; no row is written.
            ConstraintError: a row would have no value in a column that is NOT NULL.
        """
        transaction, plan = self._transaction, self.plan
        plan.entries.begin(transaction)
        for table in plan.dropped:
            transaction.drop_table(table)
        self._check_names()
        plan.entries.check(transaction.state)
        for both in plan.both:
            if both.operations is not None:
                both.changes.checks.check_values(both.definition.table, both.operations)
        for both in plan.both:
            self._stage_table(both)
        for table in map(plan.entries.in_schema, plan.came):
            bring(table)
        plan.entries.end(transaction)

    def with_targets(self, table: Table, own: Table | None = None) -> Table:
        """Return a table whose references from theirs name columns of other tables by ids of ours.

        Args:
            own: ours, whose references stay.
        """
        stay = own.tags if own is not None else ()

        def targeted(expectation: Expectation) -> Expectation:
            if not expectation.target or (expectation.key, expectation.text()) in stay:
                return expectation
            given = self._given.get(expectation.target, {})
            columns = tuple((name, given.get(number, number)) for name, number in expectation.target_columns)
            return replace(expectation, target_columns=columns)

        return replace(table, tags=changed_tags(table, targeted))

    def _check_names(self) -> None:
        """Raises EntryExistsError where a table or view would get a name that another one keeps; names may change places.

        Raises EntryNotFoundError where the schema of one that comes is gone.
        """
        state, plan = self._transaction.state, self.plan
        in_schema = plan.entries.in_schema
        tables: dict[object, Table | View] = {
            both.definition.table.table_id: both.definition.table for both in plan.both
        }
        views: dict[object, Table | View] = {view.view_id: view for view in map(in_schema, plan.entries.views)}
        # on a branch a table may have the id of another one of ours
        came: dict[object, Table | View] = {("came", table.table_id): table for table in map(in_schema, plan.came)}
        for entry in (*views.values(), *came.values()):
            plan.entries.schema_of(state, entry)
        before: dict[object, tuple[int, str]] = {key: (view.schema_id, view.name) for key, view in state.views.items()}
        before.update(state.tables.names.items())
        after = before | {key: (entry.schema_id, entry.name) for key, entry in (tables | views | came).items()}
        count = Counter((schema_id, name.casefold()) for schema_id, name in after.values())
        for key, (schema_id, name) in after.items():
            if before.get(key) != (schema_id, name) and count[schema_id, name.casefold()] > 1:
                schema = path_title(state.schemas[schema_id].name)
                raise EntryExistsError(
                    f"{schema}.{name} cannot {self._words.comes}, as another table or view has the name now; rename that "
                    "first."
                )

    def _stage_table(self, both: _Both) -> None:
        transaction, definition = self._transaction, both.definition
        ours = transaction.state.tables[definition.table.table_id]
        table = self.with_targets(definition.table, ours)
        if table != ours:
            table = with_new_keys(transaction, table)
            transaction.replace_table(table)
        for key, value in both.tags.items():
            transaction.set_tag(table, key, value)
        if both.operations is not None:
            both.changes.stage(table, both.operations)
        if definition.came and self._ids is None:
            carried = both.changes.carry(both.theirs.tip, self._version(table), definition)
            if carried is not None:
                both.changes.stage(table, carried)
        if definition.strict:
            both.changes.checks.check_not_null(self._version(table), definition.strict)

    def _version(self, table: Table) -> Version:
        transaction = self._transaction
        return Version(transaction.lake, transaction.state, table, transaction.peek(table))


def _columns_only_in(one: Table, other: Table, also: Table) -> list[Column]:
    """The columns of a table, as a third version has them, that another version lacks."""
    kept = {column.column_id for column in other.columns}
    gone = {column.column_id for column in one.columns} - kept
    return [column for column in also.columns if column.column_id in gone]


def _fields_only_in(one: Table, other: Table, also: Table) -> list[Column]:
    """The columns of a table, as a third version has them, with the fields alone that another version lacks."""
    kept = {column.column_id for column in other.columns}
    gone = {part.column_id for part in one.all_columns()} - {part.column_id for part in other.all_columns()}
    fields = (_with_fields(column, gone) for column in also.columns if column.column_id in kept)
    return [column for column in fields if column is not None]


def _with_fields(column: Column, ids: Collection[int]) -> Column | None:
    if column.column_id in ids:
        return column
    children = tuple(part for child in column.children if (part := _with_fields(child, ids)) is not None)
    # a map has a key and a value
    return None if not children else column if column.type == "map" else replace(column, children=children)

"""Maintenance by policy: its plan, its run, and the settings that a lake keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from ducklake_lab.autopilot.estimates import MESSAGE, MOST, Estimates, records_of
from ducklake_lab.autopilot.partitions import Values, checked_condition, chosen, shown
from ducklake_lab.autopilot.plan import Need, Piece, pieces_of
from ducklake_lab.autopilot.policy import KEY, Policy, check, policy_of, scopes_of, stored, written
from ducklake_lab.autopilot.run import Receipt, Workshop, run
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import Options, Scope
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import CatalogError, SnapshotNotFoundError, TransactionError, UsageError
from ducklake_lab.files.options import target_file_size
from ducklake_lab.maintenance import checkpoint
from ducklake_lab.maintenance.cleanup_old_files import count_old_files
from ducklake_lab.maintenance.expire_snapshots import find_expirable
from ducklake_lab.model.entries import Table
from ducklake_lab.scan.file_stats import TableShape, table_shapes
from ducklake_lab.scan.history import read_commit_notes
from ducklake_lab.session.listings import Listing, Unit
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.names.stored_definitions import with_plain_sort_keys
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.transaction import Transaction


@works_on_lakes
class Autopilot:
    """The part of a session that maintains the current lake by its policy."""

    _lakes: Lakes
    _transactions: Transactions
    _engine: SparkEngine

    def autopilot(
        self, policy: Mapping[str, object] | None = None, dry_run: bool = True, only_enabled: bool = False
    ) -> Listing:
        """Returns the pieces of maintenance that the current lake needs, or with `dry_run=False` runs them.

        Each piece is one commit, or one round of deleted files. A piece that meets another client's commit is left for the
        next run. Snapshots with tags or branches stay, and none expires unless the lake's `expire_older_than` says so.

        Args:
            policy: settings for this call, see `autopilot.policy.Policy`; they come before the lake's own.
            only_enabled: only tables whose policy is enabled, within the lake's hours.

        Returns:
            The columns are `table`, `partitions`, `step`, `files`, `bytes` to read, and `effect`; of a plan `expected`, an
            estimate of its seconds, and of a run `outcome`, `snapshot` and `seconds`.

        Raises:
            UsageError: the policy has no such setting, or its condition fits the partitions of no table.
            TransactionError: a transaction is open, or the lake is read-only.
        """
        lake = self._lakes.get()
        own, pieces = self._planned(lake, dict(policy or {}), only_enabled=only_enabled)
        if dry_run:
            return _plan(lake, pieces)
        if self._lakes.in_transaction:
            raise TransactionError("The autopilot commits each piece; COMMIT or ROLLBACK the open transaction first.")
        lake.check_writable()
        rows = [_row(one) for one in run(pieces, own, self._workshop(lake))]
        return Listing(f"Autopilot of {lake.alias}", (*COLUMNS, *OF_RECEIPTS), rows, noun="piece", units=UNITS)

    def policy(self, table: str | None = None, schema: str | None = None) -> Policy:
        """Returns the policy of a table, a schema, or the current lake."""
        with self._lakes.statement():
            lake, scopes = self._scopes(table, schema)
            with lake.connect() as connection:
                return policy_of(lake.options(connection), scopes)

    def set_policy(self, settings: Mapping[str, object], table: str | None = None, schema: str | None = None) -> Policy:
        """Stores settings of the policy of a table, a schema or the current lake, and returns what holds there now.

        Args:
            settings: by name; None takes a setting back.

        Raises:
            UsageError: there is no such setting, or it belongs to the lake as a whole.
        """
        check(settings, is_of_lake=table is None and schema is None)
        with self._lakes.statement():
            lake, scopes = self._scopes(table, schema)
            with self._transactions.writing(lake) as transaction:
                _check_where(settings.get("where"), transaction, scopes[-1])
                text = transaction.options.values.get((*scopes[-1], KEY))
                merged = {**(stored(text) if text is not None else {}), **settings}
                kept = {name: value for name, value in merged.items() if value is not None}
                transaction.set_option(scopes[-1], KEY, written(kept))
                return policy_of(transaction.options, scopes)

    def _scopes(self, table: str | None, schema: str | None) -> tuple[Lake, list[Scope]]:
        """Return a lake and the scopes whose settings hold, the lake's own first."""
        if table is not None and schema is not None:
            raise UsageError("A policy belongs to a table or to a schema; name one of the two.")
        lake, scopes = self._lakes.get(), list[Scope]([(None, None)])
        if table is not None:
            entry = self._lakes.parse(table)
            lake, named_table = entry.lake, entry.table()
            scopes += scopes_of(named_table)[1:]
        elif schema is not None:
            scopes.append(("schema", self._lakes.state(lake).schema_in_text(schema).schema_id))
        return lake, scopes

    def _planned(self, lake: Lake, given: Mapping[str, object], *, only_enabled: bool) -> tuple[Policy, list[Piece]]:
        """Return the lake's own policy, and the pieces in the order in which they run."""
        with self._lakes.statement():
            state = self._lakes.state(lake)
            now = datetime.now(UTC)
            with lake.connect() as connection:
                options = lake.options(connection)
                own = policy_of(options, given=given)
                if only_enabled and not own.is_open(now.astimezone(ZoneInfo(options.time_zone))):
                    return own, []
                tables = {i: policy_of(options, scopes_of(table), given) for i, table in state.tables.items()}
                wanted = {i: policy for i, policy in tables.items() if policy.enabled or not only_enabled}
                shapes = table_shapes(lake, connection, state.snapshot.snapshot_id) if wanted else {}
                ages = {age for policy in wanted.values() for age in (policy.settled, policy.quiet)}
                newest = {age: _newest_before(lake, connection, now - timedelta(seconds=age)) for age in ages}
            wanted = {i: policy for i, policy in wanted.items() if i in shapes}
            partitions = _chosen_partitions(wanted, state.tables, shapes, options.time_zone)
            needs = [
                Need(
                    state.tables[i],
                    state.qualified_name(state.tables[i]),
                    shapes[i],
                    policy,
                    target_file_size(options, state.tables[i]),
                    newest[policy.settled],
                    newest[policy.quiet] if policy.quiet else None,
                    partitions.get(i),
                )
                for i, policy in wanted.items()
            ]
            pieces = pieces_of(needs)
            if own.enabled or not only_enabled:
                pieces += _of_lake(lake, options)
        return own, pieces

    def _workshop(self, lake: Lake) -> Workshop:
        options = checkpoint.read_lake_options(lake)
        return Workshop(
            lake,
            self._engine,
            partial(self._committing, lake),
            _table,
            checkpoint.expire_older_than(options),
            checkpoint.delete_older_than(options),
        )

    @contextmanager
    def _committing(self, lake: Lake) -> Iterator[Transaction]:
        with self._lakes.statement(), self._transactions.writing(lake) as transaction:
            yield transaction


UNITS: Mapping[str, Unit] = {"bytes": "bytes", "expected": "seconds", "seconds": "seconds"}
#: Columns of a plan.
COLUMNS = ("table", "partitions", "step", "files", "bytes", "effect")
#: Further columns of a run.
OF_RECEIPTS = ("outcome", "snapshot", "seconds")


def _plan(lake: Lake, pieces: Sequence[Piece]) -> Listing:
    """Return pieces with their expected times."""
    with lake.connect() as connection:
        estimates = Estimates(records_of(read_commit_notes(connection, MESSAGE, MOST)) if pieces else ())
    times = [estimates.of(one) for one in pieces]
    rows = [(*_facts(one, one.gain), round(expected, 1)) for one, expected in zip(pieces, times, strict=True)]
    note = "nothing to do"
    if rows:
        note = f"about {_duration(sum(times))} in all · {estimates.basis(pieces)} · nothing has changed yet"
    title = f"Autopilot of {lake.alias}"
    return Listing(title, (*COLUMNS, "expected"), rows, noun="piece", note=note, units=UNITS)


def _check_where(where: object, transaction: Transaction, scope: Scope) -> None:
    """Check a condition of partitions before it is stored; that of a table must fit its partition keys."""
    if not isinstance(where, str):
        return
    kind, entry = scope
    if kind == "table" and entry is not None:
        chosen(where, transaction.state.tables[entry], (), transaction.options.time_zone)
    else:
        checked_condition(where)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60):,} min" if seconds < 5_400 else f"{seconds / 3600:,.1f} h"


def _chosen_partitions(
    policies: Mapping[int, Policy], tables: Mapping[int, Table], shapes: Mapping[int, TableShape], time_zone: str
) -> dict[int, set[Values]]:
    """Return the partitions that the conditions of policies choose, by table id; a policy without one has none.

    A condition of a lake or a schema need not fit all tables: nothing is chosen of those with other partition keys.

    Raises:
        UsageError: it fits no table.
    """
    partitions_of: dict[int, set[Values]] = {}
    fitting, refused = set[str](), dict[str, UsageError]()
    for table_id, policy in policies.items():
        if policy.where is None:
            continue
        partitions = {file.partition for file in shapes[table_id].files}
        try:
            partitions_of[table_id] = chosen(policy.where, tables[table_id], partitions, time_zone)
            fitting.add(policy.where)
        except UsageError as error:
            partitions_of[table_id] = set()
            refused[policy.where] = error
    for where, refusal in refused.items():
        if where not in fitting:
            raise refusal
    return partitions_of


def _row(receipt: Receipt) -> tuple[object, ...]:
    facts = _facts(receipt.piece, receipt.piece.gain if receipt.reason is None else receipt.reason)
    return (*facts, receipt.outcome, receipt.snapshot, round(receipt.seconds, 3))


def _facts(piece: Piece, effect: str) -> tuple[object, ...]:
    return piece.name, shown(piece.table, piece.partitions), piece.step, len(piece.files), piece.read_bytes, effect


def _of_lake(lake: Lake, options: Options) -> Iterator[Piece]:
    """Yield the work on the whole lake: snapshots that expire, then files that no snapshot needs."""
    expire_before, delete_before = checkpoint.expire_older_than(options), checkpoint.delete_older_than(options)
    if expire_before is not None:
        expirable = find_expirable(lake, versions=None, older_than=expire_before)
        if expirable:
            yield Piece("expire", None, lake.alias, rows=len(expirable))
    if delete_before is not None:
        try:
            count = count_old_files(lake, delete_before)
        except CatalogError:  # of a branch, whose files are not known; the run says which
            count = 1
        if count:
            yield Piece("clean up", None, lake.alias, rows=count)


def _table(transaction: Transaction, table_id: int) -> Table | None:
    table = transaction.state.tables.get(table_id)
    return None if table is None else with_plain_sort_keys(transaction.state, table)


def _newest_before(lake: Lake, connection: sa.Connection, moment: datetime) -> int:
    """Return the newest snapshot at a time; -1 where there was none."""
    try:
        return lake.snapshot(connection, moment).snapshot_id
    except SnapshotNotFoundError:
        return -1

"""expire_snapshots, cleanup_old_files, delete_orphaned_files (spec: maintenance/introduction)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.duckdb.zones import instant
from ducklake_lab.errors import UsageError
from ducklake_lab.maintenance import checkpoint
from ducklake_lab.maintenance.cleanup_old_files import cleanup_old_files
from ducklake_lab.maintenance.delete_orphaned_files import delete_orphaned_files
from ducklake_lab.maintenance.expire_snapshots import expire_snapshots, find_expirable
from ducklake_lab.session.functions.registry import NAMED_ZONE, VARCHAR, Call, Columns, Function, rows_of
from ducklake_lab.session.functions.snapshots import SNAPSHOTS, history_rows

_PATHS: Columns = (("path", VARCHAR),)


def _expire(call: Call) -> pa.Table:
    versions, older_than = call.named("versions"), _moment(call)
    if versions is not None and older_than is not None:
        raise UsageError("expire_snapshots takes versions or older_than, not both at the same time.")
    if versions is None and older_than is None:
        older_than = checkpoint.expire_older_than(checkpoint.read_lake_options(call.lake))
    if versions is not None and not all(isinstance(version, int) for version in versions):
        raise UsageError("expire_snapshots takes a list of snapshot ids as versions, e.g. versions => [2, 3].")
    chosen = find_expirable(call.lake, versions=versions, older_than=older_than)
    if not _flag(call, "dry_run"):
        with call.transactions.writing(call.lake) as transaction:
            chosen = expire_snapshots(transaction, chosen)
    return history_rows(chosen)


def _delete(delete: Callable[..., list[str]]) -> Callable[[Call], pa.Table]:
    def run(call: Call) -> pa.Table:
        older_than, everything = _moment(call), _flag(call, "cleanup_all")
        if everything and older_than is not None:
            raise UsageError(f"{call.name} takes cleanup_all or older_than, not both.")
        if not everything and older_than is None:
            older_than = checkpoint.delete_older_than(checkpoint.read_lake_options(call.lake))
            if older_than is None:
                raise UsageError(
                    f"{call.name} needs cleanup_all => true or older_than => …; "
                    "CALL lake.set_option('delete_older_than', '1 week') sets a default."
                )
        lake: Lake = call.lake
        return rows_of(_PATHS, [(path,) for path in delete(lake, older_than, dry_run=_flag(call, "dry_run"))])

    return run


def _flag(call: Call, name: str) -> bool:
    value = call.named(name, False)
    if not isinstance(value, bool):
        raise UsageError(f"{name} is true or false, not {value!r}.")
    return value


def _moment(call: Call) -> datetime | None:
    value = call.named("older_than")
    if value is None:
        return None
    if not isinstance(value, date | str):
        raise UsageError(f"older_than is a point in time, not {value!r}; write e.g. now() - INTERVAL '1 week'.")
    return instant(value, NAMED_ZONE)


FUNCTIONS = (
    Function("expire_snapshots", SNAPSHOTS, _expire, named=("versions", "older_than", "dry_run"), effects="staged"),
    *(
        Function(name, _PATHS, _delete(delete), named=("older_than", "cleanup_all", "dry_run"), effects="immediate")
        for name, delete in (
            ("cleanup_old_files", cleanup_old_files),
            ("delete_orphaned_files", delete_orphaned_files),
        )
    ),
)

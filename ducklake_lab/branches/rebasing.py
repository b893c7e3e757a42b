"""Makes the catalog and the files of a branch anew, at the newest snapshot of the lake that it began on.

They are made beside those that are there, and take their place in one commit: a rebase that is killed changes nothing, and the
next one, or a drop, removes what it left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

from ducklake_lab.branches.making import check_shared, check_unread, fill_place, open_place, remove_place
from ducklake_lab.branches.remarking import carry_remarks
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.branches.location import catalog_of
from ducklake_lab.catalog.branches.root import Root, root_lake
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.snapshots import read_snapshot
from ducklake_lab.errors import DataFileError, TransactionConflictError


@contextmanager
def rebased(lake: Lake, branch: Branch) -> Iterator[tuple[Lake, Branch]]:
    """Makes the branch anew, opened for the block, which brings its changes over; afterwards it is the branch.

    Args:
        lake: the lake, or the branch, that it began on.

    Raises:
        TransactionConflictError: another client rebased or dropped the branch meanwhile; nothing has changed.
    """
    root = root_lake(lake)
    made = _begin(root, lake, branch)
    opened = open_place(lake, catalog_of(root.lake.location, made.name, made.generation), made)
    try:
        yield opened, made
        _publish(root, lake, branch, made, opened)
    except BaseException:
        opened.database.dispose()
        with root.lake.connect(fresh=True) as connection, suppress(DataFileError):
            lock_for_commit(connection)
            listed = registry.read_branches(connection).get(made.name.casefold())
            if listed is None or listed.generation != made.generation:
                remove_place(root.lake, made.name, made.generation)
        raise


def _begin(root: Root, lake: Lake, branch: Branch) -> Branch:
    """Notes a generation that nobody has, and fills its place."""
    with root.lake.connect(fresh=True) as connection:
        lock_for_commit(connection)
        listed = _listed(root, branch)
        if listed.other != listed.generation:
            remove_place(root.lake, listed.name, listed.other)
        check_unread(root.lake, listed)
        generation = max(listed.generation, listed.other) + 1
        with lake.connect() as reading:
            snapshot = read_snapshot(reading)
        now = datetime.now(UTC)
        made = replace(
            listed, snapshot_id=snapshot.snapshot_id, created=now, generation=generation, other=listed.generation
        )
        registry.write_branch(connection, replace(listed, other=generation))
        fill_place(root.lake, lake, made, snapshot)
        connection.commit()
    check_shared(root.lake, lake, made)
    return made


def _publish(root: Root, lake: Lake, branch: Branch, made: Branch, opened: Lake) -> None:
    """Lists the new generation with the remarks of the former one, which it then removes."""
    with root.lake.connect(fresh=True) as connection:
        lock_for_commit(connection)
        listed = _listed(root, branch)
        if listed.other != made.generation:
            raise TransactionConflictError(
                f'Another client rebased the branch "{branch.name}" meanwhile; run this again.'
            )
        check_unread(root.lake, listed)
        carry_remarks(lake, catalog_of(root.lake.location, branch.name, branch.generation), branch, opened)
        opened.database.dispose()
        registry.write_branch(connection, made)
        connection.commit()
    # it is rebased: files that a store keeps now belong to the generation that the next rebase or a drop removes
    with root.lake.connect(fresh=True) as connection, suppress(DataFileError):
        lock_for_commit(connection)
        remove_place(root.lake, branch.name, branch.generation)


def _listed(root: Root, branch: Branch) -> Branch:
    """The branch as it is listed now, which must be the one that is rebased."""
    with root.lake.connect() as connection:
        listed = registry.read_branches(connection).get(branch.name.casefold())
    if listed is None or (listed.generation, listed.created) != (branch.generation, branch.created):
        raise TransactionConflictError(
            f'Another client rebased or dropped the branch "{branch.name}" meanwhile; run this again.'
        )
    return listed

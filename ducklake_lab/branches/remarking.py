"""Writes remarks into the catalog of a branch, and brings them over when it is made anew."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from ducklake_lab.branches.making import open_place
from ducklake_lab.branches.remarks import Remark, carried, read_remarks, write_remark
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.branches.location import catalog_of
from ducklake_lab.catalog.branches.root import root_lake
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.errors import TransactionConflictError


def change_remarks(lake: Lake, branch: Branch, change: Callable[[sa.Connection], None]) -> list[Remark]:
    """Change the remarks of a branch, in one transaction of its catalog, and return all of them.

    No snapshot is made.

    Args:
        lake: the lake, or the branch, that it began on.
        change: writes or removes remarks by the connection to the branch's catalog.

    Raises:
        TransactionConflictError: another client rebased or dropped the branch meanwhile; nothing has changed.
        TransactionError: the lake is attached for reading alone, or read as of a snapshot.
    """
    lake.check_writable()
    root = root_lake(lake)
    with root.lake.connect(fresh=True) as registering:
        # a rebase brings remarks over under this lock
        lock_for_commit(registering)
        listed = registry.read_branches(registering).get(branch.name.casefold())
        if listed is None or (listed.generation, listed.created) != (branch.generation, branch.created):
            raise TransactionConflictError(
                f'Another client rebased or dropped the branch "{branch.name}" meanwhile; review it again.'
            )
        opened = open_place(lake, catalog_of(root.lake.location, listed.name, listed.generation), listed)
        try:
            with opened.connect(fresh=True) as connection:
                lock_for_commit(connection)
                change(connection)
                found = read_remarks(connection)
                connection.commit()
        finally:
            opened.database.dispose()
    return found


def carry_remarks(lake: Lake, former: CatalogLocation, branch: Branch, made: Lake) -> None:
    """Writes the remarks of a branch into the catalog that takes its place.

    Args:
        former: the location of the branch's catalog until now; the caller holds the lock of its list.
        branch: the branch as it is until now.
        made: the branch as a rebase made it, opened.
    """
    old = open_place(lake, former, branch)
    try:
        with old.connect() as connection:
            remarks = read_remarks(connection)
            if not remarks:
                return
            first_rows = registry.first_row_ids(connection)
            first_id = old.snapshot(connection, branch.snapshot_id).next_catalog_id
            tip = old.state(connection, old.snapshot(connection))
    finally:
        old.database.dispose()
    with made.connect(fresh=True) as connection:
        lock_for_commit(connection)
        state = made.state(connection, made.snapshot(connection))
        table_ids: dict[int, int | None] = {}
        for table_id in {one.table_id for one in remarks if one.table_id is not None and one.table_id >= first_id}:
            table = tip.tables.get(table_id)
            found = state.find_table(tip.schemas[table.schema_id].name, table.name) if table is not None else None
            table_ids[table_id] = found.table_id if found is not None else None
        for remark in carried(remarks, first_rows, table_ids):
            write_remark(connection, remark)
        connection.commit()

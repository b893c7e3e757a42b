"""Makes, finds and drops branches of a lake."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime

import sqlalchemy as sa

from ducklake_lab.branches import copying
from ducklake_lab.branches.catalogs import make_place, remove_catalog
from ducklake_lab.branches.files import (
    Named,
    check_still_named,
    files_to_take,
    name_files,
    take_over_files,
    take_over_folders,
)
from ducklake_lab.branches.remarks import PREFIX as REMARK
from ducklake_lab.branches.trimming import trim_deletions
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog import versions
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch, check_name
from ducklake_lab.catalog.branches.location import catalog_of, files_of
from ducklake_lab.catalog.branches.points import OWN, PREFIX
from ducklake_lab.catalog.branches.root import root_lake
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.locks import lock_for_commit
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.options import read_options
from ducklake_lab.catalog.snapshot_tags import PREFIX as TAG
from ducklake_lab.catalog.uri import CatalogLocation
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.errors import DataFileError, EntryExistsError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_below, is_local
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.storage import Storage
from ducklake_lab.transaction.shared_files import read_shared_files

_storage = Storage()


def list_branches(lake: Lake) -> list[Branch]:
    """Return the branches of a lake, in the order of their names."""
    root = root_lake(lake)
    with root.lake.connect() as connection:
        return list(registry.read_branches(connection).values())


def branch_location(lake: Lake, name: str) -> CatalogLocation:
    """Return the location of a branch's catalog.

    Raises:
        EntryNotFoundError: the lake has no such branch.
    """
    root = root_lake(lake)
    with root.lake.connect() as connection:
        branch = registry.find_branch(connection, name)
    return catalog_of(root.lake.location, branch.name, branch.generation)


@contextmanager
def open_branch(lake: Lake, name: str) -> Iterator[tuple[Lake, Branch]]:
    """Opens a branch of a lake for reading, and yields it with what the lake lists.

    Raises:
        EntryNotFoundError: the lake has no such branch.
        UnsupportedFeatureError: it is the lake itself, or it did not begin on this one.
    """
    root = root_lake(lake)
    with root.lake.connect() as connection:
        branch = registry.find_branch(connection, name)
    own = root.own.name if root.own is not None else None
    if branch.name == own:
        raise UnsupportedFeatureError(
            f'The branch "{own}" is in use and is not merged into itself; switch(None) leads to the lake.'
        )
    if branch.parent != own:
        parent = f'the branch "{branch.parent}"' if branch.parent is not None else "the lake itself"
        raise UnsupportedFeatureError(
            f'The branch "{branch.name}" began on {parent}; switch there before it is reviewed or merged.'
        )
    opened = open_place(lake, catalog_of(root.lake.location, branch.name, branch.generation), branch)
    try:
        yield opened, branch
    finally:
        opened.database.dispose()


def open_place(lake: Lake, location: CatalogLocation, branch: Branch) -> Lake:
    """Opens the catalog of a branch, with the options under which its lake is attached."""
    options = replace(lake.attach_options, data_path=None, override_data_path=False, create_if_not_exists=False)
    options = replace(options, snapshot_version=None, snapshot_time=None)
    opened = open_lake(location, lake.alias, options, lake.session)
    opened.branch = branch.name
    return opened


def make_branch(lake: Lake, name: str, at: int | datetime | str | None = None, *, copy: bool = False) -> Branch:
    """Makes a branch: a lake with the snapshots up to one of this lake, over the same files.

    Args:
        at: the snapshot by id, time or tag; by default the one that is read.
        copy: copy the files. Without it, they are hard links, so that each side may delete its own; in an object store the
            branch names the lake's files, which maintenance of either side then leaves to the other.

    Raises:
        EntryExistsError: there is such a branch.
        UnsupportedFeatureError: see `is_of_newest`.
        DataFileError: a file of the lake is not there.
        TransactionConflictError: snapshots with shared files expired meanwhile; no branch is made.
    """
    check_name(name)
    lake.check_writable()
    root = root_lake(lake)
    with root.lake.connect(fresh=True) as registering:
        lock_for_commit(registering)
        known = registry.read_branches(registering)
        if name.casefold() in known:
            raise EntryExistsError(
                f'The lake has a branch "{known[name.casefold()].name}"; choose another name, or drop it.'
            )
        with lake.connect() as connection:
            snapshot = lake.snapshot(connection, at)
        parent = root.own.name if root.own is not None else None
        is_shared = not copy and not is_local(root.lake.data_path)
        branch = Branch(name, snapshot.snapshot_id, parent, datetime.now(UTC), copy, is_shared)
        fill_place(root.lake, lake, branch, snapshot)
        # if this fails, it may have landed all the same; an unlisted branch is replaced by the next one of its name
        registry.expect_unlisted(registering, branch.name)
        registry.write_branch(registering, branch)
        registering.commit()
    try:
        check_shared(root.lake, lake, branch)
    except BaseException:  # a branch is there only with files that were looked at
        with suppress(DataFileError):
            _remove(root.lake, branch)
        raise
    return branch


def drop_branch(lake: Lake, name: str, *, dry_run: bool = False) -> Branch:
    """Drops a branch with its catalog and its files, and returns it; files of the lake stay.

    Args:
        dry_run: drop nothing.

    Raises:
        EntryNotFoundError: the lake has no such branch.
        UnsupportedFeatureError: it is the lake that the session reads, or another branch reads its files.
        DataFileError: it is dropped, and files of it could not be deleted.
    """
    lake.check_writable()
    root = root_lake(lake)
    with root.lake.connect(fresh=True) as connection:
        lock_for_commit(connection)
        branch = registry.find_branch(connection, name)
        if root.own is not None and root.own.name == branch.name:
            raise UnsupportedFeatureError(
                f'The branch "{branch.name}" is in use; switch to another one, or to the lake with switch(None), first.'
            )
        check_unread(root.lake, branch)
        if dry_run:
            return branch
        registry.remove_branch(connection, branch)
        connection.commit()
    try:
        _remove_places(root.lake, branch)
    except DataFileError as error:
        raise DataFileError(
            f'The branch "{branch.name}" is dropped, and files of it stay: {error} Delete its folder later.'
        ) from None
    return branch


def _remove(root: Lake, branch: Branch) -> None:
    """Takes a branch off the list and removes its place."""
    with root.connect(fresh=True) as connection:
        lock_for_commit(connection)
        registry.remove_branch(connection, branch)
        connection.commit()
    _remove_places(root, branch)


def _remove_places(root: Lake, branch: Branch) -> None:
    # nothing is deleted before the list is known to be without it, nor after another one of its name was made
    with root.connect(fresh=True) as connection:
        lock_for_commit(connection)
        if branch.name.casefold() not in registry.read_branches(connection):
            for generation in {branch.generation, branch.other}:
                remove_place(root, branch.name, generation)


def check_unread(root: Lake, branch: Branch) -> None:
    """Check that no other branch names files of this one.

    Raises:
        UnsupportedFeatureError: one does.
    """
    folder = files_of(root.data_path, branch.name, branch.generation)
    for path, reader in read_shared_files(root, but=branch).items():
        if path.startswith(folder):
            raise UnsupportedFeatureError(
                f'The branch "{reader}" began on "{branch.name}" and reads files of it; drop "{reader}" first.'
            )


def check_shared(root: Lake, lake: Lake, branch: Branch) -> None:
    """Check that a lake still names the files that a branch of it, listed by now, shares.

    Raises:
        TransactionConflictError: see `check_still_named`.
    """
    if not branch.is_shared:
        return
    opened = open_place(lake, catalog_of(root.location, branch.name, branch.generation), branch)
    try:
        check_still_named(lake, opened)
    finally:
        opened.database.dispose()


def remove_place(root: Lake, name: str, generation: int) -> None:
    """Removes a catalog and the files of a branch that is not listed, in a transaction of its own.

    The caller holds the lake's lock with another connection, which may be about to make the branch anew.
    """
    with root.connect(fresh=True) as connection:
        remove_catalog(connection, catalog_of(root.location, name, generation))
        connection.commit()
    folder = files_of(root.data_path, name, generation).rstrip("/")
    if not is_below(folder, folder.rpartition("/")[0]):
        raise DataFileError(f"The folder {folder} of a branch is a link that leads elsewhere; remove the link.")
    _storage.delete_folder(folder)


def fill_place(root: Lake, lake: Lake, branch: Branch, snapshot: Snapshot) -> None:
    """Makes the catalog and the files of a branch that is not listed, in place of what was not finished there.

    The caller holds the lock of `root` with another connection.

    Args:
        lake: the lake, or the branch, that it begins on.

    Raises:
        UnsupportedFeatureError: see `is_of_newest`.
    """
    location = catalog_of(root.location, branch.name, branch.generation)
    data_path = files_of(root.data_path, branch.name, branch.generation)
    remove_place(root, branch.name, branch.generation)
    try:
        _fill(lake, location, branch, snapshot, data_path)
    except BaseException:
        with suppress(DataFileError):  # what a store keeps is removed by the next attempt
            remove_place(root, branch.name, branch.generation)
        raise


def _fill(lake: Lake, location: CatalogLocation, branch: Branch, snapshot: Snapshot, data_path: str) -> None:
    database = CatalogDatabase(location)
    try:
        taking: Future[None] | None = None
        # files get their names while metadata is copied; nothing lists the branch before both are done
        with ThreadPoolExecutor(1) as pool, lake.connect() as connection:
            make_place(connection, location)
            with database.connect(create=True) as target:
                versions.begin(target, lake.version)
                if database.backend == "postgresql":
                    # all tables as of one moment, whoever commits meanwhile
                    target.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                named = Named()
                with copying.reading(lake, connection, target, snapshot) as source:
                    inlined = copying.define_metadata(source)
                    is_newest = copying.is_of_newest(source)
                    folders = take_over_folders(source, data_path, named)
                    if not branch.is_shared:
                        files = files_to_take(source, folders, data_path, named)
                        taking = pool.submit(take_over_files, files, copy=branch.is_copied)
                    unbounded = set() if is_newest else copying.tables_with_later_ends(source, inlined)
                    copying.copy_metadata(source, inlined, unbounded)
                target.commit()
                target.begin()
                writes = Writes(target)
                named.write(writes)
                trimmed: Collection[int] = ()
                if not is_newest:
                    copying.count_ids_anew(writes, snapshot)
                    copying.count_rows_anew(writes)
                    targets = {table_id: folder.target for table_id, folder in folders.items()}
                    trimmed = trim_deletions(lake, connection, writes, snapshot, targets, is_shared=branch.is_shared)
                if branch.is_shared:
                    name_files(writes, folders, trimmed)
                _copy_options(connection, writes, snapshot, data_path)
                registry.write_own(writes, branch)
                writes.flush()
                target.commit()
            if taking is not None:
                taking.result()
    finally:
        database.dispose()


def _copy_options(connection: sa.Connection, writes: Writes, snapshot: Snapshot, data_path: str) -> None:
    """Copies options of the lake and of entries that the branch has, and the tags of its snapshots."""
    rows: list[dict[str, object]] = []
    for scope, scope_id, key, value in read_options(connection):
        is_later = key.startswith(TAG) and (not value.isdecimal() or int(value) > snapshot.snapshot_id)
        is_of_branches = key.startswith((PREFIX, registry.MERGED, REMARK)) or key in (OWN, registry.ROWS)
        # the branch gives these ids to entries of its own
        is_of_later = scope_id is not None and scope_id >= snapshot.next_catalog_id
        if not is_later and not is_of_later and not is_of_branches:
            stored = data_path if key == "data_path" and scope is None else value
            rows.append({"key": key, "value": stored, "scope": scope, "scope_id": scope_id})
    writes.insert_many(t.lake_metadata, rows)

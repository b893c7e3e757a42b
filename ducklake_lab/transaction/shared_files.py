"""Files that several catalogs name: a lake in an object store shares them with its branches (ADR 96).

A branch is listed before its files are trusted, and afterwards its lake still has to name each of them. So whoever deletes files
that a lake no longer needs reads them first and the list of branches second, and takes no lock.
"""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.branches.location import catalog_of
from ducklake_lab.catalog.branches.root import root_lake
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.errors import CatalogError, CatalogNotFoundError
from ducklake_lab.file_paths import is_local

_FILES = (t.data_file, t.delete_file)


def read_shared_files(lake: Lake, but: Branch | None = None) -> dict[str, str]:
    """Return the names of branches by the absolute paths of files that they name and that another catalog may delete.

    Each branch of the lake counts, or of the lake that this one is a branch of; this one does not.

    Args:
        but: another branch that does not count.

    Raises:
        CatalogError: the catalog of a branch cannot be read, so that its files are not known.
    """
    if is_local(lake.data_path):
        return {}
    root = root_lake(lake)
    own = {branch.name for branch in (root.own, but) if branch is not None}
    found: dict[str, str] = {}
    try:
        with root.lake.connect() as connection:
            branches = registry.read_branches(connection)
        for branch in branches.values():
            if branch.is_shared and branch.name not in own:
                found.update(dict.fromkeys(_files_of(root.lake, branch), branch.name))
    finally:
        if root.lake is not lake:
            root.lake.database.dispose()
    return found


def _files_of(root: Lake, branch: Branch) -> set[str]:
    """Return the files elsewhere that a branch names, also as a rebase makes it at the moment."""
    found = _named_in(root, branch, branch.generation)
    if found is None:
        raise CatalogError(
            f'The branch "{branch.name}" shares files of the lake, and its catalog is missing; '
            "no file is deleted until it is there again, or the branch is dropped."
        )
    if branch.other != branch.generation:
        found |= _named_in(root, branch, branch.other) or set()
    return found


def _named_in(root: Lake, branch: Branch, generation: int) -> set[str] | None:
    """Return the files of one generation; None where there is no catalog."""
    location = catalog_of(root.location, branch.name, generation)
    try:
        opened = open_lake(location, root.alias, AttachOptions(create_if_not_exists=False), root.session)
    except CatalogNotFoundError:
        return None
    try:
        with opened.connect() as connection:
            return {
                path
                for files in _FILES
                for path in connection.scalars(sa.select(files.c.path).where(files.c.path_is_relative == sa.false()))
            }
    finally:
        opened.database.dispose()

"""Opens the lake that branches belong to."""

from __future__ import annotations

from dataclasses import dataclass

from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.branches import registry
from ducklake_lab.catalog.branches.branch import Branch
from ducklake_lab.catalog.branches.location import root_of
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.opening import open_lake


@dataclass(frozen=True, slots=True)
class Root:
    """The lake that branches belong to, opened from the lake itself or from one of its branches.

    Attributes:
        lake: the lake.
        own: the branch that it was opened from; None for the lake itself.
    """

    lake: Lake
    own: Branch | None


def root_lake(lake: Lake) -> Root:
    """Return the lake that a lake is a branch of; itself where it is none.

    Raises:
        CatalogNotFoundError: the lake was moved away from its branch.
    """
    with lake.connect() as connection:
        own = registry.own_branch(connection)
    if own is None:
        return Root(lake, None)
    location = root_of(lake.location, own)
    return Root(open_lake(location, lake.alias, AttachOptions(create_if_not_exists=False), lake.session), own)

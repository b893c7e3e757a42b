"""The branches of a lake, kept among its options, where other clients leave them alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.branches.branch import Branch, read_branch
from ducklake_lab.catalog.branches.points import OWN, PREFIX
from ducklake_lab.catalog.options import OptionRow, Scope, write_option
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.errors import CatalogError, EntryNotFoundError, did_you_mean

#: Values of options by their scope and name.
Options = Mapping[tuple[Scope, str], str | None]
#: Option of a branch's own catalog; its value lists tables with the first row id that the branch gives out: `3:100,5:7`.
ROWS = "ducklake_lab_branch_rows"
#: Prefix of options of the lake, or branch, into which a branch was merged; the rest of the key is its name.
MERGED = "ducklake_lab_merged:"
#: Value of `ROWS`; ids are 64-bit integers.
_ROWS = re.compile(r"(\d{1,18}:\d{1,18}(,\d{1,18}:\d{1,18})*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class MergedUpTo:
    """Up to where a branch was merged, as the lake that it was merged into says.

    Attributes:
        key: of the option.
        text: the option's value in the catalog; None where it is not set.
        snapshot_id: the last of the branch's snapshots that was merged; None where none was.
    """

    key: str
    text: str | None
    snapshot_id: int | None

    @staticmethod
    def value(branch: Branch, snapshot_id: int) -> str:
        """Return the option's value after a merge. A later branch of the same name has another one."""
        return f"{branch.created.isoformat()} {branch.generation} {snapshot_id}"


def read_merged(connection: sa.Connection, branch: Branch, staged: Options = MappingProxyType({})) -> MergedUpTo:
    """Return up to where a branch was merged into a lake.

    Args:
        staged: options that an open transaction sets; it may have merged the branch.
    """
    m = t.lake_metadata
    key = MERGED + branch.name.casefold()
    text = connection.scalar(sa.select(m.c.value).where(m.c.scope.is_(None), m.c.key == key))
    own, _, snapshot = str(staged.get(((None, None), key), text) or "").rpartition(" ")
    is_own = own == MergedUpTo.value(branch, 0).rpartition(" ")[0] and re.fullmatch(r"\d{1,18}", snapshot, re.ASCII)
    return MergedUpTo(key, text, int(snapshot) if is_own else None)


def read_branches(connection: sa.Connection) -> dict[str, Branch]:
    """Return the branches of a lake by their names in lower case, in the order of the names."""
    m = t.lake_metadata
    query = sa.select(m.c.key, m.c.value).where(m.c.scope.is_(None), m.c.key.startswith(PREFIX, autoescape=True))
    read = (read_branch(str(key)[len(PREFIX) :], str(value)) for key, value in connection.execute(query))
    return {
        branch.name.casefold(): branch for branch in sorted((b for b in read if b), key=lambda b: b.name.casefold())
    }


def find_branch(connection: sa.Connection, name: str) -> Branch:
    """Return the branch of a name.

    Raises:
        EntryNotFoundError: the lake has no such branch.
    """
    branches = read_branches(connection)
    if name.casefold() not in branches:
        names = [branch.name for branch in branches.values()]
        hint = did_you_mean(name, names) or (f" It has {', '.join(names[:5])}." if names else " It has none.")
        raise EntryNotFoundError(f'The lake has no branch "{name}".{hint}')
    return branches[name.casefold()]


def write_branch(connection: sa.Connection, branch: Branch) -> None:
    """List a branch; the caller commits."""
    write_option(connection, (None, None), PREFIX + branch.name, branch.json())


def expect_unlisted(connection: sa.Connection, name: str) -> None:
    """Have the commit refused where somebody lists a branch of a name meanwhile; see `Writes.expect`."""
    m = t.lake_metadata.c
    named = sa.func.lower(m.key) == (PREFIX + name).lower()
    Writes(connection).expect(sa.select(sa.func.count()).where(m.scope.is_(None), named), 0)


def remove_branch(connection: sa.Connection, branch: Branch) -> None:
    """Take a branch off the list; the caller commits."""
    write_option(connection, (None, None), PREFIX + branch.name, None)


def own_branch(connection: sa.Connection) -> Branch | None:
    """Return the branch that a catalog is; None for a lake's own catalog."""
    m = t.lake_metadata
    text = connection.scalar(sa.select(m.c.value).where(m.c.scope.is_(None), m.c.key == OWN))
    name, line, rest = str(text or "").partition("\n")
    return read_branch(name, rest) if line else None


def may_share_files(options: Sequence[OptionRow]) -> bool:
    """Whether another catalog may name files of a lake in an object store, by the lake's options.

    A branch always may: the lake alone lists the branches that began on it.
    """
    lines = [(key, value) for scope, _, key, value in options if scope is None]
    listed = (read_branch(key[len(PREFIX) :], value) for key, value in lines if key.startswith(PREFIX))
    return any(key == OWN for key, _ in lines) or any(branch is not None and branch.is_shared for branch in listed)


def write_own(writes: Writes, branch: Branch) -> None:
    """Note in a branch's catalog, which has no options yet, which branch it is, and where its row ids begin."""
    s = t.table_stats
    first = writes.connection.execute(sa.select(s.c.table_id, s.c.next_row_id).order_by(s.c.table_id))
    row_ids = ",".join(f"{table_id}:{row_id}" for table_id, row_id in first)
    for key, value in ((OWN, f"{branch.name}\n{branch.json()}"), (ROWS, row_ids)):
        writes.insert(t.lake_metadata, key=key, value=value, scope=None, scope_id=None)


def first_row_ids(connection: sa.Connection) -> dict[int, int]:
    """Return the first row id that a branch gives out in each table of its lake, by table id.

    A table that is absent from it had no rows.

    Raises:
        CatalogError: the option is missing or another client has changed it; rows of both sides could not be kept apart.
    """
    m = t.lake_metadata
    text = connection.scalar(sa.select(m.c.value).where(m.c.scope.is_(None), m.c.key == ROWS))
    if text is None or not _ROWS.fullmatch(text):
        state = "missing" if text is None else "not as it was written"
        raise CatalogError(
            f"The branch's option {ROWS} is {state}, so that its new rows are not known; make a new branch, and bring the "
            "changes there with a patch: session.diff(…).patch()."
        )
    return {int(table_id): int(row_id) for table_id, row_id in (pair.split(":") for pair in text.split(",") if pair)}

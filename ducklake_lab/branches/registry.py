"""The branches of a lake, kept among its options, where other clients leave them alone."""

from __future__ import annotations

import sqlalchemy as sa

from ducklake_lab.branches.branch import Branch, read_branch
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.options import write_option
from ducklake_lab.errors import EntryNotFoundError, did_you_mean

#: Prefix of options that list branches; the rest of the key is the name.
PREFIX = "ducklake_lab_branch:"
#: Option of a branch's own catalog; its value is the branch's name, a line break, and what its lake lists.
OWN = "ducklake_lab_branch_of"


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
        known = [branch.name for branch in branches.values()]
        hint = did_you_mean(name, known) or (f" It has {', '.join(known[:5])}." if known else " It has none.")
        raise EntryNotFoundError(f'The lake has no branch "{name}".{hint}')
    return branches[name.casefold()]


def write_branch(connection: sa.Connection, branch: Branch) -> None:
    """List a branch; the caller commits."""
    write_option(connection, (None, None), PREFIX + branch.name, branch.json())


def remove_branch(connection: sa.Connection, branch: Branch) -> None:
    """Take a branch off the list; the caller commits."""
    write_option(connection, (None, None), PREFIX + branch.name, None)


def own_branch(connection: sa.Connection) -> Branch | None:
    """Return the branch that a catalog is; None for a lake's own catalog."""
    m = t.lake_metadata
    text = connection.scalar(sa.select(m.c.value).where(m.c.scope.is_(None), m.c.key == OWN))
    name, line, rest = str(text or "").partition("\n")
    return read_branch(name, rest) if line else None


def write_own(connection: sa.Connection, branch: Branch) -> None:
    """Note in a branch's catalog which branch it is; the caller commits."""
    write_option(connection, (None, None), OWN, f"{branch.name}\n{branch.json()}")

"""A branch as the catalog of its lake lists it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime

from ducklake_lab.errors import UsageError

#: Letters, digits, `.`, `_` and `-`: a branch names files, schemas and databases, and stands in URIs after `#`.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,39}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of a lake.

    Attributes:
        name: its name; upper and lower case are one.
        snapshot_id: the snapshot it began at.
        parent: the branch that it began on; None for the lake itself.
        created: the time, in UTC.
        is_copied: its files are copies, and no links.
        is_shared: its catalog names files of its lake, which an object store keeps.
        generation: a number of its catalog and its files; a rebase makes others beside them.
        other: another generation, which a rebase makes or has left; 0 as `generation` for none.
    """

    name: str
    snapshot_id: int
    parent: str | None
    created: datetime
    is_copied: bool = False
    is_shared: bool = False
    generation: int = 0
    other: int = 0

    @property
    def files(self) -> str:
        """Say how it has its lake's files: links, copies or shared."""
        return "copies" if self.is_copied else "shared" if self.is_shared else "links"

    @property
    def place(self) -> str:
        """The name of its catalog and its files."""
        return place_of(self.name, self.generation)

    def json(self) -> str:
        """Return the branch as text, without its name."""
        return json.dumps(
            {
                "snapshot": self.snapshot_id,
                "parent": self.parent,
                "created": self.created.isoformat(),
                "is_copied": self.is_copied,
                "is_shared": self.is_shared,
                "generation": self.generation,
                "other": self.other,
            }
        )


def place_of(name: str, generation: int = 0) -> str:
    """Return the name of the catalog and the files of a branch; no name of a branch has a `~`."""
    return name.casefold() + (f"~{generation}" if generation else "")


def read_branch(name: str, text: str) -> Branch | None:
    """Return the branch that a text describes; None for a text of another kind."""
    try:
        given = json.loads(text)
        parent = given["parent"]
        branch = Branch(
            name,
            int(given["snapshot"]),
            parent,
            datetime.fromisoformat(given["created"]),
            given.get("is_copied") is True,
            given.get("is_shared") is True,
            int(given.get("generation", 0)),
            int(given.get("other", 0)),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    # the text names places on this machine
    names = [name] if parent is None else [name, parent]
    is_valid = (
        all(isinstance(text, str) and _NAME.fullmatch(text) for text in names)
        and min(branch.generation, branch.other) >= 0
    )
    return branch if is_valid else None


def is_name(text: str) -> bool:
    """Whether a text can name a branch."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str) -> str:
    """Check that a branch can have a name, and return it.

    Raises:
        UsageError: it cannot.
    """
    if not is_name(name):
        raise UsageError(
            f'"{name[:60]}" cannot name a branch; use up to 40 letters, digits, "-", "_" and ".", and begin with a letter or digit.'
        )
    return name

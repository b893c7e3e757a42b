"""Pins of lakes that a notebook keeps in its metadata: `metadata.ducklake.pins`, a list of `{lake, alias, at}`.

The kernel reads them from the notebook's file when it connects to a lake. JupyterLab's extension writes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ducklake_lab.errors import SnapshotNotFoundError
from ducklake_lab.magics.notebook import path_of
from ducklake_lab.model.snapshot_names import named_snapshot

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ducklake_lab.catalog.lake import Lake

#: Bytes of the largest notebook that is read, and characters of a pin.
_LARGEST, _LONGEST = 200_000_000, 200

Origin = Literal["kernel", "notebook", "left out"]


class Pinned(Protocol):
    """The parts of a session that pins need."""

    @property
    def current_lake(self) -> Lake: ...
    def pin(self, at: Any, lake: str | None = None) -> Any: ...


@dataclass(slots=True)
class NotebookPins:
    """The pins of a notebook, as its file has them, and as this kernel changed them since.

    Attributes:
        path: returns the notebook's file; None where it is not known.
        known: what this kernel did about each lake, by the lake's identity: the snapshot by name, None where it is unpinned, and why.
    """

    path: Callable[[], Path | None] = lambda: None
    known: dict[str, tuple[str | None, Origin]] = field(default_factory=dict)

    def apply(self, session: Pinned, *, leave_out: bool) -> None:
        """Pins the current lake as the notebook says, after it was attached.

        Args:
            leave_out: read the newest snapshot all the same.

        Raises:
            SnapshotNotFoundError: the lake has no such snapshot; it is not read as of another one.
        """
        kept = _read(self.path())
        if not kept and not self.known:
            return
        lake = session.current_lake
        if lake.at is not None:
            return  # a snapshot that the user or the environment names comes first
        identity = identity_of(session)
        if leave_out:
            self.known[identity] = None, "left out"
            return
        known, origin = self.known.get(identity, (None, "notebook"))
        at = known if origin == "kernel" else kept.get(identity)
        if at is None:
            return
        try:
            session.pin(named_snapshot(at), lake.alias)
        except SnapshotNotFoundError as error:
            raise SnapshotNotFoundError(
                f'The notebook pins {lake.alias} at "{at}": {error} %ducklake connect … --no-pin connects without the pin, '
                "and %ducklake pin --off takes it from the notebook."
            ) from None
        self.known[identity] = at, "kernel" if origin == "kernel" else "notebook"

    def keep(self, session: Pinned, at: str | None) -> None:
        """Notes a pin of the current lake, or with None its end, for the notebook."""
        self.known[identity_of(session)] = at, "kernel"

    def take(self, session: Pinned, at: str) -> None:
        """Pins the current lake as a page says, whose notebook was not saved since.

        Raises:
            DuckLakeError: the lake has no such snapshot, or a transaction is open.
        """
        session.pin(named_snapshot(at[:_LONGEST]))
        self.known[identity_of(session)] = at[:_LONGEST], "notebook"


def identity_of(session: Pinned) -> str:
    """Return what names the current lake wherever its catalog is."""
    from ducklake_lab.catalog.identity import identity

    lake = session.current_lake
    return identity(lake, lake.read_newest())


def pins_of(shell: InteractiveShell, environment: Mapping[str, str] = os.environ) -> NotebookPins:
    """Return the pins of the notebook that a shell runs."""
    return NotebookPins(lambda: path_of(shell, environment))


def _read(path: Path | None) -> dict[str, str]:
    """Return the pins in a notebook's file by the identities of lakes; {} where it cannot be read, as of an unsaved one."""
    try:
        if path is None or path.suffix != ".ipynb" or path.stat().st_size > _LARGEST:
            return {}
        notebook = json.loads(path.read_text(encoding="utf-8"))
        pins = notebook["metadata"]["ducklake"]["pins"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {one["lake"]: one["at"] for one in pins if _is_pin(one)} if isinstance(pins, list) else {}


def _is_pin(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("lake"), str)
        and isinstance(one.get("at"), str)
        and 0 < len(one["at"]) <= _LONGEST
    )

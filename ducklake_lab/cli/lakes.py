"""The lake and the snapshots that the words of a command name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, overload

from ducklake_lab.errors import UsageError

if TYPE_CHECKING:
    from ducklake_lab.session import Session


def attach(session: Session, given: argparse.Namespace, *, read_only: bool = True) -> None:
    """Attaches the lake of a command with `add_data_path`."""
    session.attach(
        uri(given.lake),
        data_path=given.data_path,
        override_data_path=given.data_path is not None,
        read_only=read_only,
        create_if_not_exists=False,
    )


def uri(given: str) -> str:
    """Returns the URI of a lake, which may be given by its file."""
    return given if ":" in given else f"ducklake:{given}"


def parsed(given: str) -> int | datetime | None:
    """Returns a snapshot id or a time; None where it is neither."""
    readers: tuple[Callable[[str], int | datetime], ...] = (int, datetime.fromisoformat)
    for read in readers:
        try:
            return read(given)
        except ValueError:
            continue
    return None


@overload
def at(session: Session, given: str) -> int | datetime | str: ...
@overload
def at(session: Session, given: None) -> None: ...
def at(session: Session, given: str | None) -> int | datetime | str | None:
    """Returns a snapshot id, where a negative one counts from the newest, a time or a tag; None for None."""
    if given is None or parsed(given) is None:
        return given
    return moment(given, session.current_snapshot().snapshot_id)


def moment(given: str, newest: int) -> int | datetime:
    """Returns a snapshot id, where a negative one counts from the newest, or a time.

    Raises:
        UsageError: it is neither, or counts back beyond the first snapshot.
    """
    point = parsed(given)
    if point is None:
        raise UsageError(f'"{given}" is neither a snapshot id nor a time such as "2026-03-02 09:30".')
    if isinstance(point, datetime):
        return point
    if point < -newest:
        raise UsageError(
            f"There is no snapshot {point}: the newest is {newest}, and -{newest} counts back to the first."
        )
    return point if point >= 0 else newest + point

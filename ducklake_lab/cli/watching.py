"""Commands that go on until Ctrl-C; an error is printed, and the next look tries again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ducklake_lab.cli.lakes import attach
from ducklake_lab.errors import CatalogLockedError, DuckLakeError

if TYPE_CHECKING:
    from ducklake_lab.session import Session


def attach_patiently(session: Session, given: argparse.Namespace, every: float) -> None:
    """Attaches the lake of a command for writing, and waits while another process has its catalog file open.

    Args:
        every: seconds between two tries.
    """
    while True:
        try:
            return attach(session, given, read_only=False)
        except CatalogLockedError as error:
            _say(error)
        time.sleep(every)


def watch(look: Callable[[], None], every: float) -> None:
    """Looks again and again, with some seconds between; it never returns."""
    while True:
        try:
            look()
        except DuckLakeError as error:
            _say(error)
        time.sleep(every)


def _say(error: DuckLakeError) -> None:
    print(f"ducklake-lab: {error}", file=sys.stderr, flush=True)

"""The subcommand that lists, explains and refreshes live tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from ducklake_lab.model.quoting import quoted_name

if TYPE_CHECKING:
    from ducklake_lab.magics.session import LakeSession


def add_arguments(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Adds the subcommand to a parser."""
    live = add("live", "live tables with their queries; of one, what a refresh would read")
    live.add_argument("table", metavar="TABLE", nargs="?", help="all live tables if left out")
    live.add_argument("--refresh", action="store_true", help="bring it, or all, to the newest snapshot")


class LiveCommands:
    """Runs this subcommand."""

    _session: Callable[[], LakeSession]

    def _run_live(self, given: argparse.Namespace) -> object:
        session = self._session()
        name = quoted_name(given.table) if given.table is not None else "ALL"
        if given.refresh:
            return session.sql(f"REFRESH {name}")
        return session.live() if given.table is None else session.sql(f"EXPLAIN REFRESH {name}")

"""`refresh`: brings live tables to the newest snapshot, once or as the lake moves on."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from ducklake_lab.cli.arguments import DONE, Commands, add_data_path, add_output
from ducklake_lab.cli.lakes import attach
from ducklake_lab.cli.output import write_rows
from ducklake_lab.errors import CatalogLockedError, DuckLakeError
from ducklake_lab.model.quoting import quoted_name

if TYPE_CHECKING:
    from ducklake_lab.session import Session


def add_refresh(commands: Commands) -> None:
    refresh = commands.add(
        "refresh",
        "bring live tables to the newest snapshot",
        _refresh,
        "lake.ducklake",
        "lake.ducklake daily --explain",
        "lake.ducklake --watch --every 10",
    )
    refresh.add_argument("table", metavar="TABLE", nargs="?", help="only this live table, as table or schema.table")
    refresh.set_defaults(optional=("table",))
    refresh.add_argument("--explain", action="store_true", help="print what would be read, and why; change nothing")
    refresh.add_argument("--watch", action="store_true", help="refresh again whenever the lake has a new snapshot")
    refresh.add_argument(
        "--every", type=_seconds, default=5.0, metavar="SECONDS", help="with --watch, how often to look (5)"
    )
    refresh.add_argument("--engine", choices=("auto", "duckdb", "spark"), default="auto", help="the engine (auto)")
    add_data_path(refresh)
    add_output(refresh)


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f'takes a number of seconds above 0, not "{given}"')
    return seconds


def _refresh(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine=given.engine) as session:
        _attach(session, given)
        name = quoted_name(given.table) if given.table is not None else "ALL"
        if given.watch and not given.explain:
            _watch(session, given, name)
        write_rows(session.sql(f"{'EXPLAIN ' if given.explain else ''}REFRESH {name}"), given)
    return DONE


def _attach(session: Session, given: argparse.Namespace) -> None:
    """Attaches the lake; a watcher waits for a catalog file that another process has open for a moment."""
    while True:
        try:
            return attach(session, given, read_only=given.explain)
        except CatalogLockedError as error:
            if not given.watch:
                raise
            print(f"ducklake-lab: {error}", file=sys.stderr, flush=True)
        time.sleep(given.every)


def _watch(session: Session, given: argparse.Namespace, name: str) -> None:
    """Refreshes whenever the lake has a new snapshot, until Ctrl-C; an error is printed, and the next look tries again."""
    seen = -1
    while True:
        try:
            newest = session.current_snapshot().snapshot_id
            if newest != seen:
                done = session.sql(f"REFRESH {name}")
                seen = session.current_snapshot().snapshot_id
                if any(mode != "nothing" for mode in done.carried().column("mode").to_pylist()):
                    write_rows(done, given)
        except DuckLakeError as error:
            print(f"ducklake-lab: {error}", file=sys.stderr, flush=True)
        time.sleep(given.every)

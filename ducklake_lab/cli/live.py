"""`refresh`: brings live tables to the newest snapshot, once or as the lake moves on."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from ducklake_lab.cli.arguments import DONE, Commands, add_data_path, add_output
from ducklake_lab.cli.lakes import attach
from ducklake_lab.cli.output import write_rows
from ducklake_lab.cli.watching import attach_patiently, watch
from ducklake_lab.errors import RefreshError
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
        name = quoted_name(given.table) if given.table is not None else "ALL"
        if given.watch and not given.explain:
            attach_patiently(session, given, given.every)
            _watch(session, given, name)
        attach(session, given, read_only=given.explain)
        write_rows(session.sql(f"{'EXPLAIN ' if given.explain else ''}REFRESH {name}"), given)
    return DONE


def _watch(session: Session, given: argparse.Namespace, name: str) -> None:
    """Refreshes whenever the lake has a new snapshot."""
    import pyarrow as pa

    from ducklake_lab.engine.rows import InMemory
    from ducklake_lab.session.rows.result import Result

    seen = -1

    def look() -> None:
        nonlocal seen
        if session.current_snapshot().snapshot_id == seen:
            return
        try:
            done = session.sql(f"REFRESH {name}")
        except RefreshError as error:
            if any(one.mode != "nothing" for one in error.done):
                write_rows(Result(InMemory(pa.Table.from_pylist(list(map(asdict, error.done))))), given)
            raise
        seen = session.current_snapshot().snapshot_id
        if any(mode != "nothing" for mode in done.carried().column("mode").to_pylist()):
            write_rows(done, given)

    watch(look, given.every)

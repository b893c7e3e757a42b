"""`autopilot`: maintains a lake by its policy, once or again and again."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ducklake_lab.autopilot.policy import parsed
from ducklake_lab.cli.arguments import DONE, Commands, add_data_path, add_json
from ducklake_lab.cli.lakes import attach
from ducklake_lab.cli.output import write
from ducklake_lab.cli.watching import attach_patiently, watch

if TYPE_CHECKING:
    from ducklake_lab.session import Session


def add_autopilot(commands: Commands) -> None:
    autopilot = commands.add(
        "autopilot",
        "maintain a lake by its policy; without --once or --watch show the plan",
        _autopilot,
        "lake.ducklake",
        "lake.ducklake --set enabled=true --set hours=22-6",
        "lake.ducklake --once --json",
        "lake.ducklake --watch 60",
    )
    when = autopilot.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="run the plan of the tables whose policy is enabled")
    when.add_argument("--watch", type=_seconds, metavar="SECONDS", help="run it again after that many seconds")
    when.add_argument("--set", action="append", metavar="NAME=VALUE", help="store a setting of the lake's policy")
    add_data_path(autopilot)
    add_json(autopilot)


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e7:
        raise argparse.ArgumentTypeError(f'takes a number of seconds above 0, not "{given}"')
    return seconds


def _autopilot(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session() as session:
        if given.watch is not None:
            attach_patiently(session, given, given.watch)
            watch(lambda: _print(session, given, dry_run=False), given.watch)
        attach(session, given, read_only=not (given.once or given.set))
        if given.set:
            write([f"{session.set_policy(dict(map(parsed, given.set)))}\n"])
        else:
            _print(session, given, dry_run=not given.once)
    return DONE


def _print(session: Session, given: argparse.Namespace, *, dry_run: bool) -> None:
    report = session.autopilot(dry_run=dry_run, only_enabled=not dry_run)
    if given.json:
        write([json.dumps(list(report)), "\n"])
    elif report:
        write([f"{report}\n"])
    elif dry_run:
        write(["Nothing to do.\n"])

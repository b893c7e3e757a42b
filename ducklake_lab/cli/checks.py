"""`check` and `lineage`: whether rows fulfil the expectations of their table, and what columns come from and lead to."""

from __future__ import annotations

import argparse
import sys

from ducklake_lab.cli.arguments import DIFFERENT, DONE, SNAPSHOT, Commands, add_data_path, add_output
from ducklake_lab.cli.lakes import at, attach
from ducklake_lab.cli.output import write_rows


def add_check(commands: Commands) -> None:
    check = commands.add(
        "check",
        "check the rows of a table by its expectations",
        _check,
        "lake.ducklake orders",
        "lake.ducklake orders --since 12 --json",
        codes="0 all are fulfilled, or only warn, 1 one is violated",
    )
    check.add_argument(
        "table", metavar="TABLE", nargs="?", help="table or schema.table; all with expectations if left out"
    )
    check.add_argument("--since", metavar="SNAPSHOT", help=f"check only rows that came after {SNAPSHOT}")
    check.set_defaults(optional=("table",))
    add_data_path(check)
    add_output(check)


def add_lineage(commands: Commands) -> None:
    lineage = commands.add(
        "lineage",
        "list what a table or column comes from, and what depends on it",
        _lineage,
        "lake.ducklake orders.amount",
        "lake.ducklake daily --json",
    )
    lineage.add_argument("name", metavar="NAME", nargs="?", help="table, table.column; the whole lake if left out")
    lineage.set_defaults(optional=("name",))
    add_data_path(lineage)
    add_output(lineage)


def _check(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given)
        checked = session.check(given.table, since=at(session, given.since))
        write_rows(checked, given)
        failed = any(not outcome.passed and outcome.expectation.on != "warn" for outcome in checked.outcomes)
    return DIFFERENT if failed else DONE


def _lineage(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given)
        traced = session.lineage(given.name)
        write_rows(traced, given)
        for remark in traced.info.remarks:
            print(f"ducklake-lab: {remark}", file=sys.stderr)
    return DONE

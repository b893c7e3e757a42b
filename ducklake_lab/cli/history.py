"""`snapshots` and `blame`: the history of a lake, of a table and of its cells."""

from __future__ import annotations

import argparse

from ducklake_lab.cli.arguments import DONE, SNAPSHOT, Commands, add_data_path, add_output, listed
from ducklake_lab.cli.lakes import at, attach
from ducklake_lab.cli.output import limit, write_rows


def add_snapshots(commands: Commands) -> None:
    snapshots = commands.add(
        "snapshots",
        "list the snapshots of a lake, or of a table, oldest first, with what each changed",
        _snapshots,
        "lake.ducklake",
        "lake.ducklake flights --limit 5 --json",
    )
    snapshots.add_argument("table", metavar="TABLE", nargs="?", help="only the snapshots that changed it")
    snapshots.set_defaults(optional=("table",))
    add_data_path(snapshots)
    add_output(snapshots, "the newest snapshots")


def add_blame(commands: Commands) -> None:
    blame = commands.add(
        "blame",
        "show who set each cell of a table's rows, in which snapshot, and the value before",
        _blame,
        "lake.ducklake flights --where \"tailnum = 'N216JB'\" --columns dep_time,arr_time --at 12 --json",
    )
    blame.add_argument("table", metavar="TABLE", help="table or schema.table")
    blame.add_argument("--where", metavar="CONDITION", help="only the rows that fulfil it, in DuckDB's SQL")
    blame.add_argument("--columns", metavar="COLUMNS", help="only these columns, comma between")
    blame.add_argument("--at", metavar="SNAPSHOT", help=f"blame the rows as of {SNAPSHOT}")
    add_data_path(blame)
    add_output(blame)


def _snapshots(given: argparse.Namespace) -> int:
    from ducklake_lab.engine.rows import InMemory
    from ducklake_lab.session import Session
    from ducklake_lab.session.rows.result import Result
    from ducklake_lab.widgets.html import counted

    with Session(engine="duckdb") as session:
        attach(session, given)
        most = limit(given)
        # one more says whether there are more
        snapshots = session.snapshots(given.table, None if most is None else most + 1)
        more = most is not None and len(snapshots) > most
        rows = snapshots.arrow().slice(1 if more else 0)
        extent = counted(rows.num_rows, "snapshot")
        footer = f"newest {extent}; older ones exist: --limit shows more" if more else extent
        write_rows(Result(InMemory(rows)), given, lambda: footer)
    return DONE


def _blame(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    with Session(engine="duckdb") as session:
        attach(session, given)
        table = session.table(given.table, at=at(session, given.at))
        write_rows(table.blame(given.where, listed(given.columns)), given)
    return DONE

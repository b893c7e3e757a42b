"""`sql` and `when`: rows of statements, and the snapshots at which an answer changed."""

from __future__ import annotations

import argparse
import sys

from ducklake_lab.cli.arguments import DONE, SNAPSHOT, Commands, add_data_path, add_output
from ducklake_lab.cli.lakes import at, attach
from ducklake_lab.cli.output import limit, write_rows
from ducklake_lab.errors import TransactionError, UsageError


def add_sql(commands: Commands) -> None:
    sql = commands.add(
        "sql",
        "run SQL in a lake and print the rows of the last statement",
        _sql,
        "lake.ducklake 'SELECT * FROM flights LIMIT 10'",
        "lake.ducklake --at -1 --format csv 'FROM flights' > flights.csv",
        "lake.ducklake --read-only < report.sql",
    )
    sql.add_argument(
        "sql", metavar="SQL", nargs="?", help="statements in DuckDB's SQL; standard input if left out, or -"
    )
    sql.set_defaults(optional=("sql",))
    add_data_path(sql)
    sql.add_argument("--read-only", action="store_true", help="refuse statements that write")
    sql.add_argument("--at", metavar="SNAPSHOT", help=f"read tables as of {SNAPSHOT}")
    sql.add_argument(
        "--engine", choices=("duckdb", "auto", "spark"), default="duckdb", help="where rows are worked (duckdb)"
    )
    add_output(sql)


def add_when(commands: Commands) -> None:
    when = commands.add(
        "when",
        "list the snapshots at which the answer of a query changed, oldest first",
        _when,
        "lake.ducklake 'SELECT count(*) FROM flights WHERE dep_time IS NULL'",
        "lake.ducklake 'SELECT max(dep_delay) FROM flights' --start 12 --json",
    )
    when.add_argument("sql", metavar="SQL", help="one query in DuckDB's SQL")
    when.add_argument(
        "--start", metavar="SNAPSHOT", help="the first snapshot id, a tag or a time; negative counts from the newest"
    )
    when.add_argument("--end", metavar="SNAPSHOT", help="the last one, inclusive; the newest if left out")
    when.add_argument("--monotonic", action="store_true", help="an answer that was left never comes back: ask few")
    add_data_path(when)
    add_output(when, "the first lines")


def _sql(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    text = _statements(given.sql)
    with Session(engine=given.engine) as session:
        attach(session, given, read_only=given.read_only)
        write_rows(session.sql(text, at=at(session, given.at)), given)
        if session.in_transaction:
            raise TransactionError(
                "A transaction is open at the end, and is rolled back; end the statements with COMMIT."
            )
    return DONE


def _statements(given: str | None) -> str:
    """Returns the SQL of the command line, or of standard input."""
    try:
        if given is not None and given != "-":
            text = given
        else:
            text = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read()
        text.encode()  # bytes that are no UTF-8 may come as surrogates
    except UnicodeError:
        raise UsageError("The SQL is no UTF-8; convert it first.") from None
    if not text.strip():
        raise UsageError("SQL is missing; write it after LAKE, or send it to standard input.")
    return text


def _when(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.html import counted

    with Session(engine="duckdb") as session:
        attach(session, given)
        answers = session.when(given.sql, at(session, given.start), at(session, given.end), given.monotonic)
        most = limit(given)

        def footer() -> str:
            more = "" if most is None or len(answers) <= most else f"first {most} of "
            return f"{more}{counted(len(answers), 'answer')}"

        write_rows(answers, given, footer)
    return DONE

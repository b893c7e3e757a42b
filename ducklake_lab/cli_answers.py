"""The commands of `ducklake-lab` about answers of queries at several snapshots."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ducklake_lab.session import Session
    from ducklake_lab.session.rows.result import Result

#: Exit codes, as of the other commands.
SAME, DIFFERENT = 0, 1
_CODES = "Exit codes: 0 done, and nothing differs, 1 something differs, 2 an error, 130 stopped by Ctrl-C."
_SNAPSHOT = "snapshot id, a tag or a time; negative counts from the newest"


@dataclass(frozen=True, slots=True)
class Tools:
    """Functions of the command that its subcommands share.

    Attributes:
        attach: attaches the lake that the words name to a session.
        at: reads a snapshot id, time or tag.
        write: prints texts.
        add_output: adds the options of commands that print rows.
        limit: rows to print at most.
        print: prints rows in the asked form, tables with a footer.
    """

    attach: Callable[..., None]
    at: Callable[[Session, str | None], Any]
    write: Callable[[Iterable[str]], None]
    add_output: Callable[..., None]
    limit: Callable[[argparse.Namespace], int | None]
    print: Callable[[Result, argparse.Namespace, Callable[[], str]], None]


def add_commands(add: Callable[..., argparse.ArgumentParser], tools: Tools) -> None:
    """Adds the commands.

    Args:
        add: makes the parser of a command, from its name, its help, its function and its examples.
    """
    compare = add(
        "compare",
        "show what differs in a query's answers at two snapshots",
        lambda given: _compare(given, tools),
        "lake.ducklake 'SELECT carrier, count(*) FROM flights GROUP BY ALL' 12 17",
        "lake.ducklake 'SELECT count(*) FROM flights' -1 --json",
    )
    compare.epilog = f"{str(compare.epilog).partition('Exit codes')[0]}{_CODES}"
    compare.add_argument("sql", metavar="SQL", help="one query in DuckDB's SQL")
    compare.add_argument("start", metavar="A", help=f"the earlier {_SNAPSHOT}")
    compare.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    compare.set_defaults(optional=("end",))
    compare.add_argument("--data-path", metavar="PATH", help="where the data is, if not where the catalog says")
    compare.add_argument("--key", metavar="COLUMNS", help="pair rows by these columns, comma between")
    compare.add_argument("--html", metavar="FILE", help="write one self-contained HTML file")
    compare.add_argument("--json", action="store_true", help="print JSON")
    compare.add_argument("--rows", type=count, default=20, metavar="N", help="changed rows printed at most (20)")
    when = add(
        "when",
        "list the snapshots at which the answer of a query changed, oldest first",
        lambda given: _when(given, tools),
        "lake.ducklake 'SELECT count(*) FROM flights WHERE dep_time IS NULL'",
        "lake.ducklake 'SELECT max(dep_delay) FROM flights' --start 12 --json",
    )
    when.add_argument("sql", metavar="SQL", help="one query in DuckDB's SQL")
    when.add_argument("--start", metavar="SNAPSHOT", help=f"the first {_SNAPSHOT}")
    when.add_argument("--end", metavar="SNAPSHOT", help="the last one, inclusive; the newest if left out")
    when.add_argument("--monotonic", action="store_true", help="an answer that was left never comes back: ask few")
    when.add_argument("--data-path", metavar="PATH", help="where the data is, if not where the catalog says")
    tools.add_output(when, "the first lines")
    run = add(
        "run",
        "execute a notebook as of a snapshot of its lakes, or at two snapshots to compare its outputs",
        lambda given: _run(given, tools),
        "report.ipynb --as-of q3-close --output report-q3.ipynb",
        "report.ipynb --compare 12 17 --html report.html",
        takes=None,
    )
    run.epilog = f"{str(run.epilog).partition('Exit codes')[0]}{_CODES}"
    run.add_argument("notebook", metavar="NOTEBOOK", help="a notebook of a Python kernel; it stays as it is")
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument("--as-of", metavar="SNAPSHOT", help="a snapshot id, a tag or a time: lakes are read as of there")
    what.add_argument("--compare", metavar=("A", "B"), nargs=2, help="two of them: run it at both, compare the outputs")
    run.add_argument("--lake", metavar="NAME", help="the alias of the only lake that is read so; all if left out")
    run.add_argument("--output", metavar="FILE", help="of --as-of: write the executed copy")
    run.add_argument("--html", metavar="FILE", help="of --compare: the page to write (NOTEBOOK.compare.html)")
    run.add_argument("--timeout", type=count, default=600, metavar="SECONDS", help="of a cell (600)")


def count(given: str) -> int:
    """Reads a number of rows."""
    if not given.isdecimal():
        raise argparse.ArgumentTypeError(f'takes a number of rows, 0 or more, not "{given}"')
    return int(given)


def some_rows(given: str) -> int:
    """Reads a number of rows above 0."""
    if not given.isdecimal() or not int(given):
        raise argparse.ArgumentTypeError(f'takes a number of rows above 0, not "{given}"')
    return int(given)


def _compare(given: argparse.Namespace, tools: Tools) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.diff_text import text

    with Session(engine="duckdb") as session:
        tools.attach(session, given)
        key = [name.strip() for name in given.key.split(",")] if given.key else None
        start, end = tools.at(session, given.start), tools.at(session, given.end)
        diff = session.compare(given.sql, start, end, key).showing(limit=given.rows)
        if given.html:
            diff.to_html(given.html)
        tools.write([diff.to_json(given.rows) if given.json else text(diff), "\n"])
        return SAME if diff.is_empty else DIFFERENT


def _when(given: argparse.Namespace, tools: Tools) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.html import counted

    with Session(engine="duckdb") as session:
        tools.attach(session, given)
        found = session.when(given.sql, tools.at(session, given.start), tools.at(session, given.end), given.monotonic)
        limit = tools.limit(given)

        def footer() -> str:
            more = "" if limit is None or len(found) <= limit else f"first {limit} of "
            return f"{more}{counted(len(found), 'answer')}"

        tools.print(found, given, footer)
    return SAME


def _run(given: argparse.Namespace, tools: Tools) -> int:
    from ducklake_lab.errors import UsageError

    if given.html and given.as_of is not None:
        raise UsageError("--html is of --compare; --output writes the executed notebook.")
    if given.output and given.as_of is None:
        raise UsageError("--output is of --as-of; --html names the page of --compare.")
    return _run_once(given, tools) if given.as_of is not None else _run_twice(given, tools)


def _run_once(given: argparse.Namespace, tools: Tools) -> int:
    from ducklake_lab.errors import DuckLakeError
    from ducklake_lab.notebooks.running import run_as_of, write

    path = Path(given.notebook)
    found = run_as_of(path, given.as_of, lake=given.lake, timeout=given.timeout)
    if given.output:
        write(found.document, Path(given.output))
    if found.error is not None:
        raise DuckLakeError(f"{path.name} as of {given.as_of}: {found.error}")
    lakes = " · ".join(f"{alias} as of snapshot {number}" for alias, number in found.lakes.items())
    tools.write([f"{path.name}: {lakes}{f' · wrote {given.output}' if given.output else ''}\n"])
    return SAME


def _run_twice(given: argparse.Namespace, tools: Tools) -> int:
    from ducklake_lab.diff.row_diff import write
    from ducklake_lab.errors import DuckLakeError
    from ducklake_lab.notebooks import report
    from ducklake_lab.notebooks.comparing import compare_outputs
    from ducklake_lab.notebooks.running import run_as_of

    path = Path(given.notebook)
    runs = [run_as_of(path, at, lake=given.lake, timeout=given.timeout) for at in given.compare]
    cells = compare_outputs(*(run.document for run in runs))
    page = given.html or f"{path.stem}.compare.html"
    write(page, report.document(path.name, given.compare[0], given.compare[1], cells))
    failed = [f"as of {at}: {run.error}" for at, run in zip(given.compare, runs, strict=True) if run.error is not None]
    if failed:
        raise DuckLakeError(f"{path.name} {failed[0]}; {page} shows what ran.")
    differing = [str(cell.number) for cell in cells if cell.differs]
    which = (
        f"the outputs of {len(differing)} of {len(cells)} cells differ: {', '.join(differing)}"
        if differing
        else (f"the outputs of all {len(cells)} cells are equal")
    )
    tools.write([f"{path.name}: {which} · wrote {page}\n"])
    return DIFFERENT if differing else SAME

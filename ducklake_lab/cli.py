"""`ducklake-lab`: the command for lakes, for people at a terminal and for CI."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from ducklake_lab import cli_revert
from ducklake_lab.errors import DuckLakeError, TransactionError, UsageError
from ducklake_lab.redaction import hide
from ducklake_lab.version import __version__

if TYPE_CHECKING:
    from ducklake_lab.session import Session
    from ducklake_lab.session.rows.result import Result

#: Exit codes: done, and with --exit-code nothing differs; something differs (with --exit-code); an error; Ctrl-C.
SAME, DIFFERENT, FAILED, STOPPED = 0, 1, 2, 130

_CODES = "Exit codes: 0 done, 2 an error, 130 stopped by Ctrl-C."
_CODES_OF_DIFF = "Exit codes: 0 done, 1 something differs (with --exit-code), 2 an error, 130 stopped by Ctrl-C."
_DATA_PATH = "where the data is, if not where the catalog says"
_SNAPSHOT = "a snapshot id, a tag or a time; a negative id counts from the newest"
_FORMATS = ("table", "json", "csv", "markdown")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: SAME, DIFFERENT, STOPPED or FAILED, which is that of a wrong option too.
    """
    given = _words(arguments)
    try:
        return int(given.run(given))
    except BrokenPipeError:
        _read_no_more()
        return SAME
    except KeyboardInterrupt:
        print("ducklake-lab: stopped.", file=sys.stderr)
        return STOPPED
    except DuckLakeError as error:
        print(f"ducklake-lab: {error}", file=sys.stderr)
        return FAILED
    except Exception:  # noqa: BLE001 - Python would exit with 1, which says that the states differ
        print(hide(traceback.format_exc()), end="", file=sys.stderr)
        return FAILED


def _words(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The words of a command, whose options may stand anywhere.

    Until Python 3.12, argparse takes words that may be left out only before the options.
    """
    parser = _parser()
    given, left = parser.parse_known_args(arguments)
    for name in given.optional:
        if left and getattr(given, name) is None and not _is_option(left[0]):
            setattr(given, name, left.pop(0))
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return given


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and " " not in word and not word[1:].isdecimal()


def _write(parts: Iterable[str]) -> None:
    """Prints texts; a reader that has read enough, as `head` has, changes nothing but how many of them."""
    try:
        for part in parts:
            sys.stdout.write(part)
        sys.stdout.flush()
    except BrokenPipeError:
        _read_no_more()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"The output's encoding, {error.encoding}, has no {error.object[error.start]!a}; set PYTHONIOENCODING=utf-8."
        ) from None
    except OSError as error:
        _read_no_more()
        raise UsageError(f"The output cannot be written: {error.strerror or error}.") from None


def _read_no_more() -> None:
    """Sends further output nowhere: Python flushes once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ducklake-lab", description="Queries, compares and shows DuckLake lakes.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, text: str, run: Callable[[argparse.Namespace], int], *examples: str) -> argparse.ArgumentParser:
        lines = "\n".join(f"  ducklake-lab {name} {example}" for example in examples)
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"Examples:\n{lines}\n\n{_CODES if name != 'diff' else _CODES_OF_DIFF}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.add_argument("lake", metavar="LAKE", help="a lake's URI, e.g. ducklake:postgres:dbname=lake, or its file")
        made.set_defaults(run=run, optional=())
        return made

    sql = add(
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
    sql.add_argument("--data-path", metavar="PATH", help=_DATA_PATH)
    sql.add_argument("--read-only", action="store_true", help="refuse statements that write")
    sql.add_argument("--at", metavar="SNAPSHOT", help=f"read tables as of {_SNAPSHOT}")
    sql.add_argument(
        "--engine", choices=("duckdb", "auto", "spark"), default="duckdb", help="where rows are worked (duckdb)"
    )
    _add_output(sql)
    snapshots = add(
        "snapshots",
        "list the snapshots of a lake, or of a table, oldest first, with what each changed",
        _snapshots,
        "lake.ducklake",
        "lake.ducklake flights --limit 5 --json",
    )
    snapshots.add_argument("table", metavar="TABLE", nargs="?", help="only the snapshots that changed it")
    snapshots.set_defaults(optional=("table",))
    snapshots.add_argument("--data-path", metavar="PATH", help=_DATA_PATH)
    _add_output(snapshots, "the newest snapshots")
    diff = add(
        "diff",
        "show what changed in a table, or in the lake, between two snapshots",
        _diff,
        "lake.ducklake flights 12 13",
        "lake.ducklake flights -1 --exit-code --json",
        "lake.ducklake 12",
    )
    diff.add_argument("table", metavar="TABLE", help="table or schema.table; the whole lake if left out: LAKE A B")
    diff.add_argument(
        "start", metavar="A", nargs="?", help="the earlier snapshot id, or a time; negative counts from the newest"
    )
    diff.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    diff.set_defaults(optional=("start", "end"))
    diff.add_argument("--data-path", metavar="PATH", help=_DATA_PATH)
    diff.add_argument("--key", metavar="COLUMNS", help="pair rows by these columns, comma between, not by row id")
    diff.add_argument("--with", dest="other", metavar="TABLE", help="the later state is that of this table")
    diff.add_argument("--kind", choices=("updated", "inserted", "deleted"), help="print rows that changed so")
    diff.add_argument("--changed", metavar="COLUMN", help="print updated rows in which this column changed")
    diff.add_argument("--html", metavar="FILE", help="write one self-contained HTML file")
    diff.add_argument(
        "--patch", metavar="FILE", help="write the SQL that makes the later state of the earlier one; - prints it alone"
    )
    diff.add_argument("--revert", action="store_true", help="of --patch, the way back")
    diff.add_argument("--json", action="store_true", help="print JSON")
    diff.add_argument("--rows", type=_count, default=20, metavar="N", help="changed rows printed at most (20)")
    diff.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs, 0 if not, 2 on errors")
    cli_revert.add_command(add, _attach, _moment, _write)
    indexes = add(
        "indexes",
        "show indexes that make a large catalog quicker; --create makes them",
        _indexes,
        "ducklake:postgres:dbname=lake",
        "ducklake:postgres:dbname=lake --create",
    )
    change = indexes.add_mutually_exclusive_group()
    change.add_argument("--create", action="store_true", help="make those that are missing")
    change.add_argument("--drop", action="store_true", help="drop those that are there")
    opened = add(
        "open",
        "show the snapshots, schema, rows and files of a lake in the browser, read-only",
        _open,
        "lake.ducklake",
        "lake.ducklake --no-browser --port 8642",
    )
    opened.add_argument("--data-path", metavar="PATH", help=_DATA_PATH)
    opened.add_argument(
        "--port", type=_port, default=0, metavar="N", help="listen on this port; a free one if left out"
    )
    opened.add_argument("--no-browser", action="store_true", help="print the link, open no browser")
    return parser


def _add_output(parser: argparse.ArgumentParser, rows: str = "rows") -> None:
    """The options of commands that print rows."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=_FORMATS, default="table", help="how rows are printed (table)")
    form.add_argument("--json", dest="format", action="store_const", const="json", help="as --format json")
    parser.add_argument(
        "--limit", type=_rows, metavar="N", help=f"print N of {rows} at most (50 in tables and Markdown, all in others)"
    )


def _attach(session: Session, given: argparse.Namespace, *, read_only: bool = True) -> None:
    session.attach(
        _uri(given.lake),
        data_path=given.data_path,
        override_data_path=given.data_path is not None,
        read_only=read_only,
        create_if_not_exists=False,
    )


def _sql(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.result import LIMIT, summary

    text = _statements(given.sql)
    with Session(engine=given.engine) as session:
        _attach(session, given, read_only=given.read_only)
        at = given.at
        if at is not None and _parsed(at) is not None:
            at = _moment(at, session.current_snapshot().snapshot_id)
        result = session.sql(text, at=at)
        limit = _limit(given)
        _write(
            _printed(result, given.format, limit, lambda: summary(result, limit or LIMIT, "--format csv prints all"))
        )
        if session.in_transaction:
            raise TransactionError(
                "A transaction is open at the end, and is rolled back; end the statements with COMMIT."
            )
    return SAME


def _statements(given: str | None) -> str:
    """The SQL of the command line, or of standard input."""
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


def _snapshots(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.session.rows.result import Result
    from ducklake_lab.widgets.html import counted

    with Session(engine="duckdb") as session:
        _attach(session, given)
        limit = _limit(given)
        # one more says whether there are more
        found = session.snapshots(given.table, None if limit is None else limit + 1)
        more = limit is not None and len(found) > limit
        rows = found.arrow().slice(1 if more else 0)
        extent = counted(rows.num_rows, "snapshot")
        footer = f"newest {extent}; older ones exist: --limit shows more" if more else extent
        _write(_printed(Result(arrow=rows), given.format, limit, lambda: footer))
    return SAME


def _limit(given: argparse.Namespace) -> int | None:
    """Rows to print at most; None for all."""
    from ducklake_lab.widgets.result import LIMIT

    limit: int | None = given.limit
    return LIMIT if limit is None and given.format in ("table", "markdown") else limit


def _printed(result: Result, form: str, limit: int | None, footer: Callable[[], str]) -> Iterator[str]:
    """The first rows of a result as text in one of the formats; tables have a footer."""
    from ducklake_lab.session.rows.printing import json_lines
    from ducklake_lab.session.rows.saving import csv_lines
    from ducklake_lab.widgets.result import shown_columns
    from ducklake_lab.widgets.text import aligned, markdown
    from ducklake_lab.widgets.values import FULL

    if form in ("json", "csv"):
        rows = result.carried() if limit is None else result.head(limit)
        if rows.num_columns:
            yield from (json_lines if form == "json" else csv_lines)(rows, result.time_zone)
        return
    lines: list[str] = []
    fit = ""
    if result.is_query and result.columns and limit is not None:
        shown = shown_columns(result, limit)
        if form == "table":
            # a file or a pipe has room for all columns, and for whole values
            room = {} if sys.stdout.isatty() else {"width": sys.maxsize, "cell": FULL}
            lines, columns = aligned(result.columns, result.types, shown, **room)
            fit = f"{columns} of {len(shown):,} columns · " if columns < len(shown) else ""
        else:
            lines = [*markdown(result.columns, result.types, shown), ""]
    yield "\n".join([*lines, f"{fit}{footer()}", ""])


def _diff(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.diff_text import text

    if given.revert and not given.patch:
        raise UsageError("--revert is of a patch; say where to write it with --patch FILE.")
    with Session(engine="duckdb") as session:
        _attach(session, given)
        newest = session.current_snapshot().snapshot_id
        if given.end is None and _parsed(given.table) is not None:
            return _lake_diff(session, given, newest)
        if given.start is None:
            raise UsageError("A is missing, the earlier snapshot: diff LAKE TABLE A B, or diff LAKE A B for the lake.")
        computed = session.table(given.table).diff(
            _moment(given.start, newest),
            _moment(given.end, newest) if given.end is not None else None,
            key=[name.strip() for name in given.key.split(",")] if given.key else None,
            other=given.other,
        )
        diff = computed.showing(given.kind, given.changed, limit=given.rows)
        if given.html:
            diff.to_html(given.html)
        if given.patch == "-":
            _write([diff.patch(revert=given.revert), "\n"])
            return DIFFERENT if given.exit_code and not diff.is_empty else SAME
        if given.patch:
            diff.write_patch(given.patch, revert=given.revert)
        _write([diff.to_json(given.rows) if given.json else text(diff), "\n"])
    return DIFFERENT if given.exit_code and not diff.is_empty else SAME


def _lake_diff(session: Session, given: argparse.Namespace, newest: int) -> int:
    from ducklake_lab.widgets.html import visible

    of_one_table = {"--key": given.key, "--with": given.other, "--patch": given.patch, "--kind": given.kind}
    for option, value in {**of_one_table, "--changed": given.changed}.items():
        if value is not None:
            raise UsageError(f"{option} is of one table; name it: diff LAKE TABLE A B.")
    diff = session.diff(_moment(given.table, newest), _moment(given.start, newest) if given.start is not None else None)
    if given.html:
        diff.to_html(given.html)
    lines = [
        f"{diff.lake}  snapshot {diff.start.snapshot_id} → {diff.end.snapshot_id if diff.end else 'uncommitted'}",
        f"{diff.unchanged:,} tables unchanged",
        *map(repr, diff),
    ]
    _write([diff.to_json() if given.json else "\n".join(visible(line) for line in lines), "\n"])
    return DIFFERENT if given.exit_code and not diff.is_empty else SAME


def _indexes(given: argparse.Namespace) -> int:
    from ducklake_lab.catalog import indexes
    from ducklake_lab.session import Session

    with Session() as session:
        lake = session.attach(_uri(given.lake), create_if_not_exists=False)
        with lake.connect(fresh=True) as connection:
            if given.create or given.drop:
                change = indexes.create if given.create else indexes.drop
                for name in change(lake, connection):
                    _write([f"{'created' if given.create else 'dropped'}  {name}\n"])
            known = indexes.existing(connection, lake.database)
        _write(
            f"{'there   ' if index.name in known else 'missing '} {indexes.statement(index, lake.database)}\n"
            for index in indexes.offered(lake.database)
        )
        if lake.location.backend == "duckdb":
            _write(["A catalog in a DuckDB file is quick without indexes; none are offered.\n"])
    return SAME


def _open(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.web.server import serve

    # ipywidgets and Tornado catch what fails in an answer, and leave it to the log
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Log("ducklake-lab: %(message)s"))
    with Session(engine="duckdb") as session:
        _attach(session, given)
        # a link is to be seen when the output is a pipe too
        serve(session, port=given.port, browser=not given.no_browser, report=partial(print, flush=True))
    return SAME


class _Log(logging.Formatter):
    """Lines of a log without secrets: the address in a request holds the page's token."""

    def format(self, record: logging.LogRecord) -> str:
        return hide(super().format(record))


def _uri(given: str) -> str:
    return given if ":" in given else f"ducklake:{given}"


def _count(given: str) -> int:
    if not given.isdecimal():
        raise argparse.ArgumentTypeError(f'takes a number of rows, 0 or more, not "{given}"')
    return int(given)


def _rows(given: str) -> int:
    if not given.isdecimal() or not int(given):
        raise argparse.ArgumentTypeError(f'takes a number of rows above 0, not "{given}"')
    return int(given)


def _port(given: str) -> int:
    if not given.isdecimal() or int(given) > 65535:
        raise argparse.ArgumentTypeError(f'takes a port, 1 to 65535, not "{given}"')
    return int(given)


def _parsed(given: str) -> int | datetime | None:
    """A snapshot id or a time; None where it is neither."""
    readers: tuple[Callable[[str], int | datetime], ...] = (int, datetime.fromisoformat)
    for read in readers:
        try:
            return read(given)
        except ValueError:
            continue
    return None


def _moment(given: str, newest: int) -> int | datetime:
    moment = _parsed(given)
    if moment is None:
        raise UsageError(f'"{given}" is neither a snapshot id nor a time such as "2026-03-02 09:30".')
    if isinstance(moment, datetime):
        return moment
    if moment < -newest:
        raise UsageError(
            f"There is no snapshot {moment}: the newest is {newest}, and -{newest} counts back to the first."
        )
    return moment if moment >= 0 else newest + moment


if __name__ == "__main__":
    sys.exit(main())

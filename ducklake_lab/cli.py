"""`ducklake-lab`: looking at a lake, and caring for it, without a notebook: for people at a terminal and for CI."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from ducklake_lab.errors import DuckLakeError, UsageError
from ducklake_lab.redaction import hide
from ducklake_lab.version import __version__

if TYPE_CHECKING:
    from ducklake_lab.diff.diff import Diff
    from ducklake_lab.session import Session

#: Exit codes: nothing differs, or what differs is not asked for; it differs (with --exit-code); an error.
SAME, DIFFERENT, FAILED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: SAME, DIFFERENT or FAILED, which is that of a wrong option too.
    """
    given = _parser().parse_args(arguments)
    try:
        code = int(given.run(given))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # who reads the output has read enough; Python flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SAME
    except DuckLakeError as error:
        print(f"ducklake-lab: {error}", file=sys.stderr)
        return FAILED
    except Exception:  # noqa: BLE001 - Python would exit with 1, which says that the states differ
        print(hide(traceback.format_exc()), end="", file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ducklake-lab", description="Looks at DuckLake lakes.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    diff = commands.add_parser("diff", help="what changed in a table, or in the lake, between two snapshots")
    diff.add_argument("lake", metavar="LAKE", help="a lake's URI, e.g. ducklake:metadata.ducklake, or its file")
    diff.add_argument("table", metavar="TABLE", help="table or schema.table; the whole lake if left out: LAKE A B")
    diff.add_argument(
        "start", metavar="A", nargs="?", help="the earlier snapshot id, or a time; negative counts from the newest"
    )
    diff.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    diff.add_argument("--data-path", metavar="PATH", help="where the data is, if not where the catalog says")
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
    diff.set_defaults(run=_diff)
    indexes = commands.add_parser("indexes", help="indexes that make a large catalog quicker; --create makes them")
    indexes.add_argument("lake", metavar="LAKE", help="a lake's URI, e.g. ducklake:postgres:dbname=lake")
    change = indexes.add_mutually_exclusive_group()
    change.add_argument("--create", action="store_true", help="make those that are missing")
    change.add_argument("--drop", action="store_true", help="drop those that are there")
    indexes.set_defaults(run=_indexes)
    opened = commands.add_parser(
        "open", help="the snapshots, schema, rows and files of a lake in the browser, read-only"
    )
    opened.add_argument("lake", metavar="LAKE", help="a lake's URI, e.g. ducklake:metadata.ducklake, or its file")
    opened.add_argument("--data-path", metavar="PATH", help="where the data is, if not where the catalog says")
    opened.add_argument(
        "--port", type=_port, default=0, metavar="N", help="listen on this port; a free one if left out"
    )
    opened.add_argument("--no-browser", action="store_true", help="print the link, open no browser")
    opened.set_defaults(run=_open)
    return parser


def _diff(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session

    if given.revert and not given.patch:
        raise UsageError("--revert is of a patch; say where to write it with --patch FILE.")
    with Session(engine="duckdb") as session:
        session.attach(_uri(given.lake), data_path=given.data_path, read_only=True, create_if_not_exists=False)
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
            print(diff.patch(revert=given.revert))
            return DIFFERENT if given.exit_code and not diff.is_empty else SAME
        if given.patch:
            diff.write_patch(given.patch, revert=given.revert)
        print(diff.to_json(given.rows) if given.json else text(diff))
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
        f"{diff.lake}  snapshot {diff.start.snapshot_id} → {diff.end.snapshot_id}",
        f"{diff.unchanged:,} tables unchanged",
        *map(repr, diff),
    ]
    print(diff.to_json() if given.json else "\n".join(visible(line) for line in lines))
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
                    print(f"{'created' if given.create else 'dropped'}  {name}")
            known = indexes.existing(connection, lake.database)
        for index in indexes.offered(lake.database):
            print(f"{'there   ' if index.name in known else 'missing '} {indexes.statement(index, lake.database)}")
        if lake.location.backend == "duckdb":
            print("A catalog in a DuckDB file is quick without indexes; none are offered.")
    return SAME


def _open(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.web.server import serve

    # ipywidgets and Tornado catch what fails in an answer, and leave it to the log
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Log("ducklake-lab: %(message)s"))
    with Session(engine="duckdb") as session:
        session.attach(_uri(given.lake), data_path=given.data_path, read_only=True, create_if_not_exists=False)
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


def text(diff: Diff) -> str:
    """A diff as lines of text: counts, schema, segments, and the rows it shows, marked −, + and →."""
    from ducklake_lab.widgets.diff_rows import MARKS
    from ducklake_lab.widgets.html import percent, visible
    from ducklake_lab.widgets.values import text as value

    s = diff.summary
    end = diff.end.snapshot_id if diff.end is not None else "uncommitted"
    lines = [
        f"{diff.table}  snapshot {diff.start.snapshot_id} → {end}",
        f"{s.deleted:,} deleted · {s.inserted:,} inserted · {s.updated:,} updated · {s.unchanged:,} unchanged"
        f" · {s.cells:,} cells changed",
    ]
    for change in diff.schema:
        was, now = (" ".join(side) if side else "" for side in (change.before, change.after))
        lines.append(f"schema: {change.kind} {' → '.join(part for part in (was, now) if part)}")
    for p in diff.patterns:
        among = f", {percent(p.unchanged_share)} of unchanged rows" if p.unchanged_share is not None else ""
        lines.append(f"{percent(p.share)} of {p.kind} rows have {p.condition}{among}")
    for row in diff.page(diff.limit, 0, diff.choice, as_shown=True):
        cells = []
        for name, after in (row.after or row.before or {}).items():
            if name in row.changed and row.before is not None:
                cells.append(f"{name}={value(row.before.get(name))}→{value(after)}")
            elif row.kind != "updated":
                cells.append(f"{name}={value(after)}")
        lines.append(f"{MARKS[row.kind]} {row.row_id}  {'  '.join(cells)}")
    if (more := diff.count(diff.choice) - diff.limit) > 0:
        lines.append(f"… {more:,} more changed rows")
    return "\n".join(visible(line) for line in lines)


if __name__ == "__main__":
    sys.exit(main())

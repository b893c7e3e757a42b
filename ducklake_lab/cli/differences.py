"""`diff` and `compare`: differences between two states of a lake or table, and between two answers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ducklake_lab.cli.arguments import (
    DIFFERENT,
    DONE,
    Commands,
    add_changed_rows,
    add_data_path,
    add_json,
    add_page,
    listed,
)
from ducklake_lab.cli.lakes import at, attach, moment, parsed
from ducklake_lab.cli.output import lake_diff_text, write
from ducklake_lab.errors import UsageError

if TYPE_CHECKING:
    from ducklake_lab.session import Session


def add_diff(commands: Commands) -> None:
    diff = commands.add(
        "diff",
        "show what changed in a table, or in the lake, between two snapshots",
        _diff,
        "lake.ducklake flights 12 13",
        "lake.ducklake flights -1 --exit-code --json",
        "lake.ducklake 12",
        codes="0 done, 1 something differs (with --exit-code)",
    )
    diff.add_argument("table", metavar="TABLE", help="table or schema.table; the whole lake if left out: LAKE A B")
    diff.add_argument(
        "start", metavar="A", nargs="?", help="the earlier snapshot id, or a time; negative counts from the newest"
    )
    diff.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    diff.set_defaults(optional=("start", "end"))
    add_data_path(diff)
    diff.add_argument("--key", metavar="COLUMNS", help="pair rows by these columns, comma between, not by row id")
    diff.add_argument("--with", dest="other", metavar="TABLE", help="the later state is that of this table")
    diff.add_argument("--kind", choices=("updated", "inserted", "deleted"), help="print rows that changed so")
    diff.add_argument("--changed", metavar="COLUMN", help="print updated rows in which this column changed")
    add_page(diff)
    diff.add_argument(
        "--patch", metavar="FILE", help="write the SQL that makes the later state of the earlier one; - prints it alone"
    )
    diff.add_argument("--revert", action="store_true", help="of --patch, the way back")
    add_json(diff)
    add_changed_rows(diff)
    diff.add_argument("--exit-code", action="store_true", help="exit with 1 if anything differs, 0 if not, 2 on errors")


def add_compare(commands: Commands) -> None:
    compare = commands.add(
        "compare",
        "show what differs in a query's answers at two snapshots",
        _compare,
        "lake.ducklake 'SELECT carrier, count(*) FROM flights GROUP BY ALL' 12 17",
        "lake.ducklake 'SELECT count(*) FROM flights' -1 --json",
        codes="0 done, and nothing differs, 1 something differs",
    )
    compare.add_argument("sql", metavar="SQL", help="one query in DuckDB's SQL")
    compare.add_argument(
        "start", metavar="A", help="the earlier snapshot id, a tag or a time; negative counts from the newest"
    )
    compare.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    compare.set_defaults(optional=("end",))
    add_data_path(compare)
    compare.add_argument("--key", metavar="COLUMNS", help="pair rows by these columns, comma between")
    add_page(compare)
    add_json(compare)
    add_changed_rows(compare)


def _diff(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.diff_text import text

    if given.revert and not given.patch:
        raise UsageError("--revert is of a patch; say where to write it with --patch FILE.")
    with Session(engine="duckdb") as session:
        attach(session, given)
        newest = session.current_snapshot().snapshot_id
        if given.end is None and parsed(given.table) is not None:
            return _lake_diff(session, given, newest)
        if given.start is None:
            raise UsageError("A is missing, the earlier snapshot: diff LAKE TABLE A B, or diff LAKE A B for the lake.")
        computed = session.table(given.table).diff(
            moment(given.start, newest),
            moment(given.end, newest) if given.end is not None else None,
            key=listed(given.key),
            other=given.other,
        )
        diff = computed.showing(given.kind, given.changed, limit=given.rows)
        if given.html:
            diff.to_html(given.html)
        if given.patch == "-":
            write([diff.patch(revert=given.revert), "\n"])
            return DIFFERENT if given.exit_code and not diff.is_empty else DONE
        if given.patch:
            diff.write_patch(given.patch, revert=given.revert)
        write([diff.to_json(given.rows) if given.json else text(diff), "\n"])
    return DIFFERENT if given.exit_code and not diff.is_empty else DONE


def _lake_diff(session: Session, given: argparse.Namespace, newest: int) -> int:
    of_one_table = {"--key": given.key, "--with": given.other, "--patch": given.patch, "--kind": given.kind}
    for option, value in {**of_one_table, "--changed": given.changed}.items():
        if value is not None:
            raise UsageError(f"{option} is of one table; name it: diff LAKE TABLE A B.")
    diff = session.diff(moment(given.table, newest), moment(given.start, newest) if given.start is not None else None)
    if given.html:
        diff.to_html(given.html)
    write([diff.to_json() if given.json else lake_diff_text(diff), "\n"])
    return DIFFERENT if given.exit_code and not diff.is_empty else DONE


def _compare(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.widgets.diff_text import text

    with Session(engine="duckdb") as session:
        attach(session, given)
        start, end = at(session, given.start), at(session, given.end)
        diff = session.compare(given.sql, start, end, listed(given.key)).showing(limit=given.rows)
        if given.html:
            diff.to_html(given.html)
        write([diff.to_json(given.rows) if given.json else text(diff), "\n"])
        return DONE if diff.is_empty else DIFFERENT

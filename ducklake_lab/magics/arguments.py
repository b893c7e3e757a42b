"""Argument parsers for the subcommands of `%ducklake`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.magics import live_commands, merge_commands
from ducklake_lab.revert.choices import add_choices


class Parser(argparse.ArgumentParser):
    """Argument parser that raises instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        end = "" if message.endswith("?") else "."
        raise UsageError(f"{self.prog}: {message}{end} {self.prog} --help tells more.")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parses all words. An error gives the number of extra words, not their text, which may be a password."""
        given, left = self.parse_known_args(args, namespace)
        if left:
            self.error(self._too_many(left))
        return given

    def _too_many(self, left: Sequence[str]) -> str:
        option_names = [name for action in self._actions for name in action.option_strings]
        if left[0].startswith("--"):
            name = left[0].partition("=")[0]
            hint = did_you_mean(name, option_names)
            # a word that is similar to no option may be part of a password
            if hint:
                return f"there is no option {name}.{hint}"
            return f"there is no such option. It has {', '.join([*option_names, '--help'])}"
        takes = ", ".join(str(action.metavar) for action in self._actions if not action.option_strings)
        words = "one word" if len(left) == 1 else f"{len(left)} words"
        return f"it takes {takes or 'no argument'}; {words} too many. Quote what holds blanks as 'text'"


def parsers() -> dict[str, Parser]:
    """Returns the parsers by subcommand, in the order of the help."""
    by_name: dict[str, Parser] = {}

    def add(name: str, text: str) -> Parser:
        by_name[name] = Parser(prog=f"%ducklake {name}", description=text, add_help=False, allow_abbrev=False)
        return by_name[name]

    connect = add("connect", "attach a lake, made if it does not exist, and use it")
    connect.add_argument(
        "uri",
        metavar="URI",
        help="ducklake:metadata.ducklake, ducklake:sqlite:file, ducklake:postgres:…, or a name of the connections file",
    )
    connect.add_argument("--data-path", metavar="PATH", help="folder or URL of the data files of a new lake")
    connect.add_argument("--alias", metavar="NAME", help="name of the lake in SQL; the file's stem if left out")
    connect.add_argument("--read-only", action="store_true", help="refuse statements that write")
    connect.add_argument("--encrypted", action="store_true", help="encrypt the data files of a new lake")
    connect.add_argument("--at", metavar="SNAPSHOT", help="attach as of a snapshot id or a time, without writing")
    connect.add_argument(
        "--no-pin", action="store_true", help="read the newest snapshot, though the notebook has a pin"
    )
    connect.add_argument("--existing", action="store_true", help="fail where there is no lake, rather than make one")
    connect.add_argument("--create-folders", action="store_true", help="make the folder of a new catalog file")
    connect.add_argument(
        "--ducklake-version", metavar="VERSION", help="of a new lake: 1.0, which older clients read, or 1.1"
    )
    connect.add_argument("--exclusive", action="store_true", help="keep a catalog file open, which shuts others out")
    add("disconnect", "detach a lake; nothing of it changes").add_argument(
        "alias", metavar="LAKE", nargs="?", help="the lake in use if left out"
    )
    add("lakes", "the attached lakes, and those of the connections file")
    add("use", "make a lake or schema current").add_argument("name", metavar="NAME", help="lake, or lake.schema")
    add("schema", "schemas, tables and columns as a tree").add_argument("--at", metavar="SNAPSHOT", help=_AT)
    add("tables", "tables with rows and sizes").add_argument("--at", metavar="SNAPSHOT", help=_AT)
    for name, text in (
        ("describe", "columns, types, keys and sizes of a table"),
        ("preview", "rows of a table to scroll, sort and filter"),
        ("files", "data files of a table with their statistics"),
        ("stats", "values, nulls and sizes per column of a table"),
    ):
        parser = add(name, text)
        parser.add_argument("table", metavar="TABLE")
        parser.add_argument("--at", metavar="SNAPSHOT", help=_AT)
    add("snapshots", "timeline and list of snapshots").add_argument(
        "table", metavar="TABLE", nargs="?", help="only its snapshots"
    )
    add("history", "the same, of one table").add_argument("table", metavar="TABLE")
    diff = add("diff", "what changed in a table, or in the lake, between two snapshots")
    diff.add_argument("table", metavar="TABLE", help="the whole lake if left out: diff A B")
    diff.add_argument(
        "start",
        metavar="A",
        nargs="?",
        help="the earlier snapshot: its id, a tag or a time; the last change if left out",
    )
    diff.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    diff.add_argument("--with", dest="other", metavar="TABLE", help="the later state is that of this table")
    diff.add_argument("--key", metavar="COLUMNS", help="pair rows by these columns, comma between, not by row id")
    diff.add_argument("--kind", choices=("updated", "inserted", "deleted"), help="show rows that changed so")
    diff.add_argument("--changed", metavar="COLUMN", help="show updated rows in which this column changed")
    diff.add_argument("--sort", metavar="COLUMN", help="show rows in the order of a column")
    diff.add_argument("--descending", action="store_true", help="largest values first")
    diff.add_argument("--rows", metavar="N", type=int, help="rows shown at most (50)")
    diff.add_argument("--html", metavar="FILE", help="also write it to one self-contained HTML file")
    diff.add_argument(
        "--patch", metavar="FILE", help="also write the SQL that makes the later state of the earlier one"
    )
    diff.add_argument("--revert", action="store_true", help="of --patch, the way back")
    compare = add("compare", "what differs in a query's answers at two snapshots")
    compare.add_argument("query", metavar="SQL", help="one query, in quotes")
    compare.add_argument("start", metavar="A", help="the earlier snapshot: its id, a tag or a time")
    compare.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    compare.add_argument(
        "--key", metavar="COLUMNS", help="pair rows by these columns, comma between; found if left out"
    )
    compare.add_argument("--rows", metavar="N", type=int, help="rows shown at most (50)")
    compare.add_argument("--html", metavar="FILE", help="also write it to one self-contained HTML file")
    when = add("when", "the snapshots at which a query's answer changed")
    when.add_argument("query", metavar="SQL", help="one query, in quotes")
    when.add_argument("--start", metavar="SNAPSHOT", help="the first snapshot: its id, a tag or a time")
    when.add_argument("--end", metavar="SNAPSHOT", help="the last one, inclusive; the newest if left out")
    when.add_argument("--monotonic", action="store_true", help="an answer that was left never comes back: ask few")
    blame = add("blame", "who set each cell of a table's rows, in which snapshot, and the value before")
    blame.add_argument("table", metavar="TABLE")
    blame.add_argument("--where", metavar="CONDITION", help="only the rows that fulfil it; quote what holds blanks")
    blame.add_argument("--columns", metavar="COLUMNS", help="only these columns, comma between")
    blame.add_argument("--at", metavar="SNAPSHOT", help=_AT)
    life = add("life", "the changes of one row, from its insert to its delete")
    life.add_argument("table", metavar="TABLE")
    life.add_argument("row_id", metavar="ROW_ID", type=int, help="the row's id, rowid in SQL")
    life.add_argument("--at", metavar="SNAPSHOT", help=_AT)
    check = add("check", "whether the rows of a table fulfil its expectations")
    check.add_argument("table", metavar="TABLE", nargs="?", help="all tables with expectations if left out")
    check.add_argument("--since", metavar="SNAPSHOT", help="only rows that came after it: its id, a tag or a time")
    lineage = add("lineage", "what a table or column comes from, and what depends on it")
    lineage.add_argument("name", metavar="NAME", nargs="?", help="table or table.column; the whole lake if left out")
    options = add("options", "options of the lake; set one by name and value")
    options.add_argument("name", metavar="NAME", nargs="?")
    options.add_argument("value", metavar="VALUE", nargs="?")
    options.add_argument("--table", metavar="TABLE", help="of one table")
    maintain = add("maintain", "what would mend small files and deletions; --apply runs it")
    maintain.add_argument("table", metavar="TABLE", nargs="?", help="all tables if left out")
    maintain.add_argument("--apply", action="store_true", help="run what is proposed; without it nothing changes")
    autopilot = add("autopilot", "pieces of maintenance that the lake's policy asks for; --run commits them")
    autopilot.add_argument("--run", action="store_true", help="run the pieces; without it nothing changes")
    autopilot.add_argument(
        "--set", action="append", metavar="NAME=VALUE", help="a setting of the policy; null takes it back"
    )
    scope = autopilot.add_mutually_exclusive_group()
    scope.add_argument("--table", metavar="TABLE", help="set the policy of one table")
    scope.add_argument("--schema", metavar="SCHEMA", help="set the policy of one schema")
    doctor = add("doctor", "check the health of the lake; --repair mends what can be mended")
    doctor.add_argument("table", metavar="TABLE", nargs="?", help="the whole lake if left out")
    doctor.add_argument("--deep", action="store_true", help="read footers and rows of all files too")
    doctor.add_argument("--repair", action="store_true", help="show the repairs; with --apply make them")
    doctor.add_argument("--apply", action="store_true", help="make the repairs, a commit each")
    restore = add("restore", "make a table what it was at a snapshot, as a new snapshot")
    restore.add_argument("table", metavar="TABLE")
    restore.add_argument("to", metavar="SNAPSHOT", help=_AT)
    revert = add("revert", "take the changes of one snapshot back, as a new snapshot")
    revert.add_argument("snapshot", metavar="SNAPSHOT", help=_AT)
    add_choices(revert)
    upload = add("upload", "show what files would become as a table; --apply writes it")
    upload.add_argument("source", metavar="FILES", help="file, pattern, folder or URL of CSV, Parquet, JSON or Excel")
    upload.add_argument("table", metavar="TABLE", nargs="?", help="named after the file if left out")
    mode = upload.add_mutually_exclusive_group()
    mode.add_argument("--append", action="store_true", help="add the rows to a table, columns matched by name")
    mode.add_argument("--replace", action="store_true", help="put the table in the place of one that exists")
    upload.add_argument("--clean-names", action="store_true", help="name columns so that SQL needs no quotes")
    upload.add_argument(
        "--type", metavar="NAME=TYPE", action="append", help="a column's type, rather than the one guessed"
    )
    upload.add_argument("--round", action="store_true", help="round and cut values that do not fit their types")
    upload.add_argument("--dates", metavar="FORMAT", help="of dates in CSV files, such as %%m/%%d/%%Y")
    upload.add_argument("--null", metavar="TEXT", action="append", help="a text of CSV or Excel files that means NULL")
    upload.add_argument("--thousands", metavar="MARK", help="between thousands of numbers in CSV files")
    upload.add_argument("--decimal", metavar="MARK", help="before the fraction of numbers in CSV files (.)")
    upload.add_argument(
        "--delimiter", metavar="MARK", help="between columns of CSV files: ; or tab, none for one column"
    )
    upload.add_argument("--quote", metavar="MARK", help='around values of CSV files that hold delimiters (")')
    upload.add_argument("--escape", metavar="MARK", help="before a quote within such a value (the quote itself)")
    upload.add_argument("--encoding", metavar="NAME", help="of CSV files, such as latin-1, cp1252 or utf-16 (utf-8)")
    upload.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help="whether the first line or row names the columns"
    )
    upload.add_argument("--skip", metavar="N", type=int, help="leave out the first lines or rows of each file")
    upload.add_argument("--sheet", metavar="NAME", help="of Excel files; the first if left out")
    upload.add_argument("--message", metavar="TEXT", help="the commit message; names the files if left out")
    upload.add_argument("--apply", action="store_true", help="write the rows; without it nothing changes")
    pin = add("pin", "read the lake as of a snapshot until --off, kept in the notebook; says where it is if left out")
    pin.add_argument("at", metavar="SNAPSHOT", nargs="?", help=_AT)
    pin.add_argument("--off", action="store_true", help="read the newest snapshot again, and allow writes")
    tag = add("tag", "name a snapshot, which does not expire then")
    tag.add_argument("name", metavar="NAME")
    tag.add_argument("snapshot", metavar="ID", type=int, nargs="?", help="the newest if left out")
    add("untag", "take a tag away").add_argument("name", metavar="NAME")
    add("tags", "the tagged snapshots")
    branch = add("branch", "make a branch, a lake that begins at a snapshot of this one; list branches without a name")
    branch.add_argument("name", metavar="NAME", nargs="?")
    branch.add_argument("--at", metavar="SNAPSHOT", help=f"{_AT}; the newest if left out")
    branch.add_argument("--copy", action="store_true", help="copy the files; needed in object stores")
    switch = add("switch", "read and write a branch instead of the lake; the lake itself without a name")
    switch.add_argument("name", metavar="NAME", nargs="?")
    drop = add("drop-branch", "drop a branch with its commits and files")
    drop.add_argument("name", metavar="NAME")
    drop.add_argument("--dry-run", action="store_true", help="show the branch and keep it")
    merge_commands.add_arguments(add)
    live_commands.add_arguments(add)
    add("help", "this help")
    return by_name


_AT = "a snapshot id, a tag or a time"

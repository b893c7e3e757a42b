"""The subcommands of `%ducklake`: their arguments, and what each returns."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from posixpath import basename
from typing import Any, NoReturn

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.magics import options
from ducklake_lab.magics.session import At, LakeSession
from ducklake_lab.widgets.html import escape, view
from ducklake_lab.widgets.schema import SchemaTree, build
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from ducklake_lab.widgets.summary import LakeSummary, summarize
from ducklake_lab.widgets.tables import TableListing


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}. {self.prog} --help tells more.")


@dataclass(frozen=True, slots=True)
class Help:
    """Help as text that keeps its lines."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return view(f'<pre class="dlk-mono">{_escape_lines(self.text)}</pre>', label="Help")


def _escape_lines(text: str) -> str:
    return "\n".join(escape(line) for line in text.split("\n"))


class Commands:
    """Runs subcommands for the magics, which hold the session.

    Args:
        session: gives the session, or raises a UsageError that says how to connect.
        connect: attaches a lake and makes it current.
    """

    def __init__(
        self, session: Callable[[], LakeSession], connect: Callable[[str, dict[str, Any]], LakeSession]
    ) -> None:
        self._session = session
        self._connect = connect
        self._parsers = _parsers()
        self._runs: dict[str, Callable[[argparse.Namespace], Any]] = {
            "connect": self._run_connect,
            "use": self._run_use,
            "snapshots": self._run_history,
            "history": self._run_history,
            "schema": self._run_schema,
            "tables": self._run_tables,
            "files": self._run_files,
            "diff": self._run_diff,
            "help": self._run_help,
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def run(self, line: str) -> Any:
        """Runs `name arguments…` and returns the value to show.

        Raises:
            UsageError: an unknown subcommand, or wrong arguments.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"%ducklake: {error}; quote a text as 'text'.") from None
        name, *arguments = words or ["help"]
        if name not in self._runs:
            hint = did_you_mean(name, self.names) or f" Choose one of: {', '.join(self.names)}."
            raise UsageError(f'%ducklake has no subcommand "{name}".{hint}')
        parser = self._parsers[name]
        if "--help" in arguments or "-h" in arguments:
            return Help(parser.format_help().rstrip())
        return self._runs[name](parser.parse_args(arguments))

    def _run_connect(self, given: argparse.Namespace) -> LakeSummary:
        chosen = {
            name: value
            for name, value in (("data_path", given.data_path), ("alias", given.alias), ("read_only", given.read_only))
            if value
        }
        session = self._connect(given.uri, chosen)
        return _summary(_name(given.uri, session), session)

    def _run_use(self, given: argparse.Namespace) -> LakeSummary:
        session = self._session()
        session.use(given.name)
        return _summary(given.name, session)

    def _run_history(self, given: argparse.Namespace) -> SnapshotBrowser:
        session = self._session()
        title = f"Snapshots of {given.table}" if given.table else "Snapshots"

        def diff(name: str, start: int, end: int) -> str:
            html: str = session.table(name).diff(start, end)._repr_html_()
            return html

        return SnapshotBrowser(session.history(given.table), title=title, diff=diff)

    def _run_schema(self, given: argparse.Namespace) -> SchemaTree:
        session = self._session()
        at = _at(given.at)
        newest = session.current_snapshot().snapshot_id if at is None else None
        return build(session.current_lake.alias, session.tables(at), at if isinstance(at, int) else newest)

    def _run_tables(self, given: argparse.Namespace) -> TableListing:
        return TableListing(tuple(self._session().tables(_at(given.at))))

    def _run_files(self, given: argparse.Namespace) -> Any:
        return self._session().table(given.table, at=_at(given.at)).files()

    def _run_diff(self, given: argparse.Namespace) -> Any:
        return self._session().table(given.table).diff(options.moment(given.start), _at(given.end))

    def _run_help(self, given: argparse.Namespace) -> Help:
        lines = []
        for name, parser in self._parsers.items():
            # Options are told by the subcommand's own --help.
            arguments = re.sub(r"\[--[^]]*\]", "", parser.format_usage()).split()[3:]
            lines.append(f"  %ducklake {' '.join((name, *arguments)):<24}{parser.description}")
        return Help(f"{options.usage()}\n\nSubcommands (each takes --help)\n" + "\n".join(lines))


def _at(text: str | None) -> At:
    return None if text is None else options.moment(text)


def _summary(name: str, session: LakeSession) -> LakeSummary:
    return summarize(name, session.current_snapshot().snapshot_id, session.current_lake.alias, session.tables())


def _name(uri: str, session: LakeSession) -> str:
    """The catalog's file name; the lake's alias where the catalog is no file."""
    name = basename(uri.replace("\\", "/").rpartition(":")[2].partition("?")[0])
    return name if "=" not in name and name else session.current_lake.alias


def _parsers() -> dict[str, _Parser]:
    parsers: dict[str, _Parser] = {}

    def add(name: str, text: str) -> _Parser:
        parsers[name] = _Parser(prog=f"%ducklake {name}", description=text, add_help=False)
        return parsers[name]

    connect = add("connect", "attach a lake, made if it does not exist, and use it")
    connect.add_argument(
        "uri", metavar="URI", help="ducklake:metadata.ducklake, ducklake:sqlite:file, ducklake:postgres:…"
    )
    connect.add_argument("--data-path", metavar="PATH", help="folder or URL of the data files of a new lake")
    connect.add_argument("--alias", metavar="NAME", help="name of the lake in SQL; the file's stem if left out")
    connect.add_argument("--read-only", action="store_true", help="refuse statements that write")
    add("use", "make a lake or schema current").add_argument("name", metavar="NAME", help="lake, or lake.schema")
    for name, text in (("snapshots", "timeline and list of snapshots"), ("history", "the same, of one table")):
        history = add(name, text)
        history.add_argument(
            "table", metavar="TABLE", nargs="?" if name == "snapshots" else None, help="only its snapshots"
        )
    for name, text in (("schema", "schemas, tables and columns as a tree"), ("tables", "tables with rows and sizes")):
        add(name, text).add_argument("--at", metavar="SNAPSHOT", help="a snapshot id or a time")
    files = add("files", "data files of a table with their statistics")
    files.add_argument("table", metavar="TABLE")
    files.add_argument("--at", metavar="SNAPSHOT", help="a snapshot id or a time")
    diff = add("diff", "what changed in a table between two snapshots")
    diff.add_argument("table", metavar="TABLE")
    diff.add_argument("start", metavar="A", help="the earlier snapshot id or time")
    diff.add_argument("end", metavar="B", nargs="?", help="the later one; the newest if left out")
    add("help", "this help")
    return parsers

"""Completion in `%ducklake` lines and `%%ducklake` cells: options, subcommands, and SQL from the catalog."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from ducklake_lab.engine.turn import looking
from ducklake_lab.errors import SessionBusyError
from ducklake_lab.magics import options
from ducklake_lab.magics.commands import Commands
from ducklake_lab.magics.session import LakeSession

_CELL = re.compile(r"\A\s*%%ducklake\b(?P<line>[^\n]*)(?P<body>\n.*)?\Z", re.DOTALL)
_LINE = re.compile(r"^(?P<head>\s*(?:[^\W\d]\w*\s*=\s*)?%ducklake\b)(?P<line>.*)$")
#: Options before the SQL, with their values, and `name <<`.
_OPTIONS = re.compile(r"""\s*(?:(?:--[A-Za-z][\w-]*|-[ho]\b)(?:=|\s+)?(?:"[^"]*"|'[^']*'|[^\s-]\S*)?\s+)*""")
_TARGET = re.compile(r"\s*[^\W\d]\w*\s*=?\s*<<(?!<)")


class MagicCompleter:
    """Completes magic lines and cells.

    Args:
        session: returns the session, or None if no lake is connected.
        saved: queries from --save, by name.
        connections: returns the named connections.
        variables: the notebook's variables.
    """

    def __init__(
        self,
        commands: Commands,
        session: Callable[[], LakeSession | None],
        saved: Mapping[str, object],
        connections: Callable[[], Mapping[str, object]],
        variables: Callable[[], Mapping[str, object]],
    ) -> None:
        self._commands = commands
        self._session = session
        self._saved = saved
        self._connections = connections
        self._variables = variables

    def complete(self, text: str, cursor: int) -> tuple[list[tuple[str, str]], str] | None:
        """Returns ((text, kind) …, the fragment to replace); None if the text is no magic line or cell.

        Args:
            text: a whole cell.
            cursor: 0-based position in the cell.
        """
        cell = _CELL.match(text)
        if cell is not None:
            if cursor <= cell.end("line"):
                return self._magic_line(cell["line"], cursor - cell.start("line"), text[cell.end("line") :], cell=True)
            return self._sql(cell["body"] or "", cursor - cell.start("body"))
        start = text.rfind("\n", 0, cursor) + 1
        end = text.find("\n", cursor)
        line = _LINE.match(text[start : len(text) if end < 0 else end])
        if line is None or cursor - start < line.end("head"):
            return None
        return self._magic_line(line["line"], cursor - start - line.start("line"), "", cell=False)

    def _magic_line(self, line: str, cursor: int, body: str, *, cell: bool) -> tuple[list[tuple[str, str]], str]:
        given = _OPTIONS.match(line[:cursor])
        assert given is not None  # the pattern also matches the empty text
        rest = line[given.end() : cursor]
        words = line[: given.end()].split()
        if rest.startswith("-"):
            names = [*(f"--{name}" for name in (*options.VALUED, *options.FLAGS)), "-o"]
            return _prefixed(((name, "option") for name in names), rest), rest
        if " " not in rest:
            option = _open_option(line[:cursor], rest)
            if option is not None:
                return _prefixed(((value, "value") for value in self._values(option)), rest), rest
        target = _TARGET.match(rest)
        if target is not None:
            rest = rest[target.end() :]
            return self._sql(rest + body, len(rest))
        if not cell and not words:
            command = rest.split(" ", 1)
            if len(command) == 1:
                return _prefixed(((name, "command") for name in self._commands.names), rest), rest
            if command[0] in self._commands.names:
                return self._argument(command[0], command[1])
        return self._sql(rest + body, len(rest))

    def _argument(self, command: str, rest: str) -> tuple[list[tuple[str, str]], str]:
        fragment = rest.rpartition(" ")[2]
        before = rest[: len(rest) - len(fragment)].split()
        if fragment.startswith("-"):
            return _prefixed(((name, "option") for name in self._commands.option_names(command)), fragment), fragment
        if command == "connect":
            return _prefixed(((name, "connection") for name in self._connections()), fragment), fragment
        if command == "disconnect":
            session = self._session()
            return _prefixed(((lake.alias, "lake") for lake in (session.lakes if session else ())), fragment), fragment
        if command == "use":
            return self._sql(f"USE {fragment}", len(fragment) + 4)
        positional = [word for word in before if not word.startswith("-")]
        if (
            (before and before[-1] in ("--at", "--with", "--start", "--end"))
            or (positional and command in ("diff", "restore"))
            or (not positional and command == "revert")
            or command == "pin"
        ):
            if before and before[-1] == "--with":
                return self._sql(f"FROM {fragment}", len(fragment) + 5)
            snapshots, _ = self._sql("FROM t AT (VERSION => ", 22)
            return _prefixed(snapshots, fragment), fragment
        if command == "upload" and not positional:
            return [(path, "path") for path in _paths(fragment)], fragment
        if command in ("switch", "drop-branch", "merge", "cherry-pick", "rebase", "review") and not positional:
            session = self._session()
            branches = session.branches() if session else ()
            return _prefixed(((str(row["branch"]), "branch") for row in branches), fragment), fragment
        if command == "untag" and not positional:
            session = self._session()
            return _prefixed(((name, "tag") for name in (session.tags() if session else ())), fragment), fragment
        if self._commands.argument(command, len(positional)) == "table":
            return self._sql(f"FROM {fragment}", len(fragment) + 5)
        return [], fragment

    def _values(self, option: str) -> Iterable[str]:
        if option in ("at", "compare"):
            snapshots, _ = self._sql("FROM t AT (VERSION => ", 22)
            return [text.strip("'") for text, _ in snapshots if " " not in text]
        session = self._session()
        return {
            "engine": options.ENGINES,
            "dialect": options.DIALECTS,
            "output": options.OUTPUTS,
            "with": tuple(self._saved),
            "lake": tuple(lake.alias for lake in session.lakes) if session is not None else (),
        }.get(option, ())

    def _sql(self, sql: str, cursor: int) -> tuple[list[tuple[str, str]], str]:
        session = self._session()
        if session is None:
            return [], ""
        from ducklake_lab.session.rows.handed_in import is_rows  # an open session has imported it already

        variables = list(self._variables().items())
        tables = [name for name, value in variables if is_rows(value)]
        values = [
            name
            for name, value in variables
            if name not in tables and not isinstance(value, ModuleType) and not callable(value)
        ]
        try:
            with looking():
                candidates = session.complete(sql, cursor, values, tables)
        except SessionBusyError:  # another thread uses the session
            return [], ""
        fragment = sql[candidates[0].start : cursor] if candidates else ""
        return [(one.text, one.kind) for one in candidates], fragment


def _open_option(text: str, fragment: str) -> str | None:
    """Returns the option whose value is at the cursor."""
    match = re.search(r"(?:--([A-Za-z][\w-]*)|-(o))(?:=|\s+)$", text[: len(text) - len(fragment)])
    if match is None:
        inline = re.search(r"--([A-Za-z][\w-]*)=$", text[: len(text) - len(fragment)])
        return inline[1] if inline else None
    name = match[1] or "output"
    return name if name in options.VALUED else None


def _prefixed(candidates: Iterable[tuple[str, str]], fragment: str) -> list[tuple[str, str]]:
    folded = fragment.casefold()
    return [(text, kind) for text, kind in candidates if text.casefold().startswith(folded)]


def _paths(fragment: str) -> list[str]:
    """Returns folders, and files for upload, whose paths begin with a fragment; quoted if they have blanks."""
    from ducklake_lab.session.uploads.files import can_upload

    folder, slash, name = fragment.rpartition("/")
    directory = Path(folder + slash).expanduser() if slash else Path()
    paths = sorted(directory.iterdir()) if directory.is_dir() else []
    return [
        shlex.quote(f"{folder}{slash}{path.name}") + "/" * path.is_dir()
        for path in paths
        if path.name.startswith(name)
        and not (path.name.startswith(".") and not name)
        and (path.is_dir() or can_upload(path.name))
    ]


def register(shell: InteractiveShell, completer: MagicCompleter) -> None:
    """Puts the completer before IPython's own matchers, which are silent in cells of these magics."""

    @context_matcher(identifier="ducklake_lab")
    def match(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.split("\n")
        cursor = sum(len(line) + 1 for line in lines[: context.cursor_line]) + context.cursor_position
        candidates = completer.complete(context.full_text, cursor)
        if candidates is None:
            return SimpleMatcherResult(completions=[])
        # Python's names do not belong in a SQL cell. IPython omits them only if there is another candidate, so the
        # present text is offered if nothing fits.
        token = context.token
        names, fragment = candidates if candidates[0] else ([(token, "text")], token)
        completions: Sequence[Any] = [SimpleCompletion(text=text, type=kind) for text, kind in names]
        return {
            "completions": completions,
            "matched_fragment": fragment,
            "ordered": True,
            "suppress": True,
            "do_not_suppress": set(),
        }

    matchers: list[Any] = shell.Completer.custom_matchers
    matchers[:] = [one for one in matchers if getattr(one, "matcher_identifier", "") != "ducklake_lab"]
    matchers.append(match)

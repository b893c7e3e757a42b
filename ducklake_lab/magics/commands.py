"""The subcommands of `%ducklake` and their results."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.display import display

from ducklake_lab.errors import EntryNotFoundError, RevertConflictError, UsageError, did_you_mean
from ducklake_lab.magics import options
from ducklake_lab.magics.arguments import parsers
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.snapshot_names import named_snapshot
from ducklake_lab.widgets.html import escape, view

# The session and the views are imported on first use, so that %load_ext is fast.
if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.magics.session import At, LakeSession
    from ducklake_lab.session.listings import Listing
    from ducklake_lab.widgets.file_browser import FileBrowser
    from ducklake_lab.widgets.schema_browser import SchemaBrowser
    from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
    from ducklake_lab.widgets.summary import LakeSummary
    from ducklake_lab.widgets.tables import TableListing


#: Subcommands by their names in other tools.
_ELSEWHERE = {
    "head": "preview",
    "import": "upload",
    "ingest": "upload",
    "load": "upload",
    "log": "history",
    "optimize": "maintain",
    "undo": "restore",
}


@dataclass(frozen=True, slots=True)
class Help:
    """Help as text with its line breaks."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        lines = "\n".join(escape(line) for line in self.text.split("\n"))
        return view(f'<pre class="dlk-mono">{lines}</pre>', label="Help")


class Commands:
    """Runs subcommands for the magics, which hold the session.

    Args:
        session: returns the session, or raises a UsageError on how to connect.
        connect: attaches a lake, makes it current and returns a function's result for it; detaches it on an error.
        connections: the connections file by name, as written.
    """

    def __init__(
        self,
        session: Callable[[], LakeSession],
        connect: Callable[[str, dict[str, Any], Callable[[LakeSession], Any]], Any],
        connections: Callable[[], Mapping[str, Mapping[str, object]]] = dict,
    ) -> None:
        self._session = session
        self._connect = connect
        self._connections = connections
        self._parsers = parsers()
        self._runs: dict[str, Callable[[argparse.Namespace], object]] = {
            name: getattr(self, f"_run_{name.replace('-', '_')}") for name in self._parsers
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def option_names(self, command: str) -> list[str]:
        """Returns the `--options` of a subcommand, for completion."""
        parser = self._parsers.get(command)
        found = [name for action in parser._actions for name in action.option_strings] if parser else []
        return [*found, "--help"]

    def argument(self, command: str, position: int) -> str | None:
        """Returns the name of a subcommand's positional argument; None if there is none at that position."""
        names = [action.dest for action in self._parsers[command]._actions if not action.option_strings]
        return names[position] if position < len(names) else None

    def run(self, line: str) -> Any:
        """Runs `name arguments…` and returns the value to display.

        Raises:
            UsageError: the subcommand is unknown, or has wrong arguments.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"%ducklake: {error}; quote a text as 'text'.") from None
        name, *arguments = words or ["help"]
        if name not in self._runs:
            meant = _ELSEWHERE.get(name.casefold())
            hint = (
                f" Did you mean {meant}?"
                if meant
                else did_you_mean(name, self.names) or f" Choose one of: {', '.join(self.names)}."
            )
            # a word with other characters than letters may be a URI with a password
            shown = f'subcommand "{name}"' if name.replace("-", "_").isidentifier() else "such subcommand"
            raise UsageError(f"%ducklake has no {shown}.{hint}")
        parser = self._parsers[name]
        if "--help" in arguments or "-h" in arguments:
            return Help(parser.format_help().rstrip())
        return self._runs[name](parser.parse_args(arguments))

    # Lakes

    def _run_connect(self, given: argparse.Namespace) -> LakeSummary:
        chosen: dict[str, object] = {
            name: value
            for name in (
                "data_path",
                "alias",
                "read_only",
                "encrypted",
                "create_folders",
                "exclusive",
                "ducklake_version",
            )
            if (value := getattr(given, name)) not in (None, False)
        }
        if given.existing:
            chosen["create_if_not_exists"] = False
        if given.at is not None:
            at = options.moment(given.at)
            chosen["snapshot_version" if isinstance(at, int) else "snapshot_time"] = at
        from ducklake_lab.widgets.summary import of_session

        connected: LakeSummary = self._connect(given.uri, chosen, of_session)
        return connected

    def _run_disconnect(self, given: argparse.Namespace) -> Listing:
        from ducklake_lab.session.listings import Listing

        session = self._session()
        alias = given.alias or session.current_lake.alias
        session.detach(alias)
        left = tuple((lake.alias,) for lake in session.lakes)
        return Listing("Lakes still attached", ("name",), left, noun="lake", note=f"{alias} disconnected")

    def _run_lakes(self, _given: argparse.Namespace) -> Listing:
        from ducklake_lab.redaction import hide
        from ducklake_lab.session.listings import Listing

        rows: list[tuple[object, ...]] = []
        named = self._connections()
        try:
            session: LakeSession | None = self._session()
        except UsageError:
            if not named:
                raise
            session = None
        if session is not None:
            current = session.current_lake
            rows += [
                (
                    lake.alias,
                    _reading(lake, "in use" if lake is current else "attached"),
                    lake.database.location.display,
                )
                for lake in session.lakes
            ]
        # As written, without passwords: environment variables may hold secrets, too.
        rows += [
            (name, "not attached", hide(str(entry["uri"])))
            for name, entry in named.items()
            if name not in {r[0] for r in rows}
        ]
        return Listing("Lakes", ("name", "state", "catalog"), tuple(rows), noun="lake")

    def _run_use(self, given: argparse.Namespace) -> LakeSummary:
        from ducklake_lab.widgets.summary import of_session

        session = self._session()
        session.use(given.name)
        return of_session(session, given.name)

    # Contents

    def _run_schema(self, given: argparse.Namespace) -> SchemaBrowser:
        from ducklake_lab.widgets import browsers

        return browsers.schema(self._session(), _at(given.at))

    def _run_tables(self, given: argparse.Namespace) -> TableListing:
        from ducklake_lab.widgets.tables import TableListing

        return TableListing(tuple(self._session().tables(_at(given.at))))

    def _run_describe(self, given: argparse.Namespace) -> object:
        return self._session().table(given.table, at=_at(given.at)).describe()

    def _run_preview(self, given: argparse.Namespace) -> object:
        from ducklake_lab.widgets import browsers

        return browsers.rows(self._session(), given.table, _at(given.at))

    def _run_files(self, given: argparse.Namespace) -> FileBrowser:
        from ducklake_lab.widgets import browsers

        return browsers.files(self._session(), given.table, _at(given.at))

    def _run_stats(self, given: argparse.Namespace) -> object:
        return self._session().table(given.table, at=_at(given.at)).column_stats()

    # History

    def _run_snapshots(self, given: argparse.Namespace) -> SnapshotBrowser:
        from ducklake_lab.widgets import browsers

        return browsers.snapshots(self._session(), given.table)

    _run_history = _run_snapshots

    def _run_diff(self, given: argparse.Namespace) -> object:
        if given.revert and not given.patch:
            raise UsageError("--revert is of a patch; say where to write it with --patch FILE.")
        if given.end is None and self._is_snapshot(given.table):
            return self._lake_diff(given)
        table = self._session().table(given.table)
        more: dict[str, object] = {}
        if given.key:
            more["key"] = [name.strip() for name in given.key.split(",")]
        if given.other:
            more["other"] = given.other
        diff = table.diff(_at(given.start), _at(given.end), **more)
        shown: dict[str, object] = {"kind": given.kind, "changed": given.changed, "limit": given.rows}
        if given.sort:
            shown["sort"] = [(given.sort, given.descending)]
        if chosen := {name: value for name, value in shown.items() if value is not None}:
            diff = diff.showing(**chosen)
        if given.html:
            diff.to_html(Path(given.html))
            _say_written(given.html)
        if given.patch:
            diff.write_patch(Path(given.patch), revert=given.revert)
            _say_written(given.patch)
        return diff

    def _run_compare(self, given: argparse.Namespace) -> object:
        key = [name.strip() for name in given.key.split(",")] if given.key else None
        diff = self._session().compare(given.query, named_snapshot(given.start), _at(given.end), key=key)
        if given.rows is not None:
            diff = diff.showing(limit=given.rows)
        if given.html:
            diff.to_html(Path(given.html))
            _say_written(given.html)
        return diff

    def _run_when(self, given: argparse.Namespace) -> object:
        return self._session().when(given.query, _at(given.start), _at(given.end), given.monotonic)

    def _is_snapshot(self, word: str) -> bool:
        """Whether the first word of a diff names a snapshot, not a table."""
        if not isinstance(named_snapshot(word), str):
            return True
        try:
            self._session().table(word)
        except EntryNotFoundError:
            if word not in self._session().tags():
                raise
            return True
        return False

    def _lake_diff(self, given: argparse.Namespace) -> object:
        of_one_table = ("other", "key", "kind", "changed", "sort", "rows", "patch")
        wrong = next((name for name in of_one_table if getattr(given, name) is not None), None)
        if wrong is not None:
            option = "--with" if wrong == "other" else f"--{wrong}"
            raise UsageError(f"{option} is of one table; name it: %ducklake diff TABLE {given.table}.")
        found = self._session().diff(named_snapshot(given.table), _at(given.start))
        if given.html:
            found.to_html(Path(given.html))
            _say_written(given.html)
        return found

    def _run_blame(self, given: argparse.Namespace) -> object:
        columns = [name.strip() for name in given.columns.split(",")] if given.columns else None
        return self._session().table(given.table, at=_at(given.at)).blame(given.where, columns)

    def _run_life(self, given: argparse.Namespace) -> object:
        return self._session().table(given.table, at=_at(given.at)).life(given.row_id)

    def _run_restore(self, given: argparse.Namespace) -> object:
        from ducklake_lab.session.listings import Listing

        session = self._session()
        snapshot = session.restore(given.table, given.to)
        made = snapshot.snapshot_id if snapshot is not None else session.current_snapshot().snapshot_id
        note = (
            "restored"
            if snapshot is not None or session.in_transaction
            else "nothing differed, so no snapshot was made"
        )
        return Listing("", ("table", "is as of", "snapshot"), ((given.table, given.to, made),), noun="table", note=note)

    def _run_revert(self, given: argparse.Namespace) -> object:
        from ducklake_lab.revert.choices import listed, row_ids
        from ducklake_lab.session.listings import Listing

        session, snapshot = self._session(), named_snapshot(given.snapshot)
        choice: dict[str, object] = {
            "tables": listed(given.tables),
            "rows": row_ids(given.rows),
            "on_conflict": given.on_conflict,
        }
        try:
            if given.preview:
                return session.revert_preview(snapshot, **choice)
            made = session.revert(snapshot, **choice, message=given.message)
        except RevertConflictError as error:
            from ducklake_lab.widgets.conflicts import of_revert

            # the error itself shows a line
            display(of_revert(session, snapshot, choice, given.message, error))
            raise
        note = (
            "reverted"
            if made is not None or session.in_transaction
            else "nothing was left to take back, so no snapshot was made"
        )
        newest = (made or session.current_snapshot()).snapshot_id
        return Listing("", ("reverted", "snapshot"), ((given.snapshot, newest),), noun="snapshot", note=note)

    def _run_upload(self, given: argparse.Namespace) -> object:
        mode = "append" if given.append else "replace" if given.replace else "create"
        types = dict(map(options.typed, given.type or ()))
        choices: dict[str, object] = {
            name: getattr(given, name)
            for name in (
                "clean_names", "decimal", "delimiter", "encoding", "escape", "header", "quote", "round", "sheet", "skip",
                "thousands",
            )
        } | {"types": types, "date_format": given.dates, "nulls": given.null}  # fmt: skip
        found = self._session().upload(given.source, given.table, mode, **choices)
        return found.apply(given.message) if given.apply else found

    def _run_pin(self, given: argparse.Namespace) -> LakeSummary:
        from ducklake_lab.widgets.summary import of_session

        session = self._session()
        if given.off and given.at is not None:
            raise UsageError("--off unpins the lake; leave the snapshot out.")
        if given.off or given.at is not None:
            session.pin(_at(given.at))
        return of_session(session)

    def _run_tag(self, given: argparse.Namespace) -> Listing:
        at = self._session().tag(given.name, given.snapshot)
        return _tags({given.name: at}, "tagged")

    def _run_untag(self, given: argparse.Namespace) -> Listing:
        at = self._session().untag(given.name)
        return _tags({given.name: at}, "tag taken away")

    def _run_tags(self, _given: argparse.Namespace) -> Listing:
        return _tags(self._session().tags(), "kept from expiry")

    # Branches

    def _run_branch(self, given: argparse.Namespace) -> Listing:
        session = self._session()
        if given.name is not None:
            session.branch(given.name, _at(given.at), given.copy)
        elif given.at is not None or given.copy:
            raise UsageError("--at and --copy are for a new branch; name it: %ducklake branch NAME.")
        return session.branches()

    def _run_switch(self, given: argparse.Namespace) -> LakeSummary:
        from ducklake_lab.widgets.summary import of_session

        session = self._session()
        session.switch(given.name)
        return of_session(session)

    def _run_drop_branch(self, given: argparse.Namespace) -> Listing:
        from ducklake_lab.session.listings import Listing

        branch = self._session().drop_branch(given.name, given.dry_run)
        rows = ((branch.name, branch.snapshot_id, branch.parent),)
        note = "would be dropped" if given.dry_run else "dropped"
        return Listing("", ("branch", "snapshot", "parent"), rows, noun="branch", note=note)

    # Maintenance

    def _run_options(self, given: argparse.Namespace) -> Listing:
        from ducklake_lab.session.listings import Listing

        session = self._session()
        if given.value is not None:
            scope = ", table_name => :scope" if given.table else ""
            session.sql(
                f"CALL {quote_identifier(session.current_lake.alias)}.set_option(:name, :value{scope})",
                {"name": given.name, "value": given.value, "scope": given.table},
            )
        found = session.options()
        if given.name is None:
            return found
        rows = [tuple(row.values()) for row in found if row["option"] == given.name]
        return Listing(found.title, found.columns, rows, noun="option")

    def _run_maintain(self, given: argparse.Namespace) -> object:
        health = self._session().health(given.table)
        return health.apply() if given.apply else health

    def _run_help(self, _given: argparse.Namespace) -> Help:
        lines = []
        for name, parser in self._parsers.items():
            # The subcommand's own --help lists its options.
            arguments = re.sub(r"\[--[^]]*\]", "", parser.format_usage()).split()[3:]
            lines.append(f"  %ducklake {' '.join((name, *arguments)):<28}{parser.description}")
        return Help(f"{options.usage()}\n\nSubcommands (each takes --help)\n" + "\n".join(lines))


def _at(text: str | None) -> At:
    return None if text is None else named_snapshot(text)


def _reading(lake: Lake, state: str) -> str:
    return state if lake.pinned is None else f"{state}, pinned at {lake.pinned}"


def _say_written(path: str) -> None:
    display({"text/plain": f"Wrote {path}, {Path(path).stat().st_size:,} bytes."}, raw=True)


def _tags(tags: Mapping[str, int], note: str) -> Listing:
    from ducklake_lab.session.listings import Listing

    return Listing("Tags", ("tag", "snapshot"), tuple(tags.items()), noun="tag", note=note)

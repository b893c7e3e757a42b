"""The subcommands of `%ducklake` and their results."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.magics import options
from ducklake_lab.magics.arguments import parsers
from ducklake_lab.magics.history_commands import HistoryCommands, snapshot_option
from ducklake_lab.magics.live_commands import LiveCommands
from ducklake_lab.magics.merge_commands import MergeCommands
from ducklake_lab.magics.pins import NotebookPins
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.widgets.html import escape, view

# The session and the views are imported on first use, so that %load_ext is fast.
if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.magics.session import LakeSession
    from ducklake_lab.session.listings import Listing
    from ducklake_lab.widgets.file_browser import FileBrowser
    from ducklake_lab.widgets.schema_browser import SchemaBrowser
    from ducklake_lab.widgets.summary import LakeSummary
    from ducklake_lab.widgets.tables import TableListing


#: Subcommands by their names in other tools.
_ELSEWHERE = {
    "check": "doctor",
    "fsck": "doctor",
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


class Commands(HistoryCommands, LiveCommands, MergeCommands):
    """Runs subcommands for the magics, which hold the session.

    Args:
        session: returns the session, or raises a UsageError on how to connect.
        connect: attaches a lake, makes it current and returns a function's result for it; detaches it on an error.
        connections: the connections file by name, as written.
        pins: those of the notebook.
    """

    def __init__(
        self,
        session: Callable[[], LakeSession],
        connect: Callable[[str, dict[str, Any], Callable[[LakeSession], Any]], Any],
        connections: Callable[[], Mapping[str, Mapping[str, object]]] = dict,
        pins: NotebookPins | None = None,
    ) -> None:
        self._pins = pins or NotebookPins()
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
        names = [name for action in parser._actions for name in action.option_strings] if parser else []
        return [*names, "--help"]

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

        def pinned(session: LakeSession) -> LakeSummary:
            self._pins.apply(session, leave_out=given.no_pin)
            return of_session(session)

        connected: LakeSummary = self._connect(given.uri, chosen, pinned)
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

        return browsers.schema(self._session(), snapshot_option(given.at))

    def _run_tables(self, given: argparse.Namespace) -> TableListing:
        from ducklake_lab.widgets.tables import TableListing

        return TableListing(tuple(self._session().tables(snapshot_option(given.at))))

    def _run_describe(self, given: argparse.Namespace) -> object:
        return self._session().table(given.table, at=snapshot_option(given.at)).describe()

    def _run_preview(self, given: argparse.Namespace) -> object:
        from ducklake_lab.widgets import browsers

        return browsers.rows(self._session(), given.table, snapshot_option(given.at))

    def _run_files(self, given: argparse.Namespace) -> FileBrowser:
        from ducklake_lab.widgets import browsers

        return browsers.files(self._session(), given.table, snapshot_option(given.at))

    def _run_stats(self, given: argparse.Namespace) -> object:
        return self._session().table(given.table, at=snapshot_option(given.at)).column_stats()

    # Uploads, pins and tags

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
        upload = self._session().upload(given.source, given.table, mode, **choices)
        return upload.apply(given.message) if given.apply else upload

    def _run_pin(self, given: argparse.Namespace) -> LakeSummary:
        from ducklake_lab.widgets.summary import of_session

        session = self._session()
        if given.off and given.at is not None:
            raise UsageError("--off unpins the lake; leave the snapshot out.")
        if given.off or given.at is not None:
            session.pin(snapshot_option(given.at))
            self._pins.keep(session, given.at)
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
            session.branch(given.name, snapshot_option(given.at), given.copy)
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
        listing = session.options()
        if given.name is None:
            return listing
        rows = [tuple(row.values()) for row in listing if row["option"] == given.name]
        return Listing(listing.title, listing.columns, rows, noun="option")

    def _run_maintain(self, given: argparse.Namespace) -> object:
        health = self._session().health(given.table)
        return health.apply() if given.apply else health

    def _run_autopilot(self, given: argparse.Namespace) -> object:
        from ducklake_lab.autopilot.policy import parsed

        session = self._session()
        if given.set:
            return session.set_policy(dict(map(parsed, given.set)), given.table, given.schema)
        if given.table is not None or given.schema is not None:
            return session.policy(given.table, given.schema)
        return session.autopilot(dry_run=not given.run)

    def _run_doctor(self, given: argparse.Namespace) -> object:
        session = self._session()
        if given.apply and not given.repair:
            raise UsageError("--apply makes repairs; add --repair.")
        if not given.repair:
            return session.doctor(given.table, given.deep)
        chosen: object = "all"
        if given.table is not None:
            chosen = [one for one in session.doctor(given.table, given.deep).findings if one.can_repair]
        return session.repair(chosen, dry_run=not given.apply, deep=given.deep)

    def _run_help(self, _given: argparse.Namespace) -> Help:
        lines = []
        for name, parser in self._parsers.items():
            # The subcommand's own --help lists its options.
            arguments = re.sub(r"\[--[^]]*\]", "", parser.format_usage()).split()[3:]
            lines.append(f"  %ducklake {' '.join((name, *arguments)):<28}{parser.description}")
        return Help(f"{options.usage()}\n\nSubcommands (each takes --help)\n" + "\n".join(lines))


def _reading(lake: Lake, state: str) -> str:
    return state if lake.pinned is None else f"{state}, pinned at {lake.pinned}"


def _tags(tags: Mapping[str, int], note: str) -> Listing:
    from ducklake_lab.session.listings import Listing

    return Listing("Tags", ("tag", "snapshot"), tuple(tags.items()), noun="tag", note=note)

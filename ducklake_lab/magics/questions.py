"""Requests of JupyterLab's sidebar to a kernel: a fixed set of questions about the attached lakes.

The browser sends the name of a question and names of entries, never SQL; answers are plain JSON. They all come
from the catalog's metadata, so none starts Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import DuckLakeError, UsageError, did_you_mean
from ducklake_lab.magics.settings import expand

# The sidebar asks for the lakes as soon as a kernel runs, often before there are any.
if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.magics.pins import NotebookPins
    from ducklake_lab.magics.watching import Watch
    from ducklake_lab.model.entries import Column, Table
    from ducklake_lab.model.state import CatalogState
    from ducklake_lab.scan.counts import TableCounts
    from ducklake_lab.session import Session

_SNAPSHOTS = 50
_FILES = 200

Answer = dict[str, Any]


class Questions:
    """Answers the sidebar's questions.

    Args:
        sessions: returns the kernel's sessions by the variable that holds them, "" for the magics' own.
        connections: returns the saved connections by name.
        watch: notices commits of other processes; None where nobody listens.
        pins: those of the notebook; None where none are kept.
        cells: returns what is known of cells that read variables, see `ReadVariables.cells`.
    """

    def __init__(
        self,
        sessions: Callable[[], Mapping[str, Session]],
        connections: Callable[[], Mapping[str, Mapping[str, object]]] = dict,
        watch: Watch | None = None,
        pins: NotebookPins | None = None,
        cells: Callable[[], Answer] = dict,
    ) -> None:
        self._pins = pins
        self._cells = cells
        self._watch = watch
        self._sessions = sessions
        self._connections = connections
        self._answers: dict[str, Callable[..., Answer]] = {
            "lakes": self.lakes,
            "tree": self.tree,
            "snapshots": self.snapshots,
            "files": self.files,
            "changed": self.changed,
            "last_change": self.last_change,
            "moved_on": self.moved_on,
            "watch": self.watch,
            "pin": self.pin,
        }

    def ask(self, question: str, given: Mapping[str, object]) -> Answer:
        """Answers a question by its name.

        Raises:
            UsageError: the question does not exist, or has other arguments.
            DuckLakeError: an entry does not exist.
        """
        if question not in self._answers:
            raise UsageError(f'There is no question "{question}".{did_you_mean(question, self._answers)}')
        try:
            return self._answers[question](**given)
        except TypeError as error:
            raise UsageError(f"The question {question} was asked with wrong arguments: {error}.") from None

    def lakes(self) -> Answer:
        """Returns the attached lakes with their current snapshots, and the names of saved connections.

        A lake that another session shows at the same snapshot is omitted, unless a transaction is open. `uri` is for
        the list of recent lakes: it has no password, and is None if a saved connection leads to the lake. `id` is the
        lake's identity; `pin` is what this kernel did about its pin, `origin` and `at`, or None for nothing. `changed_cells` are
        the cells that read other values of variables than there are now, of the `followed_cells`.
        """
        if self._watch is not None:
            # before they are read, so that no commit is missed
            self._watch.follow(self._lakes())
        entries = []
        connections: Mapping[str, Mapping[str, object]] = {}
        problem = None
        try:
            connections = self._connections()
        except DuckLakeError as error:
            problem = str(error)
        sessions = self._sessions()
        saved = _destinations(connections) if sessions else frozenset()
        shown: dict[tuple[object, ...], str] = {}
        for variable, session in sessions.items():
            current = session.current_lake if session.lakes else None
            for lake in session.lakes:
                location = lake.location
                entry: Answer = {
                    "session": variable,
                    "alias": lake.alias,
                    "catalog": location.display,
                    "backend": location.type,
                    "uri": location.uri if location.uri not in saved else None,
                    "named": lake.alias != location.default_alias,
                    "current": lake is current,
                    "schema": session.current_schema if lake is current else "main",
                    "read_only": lake.read_only,
                    "travelling": lake.at is not None,
                    "in_transaction": session.in_transaction,
                }
                try:
                    state = session.state(lake.alias)
                    snapshot = state.snapshot
                except DuckLakeError as error:
                    # an unreadable lake must not hide others
                    entry["error"] = str(error)
                else:
                    entry["snapshot"] = snapshot.snapshot_id
                    entry["time"] = _time(snapshot.snapshot_time)
                    entry["schema_version"] = snapshot.schema_version
                    entry |= self._pin(lake, state) if not variable else {}
                seen = (location.url, location.schema, lake.at, entry.get("snapshot"), entry.get("error"))
                if session.in_transaction or shown.setdefault(seen, variable) == variable:
                    entries.append(entry)
        answer: Answer = {"lakes": entries, "connections": sorted(connections), **self._cells()}
        return answer if problem is None else {**answer, "connections_error": problem}

    def _pin(self, lake: Lake, state: CatalogState) -> Answer:
        from ducklake_lab.catalog.identity import identity

        own = identity(lake, state)
        known = self._pins.known.get(own) if self._pins is not None else None
        return {"id": own, "pin": None if known is None else {"at": known[0], "origin": known[1]}}

    def pin(self, alias: str, at: str) -> Answer:
        """Pins a lake as the notebook on the page says; its file had no pin when the kernel connected."""
        asked = self._session("")
        lake = _lake(asked, alias)
        if self._pins is None or lake is not asked.current_lake or lake.at is not None:
            raise UsageError(f"The pin of {alias} is not taken over: another lake, or another snapshot, is in use.")
        self._pins.take(asked, at)
        return {"pinned": at}

    def tree(self, alias: str, session: str = "") -> Answer:
        """Returns schemas with their tables, views and macros; columns with types; rows and bytes of tables.

        Each schema comes directly before its nested ones; `key` is its full name.
        """
        from ducklake_lab.scan.counts import TableCounts, table_counts

        asked = self._session(session)
        state = asked.state(alias)
        lake = _lake(asked, alias)
        with lake.connect() as connection:
            counts = table_counts(lake, connection, state.snapshot.snapshot_id)
        comments = asked.view_comments(alias)
        schemas = [
            {
                "name": schema.parts[-1],
                "path": schema.parts,
                "key": schema.name,
                "tables": [
                    _table(table, counts.get(table.table_id, TableCounts()))
                    for table in state.tables_of(schema.schema_id)
                ],
                "views": _names(state.views.values(), schema.schema_id),
                "view_comments": {
                    view.name: {"comment": view.comment, "columns": comments.get(view.view_id, {})}
                    for view in state.views.values()
                    if view.schema_id == schema.schema_id
                },
                "macros": _names(state.macros.values(), schema.schema_id),
            }
            for schema in sorted(state.schemas.values(), key=lambda schema: schema.parts)
        ]
        return {"snapshot": state.snapshot.snapshot_id, "schemas": schemas}

    def snapshots(self, alias: str, session: str = "", limit: int = _SNAPSHOTS) -> Answer:
        """Returns the newest snapshots, newest first."""
        from ducklake_lab.scan.history import lake_history

        lake = _lake(self._session(session), alias)
        with lake.connect() as connection:
            entries = lake_history(lake, connection, last=limit)
        return {
            "snapshots": [
                {
                    "id": entry.info.snapshot_id,
                    "time": _time(entry.info.snapshot_time),
                    "kind": entry.kind,
                    "message": entry.message or None,
                    "author": entry.info.author,
                    "changes": list(entry.changes),
                }
                for entry in reversed(entries)
            ]
        }

    def files(self, alias: str, schema: str, table: str, session: str = "") -> Answer:
        """Returns the first 200 data files of a table, and the number of all."""
        from ducklake_lab.scan.history import table_files

        asked = self._session(session)
        lake, state = _lake(asked, alias), asked.state(alias)
        entry = state.table(schema, table)
        with lake.connect() as connection:
            files, _ = table_files(lake, connection, state, entry)
        return {
            "count": len(files),
            "files": [
                {
                    "path": file.path,
                    "rows": file.rows - file.deleted,
                    "bytes": file.data_file.file_size_bytes,
                    "deleted": file.deleted,
                    "partition": [f"{key} = {'NULL' if value is None else value}" for key, value in file.partition],
                }
                for file in files[:_FILES]
            ],
        }

    def changed(self, alias: str, end: int, start: int | None = None, session: str = "") -> Answer:
        """Returns the tables that changed after one snapshot up to another, and how to view each.

        With `diff`, the table exists at both snapshots and now, under its present name. Otherwise `at` is a snapshot at
        which it exists, under its name then.

        Args:
            start: the earlier snapshot; by default the one before `end`.
        """
        from ducklake_lab.scan.history import snapshot_before, touched_tables

        asked = self._session(session)
        lake, now = _lake(asked, alias), asked.state(alias)
        with lake.connect() as connection:
            first = start if start is not None else snapshot_before(connection, end)
            if first is None:
                return {"start": None, "end": end, "tables": []}
            then, later = (lake.state(connection, lake.snapshot(connection, at)) for at in (first, end))
            touched = touched_tables(connection, (first + 1, end))
        tables = []
        for table_id in sorted(touched.keys() | (then.tables.keys() ^ later.tables.keys())):
            there = [state for state in (then, later) if table_id in state.tables]
            if len(there) == 2 and table_id in now.tables:
                tables.append({**_place(now, now.tables[table_id]), "diff": True})
            elif there:
                state = there[-1]
                tables.append({**_place(state, state.tables[table_id]), "at": state.snapshot.snapshot_id})
        return {"start": first, "end": end, "tables": tables}

    def last_change(self, alias: str, schema: str, table: str, session: str = "") -> Answer:
        """Returns the snapshot of a table's last change, and the one before it; None if the table did not exist then.

        Snapshots that only rewrote files do not count.
        """
        from ducklake_lab.scan.history import last_change

        asked = self._session(session)
        lake, state = _lake(asked, alias), asked.state(alias)
        with lake.connect() as connection:
            start, end = last_change(lake, connection, state, state.table(schema, table))
        return {"start": start, "end": end}

    def moved_on(self, reads: list[Answer]) -> Answer:
        """Returns for each recorded state of an output whether its tables have moved on; see `moved_on.moved_on`."""
        from ducklake_lab.magics.moved_on import moved_on

        return {"reads": moved_on(self._sessions(), reads)}

    def watch(self, seconds: float) -> Answer:
        """Sends `moved` after commits of other processes, for some seconds; a page asks again to go on."""
        if self._watch is None or not isinstance(seconds, int | float):
            return {"watching": False}
        self._watch.go_on(seconds, self._lakes())
        return {"watching": True}

    def _lakes(self) -> list[Lake]:
        return [lake for session in self._sessions().values() for lake in session.lakes]

    def _session(self, variable: str) -> Session:
        sessions = self._sessions()
        if variable not in sessions:
            raise UsageError(f'The kernel holds no session "{variable}" any more; refresh the sidebar.')
        return sessions[variable]


def _lake(session: Session, alias: str) -> Any:
    for lake in session.lakes:
        if lake.alias == alias:
            return lake
    raise UsageError(f'No lake "{alias}" is attached any more; refresh the sidebar.')


def _place(state: CatalogState, table: Table) -> Answer:
    return {"path": state.schema_of(table).parts, "name": table.name}


def _destinations(connections: Mapping[str, Mapping[str, object]]) -> frozenset[str | None]:
    """Returns the lakes of saved connections; ignores a connection with an unset variable."""
    from ducklake_lab.catalog.uri import parse_uri

    uris = set()
    for connection in connections.values():
        with suppress(DuckLakeError):
            uris.add(parse_uri(expand(connection)["uri"]).uri)
    return frozenset(uris)


def _table(table: Table, counts: TableCounts) -> Answer:
    return {
        "name": table.name,
        "comment": table.comment,
        "rows": counts.rows,
        "bytes": counts.bytes,
        "files": counts.files,
        "partitioned_by": [
            column.name
            for field in (table.partition.fields if table.partition else ())
            if (column := table.column_by_id(field.column_id)) is not None
        ],
        "columns": [_column(column) for column in table.columns],
    }


def _column(column: Column) -> Answer:
    return {
        "name": column.name,
        "type": column.data_type.sql(),
        "required": not column.nulls_allowed,
        "comment": column.comment,
    }


def _names(entries: Any, schema_id: int) -> list[str]:
    return sorted({entry.name for entry in entries if entry.schema_id == schema_id})


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} {moment.tzinfo}"

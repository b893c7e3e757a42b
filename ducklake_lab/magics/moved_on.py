"""Finds the tables that have moved on since outputs were made, by the records of the outputs and the catalogs alone.

A lake is found by its identity, and proven by the time of the recorded snapshot: a copy of a catalog has the identity of
its original. What cannot be proven is unknown, never fresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.magics.records import Entry, Recorded, parsed

if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.model.entries import Macro, View
    from ducklake_lab.model.state import CatalogState
    from ducklake_lab.scan.changed_tables import ChangesAfter
    from ducklake_lab.session import Session

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Attached:
    """An attached lake at its newest snapshot, with the times of the recorded snapshots that it has."""

    variable: str
    lake: Lake
    state: CatalogState
    times: Mapping[int, str]

    @property
    def newest(self) -> int:
        return self.state.snapshot.snapshot_id

    def has(self, recorded: Recorded) -> bool:
        """Whether the recorded snapshot is one of this history, or may have been before it expired."""
        time = self.times.get(recorded.snapshot)
        return time == recorded.time or (time is None and recorded.snapshot < self.newest)


def moved_on(sessions: Mapping[str, Session], given: object) -> list[Answer]:
    """Returns for each recorded state whether its tables have moved on.

    An answer has `known`: without it there is a `reason`, else the `alias`, the variable of the `session`, the `newest`
    snapshot, whether the recorded one has `expired`, and for each table its `state`: `same`, `ahead`, `renamed`, `dropped`,
    `replaced` or `unknown`. `ahead` counts the snapshots that may have changed the part of it that was read; `at_least` says
    that others have expired.
    `definitions` has states of views and macros, which are never ahead: another definition has another id.

    Raises:
        UsageError: the records have another form.
    """
    records = parsed(given)
    attached, problems = _attached(sessions, records)
    by_record: list[Answer | None] = [None] * len(records)
    chosen: dict[int, list[int]] = {}
    for place, recorded in enumerate(records):
        at = _find(recorded, attached)
        if isinstance(at, str):
            by_record[place] = {"known": False, "reason": problems.get(recorded.alias, at)}
        else:
            chosen.setdefault(at, []).append(place)
    for at, places in chosen.items():
        try:
            answers = _answers(attached[at], [records[place] for place in places])
        except DuckLakeError as error:
            answers = [{"known": False, "reason": str(error)} for _ in places]
        for place, answer in zip(places, answers, strict=True):
            by_record[place] = answer
    return [answer for answer in by_record if answer is not None]


def _attached(sessions: Mapping[str, Session], records: Sequence[Recorded]) -> tuple[list[_Attached], dict[str, str]]:
    """Returns each attached lake once, and by alias the reason why another one cannot be read."""
    from ducklake_lab.catalog.snapshots import read_times

    attached: dict[tuple[object, ...], _Attached] = {}
    problems = {}
    numbers = {recorded.snapshot for recorded in records}
    for variable, session in sessions.items():
        for lake in session.lakes:
            key = (lake.location.url, lake.location.schema, lake.at)
            if key in attached:
                continue
            try:
                with lake.connect() as connection:
                    state = lake.state(connection, lake.snapshot(connection))
                    times = read_times(connection, numbers)
            except DuckLakeError as error:
                problems[lake.alias] = str(error)
                continue
            texts = {number: moment.astimezone(UTC).isoformat() for number, moment in times.items()}
            attached[key] = _Attached(variable, lake, state, texts)
    return list(attached.values()), problems


def _find(recorded: Recorded, attached: Sequence[_Attached]) -> int | str:
    """Returns the place of the lake of a record, or the reason why there is none."""
    from ducklake_lab.catalog.identity import identity

    named = [place for place, one in enumerate(attached) if identity(one.lake, one.state) == recorded.lake]
    if not named:
        return "its lake is not attached"
    proven = [place for place in named if attached[place].has(recorded)]
    exact = [place for place in proven if recorded.snapshot in attached[place].times] or proven
    if not exact:
        return f"the attached lake has another snapshot {recorded.snapshot}"
    same_name = [place for place in exact if attached[place].lake.alias == recorded.alias]
    if len(exact) > 1 and len(same_name) != 1:
        return "several attached lakes are copies of its lake"
    return (same_name or exact)[0]


def _answers(attached: _Attached, records: Sequence[Recorded]) -> list[Answer]:
    from ducklake_lab.scan.changed_tables import ChangesAfter, touched_tables
    from ducklake_lab.session.part_changes import AskedPart, PartChanges

    lake, newest = attached.lake, attached.newest
    maybe: dict[int, set[int]] = {}
    with lake.connect() as connection:
        changes = ChangesAfter(connection, min(recorded.snapshot for recorded in records), newest)
        for since in {recorded.snapshot for recorded in records}:
            if not changes.is_whole(since):
                maybe[since] = touched_tables(lake, connection, since, newest)
        asked = {
            (place, number): AskedPart(entry.entry_id, recorded.snapshot, entry.part)
            for place, recorded in enumerate(records)
            if recorded.snapshot in attached.times and recorded.snapshot not in maybe
            for number, entry in enumerate(recorded.tables)
            if entry.entry_id is not None and _place(attached.state, entry) is not None
        }
        counts = PartChanges(lake, connection, attached.state, changes).counts([*asked.values()])
    count_of = dict(zip(asked, counts, strict=True))
    return [
        _answer(
            attached,
            changes,
            recorded,
            maybe.get(recorded.snapshot),
            {number: count for (of, number), count in count_of.items() if of == place},
        )
        for place, recorded in enumerate(records)
    ]


def _answer(
    attached: _Attached,
    changes: ChangesAfter,
    recorded: Recorded,
    maybe: set[int] | None,
    counts: Mapping[int, int],
) -> Answer:
    """Compares one state.

    Args:
        maybe: tables that expired snapshots may have changed; None without such snapshots.
        counts: of snapshots that may have changed the part that was read of a table, by the table's place in the record.
    """
    since, expired = recorded.snapshot, recorded.snapshot not in attached.times
    tables = []
    for number, entry in enumerate(recorded.tables):
        ahead = changes.count(entry.entry_id, since) if entry.entry_id is not None else 0
        is_proven = not expired and (maybe is None or entry.entry_id not in maybe)
        state, path, name = _state(attached.state, entry)
        ahead = counts.get(number, ahead)
        if state in ("same", "renamed") and ahead:
            state = "ahead"
        elif state == "same" and not is_proven:
            state = "unknown"
        answer: Answer = {
            "id": entry.entry_id,
            "state": state,
            "ahead": ahead,
            "at_least": expired or maybe is not None,
        }
        tables.append(answer | ({"path": path, "name": name, "diff": not expired} if name is not None else {}))
    return {
        "known": True,
        "alias": attached.lake.alias,
        "session": attached.variable,
        "newest": attached.newest,
        "expired": expired,
        "tables": tables,
        "definitions": [{"state": _state(attached.state, entry)[0]} for entry in recorded.definitions],
    }


def _state(state: CatalogState, entry: Entry) -> tuple[str, tuple[str, ...], str | None]:
    """Returns what became of an entry, and its schema and name now; None for the name if it is gone."""
    from ducklake_lab.model.quoting import schema_path

    if entry.entry_id is None:
        return "unknown", (), None
    place = _place(state, entry)
    if place is None:
        schema = schema_path(entry.schema)
        kinds = {
            "table": lambda: state.find_table(schema, entry.name),
            "view": lambda: state.find_view(schema, entry.name),
            "macro": lambda: (
                state.find_macro(schema, entry.name, "scalar") or state.find_macro(schema, entry.name, "table")
            ),
        }
        return ("replaced" if kinds[entry.kind]() is not None else "dropped"), (), None
    return ("same" if place == (entry.schema, entry.name) else "renamed"), *place


def _place(state: CatalogState, entry: Entry) -> tuple[tuple[str, ...], str] | None:
    assert entry.entry_id is not None
    if entry.kind == "table":
        named = state.tables.names.get(entry.entry_id)
    else:
        entries: Mapping[int, View | Macro] = state.views if entry.kind == "view" else state.macros
        definition = entries.get(entry.entry_id)
        named = (definition.schema_id, definition.name) if definition is not None else None
    return (state.schemas[named[0]].parts, named[1]) if named is not None else None

"""Finds the tables that have moved on since outputs were made, by the records of the outputs and the catalogs alone.

A lake is found by its identity, and proven by the time of the recorded snapshot: a copy of a catalog has the identity of
its original. What cannot be proven is unknown, never fresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from ducklake_lab.errors import DuckLakeError, UsageError

if TYPE_CHECKING:
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.model.state import CatalogState
    from ducklake_lab.session import Session

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A state in the record of an output.

    Attributes:
        tables: (id, names of the schema, name) of each table; the id is None for a table that no commit had made.
    """

    lake: str
    alias: str
    snapshot: int
    time: str
    tables: tuple[tuple[int | None, tuple[str, ...], str], ...]


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
    `replaced` or `unknown`. `ahead` counts the snapshots that changed it; `at_least` says that others have expired.

    Raises:
        UsageError: the records have another form.
    """
    records = _parsed(given)
    attached, problems = _attached(sessions, records)
    found: list[Answer | None] = [None] * len(records)
    chosen: dict[int, list[int]] = {}
    for place, recorded in enumerate(records):
        at = _find(recorded, attached)
        if isinstance(at, str):
            found[place] = {"known": False, "reason": problems.get(recorded.alias, at)}
        else:
            chosen.setdefault(at, []).append(place)
    for at, places in chosen.items():
        try:
            answers = _answers(attached[at], [records[place] for place in places])
        except DuckLakeError as error:
            answers = [{"known": False, "reason": str(error)} for _ in places]
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer
    return [answer for answer in found if answer is not None]


def _attached(sessions: Mapping[str, Session], records: Sequence[Recorded]) -> tuple[list[_Attached], dict[str, str]]:
    """Returns each attached lake once, and by alias the reason why another one cannot be read."""
    from ducklake_lab.catalog.reader import read_times

    found: dict[tuple[object, ...], _Attached] = {}
    problems = {}
    numbers = {recorded.snapshot for recorded in records}
    for variable, session in sessions.items():
        for lake in session.lakes:
            key = (lake.location.url, lake.location.schema, lake.at)
            if key in found:
                continue
            try:
                with lake.connect() as connection:
                    state = lake.state(connection, lake.snapshot(connection))
                    times = read_times(connection, numbers)
            except DuckLakeError as error:
                problems[lake.alias] = str(error)
                continue
            texts = {number: moment.astimezone(UTC).isoformat() for number, moment in times.items()}
            found[key] = _Attached(variable, lake, state, texts)
    return list(found.values()), problems


def _find(recorded: Recorded, attached: Sequence[_Attached]) -> int | str:
    """Returns the place of the lake of a record, or the reason why there is none."""
    named = [place for place, one in enumerate(attached) if one.lake.identity(one.state) == recorded.lake]
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
    from ducklake_lab.model.quoting import schema_path
    from ducklake_lab.scan.changed_tables import ChangesAfter, touched_tables

    lake, state, newest = attached.lake, attached.state, attached.newest
    maybe: dict[int, set[int]] = {}
    with lake.connect() as connection:
        changes = ChangesAfter(connection, min(recorded.snapshot for recorded in records), newest)
        for since in {recorded.snapshot for recorded in records}:
            if not changes.is_whole(since):
                maybe[since] = touched_tables(lake, connection, since, newest)
    answers = []
    for recorded in records:
        since, tables = recorded.snapshot, []
        expired = since not in attached.times
        for table_id, schema, name in recorded.tables:
            ahead = changes.count(table_id, since) if table_id is not None else 0
            answer: Answer = {"id": table_id, "ahead": ahead, "at_least": expired or since in maybe}
            now = state.tables.names.get(table_id) if table_id is not None else None
            if now is not None:
                answer |= {"path": state.schemas[now[0]].parts, "name": now[1], "diff": not expired}
            if table_id is None:
                answer["state"] = "unknown"
            elif now is None:
                is_there = state.find_table(schema_path(schema), name) is not None
                answer["state"] = "replaced" if is_there else "dropped"
            elif ahead:
                answer["state"] = "ahead"
            elif (state.schemas[now[0]].parts, now[1]) != (schema, name):
                answer["state"] = "renamed"
            else:
                is_proven = not expired and table_id not in maybe.get(since, ())
                answer["state"] = "same" if is_proven else "unknown"
            tables.append(answer)
        answers.append(
            {
                "known": True,
                "alias": lake.alias,
                "session": attached.variable,
                "newest": newest,
                "expired": expired,
                "tables": tables,
            }
        )
    return answers


def _parsed(given: object) -> list[Recorded]:
    """Returns the records that a page sends; it has them from a notebook, which anybody may have written."""
    try:
        if not isinstance(given, list):
            raise TypeError
        return [
            Recorded(
                _of(str, one["lake"]),
                _of(str, one["alias"]),
                _of(int, one["snapshot"]),
                _of(str, one["time"]),
                tuple(
                    (
                        None if table["id"] is None else _of(int, table["id"]),
                        tuple(_of(str, part) for part in _of(list, table["schema"])),
                        _of(str, table["name"]),
                    )
                    for table in _of(list, one["tables"])
                ),
            )
            for one in given
        ]
    except (TypeError, KeyError, IndexError):
        raise UsageError("The records of outputs have a form that this version does not know.") from None


def _of(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and not 0 <= value < 1 << 62):
        raise TypeError
    return value

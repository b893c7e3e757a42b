"""Counts of checks over time, kept among the options of a lake, where other clients leave them alone (ADR 115)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ducklake_lab.catalog.options import Options, Scope
from ducklake_lab.expectations.outcomes import Outcome, Point
from ducklake_lab.model.entries import Table
from ducklake_lab.model.expectations import Expectation

#: Prefix of the options; the UUID of the table and a digest of the definition follow.
PREFIX = "ducklake_lab_checks:"
#: Scope of the options: the lake's, as clients read those of a table for each write.
SCOPE: Scope = (None, None)
#: Most counts of one expectation, the last ones; a catalog takes 64 kB in a text at least.
MOST = 200
_FORM = 1


def key_of(table: Table, expectation: Expectation) -> str:
    """Returns the key of the option with the counts of an expectation.

    Counts of another definition are others. Names of columns, and what becomes of bad rows, are no part of it.
    """
    ids = [[number for _, number in named] for named in (expectation.columns, expectation.target_columns)]
    parts = [expectation.kind, expectation.sql, *ids, expectation.target]
    return f"{_prefix(table)}{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


def read(options: Options, key: str) -> tuple[Point, ...]:
    """Returns the counts in an option, oldest first; none for a text that is not ours."""
    text = options.values.get((*SCOPE, key))
    try:
        given: Any = json.loads(text) if text is not None else None
        if given is None or int(given["form"]) != _FORM:
            return ()
        return tuple(Point(int(i), _moment(int(at)), int(n)) for i, at, n in given["points"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return ()


def written(points: Sequence[Point]) -> str:
    """Returns the value of an option."""
    return json.dumps({"form": _FORM, "points": [[one.snapshot_id, _micros(one.time), one.count] for one in points]})


def followed(points: tuple[Point, ...], count: int, snapshot_id: int, now: datetime) -> tuple[Point, ...]:
    """Returns the counts with that of one more check.

    A second check of one snapshot takes the place of the first, and nothing changes where it counts the same.
    """
    if not points or points[-1].snapshot_id != snapshot_id:
        return (*points, Point(snapshot_id, now, count))[-MOST:]
    if points[-1].count == count:
        return points
    return (*points[:-1], Point(snapshot_id, now, count))


def follow(
    options: Options, table: Table, outcomes: Sequence[Outcome], snapshot_id: int, now: datetime
) -> tuple[list[Outcome], dict[str, str | None]]:
    """Returns the outcomes of a whole table with the counts over time, and the options to set; None takes one away."""
    shown: list[Outcome] = []
    changed: dict[str, str | None] = {}
    keys = set()
    for outcome in outcomes:
        key = key_of(table, outcome.expectation)
        keys.add(key)
        earlier = read(options, key)
        points = followed(earlier, outcome.count, snapshot_id, now)
        if points != earlier:
            changed[key] = written(points)
        shown.append(replace(outcome, points=points))
    own = (key for *scope, key in options.values if tuple(scope) == SCOPE and key.startswith(_prefix(table)))
    changed |= dict.fromkeys(key for key in own if key not in keys)
    return shown, changed


def _prefix(table: Table) -> str:
    return f"{PREFIX}{table.uuid}:"


def _micros(time: datetime) -> int:
    since = time - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)

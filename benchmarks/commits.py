"""Small commits beside the reference, on every kind of catalog that both know: one INSERT each, and an appender."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks.catalogs import Place, places
from benchmarks.measure import Comparison, compare
from tests import reference

#: Types of the wide table's columns, and a literal of each for a number and a day.
_TYPES = {
    "INTEGER": "{n}",
    "BIGINT": "{n}000000",
    "DOUBLE": "{n}.5",
    "VARCHAR": "'text {n}'",
    "DATE": "DATE '2024-01-{day:02}'",
    "TIMESTAMP": "TIMESTAMP '2024-01-{day:02} 10:00:00'",
    "BOOLEAN": "true",
    "DECIMAL(10,2)": "{n}.25",
}
_COLUMNS = list(itertools.islice(itertools.cycle(_TYPES), 23))
#: Commits of ten rows each that an appender makes in one round.
FLUSHES = 50


def run(folder: Path, rounds: int) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        folder: an empty one, for lakes and a PostgreSQL server.
    """
    for kind, place in places(folder):
        yield from _of_kind(kind, place, folder, rounds)


def _of_kind(kind: str, place: Place, folder: Path, rounds: int) -> Iterator[Comparison]:
    create = [
        f"CREATE TABLE wide ({', '.join(f'c{i} {name}' for i, name in enumerate(_COLUMNS))})",
        "CREATE TABLE narrow (a INTEGER, b VARCHAR, c DOUBLE)",
    ]
    with (
        reference.connect() as connection,
        dl.connect(f"ducklake:{place('ours')}", data_path=f"{folder}/o") as session,
        dl.connect(f"ducklake:{place('held')}", data_path=f"{folder}/h", exclusive=kind == "DuckDB") as held,
    ):
        connection.execute(f"ATTACH 'ducklake:{place('theirs')}' AS lake (DATA_PATH '{folder}/t'); USE lake")
        for statement in create:
            session.sql(statement)
            held.sql(statement)
            connection.execute(statement)
        ways = [("", session.sql), (", EXCLUSIVE", held.sql)] if kind == "DuckDB" else [("", session.sql)]
        for (name, text), (way, insert) in itertools.product(_INSERTS.items(), ways):
            theirs = _each(connection.execute, text)
            yield compare(f"{kind}: INSERT of {name}{way}", "DuckDB", _each(insert, text), theirs, rounds * 5)
        yield compare(
            f"{kind}: {FLUSHES} commits of 10 rows by an appender",
            "DuckDB",
            lambda: _append(session),
            lambda: [connection.execute(_ten(number)) for number in range(FLUSHES)],
            rounds,
        )


def _each(run: Callable[[str], Any], text: Callable[[int], str]) -> Callable[[], Any]:
    numbers = itertools.count()
    return lambda: run(text(next(numbers)))


def _wide(number: int) -> str:
    rows = (", ".join(_TYPES[name].format(n=number * 10 + row, day=row + 1) for name in _COLUMNS) for row in range(10))
    return f"INSERT INTO wide VALUES {', '.join(f'({row})' for row in rows)}"


def _narrow(number: int) -> str:
    return f"INSERT INTO narrow VALUES ({number}, 'text {number}', {number}.5)"


#: The inserts that are measured.
_INSERTS = {"10 rows × 23 columns": _wide, "1 row × 3 columns": _narrow}


def _ten(number: int) -> str:
    return (
        f"INSERT INTO narrow VALUES {', '.join(f'({n}, {chr(39)}text {n}{chr(39)}, {n}.5)' for n in _numbers(number))}"
    )


def _numbers(number: int) -> range:
    return range(number * 10, number * 10 + 10)


def _append(session: dl.Session) -> None:
    with session.appender("narrow", rows=10) as appender:
        for number in range(FLUSHES):
            appender.extend((n, f"text {n}", n + 0.5) for n in _numbers(number))

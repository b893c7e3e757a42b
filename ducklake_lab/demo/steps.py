"""Steps that make the demo lake, one snapshot each."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass

from ducklake_lab.demo import source
from ducklake_lab.session import Session

#: Author of the loads, and author of the later changes.
LOADER = "loader"
ANALYST = "analyst"


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction, so one snapshot.

    Attributes:
        message: its commit message, unique among the steps.
        run: does the work through the session's API.
    """

    author: str
    message: str
    run: Callable[[Session], None]


def steps() -> list[Step]:
    """All steps in order: step n makes snapshot n, as snapshot 0 is the empty lake."""
    return [*(_load(month) for month in range(1, 13)), *_WORK]


def _load(month: int) -> Step:
    def run(session: Session) -> None:
        if month == 1:
            for name in source.TABLES:
                session.sql(source.create_table_sql(name))
                if name != "flights":
                    session.write(source.table(name), f"main.{name}", mode="append")
        session.write(source.flights_of(month), "main.flights", mode="append")

    first = "airlines, airports, planes, weather and " if month == 1 else ""
    return Step(LOADER, f"load {first}{calendar.month_name[month]} flights", run)


def _statements(message: str, *statements: str) -> Step:
    def run(session: Session) -> None:
        for statement in statements:
            session.sql(statement)

    return Step(ANALYST, message, run)


_WORK = (
    # American registrations begin with N, and midnight is 0000
    _statements(
        "fix tail numbers and midnights",
        "UPDATE flights SET tailnum = 'N' || substr(tailnum, 2) WHERE tailnum NOT LIKE 'N%'",
        "UPDATE flights SET dep_time = 0 WHERE dep_time = 2400",
        "UPDATE flights SET arr_time = 0 WHERE arr_time = 2400",
    ),
    _statements("drop cancelled flights", "DELETE FROM flights WHERE dep_time IS NULL"),
    _statements(
        "add column speed",
        "ALTER TABLE flights ADD COLUMN speed DOUBLE",
        "UPDATE flights SET speed = round(distance / (air_time / 60.0), 1) WHERE air_time IS NOT NULL",
    ),
    _statements("rename time_hour", "ALTER TABLE flights RENAME COLUMN time_hour TO scheduled_hour"),
    _statements("partition flights by month", "ALTER TABLE flights SET PARTITIONED BY (month)"),
)

"""Outcomes of checks: how many rows violate an expectation, and the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from ducklake_lab.duckdb.handing import texts_to_show
from ducklake_lab.model.expectations import Expectation
from ducklake_lab.model.units import counted

#: Violating rows that an outcome shows.
FIRST_ROWS = 5
#: Rows, columns of a row, and characters of a value in a message.
_SHOWN_ROWS, _SHOWN_COLUMNS, _SHOWN_TEXT = 3, 6, 40


@dataclass(frozen=True, slots=True)
class Point:
    """Result of one check of the past.

    Attributes:
        snapshot_id: the snapshot that was checked.
        time: of the check, in UTC.
        count: the number of violating rows; of `fresh`, 1 where the table was too old.
    """

    snapshot_id: int
    time: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a check of one expectation.

    Attributes:
        table: the name of the table, with its schema.
        shown: the expectation in SQL.
        count: the number of violating rows; of `fresh`, 1 where the table is too old.
        rows: the first of them, with the columns of the table or of the query.
        why: more about it; "" for nothing.
        points: the results of this expectation over time, oldest first, this one at the end; empty where none are kept.
    """

    table: str
    expectation: Expectation
    shown: str
    count: int
    rows: pa.Table | None = None
    why: str = ""
    points: Sequence[Point] = ()

    @property
    def passed(self) -> bool:
        return self.count == 0

    @property
    def summary(self) -> str:
        """Returns the number of violating rows in words, and why they violate it."""
        if self.passed or self.expectation.kind == "fresh":
            return "passed" if self.passed else "too old"
        rows = counted(self.count, "violation")
        return f"{rows}: {self.why}" if self.why else rows

    @property
    def did(self) -> str:
        """Returns what became of the violating rows, after their number."""
        of = f"of {self.table} by {self.expectation.name}"
        match self.expectation.on:
            case "drop":
                return f"left out {of}"
            case "quarantine":
                return f"in {self.table}_quarantine by {self.expectation.name}"
        return f"{'violates' if self.count == 1 else 'violate'} {self.expectation.name} of {self.table}"

    @property
    def warning(self) -> str:
        """Returns the text of the warning after a commit."""
        words = {"drop": "left out", "quarantine": f"now in {self.table}_quarantine"}
        word = words.get(self.expectation.on, "written")
        return f"{self.text(f'({word})')}."

    def first_text(self) -> str:
        """Returns the first violating rows on one line; why it is violated where no row says it."""
        return "; ".join(_first(self.rows)) if self.rows is not None else self.why

    def text(self, did: str = "") -> str:
        """Returns it on one line.

        Args:
            did: what became of the rows.
        """
        named = f"{self.expectation.name} of {self.table}, {self.shown}"
        if self.expectation.kind == "fresh":
            return f"{named}: {self.why}"
        rows = f"{self.count:,} {'row violates' if self.count == 1 else 'rows violate'} {named}"
        first = self.first_text()
        return f"{rows}{f' {did}' if did else ''}{f' ({self.why})' if self.why else ''}{f': {first}' if first else ''}"


def _first(rows: pa.Table) -> Sequence[str]:
    shown = rows.slice(0, _SHOWN_ROWS).select(range(min(rows.num_columns, _SHOWN_COLUMNS)))
    more = ", …" if rows.num_columns > _SHOWN_COLUMNS else ""
    texts = []
    for values in zip(*texts_to_show(shown), strict=True):
        listed = ", ".join(f"{name} = {_value(value)}" for name, value in zip(shown.column_names, values, strict=True))
        texts.append(f"({listed}{more})")
    return texts


def _value(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"

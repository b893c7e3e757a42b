"""Choices that define a chart, completed by the types of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ducklake_lab.errors import UsageError
from ducklake_lab.session.rows.chart_bins import UNITS, role
from ducklake_lab.session.rows.columns import ViewColumn

KINDS = ("bar", "line", "scatter", "histogram")
AGGREGATES = ("count", "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class Choice:
    """The choices that define a chart.

    Attributes:
        kind: a value from KINDS.
        y: the measured column; None to count rows.
        aggregate: a value from AGGREGATES for bars and lines; None for other kinds.
        color: a column with one colour per value; None for one colour.
        bins: a value from UNITS, the intervals for times on x; None to choose by their span.
    """

    kind: str
    x: str
    y: str | None = None
    aggregate: str | None = None
    color: str | None = None
    bins: str | None = None


def choose(columns: Sequence[ViewColumn], given: Choice) -> Choice:
    """Completes a choice by the types of the columns.

    Args:
        given: `kind` and `x` may be empty.

    Raises:
        UsageError: the kind, aggregate or interval is unknown, or no column suits it.
    """
    chosen = _axes(columns, given.kind or None, given.x or None, given.y, given.aggregate)
    kinds = {column.name: column.kind for column in columns}
    if given.bins is not None:
        if given.bins not in UNITS:
            raise UsageError(f'There are no intervals of "{given.bins}"; there are {", ".join(UNITS)}.')
        if role(kinds[chosen.x]) != "time":
            raise UsageError(f"Intervals of {given.bins}s need a column of times, which {chosen.x} is not.")
    return replace(chosen, color=given.color, bins=given.bins)


def _axes(
    columns: Sequence[ViewColumn], kind: str | None, x: str | None, y: str | None, aggregate: str | None
) -> Choice:
    for given, allowed, what in ((kind, KINDS, "kind of chart"), (aggregate, AGGREGATES, "aggregate")):
        if given is not None and given not in allowed:
            raise UsageError(f'There is no {what} "{given}"; there are {", ".join(allowed)}.')
    roles = {column.name: role(column.kind) for column in columns}
    times = [name for name, its in roles.items() if its == "time"]
    numbers = [name for name, its in roles.items() if its == "number"]
    # nobody sums keys
    measures = [name for name in numbers if not _is_key(name)]
    numbers = measures or numbers
    categories = [name for name, its in roles.items() if its == "category"]
    if kind is None:
        if x is None:
            x = next((name for names in (times, categories, numbers) for name in names), None)
        if x is None:
            raise UsageError("There is no column to draw.")
        others = [name for name in numbers if name != x]
        if roles[x] == "category":
            kind = "bar"
        elif roles[x] == "time":
            kind = "line" if aggregate or set(measures) & set(others) else "histogram"
        else:
            kind = "scatter" if others and (y is not None or (not times and not categories)) else "histogram"
    if x is None:
        order = {
            "bar": (categories, times, numbers),
            "line": (times, numbers),
            "scatter": (numbers, times),
            "histogram": (numbers, times),
        }
        x = next((name for names in order[kind] for name in names if name != y), None)
    if x is None or (kind != "bar" and roles[x] == "category"):
        raise UsageError(f"A {kind} needs a column of numbers or times{'' if x is None else f', which {x} is not'}.")
    if y is not None and roles[y] != "number":
        raise UsageError(f"{y} is not a column of numbers.")
    if kind == "histogram":
        return Choice(kind, x)
    if y is None and aggregate != "count":
        y = next((name for name in (numbers if kind == "scatter" else measures) if name != x), None)
    if kind == "scatter":
        if y is None:
            raise UsageError("A scatter needs two columns of numbers.")
        return Choice(kind, x, y)
    if y is None:
        if aggregate not in (None, "count"):
            raise UsageError(f"There is no column of numbers for {aggregate}.")
        return Choice(kind, x, None, "count")
    return Choice(kind, x, None if aggregate == "count" else y, aggregate or "sum")


def _is_key(name: str) -> bool:
    return name.casefold() == "id" or name.casefold().endswith(("_id", "_key"))

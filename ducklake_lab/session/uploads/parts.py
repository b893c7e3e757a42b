"""Rows of files that DuckDB reads with types: their count, and the location of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from ducklake_lab.model.units import counted
from ducklake_lab.session.uploads.columns import Part
from ducklake_lab.session.uploads.guessing import Ask

#: A name that no column has.
_ROW = '"number of the row in the files"'


def rows_counted(ask: Ask, parts: Sequence[Part]) -> str:
    """Returns a readable count of all rows."""
    count = sum(int(ask(f"SELECT count(*) FROM {part.relation}")[0][0]) for part in parts)
    return counted(count, "row")


def misfit_in(
    ask: Ask,
    relation: Callable[[Sequence[str]], str],
    paths: Sequence[str],
    names: Sequence[str],
    misfits: str,
    value: str,
) -> tuple[str, list[str]] | None:
    """Returns where the first row that fulfils a condition is, and texts computed from it; None without one.

    Args:
        relation: returns SQL that reads files, given as literals.
        names: readable names of the files.
    """
    # in the order of the files
    rows = ask(
        f"SELECT {_ROW}, {value} FROM (SELECT row_number() OVER () AS {_ROW}, * FROM {relation(paths)}) "
        f"WHERE {misfits} ORDER BY {_ROW} LIMIT 1"
    )
    if not rows:
        return None
    row = int(rows[0][0])
    counts = [int(ask(f"SELECT count(*) FROM {relation([path])}")[0][0]) for path in paths]
    ends = list(accumulate(counts))
    at = next(at for at, end in enumerate(ends) if row <= end)
    return f"Row {row - ends[at] + counts[at]:,} of {names[at]}", rows[0][1]

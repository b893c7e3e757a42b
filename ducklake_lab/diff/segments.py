"""Segments in which changes concentrate: conditions that hold for most changed rows, and for fewer unchanged ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from ducklake_lab.diff.baseline_stats import exact_width
from ducklake_lab.diff.model import Pattern
from ducklake_lab.diff.pairs import RowCounts
from ducklake_lab.diff.rows import ChangedRows
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_text, quoted_if_needed

_MOST = 0.5
#: A condition is worth showing where it holds for at most this part of the changed rows' share among unchanged rows.
_RARER = 0.8
#: A range without its ends is a candidate where it holds this share of the rows, and all are at least so many times as wide.
_INSIDE, _TRIMMED = 0.95, 2
#: Changed rows from which an interval of their values is telling.
_RANGE_ROWS = 20
#: Where unchanged rows are not compared, it is one only where the table's range is this many times as wide.
_NARROW = 5
_PER_KIND = 4

Kind = Literal["inserted", "deleted", "updated"]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A condition that holds for most of the changed rows.

    Attributes:
        test: the text after the column's name.
        width: of a range, how wide it is.
    """

    kind: Kind
    index: int
    test: str
    rows: int
    share: float
    width: Decimal | None = None

    @property
    def sql(self) -> str:
        return f"c{self.index} {self.test}"


def patterns(changed: ChangedRows, counts: RowCounts) -> list[Pattern]:
    """Return at most four patterns per kind of change; first those that are rarest among unchanged rows.

    Reads columns of the earlier state where `changed.earlier` gives them.
    """
    kinds: tuple[tuple[Kind, str, int], ...] = (
        ("deleted", "removed", counts.deleted),
        ("inserted", "added", counts.inserted),
        ("updated", "removed", counts.updated),
    )
    candidates = [one for kind, side, count in kinds if count >= 2 for one in _candidates(changed, kind, side)]
    compared: list[tuple[_Candidate, float | None]]
    if changed.earlier is None:
        compared = [(one, None) for one in candidates if _is_telling(changed, one)]
    else:
        shares = _unchanged_shares(changed, candidates)
        compared = [(one, share) for one, share in zip(candidates, shares, strict=True) if share <= _RARER * one.share]
    compared.sort(key=lambda pair: ((pair[1] or 0.0) / pair[0].share, -pair[0].share))
    return [
        Pattern(kind, f"{quoted_if_needed(changed.columns[one.index].name)} {one.test}", one.share, one.rows, share)
        for kind, _, _ in kinds
        for one, share in [pair for pair in compared if pair[0].kind == kind][:_PER_KIND]
    ]


def _candidates(changed: ChangedRows, kind: Kind, side: str) -> Iterator[_Candidate]:
    """Yield conditions that most rows of a kind fulfil: a NULL, a value, or an interval for nearly all."""
    columns = [
        (index, column)
        for index, column in enumerate(changed.columns)
        if not column.data_type.is_nested and column.data_type.name not in ("blob", "json", "variant", "geometry")
    ]
    if not columns:
        return
    source = f"FROM {side} JOIN pairs USING (rid) WHERE kind = '{kind}'"
    tail = (1 - _INSIDE) / 2
    total, *facts = changed.row(
        "SELECT count(*), "
        + ", ".join(
            f"count(*) - count(c{index}), mode(left(c{index}::VARCHAR, 200)), "
            + (
                f"quantile_disc(c{index}, [0, {tail}, {1 - tail}, 1])::VARCHAR[]"
                if column.data_type.is_numeric
                else "NULL"
            )
            for index, column in columns
        )
        + f" {source}"
    )
    rows = int(str(total))
    tests: list[tuple[int, str, Decimal | None]] = []
    for (index, column), nulls, mode, bounds in zip(columns, facts[::3], facts[1::3], facts[2::3], strict=True):
        if int(str(nulls)) / rows > _MOST:
            tests.append((index, "IS NULL", None))
            continue
        if isinstance(mode, str) and len(mode) < 200:
            tests.append((index, f"= {_literal(mode, column)}", None))
        if isinstance(bounds, list) and rows >= _RANGE_ROWS:
            low, high, width = _range(bounds)
            if width.is_finite() and width > 0:
                tests.append((index, f"BETWEEN {_literal(low, column)} AND {_literal(high, column)}", width))
    counts = _counts(changed, [f"c{index} {test}" for index, test, _ in tests], source)
    taken = set()
    for (index, test, wide), count in zip(tests, counts, strict=True):
        if count / rows > (_MOST if wide is None else _INSIDE - 0.01) and index not in taken:
            taken.add(index)
            yield _Candidate(kind, index, test, count, count / rows, wide)


def _range(bounds: Sequence[str]) -> tuple[str, str, Decimal]:
    """The bounds of all values, or of nearly all where a few lie far away, and how far apart they are.

    Args:
        bounds: as DuckDB writes them, which a DOUBLE could not hold.
    """
    lowest, low, high, highest = bounds
    inner, outer = exact_width(low, high), exact_width(lowest, highest)
    if not outer.is_finite() or inner * _TRIMMED <= outer:
        return low, high, inner
    return lowest, highest, outer


def _counts(changed: ChangedRows, conditions: Sequence[str], source: str) -> list[int]:
    """Count the rows for which each condition holds."""
    sums = ", ".join(f"count(*) FILTER ({condition})" for condition in conditions)
    return [int(str(count)) for count in changed.row(f"SELECT {sums} {source}")] if conditions else []


def _unchanged_shares(changed: ChangedRows, candidates: Sequence[_Candidate]) -> list[float]:
    """The exact share of unchanged rows for which each condition holds; 1.0 where there are no unchanged rows."""
    assert changed.earlier is not None  # called only where it is given
    if not candidates:
        return []
    conditions = ["true", *(one.sql for one in candidates)]
    whole = changed.earlier(sorted({one.index for one in candidates}))
    sums = ", ".join(f"count(*) FILTER ({condition})" for condition in conditions)
    row = engine.evaluate(f"SELECT {sums} FROM t", {"t": whole}, changed.time_zone)
    before = [int(column[0].as_py()) for column in row.columns]
    gone = _counts(changed, conditions, "FROM removed JOIN pairs USING (rid) WHERE kind <> 'inserted'")
    total, *unchanged = [had - lost for had, lost in zip(before, gone, strict=True)]
    return [count / total if total else 1.0 for count in unchanged]


def _is_telling(changed: ChangedRows, one: _Candidate) -> bool:
    """Return whether the statistics of the files leave room for the condition to be rarer elsewhere."""
    name, known = changed.columns[one.index].name, changed.known
    if name in known.constant:
        return False
    if one.test == "IS NULL":
        return known.null_shares.get(name, 0.0) < one.share * _RARER
    if one.width is None:
        return True
    bounds = known.ranges.get(name)
    return bounds is not None and one.width * _NARROW <= exact_width(*bounds)


def _literal(value: str, column: Column) -> str:
    plain = column.data_type.is_numeric and re.fullmatch(r"-?[0-9.]+(e[+-]?\d+)?", value)
    return value if plain or column.data_type.name == "boolean" else quote_text(value)

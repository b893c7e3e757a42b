"""Where changes concentrate: conditions that hold for most changed rows, and not anyway for the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ducklake_lab.diff.model import Pattern
from ducklake_lab.diff.rows import ChangedRows, RowCounts
from ducklake_lab.model.entries import Column

_MOST = 0.5
#: A range is worth telling where it holds this share of the rows in at most that share of the table's range.
_INSIDE, _NARROW = 0.95, 0.2
_PER_KIND = 4

Kind = Literal["inserted", "deleted", "updated"]


def patterns(changed: ChangedRows, counts: RowCounts) -> list[Pattern]:
    """At most four per kind of change, the largest shares first."""
    found: list[Pattern] = []
    kinds: tuple[tuple[Kind, str, int], ...] = (
        ("deleted", "removed", counts.deleted),
        ("inserted", "added", counts.inserted),
        ("updated", "removed", counts.updated),
    )
    for kind, side, count in kinds:
        if count >= 2:
            found += _patterns_of(changed, kind, side)
    return found


def _patterns_of(changed: ChangedRows, kind: Kind, side: str) -> list[Pattern]:
    told = [
        (index, column)
        for index, column in enumerate(changed.columns)
        if not column.data_type.is_nested
        and column.data_type.name not in ("blob", "json", "variant", "geometry")
        and column.name not in changed.known.constant
    ]
    if not told:
        return []
    source = f"FROM {side} JOIN pairs USING (rid) WHERE kind = '{kind}'"
    total, *facts = changed.row(
        f"SELECT count(*), {', '.join(f'count(*) - count(c{i}), mode(left(c{i}::VARCHAR, 200))' for i, _ in told)} {source}"
    )
    rows = int(str(total))
    if rows < 2:
        return []
    nulls, modes = [int(str(value)) for value in facts[::2]], facts[1::2]
    sums = [
        f"count(*) FILTER (left(c{i}::VARCHAR, 200) = {_text(mode)})" for (i, _), mode in zip(told, modes, strict=True)
    ]
    equal = [int(str(value)) for value in changed.row(f"SELECT {', '.join(sums)} {source}")]
    found: list[Pattern] = []
    for (index, column), empty, mode, same in zip(told, nulls, modes, equal, strict=True):
        name = identifier(column.name)
        if empty / rows > _MOST:
            if changed.known.null_shares.get(column.name, 0.0) < empty / rows * 0.8:
                found.append(Pattern(kind, f"{name} IS NULL", empty / rows, empty))
        elif same / rows > _MOST and isinstance(mode, str) and len(mode) < 200:
            found.append(Pattern(kind, f"{name} = {_literal(mode, column)}", same / rows, same))
        else:
            found += _range(changed, kind, source, rows, index, column)
    found.sort(key=lambda pattern: -pattern.share)
    return found[:_PER_KIND]


def _range(changed: ChangedRows, kind: Kind, source: str, rows: int, index: int, column: Column) -> Iterator[Pattern]:
    """A narrow interval that holds nearly all of the rows, where the table's own is known to be much wider."""
    bounds = changed.known.ranges.get(column.name)
    if bounds is None or bounds[1] <= bounds[0]:
        return
    tail = (1 - _INSIDE) / 2
    low, high, inside = changed.row(
        f"WITH b AS (SELECT quantile_disc(c{index}, {tail}) AS l, quantile_disc(c{index}, {1 - tail}) AS h {source}) "
        f"SELECT l, h, (SELECT count(*) {source} AND c{index} BETWEEN b.l AND b.h) FROM b"
    )
    if low is None or high is None or rows < 20:
        return
    width = float(str(high)) - float(str(low))
    count = int(str(inside))
    if width / (bounds[1] - bounds[0]) <= _NARROW and count / rows >= _INSIDE - 0.01:
        yield Pattern(kind, f"{identifier(column.name)} BETWEEN {low} AND {high}", count / rows, count)


def identifier(name: str) -> str:
    """A column's name as SQL takes it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _literal(value: str, column: Column) -> str:
    return value if column.data_type.is_numeric or column.data_type.name == "boolean" else _text(value)


def _text(value: Any) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"

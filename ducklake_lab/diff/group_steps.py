"""The largest changes of each number by group, in the changed rows of two answers."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from ducklake_lab.diff.model import ColumnSteps, GroupStep
from ducklake_lab.diff.pairs import RowCounts, step_sql
from ducklake_lab.diff.rows import ChangedRows, places_of
from ducklake_lab.duckdb.handing import texts_to_show
from ducklake_lab.model.types import FLOATS, DataType

#: Groups of a column that are listed.
GROUPS = 20
#: Columns that are looked at, those with the most changed cells first.
_COLUMNS = 6


def group_steps(
    changed: ChangedRows, counts: RowCounts, key: Sequence[str], one_sided: Collection[int] = ()
) -> tuple[ColumnSteps, ...]:
    """Return the numeric columns that changed in two groups or more, those with the most changed cells first.

    Columns without any step but zero are left out.

    Args:
        key: the columns by which rows were paired.
        one_sided: places of later columns that the earlier answer lacks.
    """
    keys = places_of(changed.columns, key)
    whole_rows = counts.inserted + counts.deleted
    several = [
        place
        for place, column in enumerate(changed.columns)
        if column.data_type.is_numeric
        and place not in keys
        and place not in one_sided
        and counts.cells[place] + whole_rows > 1
    ]
    several.sort(key=lambda place: -counts.cells[place])
    steps = []
    for place in several[:_COLUMNS]:
        groups = _largest(changed, keys, place)
        if any(group.share for group in groups):
            more = counts.cells[place] + whole_rows - len(groups)
            steps.append(ColumnSteps(changed.columns[place].name, groups, more))
    return tuple(steps)


def _largest(changed: ChangedRows, keys: Sequence[int], place: int) -> tuple[GroupStep, ...]:
    """The groups with the largest steps of a column; those whose step has no length come last."""
    kind = changed.columns[place].data_type
    listed = "".join(f", CASE p.kind WHEN 'deleted' THEN r.c{key} ELSE a.c{key} END AS k{key}" for key in keys)
    old, new = (_number(f"{side}.c{place}", kind) for side in "ra")
    order = "ORDER BY size DESC NULLS LAST, rid"
    largest = changed.run(
        f"""
        WITH numbers AS (
            SELECT p.rid, p.kind{listed}, r.c{place} AS before, a.c{place} AS after,
                CASE p.kind WHEN 'inserted' THEN {_number("0", kind)} ELSE {old} END AS old,
                CASE p.kind WHEN 'deleted' THEN {_number("0", kind)} ELSE {new} END AS new
            FROM pairs AS p LEFT JOIN removed AS r ON r.rid = p.rid LEFT JOIN added AS a ON a.rid = p.rid
            WHERE p.kind <> 'updated' OR p.d{place}
        ), sizes AS (
            SELECT *, {_size(kind)} AS size FROM numbers {order} LIMIT {GROUPS}
        ), lengths AS (
            SELECT *, CAST(size AS DOUBLE) AS length FROM sizes
        )
        SELECT * EXCLUDE (old, new, size, length), {_step(kind)} AS step,
            CASE WHEN new < old THEN -1 ELSE 1 END * CASE
                WHEN length = 0 OR isinf(length) THEN length
                ELSE length / max(length) FILTER (isfinite(length)) OVER () END AS share
        FROM lengths {order}
        """
    )
    rows = zip(*texts_to_show(largest, changed.time_zone), strict=True)
    return tuple(
        GroupStep(rid, change, tuple(values), before, after, step, share)
        for rid, change, *values, before, after, step, share in rows
    )


def _number(value: str, kind: DataType) -> str:
    """SQL of a number from which steps of all sizes are taken: digits of a decimal as an integer, others as they are."""
    if kind.decimal is not None:
        return f"CAST(replace(CAST(CAST({value} AS {kind.sql()}) AS VARCHAR), '.', '') AS HUGEINT)"
    form = kind.sql() if kind.name in (*FLOATS, "uint128") else "HUGEINT"
    return f"CAST({value} AS {form})"


def _size(kind: DataType) -> str:
    """SQL of the distance from `old` to `new`; NULL where it has no length."""
    if kind.name in FLOATS:
        size = "abs(CAST(new AS DOUBLE) - CAST(old AS DOUBLE))"
        between = (
            f"least({size}, {sys.float_info.max!r}::DOUBLE)"  # numbers that are farther apart are finite all the same
        )
        return f"CASE WHEN isfinite(old) AND isfinite(new) THEN {between} WHEN NOT isnan({size}) THEN {size} END"
    if kind.name == "uint128":
        return "CASE WHEN new < old THEN old - new ELSE new - old END"
    # from one side of zero to the other it may exceed HUGEINT, but not UHUGEINT
    below = "CAST(-(least(old, new) + 1) AS UHUGEINT) + 1"
    return (
        "CASE WHEN (old < 0) = (new < 0) THEN CAST(abs(new - old) AS UHUGEINT) "
        f"WHEN old <> new THEN CAST(greatest(old, new) AS UHUGEINT) + {below} END"
    )


def _step(kind: DataType) -> str:
    """SQL of `new` minus `old` as rows show it, with all digits of `size` where that is exact."""
    if kind.name in FLOATS:
        return step_sql("old", "new", kind)
    scale = kind.decimal[1] if kind.decimal is not None else 0
    digits = "CAST(size AS VARCHAR)"
    if scale:
        digits = f"(repeat('0', {scale + 1} - length({digits})) || {digits})"
        digits = f"left({digits}, -{scale}) || '.' || right({digits}, {scale})"
    return f"CASE WHEN new < old THEN '-' ELSE '' END || {digits}"

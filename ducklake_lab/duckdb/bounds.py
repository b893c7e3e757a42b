"""Bounds of statistics: the least and the greatest value, ordered and spelled by DuckDB."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ducklake_lab.duckdb.casting import text_sql, typed_values_sql
from ducklake_lab.duckdb.connections import scratch
from ducklake_lab.duckdb.spelling import spelled_extremes
from ducklake_lab.duckdb.unsliced import unsliced
from ducklake_lab.model.types import FLOATS, INTEGERS, DataType

_INTEGER = re.compile(r"-?[0-9]{1,40}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
#: Finite numbers that a Python float reads without overflow.
_FLOAT = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?(e[+-]?[0-9]{1,2})?", re.ASCII)
#: Texts that sort as their values do; of times those of the years 0 to 9999, in one zone.
_SORTING = {
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII),
    "boolean": re.compile("true|false"),
    "time": re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?", re.ASCII),
    "timestamp": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?", re.ASCII),
    "timestamptz": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\+00", re.ASCII),
}


@dataclass(frozen=True, slots=True)
class Extremes:
    """The texts of the least and the greatest value of a column; None where it has none.

    Attributes:
        nulls: how many values are NULL.
    """

    low: str | None
    high: str | None
    nulls: int


def extremes(columns: Sequence[tuple[pa.ChunkedArray, DataType]]) -> list[Extremes]:
    """The extremes of columns of leaf values. One query serves the columns that only DuckDB spells, by length."""
    by_place: dict[int, Extremes] = {}
    by_length: dict[int, list[int]] = defaultdict(list)
    for place, (values, data_type) in enumerate(columns):
        ends = spelled_extremes(values, data_type)
        if ends is not None:
            by_place[place] = Extremes(*ends, values.null_count)
        elif values.null_count == len(values):
            by_place[place] = Extremes(None, None, len(values))
        else:
            by_length[len(values)].append(place)
    for places in by_length.values():
        by_place.update(zip(places, _by_query([columns[place] for place in places]), strict=True))
    return [by_place[place] for place in range(len(columns))]


def _by_query(columns: Sequence[tuple[pa.ChunkedArray, DataType]]) -> list[Extremes]:
    """The extremes of columns of the same length."""
    table = pa.table({f"c{i}": values for i, (values, _) in enumerate(columns)})
    typed = ", ".join(f"{typed_values_sql(f'c{i}', kind, values)} AS c{i}" for i, (values, kind) in enumerate(columns))
    wanted = ", ".join(text_sql(f"{end}(c{i})", kind) for i, (_, kind) in enumerate(columns) for end in ("min", "max"))
    (row,) = (
        scratch()
        .from_arrow(unsliced(table))
        .query("leaves", f"SELECT {wanted} FROM (SELECT {typed} FROM leaves)")
        .fetchall()
    )
    return [Extremes(row[2 * i], row[2 * i + 1], values.null_count) for i, (values, _) in enumerate(columns)]


def respelled(values: Sequence[str], source: DataType, target: DataType) -> dict[str, str | None]:
    """The texts of values of one type as texts of another one, as DuckDB casts them; None where it cannot."""
    column = pa.table({"v": pa.array(list(dict.fromkeys(values)), pa.string())})
    value = f"TRY_CAST(TRY_CAST(v AS {source.sql()}) AS {target.sql()})"
    return dict(scratch().from_arrow(column).query("texts", f"SELECT v, {value}::VARCHAR FROM texts").fetchall())


def smallest_and_largest(values: Sequence[str], data_type: DataType) -> tuple[str, str]:
    """The least and the greatest of some texts, ordered as values of the type; spelled as they were."""
    key = _key(values, data_type)
    if key is not None:
        return min(values, key=key), max(values, key=key)
    column = pa.table({"v": pa.array(list(values), pa.string())})
    (row,) = (
        scratch()
        .from_arrow(column)
        .query(
            "texts",
            f"SELECT arg_min(v, typed), arg_max(v, typed) FROM (SELECT v, CAST(v AS {data_type.sql()}) AS typed FROM texts)",
        )
        .fetchall()
    )
    assert row[0] is not None  # the texts are not NULL
    return row[0], row[1]


def _key(values: Sequence[str], data_type: DataType) -> Callable[[str], Any] | None:
    """Return a key that orders texts as the values they spell; None where only DuckDB knows."""
    name = data_type.name
    form: re.Pattern[str] | None
    key: Callable[[str], Any]
    if name == "varchar":
        return str  # by code points, as DuckDB's bytes of UTF-8 are
    if name in INTEGERS:
        form, key = _INTEGER, int
    elif data_type.decimal is not None:
        form, key = _DECIMAL, Decimal
    elif name in FLOATS:
        form, key = _FLOAT, float
    else:
        form, key = _SORTING.get(name), str
    return key if form is not None and all(map(form.fullmatch, values)) else None

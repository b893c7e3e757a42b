"""Rows as a Polars DataFrame: exact values, or an error that names the column."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.duckdb.casting import has_part
from ducklake_lab.duckdb.handing import arrow_table
from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.errors import UsageError
from ducklake_lab.model.types import from_field

if TYPE_CHECKING:
    import polars as pl


def polars_frame(carried: pa.Table, time_zone: str) -> pl.DataFrame:
    """Returns rows as a Polars DataFrame; times with a zone become texts.

    Args:
        carried: rows in the Arrow forms of their types; see model/types.py.
        time_zone: the time zone of TIMESTAMPTZ values.

    Raises:
        UsageError: Polars is not installed, or has no type for a column.
    """
    try:
        import polars
    except ImportError:
        raise UsageError("Polars is not installed; pip install polars, or take the rows as pandas or arrow.") from None
    columns: list[pl.Series] = []
    for at, field in enumerate(carried.schema):
        kind = from_field(field)
        if has_part(kind, ("interval",)) or (has_part(kind, ("timetz",)) and has_part(kind, ("variant",))):
            # Polars would abort the process for some of these types
            raise UsageError(
                f'Polars has no type for {kind.sql()}, that of the column "{field.name}"; '
                "cast it to VARCHAR, or take the rows as arrow."
            )
        values = carried.column(at)
        try:
            if kind.name in ("int128", "uint128"):
                # a Polars decimal has 38 digits, these integers up to 39
                texts = polars.Series(field.name, pc.cast(values, pa.string()).to_pylist(), dtype=polars.String)
                columns.append(texts.cast(polars.Int128 if kind.name == "int128" else polars.UInt128))
                continue
            if not has_part(kind, ("timetz",)):
                values = in_zone(arrow_table(pa.table([values], pa.schema([field]))), time_zone).column(0)
            columns.append(cast("pl.Series", polars.from_arrow(values)).alias(field.name))
        except (polars.exceptions.PolarsError, pa.ArrowException, AttributeError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise UsageError(
                f'Polars has no type for {kind.sql()}, that of the column "{field.name}": {reason}; '
                "cast it, or take the rows as arrow."
            ) from error
    return polars.DataFrame(columns)

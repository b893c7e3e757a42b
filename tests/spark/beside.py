"""A session on Spark and DuckDB alone with the same tables, and values that compare."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits


@contextmanager
def beside_duckdb(
    folder: Path, spark: Any, tables: Mapping[str, Mapping[str, str]], rows: Mapping[str, str]
) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    """Give a session whose tables are in files, and DuckDB with the same tables.

    Args:
        folder: of the lake.
        tables: types of columns by the names of columns, by the name of the table.
        rows: what follows VALUES, by the name of the table.
    """
    uri = f"ducklake:{folder}/x.ducklake"
    options: dict[str, Any] = {"alias": "lake", "data_path": f"{folder}/data", "engine": "spark", "spark": spark}
    # else what Spark refuses would run in process
    with dl.connect(uri, limits=Limits(refused=-1), **options) as session, duckdb.connect() as plain:
        for run in (session.sql, plain.execute):
            run("SET TimeZone = 'UTC'")
        session.sql("SET ducklake_default_data_inlining_row_limit = 0")
        for name, columns in tables.items():
            definition = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            for text in (f"CREATE TABLE {name} ({definition})", f"INSERT INTO {name} VALUES {rows[name]}"):
                session.sql(text)
                plain.execute(text)
        yield session, plain


def comparable(value: Any) -> Any:
    """Return a value that compares: NaN equals itself, and last digits of sums do not count."""
    if isinstance(value, float | Decimal):
        number = float(value)
        # sums depend on the order of rows; a zero by which rows are sorted or grouped may lose its sign
        return str(number) if not math.isfinite(number) else float(f"{number:.9g}") + 0.0
    if isinstance(value, dict):
        return {name: comparable(part) for name, part in value.items()}
    return [comparable(item) for item in value] if isinstance(value, list) else value

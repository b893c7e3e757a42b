"""Writes rows as CSV, Parquet and Excel files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.casting import has_part, through
from ducklake_lab.duckdb.file_access import connect
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.file_paths import is_local
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import INTEGERS, DataType, from_field
from ducklake_lab.storage import Storage

_CSV = "FORMAT csv, HEADER {header}, DELIMITER {delimiter}, QUOTE '\"', ESCAPE '\"', NULLSTR ''"
#: Limits of an Excel sheet: rows with the header, columns, characters in a cell, digits of a number.
EXCEL_ROWS, EXCEL_COLUMNS, EXCEL_TEXT, EXCEL_DIGITS = 1_048_576, 16_384, 32_767, 15
#: Earlier days have other numbers in Excel than in a calendar.
_EXCEL_BEGINS = date(1900, 3, 1)
#: Characters that XML cannot hold, or that Excel reads as an escape.
_EXCEL_ESCAPED = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def save(rows: pa.Table, path: str, time_zone: str) -> None:
    """Writes rows to a file or an object. The path's ending chooses the format.

    CSV and TSV write NULL as nothing, the empty text as `""`, and other values as DuckDB's text. Parquet writes
    128-bit integers as decimals, and intervals and times with a zone as text. Excel gets text for values that it
    would change.

    Raises:
        UsageError: the ending is unknown, the file cannot be written, or it cannot hold so many rows or columns.
        UnsupportedFeatureError: openpyxl is not installed, or Parquet lacks a type.
        ConstraintError: a number has more than 38 digits, Parquet's limit.
    """
    ending = os.path.splitext(path)[1].lower()
    write = _WRITERS.get(ending)
    if write is None:
        raise UsageError(f'"{path}" names no kind of file; it must end in {", ".join(_WRITERS)}.')
    local = is_local(path)
    local_path = Path(path.removeprefix("file://")).expanduser() if local else None
    if local_path is not None and not local_path.parent.is_dir():
        raise UsageError(f'"{path}" cannot be written: there is no folder {local_path.parent}.')
    # first in a file beside it, so that the path has the whole file or none
    try:
        with TemporaryDirectory(prefix=".ducklake-", dir=local_path and local_path.parent) as folder:
            made = str(Path(folder) / f"rows{ending}")
            write(rows, made, time_zone)
            if local_path is not None:
                os.replace(made, local_path)
            else:
                Storage().upload(made, path, is_new=False)
    except OSError as error:
        raise UsageError(f'"{path}" cannot be written: {error.strerror or error}.') from None


def tab_separated(rows: pa.Table, time_zone: str) -> str:
    """Returns rows as tab-separated text for a spreadsheet, without a header; the last line has no line end."""
    with TemporaryDirectory(prefix="ducklake-") as folder:
        made = str(Path(folder) / "rows.tsv")
        _copy(rows, made, _CSV.format(header="false", delimiter="'\t'"), time_zone)
        return Path(made).read_bytes().decode().removesuffix("\n")


def csv_lines(rows: pa.Table, time_zone: str) -> Iterator[str]:
    """Yields parts of the CSV text of `save`, with a header line."""
    with TemporaryDirectory(prefix="ducklake-") as folder:
        made = str(Path(folder) / "rows.csv")
        _csv(rows, made, time_zone)
        with Path(made).open(encoding="utf-8", newline="") as file:
            yield from file


def writes_excel() -> bool:
    """Returns whether the package that writes Excel files is installed."""
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        return False
    return True


def _csv(rows: pa.Table, path: str, time_zone: str) -> None:
    _copy(rows, path, _CSV.format(header="true", delimiter="','"), time_zone)


def _tsv(rows: pa.Table, path: str, time_zone: str) -> None:
    _copy(rows, path, _CSV.format(header="true", delimiter="'\t'"), time_zone)


def _parquet(rows: pa.Table, path: str, time_zone: str) -> None:
    _copy(rows, path, "FORMAT parquet, COMPRESSION zstd", time_zone, _for_parquet)


def _copy(
    rows: pa.Table, path: str, options: str, time_zone: str, convert: Callable[[str, DataType], str] | None = None
) -> None:
    """Writes a file with DuckDB's COPY."""
    names = [quote_identifier(name) for name in rows.column_names]
    kinds = [_kind(field) for field in rows.schema]
    rows = rows.rename_columns([f"c{at}" for at in range(len(names))])
    values = ", ".join(
        f"{convert(f'c{at}', kind) if convert is not None and kind is not None else f'c{at}'} AS {name}"
        for at, (name, kind) in enumerate(zip(names, kinds, strict=True))
    )
    with connect() as connection:
        connection.execute(f"SET TimeZone = {quote_text(time_zone)}")
        shown = engine.Shown(connection)
        try:
            sql = shown.show(f"COPY (SELECT {values} FROM seen) TO {quote_text(path)} ({options})", {"seen": rows})
            connection.execute(sql)
        except duckdb.Error as error:
            raise engine.translated(error) from error
        finally:
            shown.hide()


def _kind(field: pa.Field) -> DataType | None:
    try:
        return from_field(field)
    except UnsupportedFeatureError:
        return None


def _for_parquet(value: str, kind: DataType) -> str:
    """Returns SQL of a value in a form that Parquet holds without loss; DuckDB alone would lose digits or zones."""
    if kind.name in ("int128", "uint128"):
        return f"CAST({value} AS DECIMAL(38,0))"
    if kind.name in ("interval", "timetz"):
        return f"CAST({value} AS VARCHAR)"
    if kind.is_nested and has_part(kind, ("int128", "uint128", "interval", "timetz")):
        return through(value, kind, _for_parquet)
    return value


def _excel(rows: pa.Table, path: str, time_zone: str) -> None:
    if not writes_excel():
        raise UnsupportedFeatureError("Writing Excel files needs openpyxl: pip install openpyxl")
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    if rows.num_rows >= EXCEL_ROWS or rows.num_columns > EXCEL_COLUMNS:
        raise UsageError(
            f"A sheet of Excel has room for {EXCEL_ROWS - 1:,} rows of {EXCEL_COLUMNS:,} columns, and here are "
            f"{rows.num_rows:,} of {rows.num_columns:,}; save them as .csv or .parquet."
        )
    columns = list(_excel_columns(rows, time_zone))
    book = Workbook(write_only=True)
    sheet = book.create_sheet("rows")

    def cell(value: object) -> Any:
        if not isinstance(value, str):
            return value
        # a text that begins with = is not a formula
        made = WriteOnlyCell(sheet, _escaped(value))
        made.data_type = "s"
        return made

    sheet.append([cell(name) for name in rows.column_names])
    for row in zip(*columns, strict=True):
        sheet.append([cell(value) for value in row])
    book.save(path)


def _excel_columns(rows: pa.Table, time_zone: str) -> Iterator[Sequence[object]]:
    """Yields the values of each column in Excel's types."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        kind = _kind(field)
        is_plain = kind is not None and (kind.name == "boolean" or (kind.is_numeric and kind.name != "float32"))
        converted = engine.evaluate(
            f"SELECT {'v' if is_plain else 'CAST(v AS VARCHAR)'} AS v FROM seen",
            {"seen": pa.table([column], schema=pa.schema([field.with_name("v")]))},
            time_zone,
        )
        values = [_excel_value(value, kind) for value in converted.column(0).to_pylist()]
        for at, value in enumerate(values):
            if isinstance(value, str) and len(_escaped(value)) > EXCEL_TEXT:
                raise UsageError(
                    f"Row {at + 1:,} has a text of {len(value):,} characters in {field.name}, and a cell of Excel holds "
                    f"{EXCEL_TEXT:,}; save the rows as .csv or .parquet."
                )
        yield values


def _excel_value(value: Any, kind: DataType | None) -> object:
    """Returns a number or date if Excel holds it exactly, else text."""
    if value is None or isinstance(value, bool) or kind is None:
        return value
    if kind.name in INTEGERS:
        number = int(value)
        return number if abs(number) < 10**EXCEL_DIGITS else str(number)
    if isinstance(value, Decimal):
        return value if len(str(abs(value)).replace(".", "").strip("0")) <= EXCEL_DIGITS else f"{value:f}"
    if kind.name in ("float32", "float64"):
        return float(value) if isfinite(float(value)) else str(value)
    if kind.name == "date" or kind.name in ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"):
        return _excel_time(str(value), kind)
    return value


def _excel_time(text: str, kind: DataType) -> object:
    try:
        moment = date.fromisoformat(text) if kind.name == "date" else datetime.fromisoformat(text)
    except ValueError:  # infinity, or a year with five digits
        return text
    if isinstance(moment, datetime):
        fits = (
            moment.date() >= _EXCEL_BEGINS
            and moment.microsecond % 1000 == 0
            and len(text) <= len("2025-01-01 10:00:00.123456")
        )
        return moment if fits else text
    return moment if moment >= _EXCEL_BEGINS else text


def _escaped(text: str) -> str:
    return _EXCEL_ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


_WRITERS: dict[str, Callable[[pa.Table, str, str], None]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
    ".xlsx": _excel,
}

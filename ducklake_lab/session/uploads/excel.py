"""Sheets of Excel files. The type of each cell decides; no text is converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import chain, islice
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from ducklake_lab.errors import DataFileError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.model.units import counted
from ducklake_lab.session.uploads.form import Form

_MIDNIGHT = time()


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of the sheets of one or more files.

    Attributes:
        headers: the values of the first row; None if that is a data row.
        kinds: the kind of each column: `number`, `text`, `boolean`, `date`, `timestamp`, `time`, or `` if empty.
        table: text columns c0, c1, …, with the sheet's row number as `row` and the file's number as `file`.
        notes: why columns are text, by column number.
        said: facts about the sheets for the user.
        counts: a readable count of rows.
    """

    headers: list[str | None]
    kinds: list[str]
    table: pa.Table
    notes: dict[int, str]
    said: list[str]
    counts: str
    places: list[str]


def read_sheets(paths: Sequence[str], names: Sequence[str], form: Form) -> Sheet:
    """Reads the sheets of Excel files, one below the other.

    Args:
        names: names of the files in messages.

    Raises:
        UnsupportedFeatureError: openpyxl is not installed.
        DataFileError: a file is damaged, a cell has no value, or a cell is outside the columns.
        UsageError: the sheet does not exist, or the files differ.
    """
    said: list[str] = []
    columns: list[_Column] = []
    headers: list[str | None] = []
    rows: list[int] = []
    files: list[int] = []
    places, titles = [], []
    blank = 0
    for number, (path, name) in enumerate(zip(paths, names, strict=True)):
        title, others, cells = _opened(path, name, form)
        sheet_title = f"{name}, sheet {title}"
        titles.append(title)
        places.append(sheet_title)
        if others:
            other_sheets = ", ".join(f'"{other}"' for other in others)
            where = f" of {name}" if len(paths) > 1 else ""
            said.append(f'sheet "{title}"{where} is taken, and not {other_sheets} (--sheet)')
        rows_below = islice(cells, form.skip, None)
        top = next((row for row in rows_below if any(cell is not None for _, cell in row)), None)
        if top is None:
            raise UsageError(f"{sheet_title} holds no cell with a value.")
        width = max(at for at, (_, cell) in enumerate(top) if cell is not None) + 1
        has_header = form.header is not False
        own = [None if cell is None else _text(cell) for _, cell in top[:width]] if has_header else [None] * width
        if number == 0:
            headers = [text or "" for text in own] if has_header else list(own)
            columns = [_Column() for _ in range(width)]
        elif width != len(columns) or (has_header and [text or "" for text in own] != headers):
            shown = ", ".join(text or "" for text in own) if has_header else counted(width, "column")
            raise UsageError(f"{sheet_title} has not the columns of {places[0]}: {shown}.")
        for row in rows_below if has_header else chain([top], rows_below):
            if all(cell is None for _, cell in row):
                blank += bool(row)
                continue
            outside = next((at for at, cell in row[width:] if cell is not None), None)
            if outside is not None:
                raise DataFileError(f"{sheet_title}: {outside} holds a value, but the columns end at {_column(width)}.")
            rows.append(int(row[0][0].lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")))
            files.append(number)
            for at, column in enumerate(columns):
                address, cell = row[at] if at < len(row) else ("", None)
                where = f"{address} of {PurePath(name).name}" if len(paths) > 1 else address
                column.add(None if isinstance(cell, str) and cell in form.nulls else cell, where)
    if len(set(titles)) > 1 and not said:
        said.append(
            f"sheets of several names: {', '.join(f'{chr(34)}{title}{chr(34)}' for title in dict.fromkeys(titles))}"
        )
    kinds, notes = [], {}
    arrays: dict[str, pa.Array] = {"row": pa.array(rows, pa.int64()), "file": pa.array(files, pa.int64())}
    for at, column in enumerate(columns):
        kind, note = column.kind()
        kinds.append(kind)
        if note:
            notes[at] = note
        arrays[f"c{at}"] = pa.array(column.texts(), pa.string())
    parts = [counted(len(rows), "row")]
    parts += [f"{blank:,} blank"] if blank else []
    parts += [f"{form.skip:,} left out by --skip"] if form.skip else []
    return Sheet(headers, kinds, pa.table(arrays), notes, said, ", ".join(parts), places)


_Cell = tuple[str, Any]


class _Column:
    """The cells of a column."""

    def __init__(self) -> None:
        self._cells: list[Any] = []
        # the first cell of each kind
        self._first: dict[str, str] = {}

    def add(self, cell: Any, address: str) -> None:
        self._cells.append(cell)
        if cell is not None:
            self._first.setdefault(_kind(cell), address)

    def kind(self) -> tuple[str, str]:
        """The kind of all cells, and the reason for text if the kinds differ."""
        kinds = list(self._first)
        if set(kinds) == {"date", "timestamp"}:
            return "timestamp", ""
        if len(kinds) < 2:
            return (kinds[0] if kinds else ""), ""
        shown = " and ".join(f"{address} a {kind}" for kind, address in list(self._first.items())[:3])
        return "text", f"text: {shown}"

    def texts(self) -> list[str | None]:
        return [None if cell is None else _text(cell) for cell in self._cells]


def _kind(cell: Any) -> str:
    if isinstance(cell, bool):
        return "boolean"
    if isinstance(cell, int | float):
        return "number"
    if isinstance(cell, datetime):
        return "date" if cell.time() == _MIDNIGHT else "timestamp"
    if isinstance(cell, date):
        return "date"
    return {time: "time", timedelta: "interval"}.get(type(cell), "text")


def _text(cell: Any) -> str:
    """Returns the text of a cell in DuckDB's form."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == _MIDNIGHT else cell.isoformat(" ")
    if isinstance(cell, timedelta):
        return f"{cell.days} days {cell.seconds} seconds {cell.microseconds} microseconds"
    return str(cell) if not isinstance(cell, date | time) else cell.isoformat()


def _opened(path: str, name: str, form: Form) -> tuple[str, list[str], Iterator[list[_Cell]]]:
    """Opens a sheet; returns its name, the other sheets' names, and its rows as cells with addresses."""
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise UnsupportedFeatureError("Reading Excel files needs openpyxl: pip install openpyxl") from None
    from zipfile import BadZipFile

    try:
        values = openpyxl.load_workbook(path, read_only=True, data_only=True)
        formulas = openpyxl.load_workbook(path, read_only=True, data_only=False)
    except (InvalidFileException, BadZipFile, KeyError, ValueError, OSError) as error:
        raise DataFileError(f"{name} cannot be read as an Excel file: {str(error).splitlines()[0]}") from None
    titles = [sheet.title for sheet in values.worksheets]
    if not titles:
        raise UsageError(f"{name} has no sheet of cells.")
    wanted = form.sheet if form.sheet is not None else titles[0]
    if wanted not in titles:
        raise UsageError(f'{name} has no sheet "{wanted}"; it has {", ".join(titles)}.{did_you_mean(wanted, titles)}')
    others = [title for title in titles if title != wanted] if form.sheet is None else []
    return wanted, others, _rows(values[wanted], formulas[wanted], f"{name}, sheet {wanted}")


def _rows(values: Any, formulas: Any, sheet_title: str) -> Iterator[list[_Cell]]:
    """Yields the rows of a sheet; ignores the sheet sizes in the file, which some programs write wrongly.

    Raises:
        DataFileError: a formula has no computed value.
    """
    for sheet in (values, formulas):
        sheet.reset_dimensions()
    for number, (row, written) in enumerate(zip(values.iter_rows(), formulas.iter_rows(), strict=True), 1):
        cells: list[_Cell] = []
        for at, (cell, source) in enumerate(zip(row, written, strict=True)):
            address = f"{_column(at + 1)}{number}"
            if cell.value is None and source.value is not None and source.data_type == "f":
                raise DataFileError(
                    f"{sheet_title}: {address} holds a formula without its value; open and save the file in Excel."
                )
            cells.append((address, cell.value))
        yield cells


def _column(number: int) -> str:
    """Returns the letters of a 1-based column."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters

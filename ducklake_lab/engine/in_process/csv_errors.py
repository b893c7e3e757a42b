"""Converts DuckDB's error about a line of a CSV file to one sentence."""

from __future__ import annotations

import re

from ducklake_lab.errors import CsvLineError
from ducklake_lab.model.units import counted

_PLACE = re.compile(r"CSV Error on Line: (\d+)\n")
_FILE = re.compile(r"^  file = (.*)$", re.MULTILINE)
_WIDTH = re.compile(r"^Expected Number of Columns: (\d+) Found: (\d+)$", re.MULTILINE)
_VALUE = re.compile(
    r"^Error when converting column \"(.*)\"\. Could not convert string \"(.*?)\" to '(.*)'$", re.MULTILINE | re.DOTALL
)
_SHOWN = 60
#: DuckDB's other messages about a line -> this package's text.
_OTHER = {
    "Value with unterminated quote found": "has a quote that is not closed, or text behind one that is",
    "Invalid unicode (byte sequence mismatch) detected": "is not UTF-8",
    "Maximum line size of": "is longer than max_line_size",
}
_NO_STATE = "The CSV Parser state machine reached an invalid state"


def csv_line_error(text: str) -> CsvLineError | None:
    """Returns the error for DuckDB's text; None if it does not concern a line of a file."""
    line, file = _PLACE.search(text), _FILE.findall(text)
    if _NO_STATE in text and file:
        return CsvLineError(f"{file[-1]} has line ends or quotes that its lines before them do not have.")
    if line is None or not file:
        return None
    where = f"Line {int(line[1]):,} of {file[-1]}"
    width, value = _WIDTH.search(text), _VALUE.search(text)
    if value is not None:
        name, value_text, kind = value.groups()
        shown = value_text if len(value_text) <= _SHOWN else f"{value_text[:_SHOWN]}…"
        return CsvLineError(f'{where}: "{shown}" in the column "{name}" is no {kind}.', value=value_text)
    if width is not None:
        expected, number = map(int, width.groups())
        has = (
            f"{counted(number, 'column')}, not {expected:,}"
            if number < expected
            else f"more than {counted(expected, 'column')}"
        )
        return CsvLineError(f"{where} has {has}.")
    other = next((said for message, said in _OTHER.items() if message in text), None)
    return CsvLineError(f"{where} {other}.") if other is not None else None

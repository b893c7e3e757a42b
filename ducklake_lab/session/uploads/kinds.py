"""Rows of uploaded files by format: CSV, Excel, JSON and Parquet."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from ducklake_lab.model.quoting import quote_text
from ducklake_lab.session.uploads import json_files
from ducklake_lab.session.uploads.columns import Part, UploadedColumn, type_or_text
from ducklake_lab.session.uploads.csv_files import CsvFiles, saying_lines, unique_names
from ducklake_lab.session.uploads.excel import read_sheets
from ducklake_lab.session.uploads.files import File
from ducklake_lab.session.uploads.form import Form
from ducklake_lab.session.uploads.guessing import Ask, Guess, digits_of, guess, guess_numbers
from ducklake_lab.session.uploads.parts import misfit_in, rows_counted
from ducklake_lab.session.uploads.texts import text_of

#: The name of the Excel rows in SQL.
SHEET = "uploaded_sheet"
_EXCEL = {"boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP", "time": "TIME", "interval": "INTERVAL"}
_READ_AS_TEXT = ("DATE", "TIME", "TIMESTAMP")
_NUMBERS = ("DOUBLE", "HUGEINT", "UHUGEINT", "UBIGINT")


class CsvRows:
    def __init__(self, ask: Ask, files: Sequence[File], form: Form, folder: Path) -> None:
        form.refuse_for("CSV")
        self.form = form
        texts = [text_of(file.name, file.path, form, folder, number) for number, file in enumerate(files)]
        with saying_lines(texts):
            self._files = CsvFiles(ask, texts, form)
        self.counts = str(self._files.counts)
        self.said = [] if self._files.has_header else ["no header"]
        self.columns = [
            UploadedColumn(source, header, name, None, one.type, one.format, one.note)
            for source, header, name, one in zip(
                self._files.columns, self._files.headers, self._files.names, self._files.guesses, strict=True
            )
        ]
        self.parts = [Part(self._files.relation, {column.source: None for column in self.columns})]
        if form.dates is not None and all(column.dates != form.dates for column in self.columns):
            self.said.append(f"no column holds only dates as {form.dates}")

    def first_misfit(self, _part: Part, misfits: str, value: str) -> tuple[str, list[str]] | None:
        misfit = self._files.first_misfit(misfits, value)
        return None if misfit is None else (f"Line {misfit[1]:,} of {misfit[0]}", misfit[2])


class ExcelRows:
    """The rows of Excel sheets.

    Attributes:
        table: the table that SQL reads as `SHEET`.
    """

    def __init__(self, files: Sequence[File], form: Form) -> None:
        form.refuse_for("Excel")
        # Excel numbers are written in SQL's form
        self.form = Form()
        self._sheet = read_sheets([file.path for file in files], [file.name for file in files], form)
        self.table: pa.Table = self._sheet.table
        self.counts = self._sheet.counts
        self.said = list(self._sheet.said)
        self.columns: list[UploadedColumn] = []
        self.parts: list[Part] = []

    def guess(self, ask: Ask) -> None:
        """Guesses the types of the columns; SQL must be able to read the table by then."""
        sheet = self._sheet
        numbers = guess_numbers(ask, SHEET, [f"c{at}" for at, kind in enumerate(sheet.kinds) if kind == "number"])
        names = unique_names(sheet.headers)
        for at, (kind, header) in enumerate(zip(sheet.kinds, sheet.headers, strict=True)):
            one = numbers.get(f"c{at}") or Guess(_EXCEL.get(kind, "VARCHAR"), note=sheet.notes.get(at, ""))
            self.columns.append(UploadedColumn(f"c{at}", header, names[at], None, one.type, None, one.note))
        self.parts = [Part(SHEET, {column.source: None for column in self.columns})]
        self.said += [] if any(header is not None for header in sheet.headers) else ["no header"]
        self._ask = ask

    def first_misfit(self, _part: Part, misfits: str, value: str) -> tuple[str, list[str]] | None:
        rows = self._ask(f'SELECT "row", "file", {value} FROM {SHEET} WHERE {misfits} ORDER BY "file", "row" LIMIT 1')
        return (f"Row {rows[0][0]:,} of {self._sheet.places[rows[0][1]]}", rows[0][2]) if rows else None


class JsonRows:
    """The rows of JSON files, with the types of DuckDB's reader."""

    def __init__(self, ask: Ask, files: Sequence[File], form: Form, folder: Path) -> None:
        form.refuse_for("JSON")
        self.form = form
        self.said: list[str] = []
        self._ask, self._names = ask, [file.name for file in files]
        # these are file names, even with pattern characters in them
        self._paths = [quote_text(glob.escape(file.path)) for file in files]
        self._options = ["union_by_name => true"] if len(files) > 1 else []
        self._options += ["sample_size => -1"]
        described = self._described()
        texts = self._as_texts(described, folder)
        guesses = self._guesses({name: kind for name, kind in described.items() if texts.get(name) == "VARCHAR"})
        self.columns: list[UploadedColumn] = []
        for name, kind in described.items():
            one = guesses.get(name)
            read = texts.get(name, kind)
            if one is not None:
                self.columns.append(UploadedColumn(name, name, name, None, one.type, one.format, one.note))
                continue
            note = "text within: DOUBLE would lose digits" if read != kind else ""
            self.columns.append(UploadedColumn(name, name, name, type_or_text(read), read, None, note))
        self.parts = [Part(self._of(self._paths), {column.source: column.kind for column in self.columns})]
        self.counts = rows_counted(ask, self.parts)

    def _of(self, paths: Sequence[str]) -> str:
        return f"read_json({', '.join(['[' + ', '.join(paths) + ']', *self._options])})"

    def _described(self) -> dict[str, str]:
        return {str(name): str(kind) for name, kind, *_ in self._ask(f"DESCRIBE FROM {self._of(self._paths)}")}

    def _as_texts(self, described: dict[str, str], folder: Path) -> dict[str, str]:
        """Returns the columns of JSON files to read as text, or with text inside, with their types.

        Numbers that no DOUBLE holds become text, and times keep their fractions and zones.
        """
        texts = {name: "VARCHAR" for name, kind in described.items() if kind in _READ_AS_TEXT}
        paths = json_files.kept(self._ask, self._paths, folder, self._digits_kept)
        if paths != self._paths:
            self._paths = paths
            changed = self._described()
            for name, kind in described.items():
                if kind in _NUMBERS:
                    texts[name] = "VARCHAR"
                elif changed.get(name) != kind and (other := json_files.as_texts(kind)) != kind:
                    texts[name] = other
        else:
            texts |= {name: "VARCHAR" for name, kind in described.items() if kind in _NUMBERS[1:]}
        if texts or paths != self._paths:
            kinds = (f"{quote_text(name)}: {quote_text(texts.get(name, kind))}" for name, kind in described.items())
            self._options = [f"columns => {{{', '.join(kinds)}}}"]
        return texts

    def _digits_kept(self, numbers: Sequence[str]) -> list[bool]:
        listed = ", ".join(map(quote_text, numbers))
        double = "try_cast(n AS DOUBLE)"
        kept = f"coalesce({digits_of('n')} = {digits_of(f'{double}::VARCHAR')} AND NOT isinf({double}), false)"
        rows = self._ask(f"SELECT n, {kept} FROM (SELECT unnest([{listed}]::VARCHAR[]) AS n)") if numbers else []
        is_kept: dict[str, bool] = dict(rows)
        return [bool(is_kept[number]) for number in numbers]

    def _guesses(self, texts: dict[str, str]) -> dict[str, Guess]:
        """Guesses the types of columns that are read as text: numbers stay numbers, times become times if they fit."""
        numbers = [name for name, kind in texts.items() if kind in _NUMBERS]
        times = [name for name in texts if name not in numbers]
        relation = self._of(self._paths)
        guesses = guess_numbers(self._ask, relation, numbers)
        guesses |= {name: Guess("DOUBLE") for name in numbers if name not in guesses}
        if times:
            guesses |= dict(zip(times, guess(self._ask, relation, times, Form()), strict=True))
        return guesses

    def first_misfit(self, _part: Part, misfits: str, value: str) -> tuple[str, list[str]] | None:
        return misfit_in(self._ask, self._of, self._paths, self._names, misfits, value)

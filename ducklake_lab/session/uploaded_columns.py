"""Columns of files that are uploaded: their names, their types, and the query that reads them."""

from __future__ import annotations

import glob
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.errors import BindError, UsageError, did_you_mean
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import KEYWORDS, quote_identifier, quote_text
from ducklake_lab.storage import is_local

#: Under which SQL reads the rows of an Excel file.
SHEET = "uploaded_sheet"
#: Whole numbers of more digits than DOUBLE keeps.
_LONG = r"\s*[+-]?[0-9]{16,}\s*"
_ISO_DATE = "%Y-%m-%d"
#: Texts that files have for NULL.
_NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "nan", "-", "?")
_NUMBER = r"[+-]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(,[0-9]{3})+)([.][0-9]+)?"
_FIRST = 1000
#: Dates that DuckDB takes for times at midnight where other dates have another format.
_YEAR_FIRST = ("%Y-%m-%d", "%Y/%m/%d")


@dataclass(frozen=True, slots=True)
class UploadedColumn:
    """A column of the files.

    Attributes:
        source: its name for SQL over the files.
        header: what stands over it in the first file; None where the file has no header.
        name: its name in the table.
        note: why it has its type.
    """

    source: str
    header: str | None
    name: str
    type: str
    note: str = ""


class Reading:
    """Files of one kind, read by SQL."""

    def __init__(
        self,
        ask: Callable[[str], list[tuple[Any, ...]]],
        paths: Sequence[str],
        reader: str | None,
        form: Mapping[str, str],
        headers: Mapping[str, str],
        *,
        clean: bool,
    ) -> None:
        self._ask = ask
        # columns of the first file, and what stands over them
        self._names: list[str] = list(headers)
        self._headers: list[str | None] = list(headers.values())
        self._reader = reader
        self._clean = clean
        # these are files, whatever marks of patterns are in their names
        self._files = [quote_text(glob.escape(path) if is_local(path) else path) for path in paths]
        self._options = ["union_by_name => true"] if len(paths) > 1 else []
        self._types: dict[str, str] = {}
        self._dates: str | None = None
        self._asks_dates = "dateformat" in form
        self.warning: str | None = None
        # columns without the asked format of dates: name to type and format
        self._undated: dict[str, tuple[str, str]] = {}
        # what makes the value of a column of its text
        self._values: dict[str, str] = {}
        self.skipped = 0
        if form and reader != "read_csv":
            raise UsageError("Dates, texts that mean NULL and marks of thousands can be given for CSV files.")
        if reader == "read_csv":
            # a later value that is no number is found by looking at all of them
            self._options += ["sample_size => -1", *self._dialect(self._files[0], form)]
        elif reader == "read_json":
            self._options.append("sample_size => -1")

    def _dialect(self, file: str, form: Mapping[str, str]) -> list[str]:
        """What the first file says of its form, so that reading some columns as texts finds the same one."""
        given = [f"{name} => {value}" for name, value in form.items()]
        asked = f"FROM sniff_csv({', '.join([file, 'sample_size => -1', *given])}"
        ((delimiter, has_header, self.skipped, self._dates, columns, marks),) = self._ask(
            "SELECT Delimiter, HasHeader, SkipRows, DateFormat, [c.name FOR c IN Columns], "
            f'{{quote: "Quote", escape: "Escape"}} {asked})'
        )
        self._names = columns
        self._headers = self._first_line(file, delimiter, marks, len(columns)) if has_header else [None] * len(columns)
        if len(columns) == 1:
            self._refuse_broken(file, asked, columns[0])
        found = [f"delim => {quote_text(delimiter)}", f"header => {has_header}", f"skip => {self.skipped}", *given]
        if self._dates is not None and "dateformat" not in form:
            found.append(f"dateformat => {quote_text(self._dates)}")
        if self._asks_dates:
            self._undated = self._without_dates(file, form)
        return found

    def _first_line(self, file: str, delimiter: str, marks: Mapping[str, str], width: int) -> list[str | None]:
        """The texts of a header; DuckDB's names of columns are trimmed and numbered."""
        types = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(width))
        options = [f"{name} => {_mark(found)}" for name, found in marks.items()]
        options += ["header => false", "auto_detect => false", "null_padding => true", "strict_mode => false"]
        options += ["parallel => false", f"delim => {quote_text(delimiter)}", f"skip => {self.skipped}"]
        rows = self._ask(f"FROM read_csv({file}, {', '.join(options)}, columns => {{{types}}}) LIMIT 1")
        return [text or "" for text in rows[0]] if rows else []

    def _without_dates(self, file: str, form: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """The types and formats of dates and times that are found where no format of dates is asked for."""
        given = "".join(f", {name} => {value}" for name, value in form.items() if name != "dateformat")
        ((dates, times, columns),) = self._ask(
            f"SELECT DateFormat, TimestampFormat, Columns FROM sniff_csv({file}, sample_size => -1{given})"
        )
        formats = {"DATE": dates, "TIMESTAMP": times}
        found = ((str(one["name"]), str(one["type"])) for one in columns)
        return {name: (kind, formats[kind]) for name, kind in found if formats.get(kind) is not None}

    def _refuse_broken(self, file: str, asked: str, name: str) -> None:
        """Looks for columns in a file of one column: a line with too many or too few hides them.

        Raises:
            SqlError: there is such a line.
        """
        ((delimiter, quote, escape, skipped, columns),) = self._ask(
            f'SELECT Delimiter, "Quote", "Escape", SkipRows, [c.name FOR c IN Columns] {asked}, ignore_errors => true)'
        )
        if len(columns) < 2 or name.count(delimiter) < len(columns) - 1:
            return
        types = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(len(columns)))
        marks = f"delim => {quote_text(delimiter)}, quote => {_mark(quote)}, escape => {_mark(escape)}"
        self._ask(
            f"SELECT count(*) FROM read_csv({file}, {marks}, skip => {skipped}, header => true, "
            f"auto_detect => false, columns => {{{types}}})"
        )

    def _source(self) -> str:
        if self._reader is None:
            return SHEET
        options = list(self._options)
        if self._types and self._reader == "read_csv":
            options.append(
                f"types => {{{', '.join(f'{quote_text(k)}: {quote_text(v)}' for k, v in self._types.items())}}}"
            )
        files = f"[{', '.join(self._files)}]"
        return f"{self._reader}({', '.join([files, *options])})"

    def columns(self, target: Table | None, types: Mapping[str, str]) -> list[UploadedColumn]:
        """The columns, of the types of a table that they are appended to, of those asked for, or of those guessed.

        Raises:
            BindError: the table, or the files, have no such column.
        """
        found = [(str(name), str(kind)) for name, kind, *_ in self._ask(f"DESCRIBE FROM {self._source()}")]
        taken: set[str] = set()
        names = {name: clean_name(name, taken) if self._clean else name for name, _ in found}
        wanted = self._asked_for(names, types)
        notes: dict[str, str] = {}
        if target is not None:
            if types:
                raise UsageError(f"{target.name} has its types; a type can be given for new tables.")
            wanted = self._of_table(names, target)
        elif self._reader == "read_csv":
            free = [(name, kind) for name, kind in found if name not in wanted]
            notes = {name: "text: a lake holds no BIGNUM" for name, kind in free if kind == "BIGNUM"}
            notes |= self._long_numbers(name for name, kind in free if kind == "DOUBLE")
            wanted |= dict.fromkeys(notes, "VARCHAR")
            notes |= self._nearly_numbers(name for name, kind in free if kind == "VARCHAR")
            if self._dates not in (None, _ISO_DATE):
                notes |= {name: f"dates as {self._dates}" for name, kind in found if wanted.get(name, kind) == "DATE"}
        if self._reader == "read_csv":
            told = self._other_dates(found, wanted)
            notes |= told if target is None else {}
        if self._asks_dates and all(kind != "DATE" for _, kind in found):
            self.warning = f"no column holds only dates as {self._dates}"
        self._types = wanted | dict.fromkeys(self._values, "VARCHAR")
        headers = dict(zip(self._names, self._headers, strict=False))
        return [
            UploadedColumn(name, headers.get(name, name), names[name], wanted.get(name, kind), notes.get(name, ""))
            for name, kind in found
        ]

    def _asked_for(self, names: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
        wanted = {}
        for asked, kind in types.items():
            found = [name for name in names if asked.casefold() in (name.casefold(), names[name].casefold())]
            if not found:
                raise BindError(f'The files have no column "{asked}".{did_you_mean(asked, names)}')
            wanted[found[0]] = kind
        return wanted

    def _of_table(self, names: Mapping[str, str], target: Table) -> dict[str, str]:
        wanted = {}
        columns = {column.name.casefold(): column for column in target.columns}
        for name, new in names.items():
            column = columns.get(new.casefold())
            if column is None:
                hint = did_you_mean(new, [c.name for c in target.columns])
                raise BindError(f'{target.name} has no column "{new}", which the files have.{hint}')
            if not column.data_type.is_nested:
                wanted[name] = column.data_type.sql()
        return wanted

    def _other_dates(self, found: Sequence[tuple[str, str]], wanted: dict[str, str]) -> dict[str, str]:
        """Dates and times in formats other than that of the files' dates; adds their types to those wanted.

        Returns:
            Their formats as notes.
        """
        if self._dates is None:
            return {}
        # a cast alone would be done by the reader, in the format of the files' dates
        tried: dict[str, tuple[str, str, str]] = {}
        for name, kind in found:
            other, form = self._undated.get(name, ("", ""))
            if kind == "TIMESTAMP" and wanted.get(name, "DATE") == "DATE":
                how, to, note = str(list(_YEAR_FIRST)), "DATE", "dates, the year first"
            elif kind == "VARCHAR" and form and wanted.get(name, other) in ("DATE", "TIMESTAMP"):
                how, to = quote_text(form), wanted.get(name, other)
                note = f"{'dates' if other == 'DATE' else 'times'} as {form}"
            else:
                continue
            tried[name] = f"strptime({quote_identifier(name)}, {how})", to, note
        if not tried:
            return {}
        self._types = dict.fromkeys(tried, "VARCHAR")
        asked = (
            f"coalesce(bool_and(try_{parsed} IS NOT NULL) FILTER ({quote_identifier(name)} IS NOT NULL), false)"
            for name, (parsed, _, _) in tried.items()
        )
        (fitting,) = self._ask(f"SELECT {', '.join(asked)} FROM {self._source()}")
        notes = {}
        for (name, (parsed, to, note)), is_so in zip(tried.items(), fitting, strict=True):
            if is_so:
                self._values[name] = f"CAST({parsed} AS {to})"
                wanted.setdefault(name, to)
                notes[name] = note
        return notes

    def _long_numbers(self, columns: Iterable[str]) -> dict[str, str]:
        """Why columns stay texts that were guessed to be DOUBLE: it would lose digits of whole numbers."""
        names = list(columns)
        if not names:
            return {}
        self._types = dict.fromkeys(names, "VARCHAR")
        asked = ", ".join(
            f"coalesce(bool_or(regexp_full_match({quote_identifier(name)}, {quote_text(_LONG)})), false)"
            for name in names
        )
        (found,) = self._ask(f"SELECT {asked} FROM {self._source()}")
        return {name: "text: DOUBLE would lose digits" for name, is_so in zip(names, found, strict=True) if is_so}

    def _nearly_numbers(self, columns: Iterable[str]) -> dict[str, str]:
        """Why columns are texts that hold numbers beside marks of NULL, or with commas between their digits."""
        # most columns of words are recognised by their first values
        names = list(self._numbers_in_texts(columns, f"(FROM {self._source()} LIMIT {_FIRST})"))
        return self._numbers_in_texts(names, self._source())

    def _numbers_in_texts(self, columns: Iterable[str], rows: str) -> dict[str, str]:
        names = list(columns)
        if not names:
            return {}
        marks = f"({', '.join(map(quote_text, _NULLS))})"
        asked = []
        for value in map(quote_identifier, names):
            number = f"regexp_full_match({value}, {quote_text(_NUMBER)})"
            asked += [
                f"coalesce(bool_and({number}) FILTER ({value} NOT IN {marks}), false)",
                f"list(DISTINCT {value}) FILTER ({value} IN {marks})",
                f"any_value({value}) FILTER (contains({value}, ','))",
            ]
        (found,) = self._ask(f"SELECT {', '.join(asked)} FROM {rows}")
        notes = {}
        for name, numbers, nulls, comma in zip(names, found[::3], found[1::3], found[2::3], strict=True):
            parts = [f"--null {shlex.quote(null)} reads {null} as NULL" for null in sorted(nulls or ())]
            parts += [f"--thousands , and a --type make {comma} a number"] if comma is not None else []
            if numbers and (parts or rows != self._source()):
                notes[name] = "text: " + "; ".join(parts)
        return notes

    def query(self, columns: Sequence[UploadedColumn]) -> str:
        """What gives the columns under their new names."""
        parts = []
        for column in columns:
            value = self._values.get(column.source) or quote_identifier(column.source)
            if column.source in self._types and self._reader != "read_csv":
                value = f"CAST({value} AS {column.type})"
            parts.append(f"{value} AS {quote_identifier(column.name)}")
        return f"SELECT {', '.join(parts)} FROM {self._source()}"


def _mark(found: str) -> str:
    """A quote or escape that DuckDB found in a file, as an option; it writes "(empty)" for none."""
    return quote_text(found if len(found) == 1 else "")


def is_plain(name: str) -> bool:
    return name.isidentifier() and name.lower() not in KEYWORDS


def clean_name(name: str, taken: set[str]) -> str:
    """A name that needs no quotes, in lower case, and that is not taken yet."""
    letters = unicodedata.normalize("NFKC", name).lower()
    plain = re.sub(r"_+", "_", re.sub(r"\W", "_", letters)).strip("_") or "column"
    plain = plain if is_plain(plain) else f"_{plain}"
    found, number = plain, 1
    while found in taken:
        number += 1
        found = f"{plain}_{number}"
    taken.add(found)
    return found

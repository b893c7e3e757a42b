"""Format options of uploaded files: the keyword arguments of `Session.upload`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.session.names.argument_types import texts

#: Date formats in the notation of other programs.
_DATES = re.compile(r"[Yy]{4}|[Mm]{2}|[Dd]{2}")

#: Words for delimiters that are hard to type.
_DELIMITERS = {"tab": "\t", "\\t": "\t", "none": "", "space": " "}


class UploadOptions(TypedDict, total=False):
    """The keyword arguments of `Session.upload`.

    Attributes:
        types: types of columns, by name, instead of guessed types.
        date_format: the format of dates in CSV files, such as `%m/%d/%Y`, instead of a guessed format.
        nulls: a text in CSV and Excel files that means NULL, such as `NA`, or several; the empty text always does.
        thousands: the thousands separator of numbers in CSV files.
        decimal: the decimal separator of numbers in CSV files; a point by default.
        delimiter: the column delimiter of CSV files: `;`, `tab`, or `none` for files with one column.
        quote: the quote character of CSV files; `"` by default, "" for none.
        escape: the character before a quote within a quoted value; the quote itself by default.
        header: whether the first line of CSV files, or first row of Excel files, has the column names.
        skip: number of lines of CSV files, or rows of Excel files, to skip at the beginning.
        encoding: the encoding of CSV files, such as `latin-1` or `utf-16`; UTF-8 by default.
        sheet: the sheet of Excel files; the first by default.
        round: round or cut values that do not fit their types, instead of refusing them.
        clean_names: change column names so that SQL needs no quotes: `Total $` becomes `total`.
    """

    types: Mapping[str, str] | None
    date_format: str | None
    nulls: str | Sequence[str]
    thousands: str | None
    decimal: str | None
    delimiter: str | None
    quote: str | None
    escape: str | None
    header: bool | None
    skip: int
    encoding: str | None
    sheet: str | None
    round: bool
    clean_names: bool


@dataclass(frozen=True, slots=True)
class Form:
    """The format of values; None for parts to guess.

    Attributes:
        escape: the character before a quote within quotes.
        skip: number of lines or rows to skip at the beginning.
        dates: a `strptime` format.
    """

    dates: str | None = None
    nulls: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str = "."
    delimiter: str | None = None
    quote: str = '"'
    escape: str = '"'
    header: bool | None = None
    skip: int = 0
    encoding: str | None = None
    sheet: str | None = None

    def refuse_for(self, kind: str) -> None:
        """Refuses options that do not apply to a kind of files: `CSV`, `Excel`, or another.

        Raises:
            UsageError: an option belongs to another kind of files.
        """
        fields = {"CSV": _FIELDS - {"sheet"}, "Excel": {"nulls", "header", "skip", "sheet"}}.get(kind, set())
        default = Form()
        wrong = [name for name in _FIELDS - fields if getattr(self, name) != getattr(default, name)]
        if wrong:
            options = ", ".join(sorted(_OPTIONS[name] for name in wrong))
            kinds = "Excel" if wrong == ["sheet"] else "CSV"
            raise UsageError(f"{options} can be given for {kinds} files; {kind} files say such things themselves.")


_OPTIONS = {
    "dates": "--dates", "nulls": "--null", "thousands": "--thousands", "decimal": "--decimal",
    "delimiter": "--delimiter", "quote": "--quote", "escape": "--escape", "header": "--header or --no-header",
    "skip": "--skip", "encoding": "--encoding", "sheet": "--sheet",
}  # fmt: skip
_FIELDS = set(_OPTIONS)


def form_of(options: Mapping[str, Any]) -> Form:
    """Returns the format that the options describe.

    Raises:
        UsageError: an option does not exist, or its value is invalid.
    """
    names = UploadOptions.__annotations__
    unknown = next((name for name in options if name not in names), None)
    if unknown is not None:
        raise UsageError(f'upload() has no argument "{unknown}".{did_you_mean(unknown, names)}')
    given = {name: value for name, value in options.items() if value is not None}
    delimiter = given.get("delimiter")
    quote = str(given.get("quote", '"'))
    form = Form(
        dates=given.get("date_format"),
        nulls=tuple(dict.fromkeys(texts(given.get("nulls")))),
        thousands=given.get("thousands"),
        decimal=str(given.get("decimal", ".")),
        delimiter=_DELIMITERS.get(delimiter, delimiter) if delimiter is not None else None,
        quote=quote,
        escape=str(given.get("escape", quote)),
        header=given.get("header"),
        skip=int(given.get("skip", 0)),
        encoding=given.get("encoding"),
        sheet=given.get("sheet"),
    )
    one = {"--thousands": form.thousands, "--decimal": form.decimal, "--quote": form.quote, "--escape": form.escape}
    for option, mark in one.items():
        if (mark is not None and len(mark) > 1) or (not mark and option == "--decimal"):
            raise UsageError(f'{option} is one character, not "{mark}".')
    if form.thousands is not None and form.thousands == form.decimal:
        raise UsageError(f'"{form.decimal}" cannot stand both between thousands and before the fraction.')
    if delimiter is not None and delimiter.isalnum() and len(delimiter) > 1 and delimiter not in _DELIMITERS:
        hint = did_you_mean(delimiter, ("tab", "none", "space"))
        raise UsageError(f'--delimiter is a mark such as ";", or tab, space or none, not "{delimiter}".{hint}')
    if form.dates is not None and not re.search("%[A-Za-z-]", form.dates):
        hint = _DATES.sub(lambda letters: f"%{'Y' if len(letters[0]) == 4 else letters[0][0].lower()}", form.dates)
        hint = f" Did you mean {hint}?" if hint != form.dates else ""
        raise UsageError(f'--dates is a format such as %d.%m.%Y, not "{form.dates}".{hint}')
    if form.skip < 0:
        raise UsageError("--skip is a count of lines, 0 or more.")
    return form

"""CSV files as a relation of text: each line is a row, or is counted otherwise.

DuckDB's own detection skips lines before the first line with the most columns. Here the first line decides, and
DuckDB reads the files with fixed options.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from ducklake_lab.errors import CsvLineError, DataFileError, SqlError, UsageError
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.units import counted
from ducklake_lab.session.uploads.form import Form
from ducklake_lab.session.uploads.guessing import Ask, Guess, guess
from ducklake_lab.session.uploads.texts import Text, breaks_in, line_of_row, records, start_of

_DELIMITERS = (",", "\t", ";", "|")
#: The delimiter for a single column: a character that no text contains.
_NONE = "\x1f"
_SAMPLE = 200
_SHOWN = 60
_SPOKEN = {"\t": "tab", _NONE: "none", " ": "space"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a file, from its first lines.

    Attributes:
        first: the values of its first line that is not skipped.
        before: number of lines before that one.
        size: number of lines in that record.
    """

    delimiter: str
    first: tuple[str, ...]
    before: int
    size: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of lines by their use; the later ones add up to the first."""

    lines: int
    left_out: int
    header: int
    rows: int
    within: int
    blank: int

    def __str__(self) -> str:
        parts = [
            (self.left_out, "left out by --skip"),
            (self.header, "of the header" if self.header == 1 else "of headers"),
            (self.rows, "row" if self.rows == 1 else "rows"),
            (self.within, "more within quoted values"),
            (self.blank, "blank"),
        ]
        shown = ", ".join(f"{number:,} {what}" for number, what in parts if number or what == "rows")
        return f"{counted(self.lines, 'line')}: {shown}"


class CsvFiles:
    """CSV files with the same columns.

    Attributes:
        names: the column names in the rows.
        headers: the headers of the columns; None without a header.
        guesses: the type of each column.
        counts: the counts over all lines.
    """

    def __init__(self, ask: Ask, texts: Sequence[Text], form: Form) -> None:
        self._ask, self._texts, self._form = ask, texts, form
        first = _layout(texts[0], form)
        self._width = len(first.first)
        self._layouts = [first]
        self._orders = [tuple(range(self._width))]
        self._header = bool(form.header)
        guesses = None
        if form.header is None:
            # from the first file alone, which decides how the others are read
            self._header = True
            guesses = guess(ask, self._relation(slice(1)), self.columns, form)
            self._header = self._has_header(first, guesses)
        self.headers: list[str | None] = [None] * self._width
        if self._header:
            self.headers = list(first.first)
        self.names = unique_names(self.headers)
        for text in texts[1:]:
            self._add(text, first)
        if guesses is None or not self._header or len(texts) > 1:
            guesses = guess(ask, self.relation, self.columns, form)
        self.guesses = guesses
        self.counts = self._counted()

    @property
    def has_header(self) -> bool:
        return self._header

    @property
    def delimiter(self) -> str:
        return _spoken(self._layouts[0].delimiter)

    @property
    def columns(self) -> list[str]:
        """The column names in `relation`."""
        return [f"c{at}" for at in range(self._width)]

    @property
    def relation(self) -> str:
        """SQL after FROM: the rows of all files as text."""
        return self._relation(slice(None))

    def _relation(self, which: slice) -> str:
        groups: dict[tuple[int, tuple[int, ...]], list[str]] = {}
        for text, layout, order in zip(self._texts[which], self._layouts[which], self._orders[which], strict=True):
            groups.setdefault((layout.before, order), []).append(text.path)
        parts = [self._read(paths, before, order) for (before, order), paths in groups.items()]
        if len(parts) == 1:
            return parts[0]
        selected = ", ".join(self.columns)
        return f"({' UNION ALL '.join(f'SELECT {selected} FROM {part}' for part in parts)})"

    def _read(self, paths: Sequence[str], before: int, order: Sequence[int]) -> str:
        # these are file names, even with pattern characters in them
        files = ", ".join(quote_text(glob.escape(path)) for path in paths)
        nulls = ", ".join(map(quote_text, ("", *self._form.nulls)))
        options = {
            "auto_detect": "false",
            "columns": f"{{{', '.join(f'c{at}: {_VARCHAR}' for at in order)}}}",
            "delim": quote_text(self._layouts[0].delimiter),
            "quote": quote_text(self._form.quote),
            "escape": quote_text(self._form.escape),
            "header": str(self._header).lower(),
            "skip": str(before),
            "nullstr": f"[{nulls}]",
            "comment": "''",
            "strict_mode": "true",
            "null_padding": "false",
            "ignore_errors": "false",
        }
        return f"read_csv([{files}], {', '.join(f'{name} => {value}' for name, value in options.items())})"

    def _has_header(self, first: Layout, rest: Sequence[Guess]) -> bool:
        """Returns whether the first line has names: its values do not fit the later types, or all lines are text."""
        values = [value if value not in ("", *self._form.nulls) else None for value in first.first]
        own = self._families(values)
        typed = [at for at, column in enumerate(rest) if column.filled and column.family != "VARCHAR"]
        if not any(column.filled for column in rest):
            return all(family == "VARCHAR" for family in own if family is not None) and any(values)
        if not typed:
            return any(value is not None for value in values)
        return any(own[at] != rest[at].family if own[at] is not None else not rest[at].gaps for at in typed)

    def _families(self, values: Sequence[str | None]) -> list[str | None]:
        row = ", ".join(f"{quote_text(value)}::VARCHAR AS c{at}" for at, value in enumerate(values))
        guesses = guess(self._ask, f"(SELECT {row})", self.columns, self._form)
        return [one.family if value is not None else None for value, one in zip(values, guesses, strict=True)]

    def _add(self, text: Text, first: Layout) -> None:
        """Adds a file with the layout of the first one.

        Raises:
            SqlError: its layout differs.
        """
        layout = _layout(text, self._form, first.delimiter)
        beginning = f"{text.name} differs from {self._texts[0].name}"
        if self._header:
            names = [name.casefold() for name in unique_names(list(layout.first))]
            wanted = [name.casefold() for name in self.names]
            if sorted(names) == sorted(wanted):
                self._layouts.append(layout)
                self._orders.append(tuple(wanted.index(name) for name in names))
                return
            other = next(
                (
                    mark
                    for mark in _DELIMITERS
                    if {n.casefold() for n in unique_names(list(_layout(text, self._form, mark).first))} == set(wanted)
                ),
                None,
            )
            if other is not None:
                raise SqlError(
                    f'{beginning}: its columns are separated by "{_spoken(other)}", and not by "{self.delimiter}"; '
                    "upload them one by one."
                )
            missing = [name for name in self.names if name.casefold() not in names]
            more = [name for name in unique_names(list(layout.first)) if name.casefold() not in wanted]
            parts = [f"it lacks {_listed(missing)}"] if missing else []
            parts += [f"it has {_listed(more)}"] if more else []
            begins = f' Line {layout.before + 1:,}, "{_shown(layout, text)}", is read as its header.'
            raise SqlError(f"{beginning}: {', and '.join(parts)}.{begins}")
        if len(layout.first) != self._width:
            raise SqlError(
                f'{beginning}: line {layout.before + 1:,} has {counted(len(layout.first), "column")} by "{self.delimiter}", '
                f"and not {self._width:,}."
            )
        if self._form.header is None:
            alone = guess(self._ask, self._relation(slice(1)), self.columns, self._form)
            if any(one.family != "VARCHAR" for one in alone) and self._has_header(layout, alone):
                raise SqlError(
                    f'{beginning}, which has no header: line {layout.before + 1:,} is "{_shown(layout, text)}". '
                    "If that is a row, add --no-header."
                )
        self._layouts.append(layout)
        self._orders.append(self._orders[0])

    def _counted(self) -> Counts:
        """Counts all lines.

        Raises:
            DataFileError: a line is neither a row nor any other counted kind.
        """
        feed, back = "chr(10)", "chr(13)"
        plain = f"replace(replace(v, {back} || {feed}, {feed}), {back}, {feed})"
        columns = ", ".join(self.columns)
        ((within, inner),) = self._ask(
            f"SELECT coalesce(sum(length(w) - length(replace(w, {feed}, ''))), 0), "
            f"coalesce(sum(length(w) - length(regexp_replace(w, '\\n\\n+', {feed}, 'g'))), 0) FROM (SELECT {plain} AS w "
            f"FROM (SELECT unnest([{columns}]) AS v FROM {self.relation}) "
            f"WHERE contains(v, {feed}) OR contains(v, {back}))"
        )
        ((rows,),) = self._ask(f"SELECT count(*) FROM {self.relation}")
        left_out = self._form.skip * len(self._texts)
        header = sum(layout.size for layout in self._layouts) if self._header else 0
        leading = sum(layout.before for layout in self._layouts) - left_out
        lines = sum(text.lines for text in self._texts)
        if self._width == 1:
            # with one column, an empty line is a row
            blank = leading
        else:
            in_headers = sum(breaks_in(value)[1] for at in self._layouts for value in at.first) if self._header else 0
            blank = sum(text.blank for text in self._texts) - int(inner) - in_headers
        counts = Counts(lines, left_out, header, int(rows), int(within), blank)
        missing = lines - (left_out + header + counts.rows + counts.within + blank)
        if missing:
            name = self._texts[0].name if len(self._texts) == 1 else "the files"
            raise DataFileError(
                f"Of {lines:,} lines of {name}, {abs(missing):,} are neither rows nor anything else that is known; "
                "say how quotes are written by --quote and --escape."
            )
        return counts

    def first_misfit(self, misfits: str, value: str) -> tuple[str, int, list[str]] | None:
        """Returns file, line and computed texts of the first row that fulfils a condition; None without one.

        Args:
            misfits: a condition on the columns of `relation`.
            value: SQL of a list of texts to compute.
        """
        for at, text in enumerate(self._texts):
            relation = self._relation(slice(at, at + 1))
            rows = self._ask(
                f"SELECT n, {value} FROM (SELECT row_number() OVER () AS n, * FROM {relation}) WHERE {misfits} ORDER BY n LIMIT 1"
            )
            if rows:
                layout = self._layouts[at]
                line = line_of_row(
                    text.path, layout.delimiter, self._form, rows[0][0] + self._header,
                    skip=layout.before, one_column=self._width == 1,
                )  # fmt: skip
                return text.name, line, rows[0][1]
        return None


_VARCHAR = "'VARCHAR'"


def _layout(text: Text, form: Form, delimiter: str | None = None) -> Layout:
    """Detects the layout of a file from its first lines.

    Raises:
        SqlError: its first line has one column, but the lines after a title have more.
    """
    lines = start_of(text.path, form.skip)
    given = form.delimiter if delimiter is None else delimiter
    marks = [given or _NONE] if given is not None else list(_DELIMITERS)
    samples = {mark: _sample(lines, mark, form) for mark in marks}
    if not samples[marks[0]]:
        raise UsageError(f"{text.name} has only empty lines at its beginning.")

    def fitness(mark: str) -> tuple[float, int]:
        widths = [len(values) for _, _, values in samples[mark]]
        if widths[0] == 1:
            return (0, 0)
        return sum(width == widths[0] for width in widths) / len(widths), widths[0]

    best = max(marks, key=fitness)
    if len(marks) > 1 and fitness(best) == (0, 0):
        _refuse_title(text.name, form, samples)
        best = _NONE
        samples[best] = _sample(lines, best, form)
    line, size, values = samples[best][0]
    return Layout(best, tuple(values), form.skip + line - 1, size)


def _sample(lines: Sequence[str], delimiter: str, form: Form) -> list[tuple[int, int, list[str]]]:
    """Returns the first records, each with the number of its first line and its number of lines."""

    def sized() -> Iterator[tuple[int, int, list[str]]]:
        for first, values in records(lines, delimiter, form):
            if values:
                yield first, 1 + sum(breaks_in(value)[0] for value in values), values

    return list(islice(sized(), _SAMPLE))


def _refuse_title(name: str, form: Form, samples: dict[str, list[tuple[int, int, list[str]]]]) -> None:
    """Refuses a file whose columns begin below a title line that no option skips."""
    for mark, lines in samples.items():
        at = next((at for at, (_, _, values) in enumerate(lines) if len(values) > 1), None)
        if at is None or len(lines) - at < 2 or len({len(values) for _, _, values in lines[at:]}) > 1:
            continue
        line = lines[at][0] + form.skip
        raise SqlError(
            f'Line {line:,} of {name} has {counted(len(lines[at][2]), "column")} by "{_spoken(mark)}", and the lines before it one. '
            f"If the table begins there, add --skip {line - 1}; if each line is one value, add --delimiter none."
        )


@contextmanager
def saying_lines(texts: Sequence[Text]) -> Iterator[None]:
    """Explains a line that DuckDB cannot read, with the file's readable name.

    Raises:
        SqlError: such a line exists.
    """
    try:
        yield
    except CsvLineError as error:
        said = str(error)
        text = next((text for text in texts if text.path in said), texts[0])
        if len(text.ends) > 1:
            shown = " and ".join(sorted(end.replace("\r", "\\r").replace("\n", "\\n") for end in text.ends))
            do = f"Its lines end in {shown}; let all end alike."
        elif "quote" in said:
            do = "Mend it, or say how quotes are written by --quote and --escape."
        else:
            left = f"CREATE TABLE … AS FROM read_csv({quote_text(text.name)}, ignore_errors => true)"
            begin = "begin further down by --skip, or " if "more than" in said else ""
            do = f"Mend it, or {begin}leave such lines out: {left}."
        raise SqlError(f"{said.replace(text.path, text.name)} {do}") from None


def unique_names(headers: Sequence[str | None]) -> list[str]:
    """Returns column names from headers by DuckDB's rules: trimmed, and numbered if empty or duplicate."""
    taken: set[str] = set()
    names = []
    for at, header in enumerate(headers):
        plain = (header or "").strip() or f"column{at}"
        name, number = plain, 0
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        names.append(name)
    return names


def _spoken(delimiter: str) -> str:
    return _SPOKEN.get(delimiter, delimiter)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quote_identifier, names))


def _shown(layout: Layout, text: Text) -> str:
    line = start_of(text.path, layout.before)[0].rstrip("\r\n")
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"

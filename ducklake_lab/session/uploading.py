"""Files that become rows of a table; what is guessed of them is shown before anything is written."""

from __future__ import annotations

import glob
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal

from ducklake_lab.errors import (
    BindError,
    CsvLineError,
    EntryExistsError,
    SqlError,
    UsageError,
    did_you_mean,
)
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import KEYWORDS, quote_identifier, quote_text, quoted_path
from ducklake_lab.model.units import size
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.uploaded_files import downloaded, paths_of, reader_of, sheet, shown_source, stem
from ducklake_lab.storage import is_local

UploadMode = Literal["create", "append", "replace"]

#: Under which SQL reads the rows of an Excel file.
_SHEET = "uploaded_sheet"
#: Whole numbers of more digits than DOUBLE keeps.
_LONG = r"\s*[+-]?[0-9]{16,}\s*"
_ISO_DATE = "%Y-%m-%d"
#: Texts that files have for NULL.
_NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "nan", "-", "?")
_NUMBER = r"[+-]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(,[0-9]{3})+)([.][0-9]+)?"
_FIRST = 1000
_EXAMPLES = 100
_EXAMPLE_CHARACTERS = 60

#: Runs SQL, with DataFrames by name; gives a result.
Run = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the files: its name there and in the table, its type, and why it has this one."""

    source: str
    name: str
    type: str
    note: str = ""


class Upload(Listing):
    """What files would become; nothing is written before `apply`.

    Attributes:
        table: the name of the table for SQL.
        query: what reads the files.
        mode: `create`, `append` or `replace`.
        files: the paths that are read.
    """

    def __init__(
        self,
        table: str,
        name: str,
        source: str,
        query: str,
        mode: UploadMode,
        files: Sequence[str],
        run: Run,
        rows: Sequence[Sequence[Any]],
        note: str,
        downloads: TemporaryDirectory[str] | None,
    ) -> None:
        columns = ("in the file", "column", "type", "example", "note")
        shown = len(columns) if any(row[-1] for row in rows) else len(columns) - 1
        title = f"{source} → {name}"
        super().__init__(title, columns[:shown], [row[:shown] for row in rows], noun="column", note=note)
        self.table = table
        self.query = query
        self.mode = mode
        self.files = tuple(files)
        self._name = name
        # others need not know the folders of this machine
        self._source = PurePosixPath(source.replace("\\", "/")).name
        self._run = run
        # deleted with this
        self._downloads = downloads

    def apply(self, message: str | None = None) -> Listing:
        """Writes the rows, as one snapshot; gives their count.

        Args:
            message: of the commit; names the source by default.
        """
        begin = {
            "create": f"CREATE TABLE {self.table} AS",
            "replace": f"CREATE OR REPLACE TABLE {self.table} AS",
            "append": f"INSERT INTO {self.table} BY NAME",
        }[self.mode]
        ((count,),) = self._run(f"{begin} {self.query}", message=message or f"upload {self._source}").fetchall()
        return Listing("", ("table", "rows"), ((self._name, count),), noun="table", note="written")


def csv_form(dates: str | None, nulls: Sequence[str], thousands: str | None) -> dict[str, str]:
    """The options of DuckDB's reader of CSV files that say how values are written, as SQL by name."""
    found = {"dateformat": dates, "thousands": thousands}
    form = {name: quote_text(value) for name, value in found.items() if value is not None}
    if nulls:
        form["nullstr"] = f"[{', '.join(map(quote_text, dict.fromkeys(('', *nulls))))}]"
    return form


def upload(
    lakes: Lakes,
    run: Run,
    source: str,
    table: str | None,
    mode: UploadMode,
    types: Mapping[str, str] | None,
    form: Mapping[str, str],
    *,
    clean_names: bool,
) -> Upload:
    """What the files of a source would become; see `Session.upload`.

    Args:
        form: of `csv_form`.
    """
    if mode not in ("create", "append", "replace"):
        raise UsageError(f'"{mode}" is not a way to upload; use create, append or replace.')
    kept = None
    if re.match(r"https?://", source):
        kept = TemporaryDirectory(prefix="ducklake-lab-")
        paths = [downloaded(source, Path(kept.name))]
    else:
        paths = paths_of(source)
    reader = reader_of(source, paths)
    place = lakes.parse(table or quote_identifier(_clean(stem(paths[0] if len(paths) == 1 else source), set())))
    target = place.find()
    name = place.name
    if target is not None and mode == "create":
        raise EntryExistsError(f"The table {name} exists; append to it (--append), or replace it (--replace).")
    if target is None and mode == "append":
        names = [entry.name for entry in place.state.tables.values()]
        raise BindError(f"There is no table {name} to append to.{did_you_mean(name, names)}")

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with _advice(paths[0]):
            rows: list[tuple[Any, ...]] = execute(sql).fetchall()
        return rows

    sheets = {_SHEET: sheet(paths)} if reader is None else {}

    def execute(sql: str, **options: Any) -> Any:
        with _advice(paths[0]):
            return run(sql, **options, **sheets)

    reading = _Reading(ask, paths, reader, form, clean=clean_names)
    columns = reading.columns(target if mode == "append" else None, types or {})
    query = reading.query(columns)
    examples = ask(f"{query} LIMIT {_EXAMPLES}")
    return Upload(
        quoted_path(place.lake.alias, place.schema, place.name),
        name,
        shown_source(source),
        query,
        mode,
        paths,
        execute,
        _rows(columns, examples),
        _note(paths, columns, mode, target, reading.skipped, clean_names=clean_names),
        kept,
    )


@contextmanager
def _advice(file: str) -> Iterator[None]:
    """Says what to do about a line of a CSV file that cannot be read.

    Raises:
        SqlError: there is such a line.
    """
    try:
        yield
    except CsvLineError as error:
        if error.value is None:
            do = f"Mend it, or leave such lines out: CREATE TABLE … AS FROM read_csv({quote_text(file)}, ignore_errors => true)."
        else:
            do = f"If this means NULL, add --null {shlex.quote(error.value)}; else give the column the type VARCHAR."
        raise SqlError(f"{error} {do}") from None


class _Reading:
    """Files of one kind, read by SQL."""

    def __init__(
        self,
        ask: Callable[[str], list[tuple[Any, ...]]],
        paths: Sequence[str],
        reader: str | None,
        form: Mapping[str, str],
        *,
        clean: bool,
    ) -> None:
        self._ask = ask
        self._reader = reader
        self._clean = clean
        # these are files, whatever marks of patterns are in their names
        self._files = [quote_text(glob.escape(path) if is_local(path) else path) for path in paths]
        self._options = ["union_by_name => true"] if len(paths) > 1 else []
        self._types: dict[str, str] = {}
        self._dates: str | None = None
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
        ((delimiter, has_header, self.skipped, self._dates, columns),) = self._ask(
            f"SELECT Delimiter, HasHeader, SkipRows, DateFormat, [c.name FOR c IN Columns] {asked})"
        )
        if len(columns) == 1:
            self._refuse_broken(file, asked, columns[0])
        found = [f"delim => {quote_text(delimiter)}", f"header => {has_header}", f"skip => {self.skipped}", *given]
        if self._dates is not None and "dateformat" not in form:
            found.append(f"dateformat => {quote_text(self._dates)}")
        return found

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
            return _SHEET
        options = list(self._options)
        if self._types and self._reader == "read_csv":
            options.append(
                f"types => {{{', '.join(f'{quote_text(k)}: {quote_text(v)}' for k, v in self._types.items())}}}"
            )
        files = f"[{', '.join(self._files)}]"
        return f"{self._reader}({', '.join([files, *options])})"

    def columns(self, target: Table | None, types: Mapping[str, str]) -> list[_Column]:
        """The columns, of the types of a table that they are appended to, of those asked for, or of those guessed.

        Raises:
            BindError: the table, or the files, have no such column.
        """
        found = [(str(name), str(kind)) for name, kind, *_ in self._ask(f"DESCRIBE FROM {self._source()}")]
        taken: set[str] = set()
        names = {name: _clean(name, taken) if self._clean else name for name, _ in found}
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
        self._types = wanted
        return [_Column(name, names[name], wanted.get(name, kind), notes.get(name, "")) for name, kind in found]

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

    def query(self, columns: Sequence[_Column]) -> str:
        """What gives the columns under their new names."""
        parts = []
        for column in columns:
            value = quote_identifier(column.source)
            if column.source in self._types and self._reader != "read_csv":
                value = f"CAST({value} AS {column.type})"
            parts.append(f"{value} AS {quote_identifier(column.name)}")
        return f"SELECT {', '.join(parts)} FROM {self._source()}"


def _rows(columns: Sequence[_Column], examples: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    found = []
    for at, column in enumerate(columns):
        value = next((_example(row[at]) for row in examples if row[at] is not None), None)
        shown = value if value is None or len(value) <= _EXAMPLE_CHARACTERS else f"{value[:_EXAMPLE_CHARACTERS]}…"
        found.append((column.source, column.name, column.type, shown, column.note))
    return found


def _example(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mark(found: str) -> str:
    """A quote or escape that DuckDB found in a file, as an option; it writes "(empty)" for none."""
    return quote_text(found if len(found) == 1 else "")


def _note(
    paths: Sequence[str],
    columns: Sequence[_Column],
    mode: UploadMode,
    target: Table | None,
    skipped: int,
    *,
    clean_names: bool,
) -> str:
    local = [path for path in paths if is_local(path)]
    parts = [f"{len(paths)} files" if len(paths) > 1 else "1 file"]
    if local:
        parts[0] += f", {size(sum(Path(path).stat().st_size for path in local))}"
    if skipped:
        parts.append(f"the first {skipped:,} line{'' if skipped == 1 else 's'} left out")
    if target is not None and mode == "append":
        given = {column.name.casefold() for column in columns}
        missing = [column.name for column in target.columns if column.name.casefold() not in given]
        parts += [f"{', '.join(missing)} get their defaults"] if missing else []
    messy = [column.name for column in columns if not _is_plain(column.name)]
    if messy and not clean_names and mode != "append":
        taken: set[str] = set()
        example = next(_clean(c.name, taken) for c in columns if c.name == messy[0])
        parts.append(f"{len(messy)} of the names need quotes; --clean-names makes {messy[0]} {example}")
    return " · ".join([*parts, "nothing is written yet: add --apply"])


def _is_plain(name: str) -> bool:
    return name.isidentifier() and name.lower() not in KEYWORDS


def _clean(name: str, taken: set[str]) -> str:
    """A name that needs no quotes, in lower case, and that is not taken yet."""
    letters = unicodedata.normalize("NFKC", name).lower()
    plain = re.sub(r"_+", "_", re.sub(r"\W", "_", letters)).strip("_") or "column"
    plain = plain if _is_plain(plain) else f"_{plain}"
    found, number = plain, 1
    while found in taken:
        number += 1
        found = f"{plain}_{number}"
    taken.add(found)
    return found

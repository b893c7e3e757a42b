"""Files that become rows of a table; what is guessed of them is shown before anything is written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from ducklake_lab.model.quoting import quote_identifier, quote_text, quoted_path
from ducklake_lab.model.units import size
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.uploaded_columns import SHEET, Reading, UploadedColumn, clean_name, is_plain
from ducklake_lab.session.uploaded_files import downloaded, paths_of, reader_of, sheet, shown_source, stem
from ducklake_lab.storage import is_local

UploadMode = Literal["create", "append", "replace"]

_EXAMPLES = 100
_EXAMPLE_CHARACTERS = 60

#: Runs SQL, with DataFrames by name; gives a result.
Run = Callable[..., Any]


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
    place = lakes.parse(table or quote_identifier(clean_name(stem(paths[0] if len(paths) == 1 else source), set())))
    target = place.find()
    name = place.name
    if target is not None and mode == "create":
        raise EntryExistsError(f"The table {name} exists; append to it (--append), or replace it (--replace).")
    if target is None and mode == "append":
        names = [known for _, known in place.state.tables.names.values()]
        raise BindError(f"There is no table {name} to append to.{did_you_mean(name, names)}")

    def ask(sql: str) -> list[tuple[Any, ...]]:
        with _advice(paths[0]):
            rows: list[tuple[Any, ...]] = execute(sql).fetchall()
        return rows

    rows, headers = sheet(paths) if reader is None else (None, {})
    sheets = {} if rows is None else {SHEET: rows}

    def execute(sql: str, **options: Any) -> Any:
        with _advice(paths[0]):
            return run(sql, **options, **sheets)

    reading = Reading(ask, paths, reader, form, headers, clean=clean_names)
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
        _note(paths, columns, mode, target, reading, clean_names=clean_names),
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


def _rows(columns: Sequence[UploadedColumn], examples: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    found = []
    for at, column in enumerate(columns):
        value = next((_example(row[at]) for row in examples if row[at] is not None), None)
        shown = value if value is None or len(value) <= _EXAMPLE_CHARACTERS else f"{value[:_EXAMPLE_CHARACTERS]}…"
        header = f"column {at + 1}" if column.header is None else column.header
        found.append((header, column.name, column.type, shown, column.note))
    return found


def _example(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _note(
    paths: Sequence[str],
    columns: Sequence[UploadedColumn],
    mode: UploadMode,
    target: Table | None,
    reading: Reading,
    *,
    clean_names: bool,
) -> str:
    local = [path for path in paths if is_local(path)]
    parts = [f"{len(paths)} files" if len(paths) > 1 else "1 file"]
    if local:
        parts[0] += f", {size(sum(Path(path).stat().st_size for path in local))}"
    if skipped := reading.skipped:
        parts.append(f"the first {skipped:,} line{'' if skipped == 1 else 's'} left out")
    parts += ["no header"] if any(column.header is None for column in columns) else []
    parts += [reading.warning] if reading.warning else []
    if target is not None and mode == "append":
        given = {column.name.casefold() for column in columns}
        missing = [column.name for column in target.columns if column.name.casefold() not in given]
        parts += [f"{', '.join(missing)} get their defaults"] if missing else []
    messy = [column.name for column in columns if not is_plain(column.name)]
    if messy and not clean_names and mode != "append":
        taken: set[str] = set()
        example = next(clean_name(c.name, taken) for c in columns if c.name == messy[0])
        parts.append(f"{len(messy)} of the names need quotes; --clean-names makes {messy[0]} {example}")
    return " · ".join([*parts, "nothing is written yet: add --apply"])

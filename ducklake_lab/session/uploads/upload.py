"""Uploads files as rows of a table; shows all guesses before it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal

from ducklake_lab.errors import BindError, EntryExistsError, UsageError, did_you_mean
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_identifier, quoted_path
from ducklake_lab.model.units import size
from ducklake_lab.session.listings import Listing
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.uploads.columns import Rows, UploadedColumn, check, chosen, clean_name, is_plain, query
from ducklake_lab.session.uploads.files import File, files_of, reader_of, shown_source, stem
from ducklake_lab.session.uploads.form import form_of
from ducklake_lab.session.uploads.kinds import SHEET, CsvRows, ExcelRows, JsonRows
from ducklake_lab.session.uploads.parquet_files import ParquetRows

UploadMode = Literal["create", "append", "replace"]

_EXAMPLES = 100
_EXAMPLE_CHARACTERS = 60

#: Runs SQL, with DataFrames by name; returns a result.
Run = Callable[..., Any]


class Upload(Listing):
    """A prepared upload of files; nothing is written before `apply`.

    Attributes:
        table: the table's name in SQL.
        query: the query that reads the files.
        mode: `create`, `append` or `replace`.
        files: the paths of the files.
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
        kept: TemporaryDirectory[str],
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
        # other users need not see the local folders
        self._source = PurePosixPath(source.replace("\\", "/")).name
        self._run = run
        # copies of files, deleted together with this object
        self._kept = kept

    def apply(self, message: str | None = None) -> Listing:
        """Writes the rows as one snapshot; returns their count.

        Args:
            message: the commit message; names the source by default.
        """
        begin = {
            "create": f"CREATE TABLE {self.table} AS",
            "replace": f"CREATE OR REPLACE TABLE {self.table} AS",
            "append": f"INSERT INTO {self.table} BY NAME",
        }[self.mode]
        ((count,),) = self._run(f"{begin} {self.query}", message=message or f"upload {self._source}").fetchall()
        return Listing("", ("table", "rows"), ((self._name, count),), noun="table", note="written")


def upload(
    lakes: Lakes,
    run: Run,
    source: str,
    table: str | None,
    mode: UploadMode,
    options: Mapping[str, Any],
) -> Upload:
    """Prepares the upload of a source's files; see `Session.upload`."""
    if mode not in ("create", "append", "replace"):
        raise UsageError(f'"{mode}" is not a way to upload; use create, append or replace.')
    form = form_of(options)
    types: Mapping[str, str] = options.get("types") or {}
    copies = TemporaryDirectory(prefix="ducklake-lab-")
    files = files_of(source, Path(copies.name))
    reader = reader_of(source, files)

    def keywords() -> frozenset[str]:
        sql = (
            "SELECT keyword_name FROM duckdb_keywords() GROUP BY keyword_name "
            "HAVING bool_and(keyword_category IN ('reserved', 'type_function'))"
        )
        return frozenset(str(word) for (word,) in run(sql).fetchall())

    words = keywords()
    named = files[0].name if len(files) == 1 else source
    written = table or quote_identifier(clean_name(stem(named), set(), words))
    entry = lakes.parse(written, sought="relation" if mode == "append" else "new")
    target = entry.find()
    name = entry.name
    if target is not None and mode == "create":
        raise EntryExistsError(f"The table {name} exists; append to it (--append), or replace it (--replace).")
    if target is None and mode == "append":
        names = [other for _, other in entry.state.tables.names.values()]
        raise BindError(f"There is no table {name} to append to.{did_you_mean(name, names)}")
    sheets: dict[str, Any] = {}

    def execute(sql: str, **more: Any) -> Any:
        return run(sql, **more, **sheets)

    def ask(sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = execute(sql).fetchall()
        return rows

    rows: Rows
    if reader == "read_csv":
        rows = CsvRows(ask, files, form, Path(copies.name))
    elif reader is None:
        excel = ExcelRows(files, form)
        sheets[SHEET] = excel.table
        excel.guess(ask)
        rows = excel
    elif reader == "read_json":
        rows = JsonRows(ask, files, form, Path(copies.name))
    else:
        rows = ParquetRows(ask, files, form, exact=not options.get("round"))
    is_clean = bool(options.get("clean_names"))
    into = target if mode == "append" else None
    columns = chosen(rows, into, types, clean=is_clean, words=words)
    given = [
        one
        for one, guessed in zip(columns, rows.columns, strict=True)
        if into is not None or one.type != guessed.type or len(rows.parts) > 1
    ]
    check(ask, rows, given, exact=not options.get("round"), appends=into is not None)
    sql = query(rows, columns)
    return Upload(
        quoted_path(entry.lake.alias, entry.schema, entry.name),
        name,
        shown_source(source),
        sql,
        mode,
        [file.name for file in files],
        execute,
        _rows(columns, ask(f"{sql} LIMIT {_EXAMPLES}")),
        _note(files, columns, into, rows, words, clean_names=is_clean),
        copies,
    )


def _rows(columns: Sequence[UploadedColumn], examples: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    rows = []
    for at, column in enumerate(columns):
        value = next((_example(row[at]) for row in examples if row[at] is not None), None)
        shown = value if value is None or len(value) <= _EXAMPLE_CHARACTERS else f"{value[:_EXAMPLE_CHARACTERS]}…"
        header = f"column {at + 1}" if column.header is None else column.header
        rows.append((header, column.name, column.type, shown, column.note))
    return rows


def _example(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _note(
    files: Sequence[File],
    columns: Sequence[UploadedColumn],
    target: Table | None,
    rows: Rows,
    words: frozenset[str],
    *,
    clean_names: bool,
) -> str:
    count = f"{len(files)} files" if len(files) > 1 else "1 file"
    parts = [f"{count}, {size(sum(Path(file.path).stat().st_size for file in files))}", rows.counts, *rows.said]
    if target is not None:
        given = {column.name.casefold() for column in columns}
        missing = [column.name for column in target.columns if column.name.casefold() not in given]
        parts += [f"{', '.join(missing)} get their defaults"] if missing else []
    messy = [column.name for column in columns if not is_plain(column.name, words)]
    if messy and not clean_names and target is None:
        taken: set[str] = set()
        example = next(clean_name(c.name, taken, words) for c in columns if c.name == messy[0])
        need = "name needs" if len(messy) == 1 else "names need"
        parts.append(f"{len(messy)} {need} quotes; --clean-names makes {messy[0]} {example}")
    return " · ".join([*parts, "nothing is written yet: add --apply"])

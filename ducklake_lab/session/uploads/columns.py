"""Columns of uploaded files: names, types, and the query that reads them."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ducklake_lab.errors import BindError, SqlError, UsageError, did_you_mean
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import IN_DUCKDB, DataType, flat
from ducklake_lab.session.uploads import fitting
from ducklake_lab.session.uploads.form import Form
from ducklake_lab.session.uploads.guessing import Ask
from ducklake_lab.sql.types import type_or_none

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class UploadedColumn:
    """A column of the uploaded files.

    Attributes:
        source: its name in the relation over the files.
        header: its header in the first file; None without a header.
        name: its name in the table.
        kind: the type of its values in the relation; None if they are text.
        type: its SQL type in the table.
        dates: the format of its dates, if a cast cannot read them.
        note: the reason for its type.
        clash: the reason why no type fits all files; "" if one does.
    """

    source: str
    header: str | None
    name: str
    kind: DataType | None
    type: str
    dates: str | None = None
    note: str = ""
    clash: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """Files with the same column types.

    Attributes:
        relation: SQL after FROM.
        kinds: the type of each column by its source, None for text; columns that the files lack are absent.
    """

    relation: str
    kinds: Mapping[str, DataType | None]


class Rows(Protocol):
    """The rows of uploaded files in any format.

    Attributes:
        parts: the files, grouped by their column types.
        columns: those of the files, with guessed types and the names in the files.
        form: the text format of values.
        counts: a readable count of rows and lines; "" if nothing was counted.
        said: other facts for the user.
    """

    @property
    def parts(self) -> Sequence[Part]: ...
    @property
    def columns(self) -> list[UploadedColumn]: ...
    @property
    def form(self) -> Form: ...
    @property
    def counts(self) -> str: ...
    @property
    def said(self) -> list[str]: ...

    def first_misfit(self, part: Part, misfits: str, value: str) -> tuple[str, list[str]] | None:
        """Returns where a part's first row that fulfils a condition is, and texts computed from it."""


def chosen(
    rows: Rows, target: Table | None, types: Mapping[str, str], *, clean: bool, words: frozenset[str]
) -> list[UploadedColumn]:
    """Returns the columns with the types of the target table, the requested types, or the guessed types.

    Args:
        words: keywords that need quotes as names.

    Raises:
        BindError: the table or the files lack a column, or a type does not exist.
        SqlError: the types of a column in the files have no common type, and no type is requested.
        UsageError: a type is requested for an existing table.
    """
    taken: set[str] = set()
    columns = [
        replace(column, name=clean_name(column.name, taken, words)) if clean else column for column in rows.columns
    ]
    if target is not None:
        if types:
            raise UsageError(f"{target.name} has its types; a type can be given for new tables.")
        return [_in_table(column, target) for column in columns]
    for asked, kind in types.items():
        folded = asked.casefold()
        at = next(
            (at for at, one in enumerate(columns) if folded in (rows.columns[at].name.casefold(), one.name.casefold())),
            None,
        )
        if at is None:
            raise BindError(f'The files have no column "{asked}".{did_you_mean(asked, [one.name for one in columns])}')
        data_type = type_or_none(kind)
        if data_type is None:
            hint = did_you_mean(kind, [*IN_DUCKDB.values(), "TIMESTAMPTZ", "TEXT"])
            raise BindError(f'"{kind}", the type of {asked}, is no type of a lake.{hint}')
        columns[at] = replace(columns[at], type=data_type.sql(), note=_form_note(columns[at]), clash="")
    for one in columns:
        if one.clash:
            raise SqlError(f"{one.clash}; say by --type {shlex.quote(f'{one.name}=TYPE')} which it gets.")
    return columns


def _in_table(column: UploadedColumn, target: Table) -> UploadedColumn:
    wanted = next((one for one in target.columns if one.name.casefold() == column.name.casefold()), None)
    if wanted is None:
        hint = did_you_mean(column.name, [one.name for one in target.columns])
        raise BindError(f'{target.name} has no column "{column.name}", which the files have.{hint}')
    return replace(column, type=wanted.data_type.sql(), note=_form_note(column), clash="")


def _form_note(column: UploadedColumn) -> str:
    """Returns the part of a note on the format of values, without the reason for a guessed type."""
    return column.note if column.dates is not None else ""


def query(rows: Rows, columns: Sequence[UploadedColumn]) -> str:
    """Returns the query for the columns, with their types and names."""
    return " UNION ALL ".join(
        f"SELECT {', '.join(f'{_value(c, part, rows.form)} AS {quote_identifier(c.name)}' for c in columns)} FROM {part.relation}"
        for part in rows.parts
    )


def _value(column: UploadedColumn, part: Part, form: Form) -> str:
    value, target = quote_identifier(column.source), _type(column)
    if column.source not in part.kinds:
        return f"CAST(NULL AS {column.type})"
    kind = part.kinds[column.source]
    if (column.type == "VARCHAR" and kind is None) or target is None or kind == target:
        return value
    return fitting.cast(value, kind, target, form, _dates(column, target))


def _type(column: UploadedColumn) -> DataType | None:
    return type_or_none(column.type)


def _dates(column: UploadedColumn, target: DataType) -> str | None:
    return column.dates if target.name == "date" or target.name.startswith("timestamp") else None


def check(ask: Ask, rows: Rows, columns: Sequence[UploadedColumn], *, exact: bool, appends: bool) -> None:
    """Checks for values that their types cannot hold, or cannot hold without loss.

    Args:
        columns: the columns without guessed types.
        exact: whether to refuse a loss.
        appends: whether the types come from an existing table.

    Raises:
        SqlError: such a value exists; the error names the first.
    """
    for part in rows.parts:
        _check_part(ask, rows, part, columns, exact=exact, appends=appends)


def _check_part(
    ask: Ask, rows: Rows, part: Part, columns: Sequence[UploadedColumn], *, exact: bool, appends: bool
) -> None:
    conditions: list[tuple[UploadedColumn, bool, str]] = []
    for column in columns:
        target = _type(column)
        kind = part.kinds.get(column.source, target)
        if target is None or target == kind or (kind is None and target.name == "varchar"):
            continue
        if kind is not None and fitting.widens(kind, target):
            continue
        value = quote_identifier(column.source)
        given = (value, kind, target, rows.form, _dates(column, target))
        conditions.append((column, True, fitting.reads(*given)))
        if exact and (condition := fitting.fits(*given)) != "true":
            conditions.append((column, False, condition))
    if not conditions:
        return
    misfits = f"NOT ({' AND '.join(condition for _, _, condition in conditions)})"
    if not ask(f"SELECT 1 FROM {part.relation} WHERE {misfits} LIMIT 1"):
        return
    cases = " ".join(
        f"WHEN NOT {condition} THEN ['{at}', {quote_identifier(column.source)}::VARCHAR]"
        for at, (column, _, condition) in enumerate(conditions)
    )
    where, (at, value) = rows.first_misfit(part, misfits, f"CASE {cases} END") or ("A row", ["0", ""])
    column, unread, _ = conditions[int(at)]
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    named = f'"{shown}" in the column "{column.name}"'
    if not unread:
        other = "" if appends else f", or give {column.name} another type by --type"
        raise SqlError(f"{where}: {column.type} would round or cut {named}. Add --round to have that{other}.")
    other = "mend it" if appends else "give the column the type VARCHAR"
    if part.kinds[column.source] is None and not any(character.isdigit() for character in value):
        other = f"if this means NULL, add --null {shlex.quote(value)}; else {other}"
    raise SqlError(f"{where}: {named} is no {column.type}. {other[0].upper()}{other[1:]}.")


def is_plain(name: str, words: frozenset[str]) -> bool:
    """Returns whether SQL accepts a name without quotes."""
    return name.isidentifier() and name.lower() not in words


def clean_name(name: str, taken: set[str], words: frozenset[str]) -> str:
    """Returns an unused name in lower case that needs no quotes."""
    letters = unicodedata.normalize("NFKC", name).lower()
    plain = re.sub(r"_+", "_", re.sub(r"\W", "_", letters)).strip("_") or "_column"
    plain = plain if is_plain(plain, words) else f"_{plain}"
    unused, number = plain, 1
    while unused in taken:
        number += 1
        unused = f"{plain}_{number}"
    taken.add(unused)
    return unused


def type_or_text(kind: str) -> DataType:
    """Returns the type of DuckDB's name for it; VARCHAR for one that no table of a lake has."""
    return type_or_none(kind) or flat("varchar")

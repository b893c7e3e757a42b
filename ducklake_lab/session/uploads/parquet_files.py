"""Parquet files whose columns may differ: each file is read with its own types, then cast without loss."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.errors import DataFileError, SqlError, UnsupportedFeatureError
from ducklake_lab.model.nanoseconds import nanoseconds_beside, nanoseconds_in
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.types import FLOATS, INTEGERS, TIMESTAMPS, DataType, flat
from ducklake_lab.session.uploads.columns import Part, UploadedColumn, type_or_text
from ducklake_lab.session.uploads.files import File
from ducklake_lab.session.uploads.fitting import digits, widens
from ducklake_lab.session.uploads.form import Form
from ducklake_lab.session.uploads.guessing import Ask
from ducklake_lab.session.uploads.parts import misfit_in, rows_counted

_MOST_DIGITS = 38
#: Signed integers; Parquet has none with 128 bits.
_SIGNED = ("int8", "int16", "int32", "int64")
_SHOWN = 40
#: Time types, coarsest first.
_MOMENTS = ("date", "timestamp_s", "timestamp_ms", "timestamp", "timestamp_ns")


class ParquetRows:
    """The rows of Parquet files.

    Args:
        exact: whether to refuse a loss of digits.

    Raises:
        DataFileError: a file is damaged.
        UnsupportedFeatureError: a number has more digits than any type.
        SqlError: a time has digits that its type does not keep.
    """

    def __init__(self, ask: Ask, files: Sequence[File], form: Form, *, exact: bool) -> None:
        form.refuse_for("Parquet")
        self.form = form
        self.said: list[str] = []
        self._ask = ask
        self._groups: list[list[File]] = _alike(files, exact=exact)
        described = [self._described(group) for group in self._groups]
        names = {name.casefold(): name for types in reversed(described) for name in types}
        order = dict.fromkeys(name.casefold() for types in described for name in types)
        self.parts = [Part(_read([file.path for file in group]), {}) for group in self._groups]
        kinds: list[dict[str, DataType | None]] = [{} for _ in self._groups]
        self.columns = [self._column(names[folded], described, kinds) for folded in order]
        self.parts = [Part(part.relation, own) for part, own in zip(self.parts, kinds, strict=True)]
        self.counts = rows_counted(ask, self.parts)

    def _described(self, group: Sequence[File]) -> dict[str, str]:
        return {
            str(name): str(kind)
            for name, kind, *_ in self._ask(f"DESCRIBE FROM {_read([file.path for file in group])}")
        }

    def _column(
        self, name: str, described: Sequence[dict[str, str]], kinds: Sequence[dict[str, DataType | None]]
    ) -> UploadedColumn:
        """Returns a column with the common type of all files; adds its types to those of the files."""
        own = [
            next((kind for other, kind in types.items() if other.casefold() == name.casefold()), None)
            for types in described
        ]
        for at, kind in enumerate(own):
            if kind is not None:
                kinds[at][name] = type_or_text(kind)
        lacking = [file for group, kind in zip(self._groups, own, strict=True) if kind is None for file in group]
        there = [at for at, kind in enumerate(own) if kind is not None]
        shared, clash, empty = self._common(name, [(at, str(own[at])) for at in there])
        for at in empty:
            del kinds[at][name]
        there = [at for at in there if at not in empty]
        note = [f"NULL in {self._shown(lacking)} without it"] if lacking else []
        if len({own[at] for at in there}) > 1 and not clash:
            for kind in dict.fromkeys(own[at] for at in there if own[at] != shared):
                files = [file for at in there if own[at] == kind for file in self._groups[at]]
                shown = str(kind) if len(str(kind)) <= _SHOWN else "other fields"
                note.append(f"{shown} in {self._shown(files)}")
        return UploadedColumn(name, name, name, type_or_text(shared), shared, None, "; ".join(note), clash)

    def _common(self, name: str, own: Sequence[tuple[int, str]]) -> tuple[str, str, set[int]]:
        """Returns the common SQL type, the reason why there is none, and the groups of files without values."""
        first, shared = own[0][0], own[0][1]
        empty: set[int] = set()
        for at, kind in own[1:]:
            if kind == shared:
                continue
            both = common(type_or_text(shared), type_or_text(kind))
            if both is not None:
                shared = both.sql()
            elif self._is_empty(name, at):
                # pandas writes a column without values with the null type
                empty.add(at)
            elif all(self._is_empty(name, before) for before, _ in own if before < at):
                empty |= {before for before, _ in own if before < at}
                first, shared = at, kind
            else:
                one, other = (self._groups[number][0].name for number in (first, at))
                return shared, f'The column "{name}" is {shared} in {one} and {kind} in {other}', empty
        return shared, "", empty

    def _is_empty(self, name: str, at: int) -> bool:
        return not self._ask(
            f"SELECT 1 FROM {self.parts[at].relation} WHERE {quote_identifier(name)} IS NOT NULL LIMIT 1"
        )

    def _shown(self, files: Sequence[File]) -> str:
        if len(files) == 1:
            return PurePath(files[0].name).name
        return f"{len(files):,} of {sum(map(len, self._groups)):,} files"

    def first_misfit(self, part: Part, misfits: str, value: str) -> tuple[str, list[str]] | None:
        group = self._groups[[one.relation for one in self.parts].index(part.relation)]
        literals = [_literal(file.path) for file in group]
        return misfit_in(self._ask, _read_literals, literals, [file.name for file in group], misfits, value)


def common(a: DataType, b: DataType) -> DataType | None:
    """Returns the common type for values of two types; None if their values have different meanings."""
    if widens(a, b):
        return b
    if widens(b, a):
        return a
    if a.name == b.name and a.is_nested:
        return _common_nested(a, b)
    if a.is_numeric and b.is_numeric:
        return _common_number(a, b)
    if a.name in _MOMENTS and b.name in _MOMENTS:
        return max(a, b, key=lambda kind: _MOMENTS.index(kind.name))
    for one, other in ((a, b), (b, a)):
        if one.name == "varchar" and (
            other.is_numeric or other.name in ("boolean", "date", "time", "uuid", "json", "interval", *TIMESTAMPS)
        ):
            return one
    return None


def _common_number(a: DataType, b: DataType) -> DataType | None:
    if a.name in FLOATS or b.name in FLOATS:
        return flat("float64")
    if a.name in INTEGERS and b.name in INTEGERS:
        for name in _SIGNED:
            if widens(a, flat(name)) and widens(b, flat(name)):
                return flat(name)
    (before, after), (other_before, other_after) = digits(a) or (0, 0), digits(b) or (0, 0)
    scale = max(after, other_after)
    return flat(f"decimal({min(max(before, other_before) + scale, _MOST_DIGITS)},{scale})")


def _common_nested(a: DataType, b: DataType) -> DataType | None:
    if a.name != "struct":
        children = [(name, common(one, other)) for (name, one), (_, other) in zip(a.children, b.children, strict=True)]
    else:
        others = {name.casefold(): kind for name, kind in b.children}
        own = {name.casefold() for name, _ in a.children}
        if not own & set(others):
            return None
        children = [
            (name, common(kind, others[name.casefold()]) if name.casefold() in others else kind)
            for name, kind in a.children
        ]
        children += [(name, kind) for name, kind in b.children if name.casefold() not in own]
    typed = tuple((name, kind) for name, kind in children if kind is not None)
    return DataType(a.name, typed) if len(typed) == len(children) else None


def _alike(files: Sequence[File], *, exact: bool) -> list[list[File]]:
    """Groups the files by schema; checks columns with types that DuckDB lacks."""
    groups: dict[str, list[File]] = {}
    for file in files:
        try:
            with pq.ParquetFile(file.path) as parquet:
                _check_types(parquet, file, exact=exact)
                # the first line is the address of an object
                schema = str(parquet.schema).partition("\n")[2]
        except (pa.ArrowException, OSError) as error:
            reason = str(error).strip().partition("\n")[0].replace(file.path, file.name)
            raise DataFileError(f"{file.name} cannot be read as Parquet: {reason}") from None
        groups.setdefault(schema, []).append(file)
    return list(groups.values())


def _check_types(parquet: pq.ParquetFile, file: File, *, exact: bool) -> None:
    """Checks for values that DuckDB would change: wide decimals, and nanoseconds that its types do not keep."""
    for at in range(len(parquet.schema)):
        column = parquet.schema.column(at)
        kind: dict[str, Any] = json.loads(column.logical_type.to_json())
        if kind.get("Type") == "Decimal" and kind["precision"] > _MOST_DIGITS:
            raise UnsupportedFeatureError(
                f'The column "{column.path}" of {file.name} has numbers of {kind["precision"]} digits; '
                f"DECIMAL has {_MOST_DIGITS}. Write them as texts."
            )
        name = _cut_type(column.physical_type, kind)
        if exact and name is not None:
            for value in _cut_values(parquet, file, column.path, is_int96=column.physical_type == "INT96"):
                raise SqlError(
                    f'{file.name}: {name} would cut "{value}" in the column "{column.path}". Add --round to have that.'
                )


def _cut_type(physical: str, logical: dict[str, Any]) -> str | None:
    """Return the type that DuckDB reads a column of nanoseconds in, if it keeps only microseconds; else None."""
    if physical == "INT96":
        return "TIMESTAMP"
    if logical.get("timeUnit") != "nanoseconds":
        return None
    if logical["Type"] == "Time":
        return "TIME"
    return "TIMESTAMP WITH TIME ZONE" if logical["isAdjustedToUTC"] else None


def _cut_values(parquet: pq.ParquetFile, file: File, path: str, *, is_int96: bool) -> Iterator[str]:
    """Yield texts of values with digits below microseconds."""
    if not is_int96:
        for batch in parquet.iter_batches(columns=[path]):
            yield from nanoseconds_in(batch.column(0), lambda _: True)
        return
    # nanoseconds of years beyond 1677 to 2262 have more than 64 bits
    with pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us") as coarse:
        batches = (parquet.iter_batches(columns=[path]), coarse.iter_batches(columns=[path]))
        for fine, micros in zip(*batches, strict=True):
            yield from nanoseconds_beside(fine.column(0), micros.column(0))


def _literal(path: str) -> str:
    # this is a file name, even with pattern characters in it
    return quote_text(glob.escape(path))


def _read(paths: Sequence[str]) -> str:
    return _read_literals([_literal(path) for path in paths])


def _read_literals(literals: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(literals)}])"

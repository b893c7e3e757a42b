"""blame and life: who set the cells of a table's rows, and the changes of one row; functions of this package's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from operator import index
from typing import SupportsIndex

from ducklake_lab.blame.life import LIFE_COLUMNS
from ducklake_lab.blame.lines import BLAME_COLUMNS
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.errors import UsageError
from ducklake_lab.model.snapshot_names import named_snapshot
from ducklake_lab.session.functions.registry import Call, Function

#: The first number beyond all row ids.
_MOST = 1 << 63


@dataclass(frozen=True, slots=True)
class BlameCall:
    """A call of `blame`; None stands for all rows, all columns and the present state."""

    lake: Lake
    schema: str
    table: str
    where: str | None = None
    columns: Sequence[str] | None = None
    at: int | datetime | str | None = None


@dataclass(frozen=True, slots=True)
class LifeCall:
    """A call of `life`; `at` as in `BlameCall`."""

    lake: Lake
    schema: str
    table: str
    row_id: int
    at: int | datetime | str | None = None


def blame_call(
    lake: Lake, schema: str, table: str, where: object, columns: object, at: int | datetime | str | None
) -> BlameCall:
    """Returns a call of `blame` with checked arguments.

    Args:
        columns: a name, or several.

    Raises:
        UsageError: an argument is not.
    """
    if where is not None and not isinstance(where, str):
        raise UsageError(f"where of blame is a condition as text, not {where!r}.")
    listed = [columns] if isinstance(columns, str) else columns
    if listed is not None and not (isinstance(listed, list | tuple) and all(isinstance(one, str) for one in listed)):
        raise UsageError(f"columns of blame is a name or a list of names, not {columns!r}.")
    return BlameCall(lake, schema, table, where, listed, at)


def life_call(lake: Lake, schema: str, table: str, row_id: object, at: int | datetime | str | None) -> LifeCall:
    """Returns a call of `life` whose row id is a whole number.

    Raises:
        UsageError: it is not, or no row id is as large.
    """
    if not isinstance(row_id, SupportsIndex) or isinstance(row_id, bool):
        raise UsageError(f"The row id of life is a whole number, not {row_id!r}.")
    number = index(row_id)
    if not -_MOST <= number < _MOST:
        raise UsageError(f"The row id of life is a whole number of 64 bits, not {number}.")
    return LifeCall(lake, schema, table, number, at)


def _blame(call: Call) -> BlameCall:
    return blame_call(call.lake, *_table(call), call.argument(1, "where"), call.named("columns"), _at(call))


def _life(call: Call) -> LifeCall:
    return life_call(call.lake, *_table(call), call.argument(1, "row_id"), _at(call))


def _table(call: Call) -> tuple[str, str]:
    return str(call.named("schema", call.schema)), str(call.args[0])


def _at(call: Call) -> int | datetime | str | None:
    at = call.named("at")
    if isinstance(at, bool) or not (at is None or isinstance(at, int | date | str)):
        raise UsageError(f"at of {call.name} is a snapshot id, a time or a tag, not {at!r}.")
    at = named_snapshot(at) if isinstance(at, str) else at
    return call.lake.instant(at) if isinstance(at, date) else at


FUNCTIONS = (
    Function("blame", BLAME_COLUMNS, _blame, arguments=(1, 2), named=("where", "columns", "at", "schema")),
    Function("life", LIFE_COLUMNS, _life, arguments=(1, 2), named=("row_id", "at", "schema")),
)

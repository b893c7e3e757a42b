"""Earlier names and types of a table's columns: some files still hold them so.

The snapshot of a file does not show which names it holds: a rewritten file keeps its columns under a new snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column, ColumnVersion
from ducklake_lab.scan.plan import ScanFile


@dataclass(frozen=True, slots=True)
class ColumnHistory:
    """Columns of a table as they are read, at any depth, with their earlier names and types.

    Attributes:
        columns: those of the table, which know whether they were `altered`.
        ids: of all columns that the table ever had.
        reused: ids of the columns whose name a sibling of another id has or ever had. Spark finds columns in Parquet files
            by field id, but skips row groups by the statistics of the column that has the *name* in the file.
        retyped: ids of the columns that ever had another type.
    """

    columns: tuple[Column, ...]
    ids: frozenset[int]
    reused: frozenset[int]
    retyped: frozenset[int]


def history_of(columns: Sequence[Column], versions: Iterable[ColumnVersion]) -> ColumnHistory:
    """The history of the columns that a table is read with.

    Args:
        versions: all rows of `ducklake_column` for the table; none where it is not committed.
    """
    owners: dict[tuple[int | None, str], set[int]] = defaultdict(set)
    kinds: dict[int, set[str]] = defaultdict(set)
    names: dict[int, set[str]] = defaultdict(set)
    begins: dict[int, int] = {}
    for version in versions:
        column_id = version.column_id
        owners[version.parent_id, version.name.casefold()].add(column_id)
        kinds[column_id].add(version.type)
        names[column_id].add(version.name)
        begins[column_id] = min(version.begin_snapshot, begins.get(column_id, version.begin_snapshot))
    present = list(_with_parents(columns, None))
    for column, parent_id in present:
        owners[parent_id, column.name.casefold()].add(column.column_id)
        kinds[column.column_id].add(column.type)
        names[column.column_id].add(column.name)
    first = min(begins.values(), default=None)
    retyped = frozenset(column.column_id for column, _ in present if len(kinds[column.column_id]) > 1)
    added = {column_id for column_id, begin in begins.items() if begin != first}
    altered = retyped | added | {column.column_id for column, _ in present if len(names[column.column_id]) > 1}
    return ColumnHistory(
        columns=tuple(_marked(column, altered) for column in columns),
        ids=frozenset(begins),
        reused=frozenset(
            column.column_id for column, parent_id in present if len(owners[parent_id, column.name.casefold()]) > 1
        ),
        retyped=retyped,
    )


def _with_parents(columns: Sequence[Column], parent_id: int | None) -> Iterator[tuple[Column, int | None]]:
    for column in columns:
        yield column, parent_id
        yield from _with_parents(column.children, column.column_id)


def _marked(column: Column, altered: frozenset[int]) -> Column:
    if altered.isdisjoint(part.column_id for part in column.walk()):
        return column
    return replace(
        column,
        children=tuple(_marked(child, altered) for child in column.children),
        altered=column.column_id in altered,
    )


def check_encrypted(columns: Sequence[Column], files: Iterable[ScanFile], reused: frozenset[int]) -> None:
    """Checks that no encrypted file may hold fields of a struct under names that others have now.

    One transaction can write a file and then give a field the name of another. The field ids of an encrypted file are out
    of reach, and its snapshot does not say which came first.

    Raises:
        UnsupportedFeatureError: a transaction may have done so.
    """
    written = {file.data_file.begin_snapshot for file in files if file.data_file.encryption_key is not None}
    for column in columns if written else ():
        for part in column.walk():
            if part is not column and part.column_id in reused and part.begin_snapshot in written:
                raise UnsupportedFeatureError(
                    f"Fields of {column.name} took each other's names in a transaction that wrote encrypted files; "
                    "such files cannot be read yet."
                )

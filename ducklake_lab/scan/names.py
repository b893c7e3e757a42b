"""Which columns of a table share their name with another column, now or earlier.

Spark finds columns in Parquet files by field id, but skips row groups by the statistics of the column that has the
*name* in the file. After `DROP COLUMN x; ADD COLUMN x`, or two columns swapping names, those are another column's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.entries import Column
from ducklake_lab.scan.plan import ScanFile


def reused_names(columns: Sequence[Column], history: Iterable[tuple[int, int | None, str]]) -> frozenset[int]:
    """The ids of the columns, at any depth, whose name a sibling of another id has or ever had.

    Args:
        columns: the table's columns as they are read.
        history: (column id, id of the parent or None, name) of all rows of `ducklake_column` for the table.
    """
    owners: dict[tuple[int | None, str], set[int]] = {}
    present = list(_named(columns, None))
    for column_id, parent_id, name in [*history, *present]:
        owners.setdefault((parent_id, name.casefold()), set()).add(column_id)
    return frozenset(column_id for column_id, parent_id, name in present if len(owners[parent_id, name.casefold()]) > 1)


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


def _named(columns: Sequence[Column], parent_id: int | None) -> Iterator[tuple[int, int | None, str]]:
    for column in columns:
        yield column.column_id, parent_id, column.name
        yield from _named(column.children, column.column_id)

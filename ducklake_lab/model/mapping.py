"""Mappings from the columns of a file that was added from outside to its table's (spec: ducklake_name_mapping)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NameMapping:
    """One column of a file.

    Attributes:
        source_name: its name in the file; of the elements of a list, `list`.
        target_field_id: the id of the table's column.
        is_partition: the column is not in the file but in its path, as `name=value`.
        children: of a nested column.
    """

    source_name: str
    target_field_id: int
    is_partition: bool = False
    children: tuple[NameMapping, ...] = ()

    def key(self) -> tuple[object, ...]:
        """Key that distinguishes mappings; the order of columns does not."""
        return (self.source_name, self.target_field_id, self.is_partition, keys_of(self.children))


def keys_of(columns: tuple[NameMapping, ...]) -> frozenset[tuple[object, ...]]:
    return frozenset(column.key() for column in columns)


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """One row of `ducklake_column_mapping`: the columns of a file, by name."""

    columns: tuple[NameMapping, ...]

    def key(self) -> frozenset[tuple[object, ...]]:
        """Key that distinguishes mappings."""
        return keys_of(self.columns)

    def by_target(self) -> dict[int, NameMapping]:
        """The top-level columns by the id of the table's column."""
        return {column.target_field_id: column for column in self.columns}

    def target_ids(self) -> frozenset[int]:
        """The ids of the table's columns that the file has, at any depth."""
        return frozenset(column.target_field_id for _, _, column in self.rows())

    def rows(self) -> Iterator[tuple[int, int | None, NameMapping]]:
        """(number, number of the parent or None, column) of all columns, parents first, as the catalog numbers them."""
        numbers = iter(range(1 << 31))

        def walk(columns: tuple[NameMapping, ...], parent: int | None) -> Iterator[tuple[int, int | None, NameMapping]]:
            for column in columns:
                number = next(numbers)
                yield number, parent, column
                yield from walk(column.children, number)

        yield from walk(self.columns, None)

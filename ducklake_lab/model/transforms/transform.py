"""Interface of a partition transform; each module beside this one holds one kind of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.types import DataType
from ducklake_lab.model.values import Scalar


@dataclass(frozen=True, slots=True)
class Transform(ABC):
    """A function from a column's value to a partition key (spec: ducklake_partition_column).

    Its text is `ducklake_partition_column.transform`. The methods that prune get a key as the catalog stores it; they
    answer True where they cannot know.

    Attributes:
        name: as written before the column; the prefix of folder names.
        arguments: how many it takes in PARTITIONED BY.
        since: the version of the specification that brought it; None where every version that is written has it.
        null_for_null: whether the key is NULL only for NULL. Parts of an infinite date are NULL too.
        depends_on_type: whether one value of two types has two keys.
    """

    name: ClassVar[str]
    arguments: ClassVar[int] = 1
    since: ClassVar[str | None] = None
    null_for_null: ClassVar[bool] = True
    depends_on_type: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name

    @classmethod
    def shape(cls) -> str:
        """Text of the transform in PARTITIONED BY."""
        return f"{cls.name}(column)"

    def written(self, column: str) -> str:
        """The key as written in PARTITIONED BY."""
        return f"{self}({column})"

    def folder(self, column: str) -> str:
        """The name of the key in the path of a file, unless another key has it."""
        return self.name

    @abstractmethod
    def can_apply(self, kind: DataType) -> bool:
        """Returns whether a column of this type can be partitioned so."""

    def result_type(self, kind: DataType) -> DataType:
        """The type of the keys."""
        return DataType("int64")

    @abstractmethod
    def sql(self, value: str, kind: DataType, time_zone: str) -> str:
        """DuckDB's SQL from which `keys` makes the keys of values.

        Args:
            value: the SQL of the values.
            kind: their type.
            time_zone: the zone in which a TIMESTAMP WITH TIME ZONE is read.

        Raises:
            UnsupportedFeatureError: keys of this transform cannot be made.
        """

    def keys(self, values: pa.ChunkedArray) -> list[str | None]:
        """The keys that `sql` computes, as the catalog stores them."""
        keys: list[str | None] = values.to_pylist()
        return keys

    def key_of(self, value: Scalar, kind: DataType) -> str | None:
        """The one key of all rows that have a value; None where it is not known."""
        return None

    def may_be_null(self, key: str | None, *, is_null: bool) -> bool:
        """Returns whether a row with this key may be NULL, or, without `is_null`, may have a value."""
        if key is not None:
            return not is_null
        return is_null or not self.null_for_null

    def may_compare(self, key: str, kind: DataType, op: Operator, constant: Scalar) -> bool:
        """Returns whether a row with this key may compare so with a constant."""
        return True

    def may_start_with(self, key: str, kind: DataType, prefix: str) -> bool:
        """Returns whether a row with this key may start with a prefix."""
        return True


@dataclass(frozen=True, slots=True)
class Unknown(Transform):
    """A transform of another client or of a later specification: it prunes nothing, and rows cannot be written by it.

    Attributes:
        text: as the catalog has it.
    """

    name = "unknown"
    text: str

    def __str__(self) -> str:
        return self.text

    def can_apply(self, kind: DataType) -> bool:
        return False

    def sql(self, value: str, kind: DataType, time_zone: str) -> str:
        raise UnsupportedFeatureError(f"The partition transform {self} is not supported.")

    def may_be_null(self, key: str | None, *, is_null: bool) -> bool:
        return True


def may_lie_within(start: int, end: int, op: Operator, moment: int) -> bool:
    """Returns whether a point in time from `start`, up to and without `end`, may compare so with another one.

    All are microseconds since 1970.
    """
    match op:
        case "=":
            return start <= moment < end
        case "<":
            return start < moment
        case "<=":
            return start <= moment
        case ">" | ">=":
            return moment < end
    return True

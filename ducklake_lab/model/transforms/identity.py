"""The value itself."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ducklake_lab.model.predicates import Operator
from ducklake_lab.model.transforms.transform import Transform
from ducklake_lab.model.types import FLOATS, DataType
from ducklake_lab.model.values import Scalar, decode

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    name = "identity"

    def written(self, column: str) -> str:
        return column

    def folder(self, column: str) -> str:
        return column

    def can_apply(self, kind: DataType) -> bool:
        return not kind.is_nested

    def result_type(self, kind: DataType) -> DataType:
        return kind

    def sql(self, value: str, kind: DataType, time_zone: str) -> str:
        return f"CAST({value} AS VARCHAR)"

    def may_compare(self, key: str, kind: DataType, op: Operator, constant: Scalar) -> bool:
        decoded = decode(key, kind) if kind.name not in FLOATS else None
        return decoded is None or _COMPARISONS[op](decoded, constant)

    def may_start_with(self, key: str, kind: DataType, prefix: str) -> bool:
        return kind.name != "varchar" or key.startswith(prefix)

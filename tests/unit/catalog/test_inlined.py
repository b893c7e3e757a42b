from __future__ import annotations

import pytest

from ducklake_lab.catalog.inlined import can_inline
from ducklake_lab.catalog.uri import Backend
from ducklake_lab.catalog.versions import written
from ducklake_lab.model.entries import Column
from ducklake_lab.model.types import DataType

_VARIANT = DataType("variant")
_NESTED = DataType("struct", (("v", _VARIANT),))


@pytest.mark.parametrize(
    ("kind", "backend", "version", "expected"),
    [
        (_VARIANT, "duckdb", "1.0", True),
        (_VARIANT, "sqlite", "1.0", False),
        (_VARIANT, "sqlite", "1.1", True),
        (_VARIANT, "postgresql", "1.1", True),
        (_NESTED, "duckdb", "1.1", True),
        (_NESTED, "sqlite", "1.1", False),
        (DataType("geometry"), "duckdb", "1.1", False),
        (DataType("geometry"), "postgresql", "1.1", False),
        (DataType("int32"), "sqlite", "1.0", True),
    ],
)
def test_what_can_be_kept_in_a_catalog(kind: DataType, backend: Backend, version: str, expected: bool) -> None:
    columns = [Column.build("i", DataType("int32"), 1), Column.build("c", kind, 2)]
    assert can_inline(columns, backend, written(version)) is expected

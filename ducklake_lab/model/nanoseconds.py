"""Times with digits below microseconds, which most types of SQL do not keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc


def nanoseconds_in(values: pa.Array, wanted: Callable[[pa.DataType], bool]) -> Iterator[str]:
    """Texts of values that have such digits, wherever they stand in nested values.

    Args:
        wanted: whether values of an Arrow type are looked at; asked for types in nanoseconds alone.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        for part in values.flatten():
            yield from nanoseconds_in(part, wanted)
    elif pa.types.is_map(kind):
        yield from nanoseconds_in(values.keys, wanted)
        yield from nanoseconds_in(values.items, wanted)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from nanoseconds_in(values.flatten(), wanted)
    elif pa.types.is_temporal(kind) and getattr(kind, "unit", None) == "ns" and wanted(kind):
        numbers = values.cast(pa.int64())
        micros = pc.multiply(pc.divide(numbers, 1000), 1000)
        for value in values.filter(pc.not_equal(numbers, micros)):
            yield str(value.cast(pa.string()).as_py()) if not pa.types.is_duration(kind) else f"{value.value} ns"

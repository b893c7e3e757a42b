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
    for leaf in _leaves(values):
        kind = leaf.type
        if pa.types.is_temporal(kind) and getattr(kind, "unit", None) == "ns" and wanted(kind):
            numbers = leaf.cast(pa.int64())
            micros = pc.multiply(pc.divide(numbers, 1000), 1000)
            for value in leaf.filter(pc.not_equal(numbers, micros)):
                yield str(value.cast(pa.string()).as_py()) if not pa.types.is_duration(kind) else f"{value.value} ns"


def nanoseconds_beside(fine: pa.Array, coarse: pa.Array) -> Iterator[str]:
    """Texts of values that have such digits, of times whose nanoseconds may lie beyond 64 bits.

    Args:
        fine: timestamps in nanoseconds, modulo 2^64.
        coarse: the same values in microseconds, rounded down.
    """
    for nanos, micros in zip(_leaves(fine), _leaves(coarse), strict=True):
        rest = pc.subtract(nanos.cast(pa.int64()), pc.multiply(micros.cast(pa.int64()), 1000))
        has_more = pc.not_equal(rest, 0)
        for digits, value in zip(rest.filter(has_more), micros.filter(has_more).cast(pa.string()), strict=True):
            yield f"{value.as_py()}{digits.as_py():03}"


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """Yield the values that nested ones consist of."""
    kind = values.type
    if pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(kind):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(values.flatten())
    else:
        yield values

"""The hash of bucket partitions: Murmur3, 32 bits, x86, seed 0 (spec: advanced_features/partitioning)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_C1, _C2, _M = 0xCC9E2D51, 0x1B873593, 0xFFFFFFFF


def hash_bytes(data: bytes) -> int:
    """The hash of some bytes, 0 to 2**32 - 1."""
    value = 0
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        value = _mixed(value, int.from_bytes(data[start : start + 4], "little"))
        value = (_rotated(value, 13) * 5 + 0xE6546B64) & _M
    if len(data) > whole:
        value = _mixed(value, int.from_bytes(data[whole:], "little"))
    return _finished(value ^ len(data))


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _M


def _mixed(value: int, block: int) -> int:
    return value ^ ((_rotated((block * _C1) & _M, 15) * _C2) & _M)


def _finished(value: int) -> int:
    value = ((value ^ (value >> 16)) * 0x85EBCA6B) & _M
    value = ((value ^ (value >> 13)) * 0xC2B2AE35) & _M
    return value ^ (value >> 16)


def hash_integers(values: NDArray[np.int64]) -> NDArray[np.uint32]:
    """The hashes of integers, each as its eight bytes, little end first."""
    bits = values.astype(np.int64).view(np.uint64)
    value = np.zeros(len(bits), np.uint64)
    for shift in (0, 32):
        block = ((bits >> np.uint64(shift)) & np.uint64(_M)) * np.uint64(_C1) & np.uint64(_M)
        block = _rotate(block, 15) * np.uint64(_C2) & np.uint64(_M)
        value = (_rotate(value ^ block, 13) * np.uint64(5) + np.uint64(0xE6546B64)) & np.uint64(_M)
    value ^= np.uint64(8)
    value = (value ^ (value >> np.uint64(16))) * np.uint64(0x85EBCA6B) & np.uint64(_M)
    value = (value ^ (value >> np.uint64(13))) * np.uint64(0xC2B2AE35) & np.uint64(_M)
    return (value ^ (value >> np.uint64(16))).astype(np.uint32)


def _rotate(values: NDArray[np.uint64], by: int) -> NDArray[np.uint64]:
    return ((values << np.uint64(by)) | (values >> np.uint64(32 - by))) & np.uint64(_M)


def hash_texts(values: Iterable[str | bytes | None]) -> list[int | None]:
    """The hashes of texts, as UTF-8, or of bytes; None for None."""
    hashes: dict[str | bytes | None, int | None] = {None: None}
    result = []
    for value in values:
        if value not in hashes:
            hashes[value] = (
                hash_bytes(value if isinstance(value, bytes) else value.encode()) if value is not None else None
            )
        result.append(hashes[value])
    return result


def bucket(hashed: int, buckets: int) -> int:
    """The bucket of a hash, 0 to `buckets` - 1."""
    return (hashed & 0x7FFFFFFF) % buckets

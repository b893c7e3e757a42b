"""The hash of buckets, by the examples that Iceberg's specification gives for it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from ducklake_lab.model.transforms.murmur import bucket, hash_bytes, hash_integers, hash_texts


@pytest.mark.parametrize(("value", "hashed"), [(34, 2017239379), (17486, -653330422), (81068000000, -662762989)])
def test_integers_dates_and_times(value: int, hashed: int) -> None:
    assert hash_bytes(struct.pack("<q", value)) == hashed & 0xFFFFFFFF
    assert hash_integers(np.array([value], np.int64)).tolist() == [hashed & 0xFFFFFFFF]


def test_texts_and_bytes() -> None:
    assert hash_texts(["iceberg", None, b"\x00\x01\x02\x03"]) == [1210000089, None, -188683207 & 0xFFFFFFFF]


def test_vectors_hash_as_single_values_do() -> None:
    values = np.array([0, 1, -1, 2**62, -(2**63), 123456789012345], np.int64)
    assert hash_integers(values).tolist() == [hash_bytes(struct.pack("<q", value)) for value in values.tolist()]


def test_buckets_count_from_zero() -> None:
    assert bucket(-653330422 & 0xFFFFFFFF, 16) == (-653330422 & 0x7FFFFFFF) % 16

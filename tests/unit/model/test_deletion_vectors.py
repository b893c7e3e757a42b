from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ducklake_lab.model.deletion_vectors import data_file, decode, encode, read, write

_RANGES = st.tuples(st.integers(0, 1 << 34), st.integers(1, 70_000), st.integers(1, 7))


@given(st.lists(_RANGES, max_size=4))
def test_what_is_encoded_is_decoded(ranges: list[tuple[int, int, int]]) -> None:
    parts = [np.arange(start, start + length, step, dtype=np.int64) for start, length, step in ranges]
    positions = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
    assert np.array_equal(decode(encode(positions)), positions)


@given(st.dictionaries(st.integers(0, 1 << 33), st.integers(1, 6), max_size=40))
def test_what_several_snapshots_deleted_is_read_back(deleted: dict[int, int]) -> None:
    positions = np.array(sorted(deleted), np.int64)
    snapshots = np.array([deleted[position] for position in sorted(deleted)], np.int64)
    data, footer = write(positions, snapshots, "a/ü.parquet")
    found, by = read(data)
    assert np.array_equal(found, positions)
    if len(set(deleted.values())) > 1:
        assert by is not None and np.array_equal(by, snapshots)
        assert data_file(data) == "a/ü.parquet" and data[-footer : 4 - footer] == b"PFA1"
    else:
        assert by is None and footer == 0 and data == encode(positions) == write(positions, None, "x")[0]


def _blob(bitmap: bytes, key: int = 0) -> bytes:
    body = b"\xd1\xd3\x39\x64" + struct.pack("<qi", 1, key) + bitmap
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def test_runs_and_lists_of_other_writers() -> None:
    # containers 0 and 2: runs 5..9 and 100, and a list; fewer than four containers have no offsets
    small = struct.pack("<IB4H", 12347 | 1 << 16, 0b01, 0, 5, 2, 1) + struct.pack("<5H", 2, 5, 4, 100, 0)
    assert decode(_blob(small + struct.pack("<2H", 1, 3), key=1)).tolist() == [
        (1 << 32) + n for n in (5, 6, 7, 8, 9, 100, 131073, 131075)
    ]
    headers = b"".join(struct.pack("<2H", i, 0) for i in range(4))
    runs = b"".join(struct.pack("<3H", 1, i, 0) for i in range(4))
    offsets = struct.pack("<4I", *(21 + 16 + 6 * i for i in range(4)))
    large = struct.pack("<IB", 12347 | 3 << 16, 0b1111) + headers + offsets + runs
    assert decode(_blob(large)).tolist() == [(i << 16) + i for i in range(4)]


def test_what_is_no_deletion_vector() -> None:
    good = encode(np.arange(10, dtype=np.int64))
    for bad, reason in (
        (b"", "no deletion vector"),
        (b"PAR1" * 10, "no deletion vector"),
        (good[:-1] + b"\0", "checksum"),
        (good[:4] + good[4:].replace(b"\x05\x00", b"\x06\x00", 1), "checksum"),
        (_blob(struct.pack("<I", 1)), "no Roaring bitmap"),
        (_blob(struct.pack("<II2HI", 12346, 1, 0, 9, 0)), "too early"),
    ):
        with pytest.raises(ValueError, match=reason):
            decode(bad)


def _puffin(vectors: dict[int, list[int]], **changes: object) -> bytes:
    """A Puffin file with a blob for each snapshot."""
    body, blobs = b"PFA1", []
    for snapshot, positions in vectors.items():
        blob = encode(np.array(positions, np.int64))
        properties = {"ducklake-snapshot-id": str(snapshot), "cardinality": str(len(positions))}
        entry = {"type": "deletion-vector-v1", "offset": len(body), "length": len(blob), "properties": properties}
        blobs.append({**entry, **changes})
        body += blob
    footer = json.dumps({"blobs": [{"type": "other"}, *blobs]}).encode()
    return body + b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"


def test_a_position_is_of_the_first_snapshot_whose_vector_holds_it() -> None:
    positions, snapshots = read(_puffin({9: [1, 3, 5, 7], 4: [3], 6: [3, 5]}))
    assert snapshots is not None
    assert (positions.tolist(), snapshots.tolist()) == ([1, 3, 5, 7], [9, 4, 6, 9])
    alone, unnamed = read(encode(positions))
    assert alone.tolist() == [1, 3, 5, 7] and unnamed is None


def test_what_is_no_puffin_file() -> None:
    good = _puffin({4: [3], 6: [3, 5]})
    for bad, reason in (
        (good[:-1], "end is missing"),
        (good[:-12] + struct.pack("<II", 10**6, 0) + b"PFA1", "footer is damaged"),
        (good[:-8] + struct.pack("<I", 1) + b"PFA1", "compressed"),
        (_puffin({4: [3]}, properties={}), "does not list"),
        (_puffin({4: [3]}, properties={"ducklake-snapshot-id": "4", "cardinality": "2"}), "other deletion vectors"),
        (_puffin({}), "other deletion vectors"),
        (_puffin({4: [3]}, offset=5), "no deletion vector"),
    ):
        with pytest.raises(ValueError, match=reason):
            read(bad)

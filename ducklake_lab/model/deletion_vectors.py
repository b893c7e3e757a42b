"""Deletion vectors: deleted positions as a Roaring bitmap (Iceberg's Puffin specification, blob deletion-vector-v1).

A delete file of the format `puffin` is such a blob and nothing around it, or, since spec 1.1, a Puffin file with a blob
for each snapshot that deleted rows, which holds the positions deleted by it and those before. In a blob positions are
grouped by their high 32 bits; a bitmap of the low 32 bits is a container for each run of 65,536 of them: a sorted list of
16-bit numbers, 65,536 bits, or runs (Roaring's portable format).
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ducklake_lab.model.positions import Positions, ascending

_PUFFIN = b"PFA1"
_BLOB = "deletion-vector-v1"
_DATA_FILE = "referenced-data-file"
_SNAPSHOT = "ducklake-snapshot-id"
_MAGIC = b"\xd1\xd3\x39\x64"
#: Roaring's marks of bitmaps with and without run containers.
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
#: Containers from which a bitmap with runs has the offset of each.
_OFFSETS_FROM = 4
#: Values up to which a container lists them.
_LISTED = 4096
_BITMAP_BYTES = 8192


def read(data: bytes) -> tuple[Positions, Positions | None]:
    """The positions in a delete file, ascending, and the snapshot that deleted each, if the file says so.

    Raises:
        ValueError: it is no such file, or was damaged.
    """
    if data[:4] != _PUFFIN:
        return decode(data), None
    vectors = sorted(_vectors(data), key=lambda vector: vector[0])
    every = np.concatenate([positions for _, positions in vectors])
    snapshots = np.repeat([snapshot for snapshot, _ in vectors], [len(positions) for _, positions in vectors])
    distinct, first = np.unique(every, return_index=True)
    return distinct, snapshots[first].astype(np.int64)


def data_file(data: bytes) -> str:
    """The path of the data file that a Puffin file of several snapshots deletes from.

    Raises:
        ValueError: it is no such file, or was damaged.
    """
    try:
        return str(_blobs(data)[0]["properties"][_DATA_FILE])
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError("its footer does not name the data file") from error


def by_data_file(data: bytes) -> dict[str, Positions]:
    """The positions that a Puffin file deletes from each data file, by the path that it names the file by.

    Raises:
        ValueError: it is no such file, or was damaged.
    """
    try:
        places = [(str(blob["properties"][_DATA_FILE]), blob["offset"], blob["length"]) for blob in _blobs(data)]
    except (KeyError, TypeError) as error:
        raise ValueError("its footer does not name the data files") from error
    by_path: dict[str, Positions] = {}
    for path, offset, length in places:
        positions = decode(data[offset : offset + length])
        by_path[path] = ascending(np.concatenate([by_path[path], positions])) if path in by_path else positions
    return by_path


def write(positions: Positions, snapshots: Positions | None, data_file: str) -> tuple[bytes, int]:
    """A delete file, and the size of its footer in bytes: 0 where one snapshot deleted all.

    Args:
        positions: ascending, each there once.
        snapshots: the snapshot of each deletion; None for that of the file's commit.
        data_file: the path of the file that they are positions in.
    """
    numbers = [] if snapshots is None else np.unique(snapshots).tolist()
    if snapshots is None or len(numbers) < 2:
        return encode(positions), 0
    parts, blobs, offset = [_PUFFIN], [], len(_PUFFIN)
    for number in numbers:
        deleted = positions[snapshots <= number]
        blob = encode(deleted)
        properties = {_DATA_FILE: data_file, "cardinality": str(len(deleted)), _SNAPSHOT: str(number)}
        location = {"snapshot-id": -1, "sequence-number": -1, "offset": offset, "length": len(blob)}
        blobs.append({"type": _BLOB, "fields": [], **location, "properties": properties})
        parts.append(blob)
        offset += len(blob)
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": "ducklake"}}).encode()
    footer = _PUFFIN + payload + struct.pack("<II", len(payload), 0) + _PUFFIN
    return b"".join([*parts, footer]), len(footer)


def _vectors(data: bytes) -> list[tuple[int, Positions]]:
    """(snapshot, positions) of the blobs of a Puffin file."""
    try:
        listed = _blobs(data)
        places = [(blob["offset"], blob["offset"] + blob["length"]) for blob in listed]
        named = [(int(blob["properties"][_SNAPSHOT]), int(blob["properties"]["cardinality"])) for blob in listed]
    except (KeyError, TypeError) as error:
        raise ValueError("its footer does not list deletion vectors by snapshot") from error
    vectors = [(snapshot, decode(data[a:b])) for (snapshot, _), (a, b) in zip(named, places, strict=True)]
    if not vectors or [len(positions) for _, positions in vectors] != [count for _, count in named]:
        raise ValueError("it holds other deletion vectors than its footer says")
    return vectors


def _blobs(data: bytes) -> list[dict[str, Any]]:
    """Return the deletion vectors that the footer of a Puffin file lists."""
    if len(data) < 16 or data[-4:] != _PUFFIN:
        raise ValueError("its end is missing")
    size, flags = struct.unpack("<II", data[-12:-4])
    start = len(data) - 12 - size
    if start < 8 or data[start - 4 : start] != _PUFFIN:
        raise ValueError("its footer is damaged")
    if flags:
        raise ValueError("its footer is compressed, which is not supported")
    try:
        return [blob for blob in json.loads(data[start:-12])["blobs"] if blob["type"] == _BLOB]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("its footer does not list deletion vectors by snapshot") from error


def encode(positions: Positions) -> bytes:
    """The blob of ascending positions, each there once."""
    groups = _split(positions, 32)
    parts = [_MAGIC, struct.pack("<q", len(groups))]
    for key, low in groups:
        parts += [struct.pack("<i", key), _encode_bitmap(low.astype(np.uint32))]
    body = b"".join(parts)
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def _split(values: NDArray[Any], bits: int) -> list[tuple[int, NDArray[Any]]]:
    """Ascending values by all but their lowest bits: (those above, the lowest)."""
    high = values >> bits
    starts = np.concatenate([[0], np.flatnonzero(high[1:] != high[:-1]) + 1]) if len(values) else np.zeros(0, np.int64)
    return [(int(part[0]) >> bits, part & ((1 << bits) - 1)) for part in np.split(values, starts[1:]) if len(part)]


def decode(blob: bytes) -> Positions:
    """The positions in a blob, ascending.

    Raises:
        ValueError: it is no such blob, or was damaged.
    """
    body = blob[4:-4]
    if len(blob) < 20 or body[:4] != _MAGIC:
        raise ValueError("it is no deletion vector")
    if struct.unpack_from(">I", blob)[0] != len(body) or struct.unpack(">I", blob[-4:])[0] != zlib.crc32(body):
        raise ValueError("its length or checksum is wrong")
    try:
        return _decode_bitmaps(body)
    except (struct.error, IndexError) as error:
        raise ValueError("it ends too early") from error


def _decode_bitmaps(body: bytes) -> Positions:
    (count,) = struct.unpack_from("<q", body, 4)
    at = 12
    parts = [np.zeros(0, np.int64)]
    for _ in range(count):
        (key,) = struct.unpack_from("<i", body, at)
        low, at = _decode_bitmap(body, at + 4)
        parts.append(low + (key << 32))
    positions = np.concatenate(parts)
    return ascending(positions)


def _encode_bitmap(values: NDArray[np.uint32]) -> bytes:
    chunks = _split(values, 16)
    header = np.array([(key, len(low) - 1) for key, low in chunks], "<u2")
    containers = [_encode_container(low) for _, low in chunks]
    first = 8 + 8 * len(containers)
    offsets = first + np.concatenate([[0], np.cumsum([len(container) for container in containers])])[:-1]
    return b"".join(
        [
            struct.pack("<II", _WITHOUT_RUNS, len(containers)),
            header.tobytes(),
            offsets.astype("<u4").tobytes(),
            *containers,
        ]
    )


def _encode_container(low: NDArray[np.uint32]) -> bytes:
    if len(low) <= _LISTED:
        return low.astype("<u2").tobytes()
    bits = np.zeros(1 << 16, np.bool_)
    bits[low] = True
    return np.packbits(bits, bitorder="little").tobytes()


def _decode_bitmap(data: bytes, at: int) -> tuple[Positions, int]:
    """The values of a bitmap that begins there, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        size = (count + 7) // 8
        has_runs = np.unpackbits(_numbers(data, at, size, "u1").astype(np.uint8), bitorder="little")
        at += size
        has_offsets = count >= _OFFSETS_FROM
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
        has_runs = np.zeros(count, np.uint8)
        has_offsets = True
    else:
        raise ValueError("it holds no Roaring bitmap")
    header = _numbers(data, at, 2 * count, "<u2").reshape(count, 2).astype(np.int64)
    at += 4 * count + (4 * count if has_offsets else 0)
    parts = [np.zeros(0, np.int64)]
    for i, (chunk, last) in enumerate(header.tolist()):
        low, at = _decode_container(data, at, last + 1, is_runs=bool(has_runs[i]))
        parts.append(low + (chunk << 16))
    return np.concatenate(parts), at


def _decode_container(data: bytes, at: int, count: int, *, is_runs: bool) -> tuple[Positions, int]:
    if is_runs:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = _numbers(data, at + 2, 2 * runs, "<u2").reshape(runs, 2).astype(np.int64)
        lengths = pairs[:, 1] + 1
        before = np.cumsum(lengths) - lengths
        return np.repeat(pairs[:, 0] - before, lengths) + np.arange(int(lengths.sum())), at + 2 + 4 * runs
    if count <= _LISTED:
        return _numbers(data, at, count, "<u2").astype(np.int64), at + 2 * count
    bits = np.unpackbits(_numbers(data, at, _BITMAP_BYTES, "u1").astype(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64), at + _BITMAP_BYTES


def _numbers(data: bytes, at: int, count: int, kind: str) -> NDArray[np.generic]:
    if len(data) < at + count * np.dtype(kind).itemsize:
        raise IndexError
    return np.frombuffer(data, kind, count, at)

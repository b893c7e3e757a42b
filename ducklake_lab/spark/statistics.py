"""Converts Parquet footers to the catalog's facts on a file (spec: data_types, type encoding for statistics)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from ducklake_lab.duckdb.casting import texts
from ducklake_lab.model.entries import Column
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.types import FLOATS, INTEGERS, DataType
from ducklake_lab.storage import Storage

#: Most characters of texts, and bytes of blobs, in statistics; as in the reference.
LONGEST = 256

#: A value in Parquet's physical type, which compares in the type's order.
Raw = bool | int | float | bytes


@dataclass(frozen=True, slots=True)
class Footer:
    """The contents of a file's footer.

    Attributes:
        footer_size: bytes of its Thrift data.
        row_groups: chunks by row group, and by leaf column in file order.
    """

    record_count: int
    file_size_bytes: int
    footer_size: int
    row_groups: tuple[tuple[Chunk, ...], ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A leaf column in a row group; `low` and `high` are None if the writer gave none."""

    size: int
    values: int
    nulls: int | None
    low: Raw | None
    high: Raw | None


@dataclass(slots=True)
class _Leaf:
    """The summed chunks of one leaf column of a file."""

    size: int = 0
    values: int = 0
    nulls: int | None = 0
    low: Raw | None = None
    high: Raw | None = None
    known: bool = True
    nan: bool = False

    def add(self, chunk: Chunk, is_float: bool) -> None:
        self.size += chunk.size
        self.nulls = None if self.nulls is None or chunk.nulls is None else self.nulls + chunk.nulls
        self.values += chunk.values
        low, high = chunk.low, chunk.high
        # Parquet's writer orders NaN after all numbers: it is the maximum, and the minimum if all values are NaN
        has_nan = is_float and isinstance(high, float) and math.isnan(high)
        self.nan = self.nan or has_nan
        if low is None or high is None or has_nan:
            # besides NaN the largest number is unknown, and so are the bounds; without values none are needed
            self.known = self.known and chunk.nulls is not None and chunk.values == chunk.nulls
            return
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


def read_footer(path: str, storage: Storage, leaves: Sequence[DataType]) -> Footer:
    """Reads a file's footer; `leaves` are the types of its first leaf columns, in order.

    Raises:
        DataFileError: the file cannot be read.
    """
    with storage.open_input(path) as source:
        size = source.size()
        metadata = pq.read_metadata(source)
    count = min(len(leaves), metadata.num_columns)
    decoders = [_decoder(leaves[i], metadata.schema.column(i).physical_type) for i in range(count)]
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        groups.append(tuple(_chunk(group.column(i), decoders[i]) for i in range(count)))
    return Footer(metadata.num_rows, size, metadata.serialized_size, tuple(groups))


def _chunk(column: pq.ColumnChunkMetaData, decode: Callable[[Raw], Raw]) -> Chunk:
    statistics = column.statistics
    if statistics is None:
        return Chunk(column.total_compressed_size, column.num_values, None, None, None)
    bounds = (decode(statistics.min_raw), decode(statistics.max_raw)) if statistics.has_min_max else (None, None)
    nulls = statistics.null_count if statistics.has_null_count else None
    return Chunk(column.total_compressed_size, column.num_values, nulls, *bounds)


def _decoder(data_type: DataType, physical: str) -> Callable[[Raw], Raw]:
    """Returns a function from the raw statistic to a value that compares in the type's order."""
    if data_type.decimal is not None and physical in ("FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"):
        return lambda raw: int.from_bytes(_bytes(raw), "big", signed=True)
    if data_type.name in ("uint8", "uint16", "uint32", "uint64"):
        mask = (1 << (64 if physical == "INT64" else 32)) - 1
        return lambda raw: int(raw) & mask
    return lambda raw: raw


def _bytes(raw: Raw) -> bytes:
    assert isinstance(raw, bytes)  # guaranteed by the physical type
    return raw


def leaf_columns(columns: Sequence[Column]) -> list[Column]:
    """Returns the columns without children, in the order of a file's leaf columns."""
    return [part for column in columns for part in column.walk() if not part.children]


def column_statistics(leaves: Sequence[Column], footers: Sequence[Footer]) -> list[tuple[ColumnStats, ...]]:
    """Returns the statistics of each file, one per leaf column."""
    per_file = [_summed(leaves, footer) for footer in footers]
    columns = [_encode_column(leaf, [file[i] for file in per_file]) for i, leaf in enumerate(leaves)]
    return [tuple(column[i] for column in columns) for i in range(len(footers))]


def _summed(leaves: Sequence[Column], footer: Footer) -> list[_Leaf]:
    totals = [_Leaf() for _ in leaves]
    for group in footer.row_groups:
        for leaf, total, chunk in zip(leaves, totals, group, strict=True):
            total.add(chunk, leaf.type in FLOATS)
    return totals


def _encode_column(leaf: Column, files: Sequence[_Leaf]) -> list[ColumnStats]:
    bounds = [(None, None) if not file.known else (file.low, file.high) for file in files]
    lows = _encode([low for low, _ in bounds], leaf.data_type, upper=False)
    highs = _encode([high for _, high in bounds], leaf.data_type, upper=True)
    is_float = leaf.type in FLOATS
    return [
        ColumnStats(
            column_id=leaf.column_id,
            column_size_bytes=file.size,
            value_count=None if file.nulls is None else file.values - file.nulls,
            null_count=file.nulls,
            min_value=low,
            max_value=high,
            # with values but without bounds, one of them may be NaN
            contains_nan=None if not is_float or not (file.known or file.nan) else file.nan,
            min_is_exact=None if low is None else len(low) < LONGEST,
            max_is_exact=None if high is None else len(high) < LONGEST,
            written_type=leaf.data_type,
        )
        for file, low, high in zip(files, lows, highs, strict=True)
    ]


def _encode(values: Sequence[Raw | None], data_type: DataType, *, upper: bool) -> list[str | None]:
    """Returns bounds as text; a shortened one is still a bound."""
    name = data_type.name
    if name == "boolean" or (name in INTEGERS and all(value is None or isinstance(value, int) for value in values)):
        return [None if value is None else str(int(value)) for value in values]
    if name in ("varchar", "json"):
        return [None if value is None else _cut_text(_bytes(value), upper) for value in values]
    if name == "blob":
        return [None if value is None else _cut_bytes(_bytes(value), upper) for value in values]
    if name == "uuid":
        return [None if value is None else _uuid_text(_bytes(value)) for value in values]
    if data_type.decimal is not None:
        return [None if value is None else _decimal_text(int(value), data_type.decimal[1]) for value in values]
    column = pa.array(values, _physical(data_type)).cast(data_type.arrow())
    return [row[0] for row in texts(pa.table({"v": column}), {"v": data_type})]


def _physical(data_type: DataType) -> pa.DataType:
    """Returns the Arrow type of the numbers in files for a type."""
    arrow = data_type.arrow()
    if pa.types.is_timestamp(arrow):
        # seconds are written as microseconds
        return pa.timestamp("us") if arrow.unit == "s" else arrow
    return pa.int32() if pa.types.is_date(arrow) else pa.int64() if pa.types.is_time(arrow) else arrow


def _cut_text(raw: bytes, upper: bool) -> str | None:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if len(text) <= LONGEST:
        return text
    if not upper:
        return text[:LONGEST]
    # the length stays, by which readers recognise a cut text; code points sort like UTF-8
    code = ord(text[LONGEST - 1])
    return None if code == 0x10FFFF else text[: LONGEST - 1] + chr(0xE000 if code == 0xD7FF else code + 1)


def _cut_bytes(raw: bytes, upper: bool) -> str | None:
    if len(raw) <= LONGEST:
        return raw.hex().upper()
    return None if upper else raw[:LONGEST].hex().upper()


def _uuid_text(raw: bytes) -> str:
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _decimal_text(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits

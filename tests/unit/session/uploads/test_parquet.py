"""Parquet files whose columns differ: no value changes in silence, or an error names file and column."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import SqlError, UnsupportedFeatureError

pytestmark = pytest.mark.sampled(3)

LONG = 2**53 + 1
AT = datetime(2024, 1, 1, 5)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        yield session


def _files(folder: Path, *columns: tuple[Any, pa.DataType] | pa.Table) -> str:
    folder.mkdir()
    for number, one in enumerate(columns):
        table = one if isinstance(one, pa.Table) else pa.table({"x": pa.array([one[0]], one[1])})
        pq.write_table(table, folder / f"{number}.parquet")
    return f"{folder}/*.parquet"


def _struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


@pytest.mark.parametrize(
    ("first", "second", "kind", "values"),
    [
        ((1, pa.int32()), (2**40, pa.int64()), "BIGINT", [1, 2**40]),
        ((2**64 - 1, pa.uint64()), (-1, pa.int64()), "DECIMAL(20,0)", [Decimal(2**64 - 1), Decimal(-1)]),
        ((2**24 + 1, pa.int64()), (0.5, pa.float32()), "DOUBLE", [2.0**24 + 1, 0.5]),
        ((1, pa.int32()), ("007", pa.string()), "VARCHAR", ["1", "007"]),
        ((date(2024, 1, 1), pa.date32()), (AT, pa.timestamp("us")), "TIMESTAMP", [datetime(2024, 1, 1), AT]),
        (
            (Decimal("1.5"), pa.decimal128(4, 1)),
            (Decimal("1.2345"), pa.decimal128(10, 4)),
            "DECIMAL(10,4)",
            [Decimal("1.5000"), Decimal("1.2345")],
        ),
        (
            ({"a": 1, "b": 2}, _struct(a=pa.int32(), b=pa.int32())),
            ({"c": "z", "A": 2**40}, _struct(c=pa.string(), A=pa.int64())),
            "STRUCT(a BIGINT, b INTEGER, c VARCHAR)",
            [{"a": 1, "b": 2, "c": None}, {"a": 2**40, "b": None, "c": "z"}],
        ),
        (([0.1], pa.list_(pa.float32())), ([0.1], pa.list_(pa.float64())), "DOUBLE[]", [[0.10000000149011612], [0.1]]),
        ((None, pa.null()), (AT, pa.timestamp("us")), "TIMESTAMP", [None, AT]),
        ((None, pa.null()), ({"a": 1}, _struct(a=pa.int32())), "STRUCT(a INTEGER)", [None, {"a": 1}]),
    ],
)
def test_types_widen(
    session: dl.Session,
    tmp_path: Path,
    first: tuple[Any, pa.DataType],
    second: tuple[Any, pa.DataType],
    kind: str,
    values: list[object],
) -> None:
    for name, files, expected in (("p", (first, second), values), ("r", (second, first), values[::-1])):
        found = session.upload(_files(tmp_path / name, *files), "t", "replace")
        found.apply()
        rows = session.sql("FROM t").fetchall()
        if name == "r" and kind.startswith("STRUCT(a BIGINT"):
            # named and ordered as in the other file
            rows = [({k: {x.lower(): y for x, y in value.items()}[k] for k in "abc"},) for (value,) in rows]
        else:
            assert found[0]["type"] == kind
        assert [repr(value) for (value,) in rows] == list(map(repr, expected))


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        (
            (0.5, pa.float64()),
            (LONG, pa.int64()),
            rf'Row 1 of .*1.parquet: DOUBLE would round or cut "{LONG}" in .* "x"',
        ),
        (
            ([LONG], pa.list_(pa.int64())),
            ([0.5], pa.list_(pa.float64())),
            r"Row 1 of .*0.parquet: DOUBLE\[\] would round",
        ),
        (
            ({"a": LONG}, _struct(a=pa.int64())),
            ({"a": 0.5}, _struct(a=pa.float64())),
            r"Row 1 of .*0.parquet: STRUCT\(a DOUBLE\) would round",
        ),
        (
            (Decimal("1e30"), pa.decimal128(38, 0)),
            (Decimal("0.12345678901234567890"), pa.decimal128(38, 20)),
            r"Row 1 of .*0.parquet: .* is no DECIMAL\(38,20\)",
        ),
        (
            (AT, pa.timestamp("us")),
            (AT, pa.timestamp("us", "UTC")),
            r'"x" is TIMESTAMP in .*0.parquet and TIMESTAMP WITH TIME ZONE in .*1.parquet; say by --type x=TYPE',
        ),
        ((True, pa.bool_()), (7, pa.int32()), r'"x" is BOOLEAN in .*0.parquet and INTEGER in .*1.parquet'),
        (({"a": 1}, _struct(a=pa.int32())), (5, pa.int32()), r'"x" is STRUCT\(a INTEGER\) in .* and INTEGER in'),
        ((b"\xff", pa.binary()), ("x", pa.string()), r'"x" is BLOB in .* and VARCHAR in'),
    ],
)
def test_what_has_no_type_in_common_is_refused(
    session: dl.Session,
    tmp_path: Path,
    first: tuple[Any, pa.DataType],
    second: tuple[Any, pa.DataType],
    error: str,
) -> None:
    files = _files(tmp_path / "p", first, second)
    with pytest.raises(SqlError, match=error):
        session.upload(files, "t")
    if "--type" in error or "BOOLEAN" in error:
        session.upload(files, "t", types={"x": "VARCHAR"}).apply()
        texts = [text for (text,) in session.sql("FROM t").fetchall()]
        assert texts in (["2024-01-01 05:00:00", "2024-01-01 05:00:00+00"], ["true", "7"])


def test_a_rounding_can_be_asked_for_and_a_text_keeps_all(session: dl.Session, tmp_path: Path) -> None:
    files = _files(tmp_path / "p", (LONG, pa.int64()), (0.5, pa.float64()))
    session.upload(files, "t", round=True).apply()
    assert session.sql("FROM t").fetchall() == [(float(LONG),), (0.5,)]
    session.upload(files, "t", "replace", types={"x": "VARCHAR"}).apply()
    assert session.sql("FROM t").fetchall() == [(str(LONG),), ("0.5",)]
    session.sql("CREATE TABLE d (x DECIMAL(20,1))")
    session.upload(files, "d", "append").apply()
    assert session.sql("FROM d").fetchall() == [(Decimal(LONG),), (Decimal("0.5"),)]


def test_columns_that_files_lack_are_said(session: dl.Session, tmp_path: Path) -> None:
    both = pa.table({"y": ["q"], "x": pa.array([2], pa.int64())})
    found = session.upload(_files(tmp_path / "p", (1, pa.int32()), both, (3, pa.int32())), "t")
    assert [row["note"] for row in found] == ["INTEGER in 2 of 3 files", "NULL in 2 of 3 files without it"]
    found.apply()
    assert session.sql("FROM t ORDER BY x").fetchall() == [(1, None), (2, "q"), (3, None)]


def test_digits_that_duckdb_has_not(session: dl.Session, tmp_path: Path) -> None:
    wide = _files(tmp_path / "w", (Decimal("1" * 39), pa.decimal256(50, 1)))
    with pytest.raises(UnsupportedFeatureError, match=r'"x" of .*0.parquet has numbers of 50 digits; DECIMAL has 38'):
        session.upload(wide)
    for name, kind, shown in (
        ("s", pa.timestamp("ns", "UTC"), "1970-01-01 00:00:00.000001001Z"),
        ("t", pa.time64("ns"), "00:00:00.000001001"),
        ("n", pa.list_(_struct(t=pa.time64("ns"))), "00:00:00.000001001"),
    ):
        value = [{"t": 1001}] if pa.types.is_nested(kind) else 1001
        files = _files(tmp_path / name, (value, kind))
        with pytest.raises(SqlError, match=rf'0.parquet: TIM.* would cut "{shown}" in the column "x'):
            session.upload(files)
        session.upload(files, "t", "replace", round=True).apply()
    even = _files(tmp_path / "e", (1000, pa.timestamp("ns", "UTC")))
    session.upload(even, "t", "replace").apply()
    assert session.sql("FROM t").fetchall() == [(datetime(1970, 1, 1, 0, 0, 0, 1, UTC),)]
    broken = tmp_path / "b.parquet"
    broken.write_bytes(b"no Parquet")
    with pytest.raises(dl.DataFileError, match=r"b\.parquet cannot be read as Parquet: "):
        session.upload(str(broken))


def test_nanoseconds_of_the_oldest_form_are_not_cut(session: dl.Session, tmp_path: Path) -> None:
    path = str(tmp_path / "spark.parquet")

    def made(values: list[Any], kind: pa.DataType) -> None:
        pq.write_table(
            pa.table({"a": [7] * len(values), "x": pa.array(values, kind)}), path, use_deprecated_int96_timestamps=True
        )

    nanos = pa.timestamp("ns")
    for values, kind, shown in (
        ([None, 0, 1500000000123456789], nanos, "2017-07-14 02:40:00.123456789"),
        ([-1], nanos, "1969-12-31 23:59:59.999999999"),
        ([{"y": [1000, 1001]}, None], _struct(y=pa.list_(nanos)), "1970-01-01 00:00:00.000001001"),
    ):
        made(values, kind)
        with pytest.raises(SqlError, match=rf'spark.parquet: TIMESTAMP would cut "{shown}" in the column "x'):
            session.upload(path)
    session.upload(path, "t", "replace", round=True).apply()
    # years whose nanoseconds have more than 64 bits
    far = [datetime(1, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None, datetime(2026, 1, 1)]
    made(far, pa.timestamp("us"))
    session.upload(path, "t", "replace").apply()
    assert session.sql("SELECT x FROM t ORDER BY rowid").fetchall() == [(value,) for value in far]
    reference = duckdb.sql(f"SELECT x FROM '{path}'").fetchall()
    assert [(value,) for value in far] == reference

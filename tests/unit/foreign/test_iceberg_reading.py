"""Iceberg tables become tables of a lake: every value is the one that pyiceberg reads."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from ducklake_lab.model import deletion_vectors
from tests.unit.foreign.tables import check_same, commit_files, iceberg_file, lake_rows

pytest.importorskip("pyiceberg", reason="needs the extra [iceberg]")
pytestmark = pytest.mark.slow


@pytest.fixture
def session(lake_uri: Callable[[], str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session


@pytest.fixture
def iceberg(tmp_path: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    (tmp_path / "foreign").mkdir()
    made = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/foreign/c.db", warehouse=f"file://{tmp_path}/foreign")
    made.create_namespace("db")
    return made


def create(iceberg: Any, rows: pa.Table, name: str = "t", **options: Any) -> Any:
    table = iceberg.create_table(f"db.{name}", rows.schema, **options)
    table.append(rows)
    return table


def reopened(path: Path) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(str(path))


def data_files(table: Any) -> list[Path]:
    return [Path(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files()]


EVERYTHING = pa.table(
    {
        "b": [True, False, None],
        "i32": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "i64": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "f": pa.array([float("nan"), float("-inf"), None], pa.float32()),
        "d": pa.array([float("nan"), -0.0, None], pa.float64()),
        "day": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        "clock": pa.array([0, 86_399_999_999, None], pa.time64("us")),
        "moment": pa.array([-(2**50), 2**53, None], pa.timestamp("us", tz="UTC")),
        "local": pa.array([-(2**50), 2**53, None], pa.timestamp("us")),
        "s": ["", "é\n\"'", None],
        "bytes": pa.array([b"", b"\x00\xff", None], pa.binary()),
        "fixed": pa.array([b"abcd", b"\x00\xff\x00\xff", None], pa.binary(4)),
        "small": pa.array([Decimal("-99.99"), Decimal("0.01"), None], pa.decimal128(4, 2)),
        "large": pa.array([Decimal(10) ** 37, -(Decimal(10) ** 37), None], pa.decimal128(38, 0)),
        "struct": pa.array(
            [{"a": 1, "b": None}, {"a": None, "b": "x"}, None], pa.struct({"a": pa.int32(), "b": pa.string()})
        ),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int64())),
        "map": pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int32())),
        "deep": pa.array([[{"x": [1]}], [None], None], pa.list_(pa.struct({"x": pa.list_(pa.int32())}))),
    }
)


def test_every_type_is_taken_over(session: dl.Session, iceberg: Any) -> None:
    table = create(iceberg, EVERYTHING)
    session.add_table("iceberg", table.metadata_location, "t")
    check_same(lake_rows(session, "t"), table.scan().to_arrow())


def test_uuids_are_taken_over(session: dl.Session, iceberg: Any) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, UUIDType

    table = iceberg.create_table("db.u", Schema(NestedField(1, "u", UUIDType(), required=True)))
    value = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    kind = pa.schema([pa.field("u", pa.uuid(), nullable=False)])
    table.append(pa.table({"u": pa.array([value.bytes], pa.uuid())}, schema=kind))
    session.add_table("iceberg", table, "t")
    assert session.sql("FROM t").fetchall() == [(value,)]
    assert not session.table("t").schema[0].nulls_allowed


def test_a_table_is_named_in_three_ways(session: dl.Session, iceberg: Any) -> None:
    table = create(iceberg, pa.table({"i": [1, 2]}))
    folder = table.location().removeprefix("file://")
    for name, source in (("a", table), ("b", table.metadata_location), ("c", folder)):
        session.add_table("iceberg", source, name)
        check_same(lake_rows(session, name), table.scan().to_arrow())


def test_evolved_schemas_and_snapshots(session: dl.Session, iceberg: Any) -> None:
    rows = pa.table(
        {
            "i": pa.array([1], pa.int32()),
            "f": pa.array([1.1], pa.float32()),
            "m": pa.array([Decimal("1.25")], pa.decimal128(6, 2)),
            "gone": ["old"],
            "name": ["x"],
            "s": [{"u": 1, "v": "v"}],
        }
    )
    table = create(iceberg, rows)
    first = table.current_snapshot().snapshot_id
    with table.update_schema() as update:
        from pyiceberg.types import DecimalType, DoubleType, LongType, StringType

        update.update_column("i", LongType())
        update.update_column("f", DoubleType())
        update.update_column("m", DecimalType(20, 2))
        update.delete_column("gone")
        update.rename_column("name", "title")
        update.rename_column("s.u", "w")
        update.add_column("new", StringType())
        update.add_column(("s", "z"), LongType())
    with table.update_schema() as update:
        update.add_column("gone", LongType())
        update.move_first("new")
    table.append(
        pa.table(
            {
                "new": ["n"],
                "i": [2**40],
                "f": [0.1],
                "m": pa.array([Decimal("12345678901234567.75")], pa.decimal128(20, 2)),
                "title": ["y"],
                "s": [{"w": 2, "v": "q", "z": 3}],
                "gone": [5],
            }
        )
    )
    session.add_table("iceberg", table, "t")
    check_same(lake_rows(session, "t"), table.scan().to_arrow())
    session.add_table("iceberg", table, "first", version=first)
    check_same(lake_rows(session, "first"), table.scan(snapshot_id=first).to_arrow())
    assert session.sql("SELECT i, title FROM t WHERE f > 1").fetchall() == [(1, "x")]
    with pytest.raises(dl.UsageError, match="There is no snapshot 5"):
        session.add_table("iceberg", table, "u", version=5)


def partitioned(iceberg: Any, rows: pa.Table, *names: str) -> Any:
    table = iceberg.create_table("db.p", rows.schema)
    with table.update_spec() as update:
        for name in names:
            update.add_identity(name)
    return table


def test_partition_columns_in_files(session: dl.Session, iceberg: Any) -> None:
    rows = pa.table({"i": [1, 2, 3], "p": ["a/b=c%", None, ""], "d": [dt.date(2020, 1, 1), None, dt.date(1, 1, 1)]})
    table = partitioned(iceberg, rows, "p", "d")
    table.append(rows)
    session.add_table("iceberg", table, "t")
    check_same(lake_rows(session, "t"), table.scan().to_arrow())


def test_partition_columns_that_files_lack(session: dl.Session, iceberg: Any, tmp_path: Path) -> None:
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.typedef import Record

    kinds = {
        "i": pa.int64(),
        "p": pa.string(),
        "d": pa.date32(),
        "ts": pa.timestamp("us", tz="UTC"),
        "m": pa.decimal128(9, 2),
        "n": pa.int32(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "c": pa.time64("us"),
    }
    table = partitioned(iceberg, pa.schema(kinds).empty_table(), "p", "d", "ts", "m", "n", "f", "b", "c")
    values = [
        Record("a/b=c%", 18262, 1_500_000, Decimal("-1.50"), -7, 0.1, True, 3_600_000_001),
        Record(None, None, None, None, None, None, None, None),
        Record("", -719162, -1, Decimal("0.00"), 0, -0.0, False, 0),
        Record("null", 0, 0, Decimal("1.00"), 1, 1e20, True, 1),
    ]
    files = []
    for number, value in enumerate(values):
        path = tmp_path / "foreign" / f"f{number} [x].parquet"
        field = pa.field("i", pa.int64(), metadata={"PARQUET:field_id": "1"})
        pq.write_table(pa.table([pa.array([number])], schema=pa.schema([field])), path)
        files.append(iceberg_file(path, 1, DataFileContent.DATA, value))
    metadata = commit_files(table, files)
    session.add_table("iceberg", metadata, "t")
    check_same(lake_rows(session, "t"), reopened(metadata).scan().to_arrow())
    assert session.sql("SELECT i FROM t WHERE p = ''").fetchall() == [(2,)]


def test_files_without_field_ids_have_a_mapping_of_names(session: dl.Session, iceberg: Any, tmp_path: Path) -> None:
    path = tmp_path / "foreign" / "plain.parquet"
    rows = pa.table({"i": [1, 2], "s": [{"a": 1}, None], "l": [[1], None]})
    pq.write_table(rows, path)
    table = iceberg.create_table("db.n", rows.schema)
    table.add_files([str(path)])
    with table.update_schema() as update:
        update.rename_column("i", "renamed")
    session.add_table("iceberg", table, "t")
    check_same(lake_rows(session, "t"), table.scan().to_arrow())
    assert session.sql("SELECT renamed FROM t ORDER BY 1").fetchall() == [(1,), (2,)]


def test_position_deletes_become_delete_files(session: dl.Session, iceberg: Any, tmp_path: Path) -> None:
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.typedef import Record

    table = create(iceberg, pa.table({"i": range(100)}))
    table.append(pa.table({"i": range(100, 110)}))
    names = sorted((task.file.file_path for task in table.scan().plan_files()), key=lambda name: "-1-" in name)
    path = tmp_path / "foreign" / "deletes.parquet"
    positions = {name: [0, 3] if i else [2, 5, 2] for i, name in enumerate(names)}
    fields = [pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"})]
    fields += [pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"})]
    listed = [(name, position) for name, some in positions.items() for position in some]
    pq.write_table(pa.table(list(zip(*listed, strict=True)), schema=pa.schema(fields)), path)
    file = iceberg_file(path, len(listed), DataFileContent.POSITION_DELETES, Record())
    metadata = commit_files(table, [file], deletes=True)
    session.add_table("iceberg", metadata, "t")
    rows = lake_rows(session, "t")
    assert rows.num_rows == 106
    check_same(rows, reopened(metadata).scan().to_arrow())
    session.add_table("iceberg", table, "before")
    assert lake_rows(session, "before").num_rows == 110


def test_equality_deletes_are_refused(session: dl.Session, iceberg: Any, tmp_path: Path) -> None:
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.typedef import Record

    table = create(iceberg, pa.table({"i": range(10)}))
    path = tmp_path / "foreign" / "equal.parquet"
    pq.write_table(pa.table({"i": [3]}), path)
    file = iceberg_file(path, 1, DataFileContent.EQUALITY_DELETES, Record(), equality_ids=[1])
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.UnsupportedFeatureError, match="it has equality deletes"):
        session.add_table("iceberg", commit_files(table, [file], deletes=True), "t")
    assert session.current_snapshot().snapshot_id == before


def test_each_side_deletes_its_own_names(session: dl.Session, iceberg: Any) -> None:
    table = create(iceberg, pa.table({"i": range(100)}))
    files = data_files(table)
    for name in ("t", "u"):
        session.add_table("iceberg", table, name)
    session.sql("DROP TABLE t")
    session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")
    assert all(file.exists() for file in files)
    shutil.rmtree(files[0].parent)
    assert session.sql("SELECT count(*), sum(i) FROM u").fetchall() == [(100, 4950)]


def test_a_table_without_snapshots(session: dl.Session, iceberg: Any) -> None:
    table = iceberg.create_table("db.e", pa.schema({"i": pa.int32()}))
    session.add_table("iceberg", table, "t")
    assert session.sql("FROM t").fetchall() == [] and session.table("t").schema[0].type == "int32"


def test_refusals(session: dl.Session, iceberg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(iceberg, pa.table({"i": range(10)}))
    with pytest.raises(dl.UsageError, match="it has no metadata file"):
        session.add_table("iceberg", tmp_path, "t")
    with pytest.raises(dl.UsageError, match="There is no file"):
        session.add_table("iceberg", tmp_path / "nowhere.json", "t")
    broken = tmp_path / "broken.metadata.json"
    broken.write_text("{}")
    with pytest.raises(dl.UsageError, match="no metadata of an Iceberg table"):
        session.add_table("iceberg", broken, "t")
    with pytest.raises(dl.UsageError, match="neither a version"):
        session.add_table("iceberg", table, "t", version="x")  # type: ignore[arg-type]
    manifest = Path(table.current_snapshot().manifest_list.removeprefix("file://"))
    manifest.write_bytes(manifest.read_bytes()[:100])
    with pytest.raises(dl.DataFileError, match="metadata of the Iceberg table"):
        session.add_table("iceberg", table.metadata_location, "t")
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(dl.UnsupportedFeatureError, match=r'pip install "ducklake-lab\[iceberg\]"'):
        session.add_table("iceberg", table.metadata_location, "t")


def test_sql_adds_a_table(session: dl.Session, iceberg: Any) -> None:
    table = create(iceberg, pa.table({"i": [1]}))
    first = table.current_snapshot().snapshot_id
    table.append(pa.table({"i": [2]}))
    session.sql(f"CALL lake.add_iceberg_table('t', '{table.metadata_location}', snapshot_id => {first})")
    session.sql(f"CALL lake.add_iceberg_table('u', '{table.metadata_location}')")
    assert session.sql("SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)").fetchall() == [(1, 2)]


def test_deletion_vectors_become_delete_files(session: dl.Session, iceberg: Any, tmp_path: Path) -> None:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    table = create(iceberg, pa.table({"i": range(100)}))
    (name,) = (task.file.file_path for task in table.scan().plan_files())
    positions, snapshots = np.array([1, 5, 99]), np.array([1, 1, 2])
    data, _ = deletion_vectors.write(positions, snapshots, name)
    path = tmp_path / "foreign" / "deletes.puffin"
    path.write_bytes(data)
    assert list(deletion_vectors.by_data_file(data)) == [name]
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=str(path),
        file_format=FileFormat.PUFFIN,
        partition=Record(),
        record_count=3,
        file_size_in_bytes=len(data),
        spec_id=0,
    )
    metadata = commit_files(table, [file], deletes=True)
    session.add_table("iceberg", metadata, "t")
    assert session.sql("SELECT count(*), sum(i) FROM t").fetchall() == [(97, 4950 - 105)]
    path.write_bytes(data[:-1])
    with pytest.raises(dl.DataFileError, match="deletion vectors"):
        session.add_table("iceberg", metadata, "u")


def test_columns_that_differ_by_case_are_refused(session: dl.Session, iceberg: Any) -> None:
    table = create(iceberg, pa.table({"i": [1], "I": [2]}))
    with pytest.raises(dl.EntryExistsError, match="but for case"):
        session.add_table("iceberg", table, "t")

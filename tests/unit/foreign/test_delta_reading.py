"""Delta tables become tables of a lake: every value is the one that deltalake reads."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from ducklake_lab.model import deletion_vectors
from tests.unit.foreign.tables import (
    action,
    actions,
    alter_schema,
    check_same,
    commit,
    delta_rows,
    field,
    fields_of,
    lake_rows,
)

deltalake = pytest.importorskip("deltalake", reason="needs the extra [delta]")
pytestmark = pytest.mark.slow


@pytest.fixture
def session(lake_uri: Callable[[], str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        yield session


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreign" / "a table"


def write(path: Path, rows: pa.Table, **options: object) -> None:
    path.parent.mkdir(exist_ok=True)
    deltalake.write_deltalake(path, rows, **options)


def delete_by_vector(path: Path, positions: list[int], number: int = 0) -> int:
    """Commit a deletion vector for one file, which lies beside the table."""
    adds = [
        entry["add"]
        for log in sorted((path / "_delta_log").glob("*.json"))
        for entry in map(json.loads, log.read_text().splitlines())
        if "add" in entry
    ]
    add = adds[number]
    data = deletion_vectors.encode(np.array(positions, np.int64))
    place = path / "deletion_vector.bin"
    place.write_bytes(b"\x01" + data)
    vector = {
        "storageType": "p",
        "pathOrInlineDv": place.as_uri(),
        "offset": 1,
        "sizeInBytes": len(data) - 8,
        "cardinality": len(positions),
    }
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}  # type: ignore[dict-item]
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 0}
    return commit(path, [{"protocol": protocol}, {"remove": remove}, {"add": {**add, "deletionVector": vector}}])


EVERYTHING = pa.table(
    {
        "b": [True, False, None],
        "i8": pa.array([-128, 127, None], pa.int8()),
        "i16": pa.array([-32768, 32767, None], pa.int16()),
        "i32": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "i64": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "f": pa.array([float("nan"), float("-inf"), None], pa.float32()),
        "d": pa.array([float("nan"), -0.0, None], pa.float64()),
        "day": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
        "moment": pa.array([-(2**50), 2**53, None], pa.timestamp("us", tz="UTC")),
        "local": pa.array([-(2**50), 2**53, None], pa.timestamp("us")),
        "s": ["", "é\n\"'", None],
        "bytes": pa.array([b"", b"\x00\xff", None], pa.binary()),
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


def test_every_type_is_taken_over(session: dl.Session, path: Path) -> None:
    write(path, EVERYTHING)
    session.add_table("delta", path, "t")
    check_same(lake_rows(session, "t"), delta_rows(path))
    assert [column.type for column in session.table("t").schema][:4] == ["boolean", "int8", "int16", "int32"]


def test_partition_values_come_from_the_log(session: dl.Session, path: Path) -> None:
    texts = ["a b", "c/d=é%&?#[*]", None, "NULL", "x=y/z", "__HIVE", "ü" * 20, "'\""]
    rows = pa.table(
        {
            "n": range(8),
            "s": texts,
            "day": [None, dt.date(1, 1, 1), *[dt.date(2020, 1, day) for day in range(1, 7)]],
            "moment": pa.array([None, -1, 0, 1_500_000, 10**15, 1, 2, 3], pa.timestamp("us", tz="UTC")),
            "local": pa.array([None, -1, 0, 1_500_000, 10**15, 1, 2, 3], pa.timestamp("us")),
            "money": pa.array([None, *[Decimal(f"{i}.50") for i in range(7)]], pa.decimal128(9, 2)),
            "yes": [None, True, False, True, None, True, False, True],
            "real": [None, 0.1, -0.0, 1e20, 5e-9, 1.0, 2.0, 3.0],
            "small": pa.array([None, -128, 127, 0, 1, 2, 3, 4], pa.int8()),
        }
    )
    write(path, rows, partition_by=["s", "day", "moment", "local", "money", "yes", "real", "small"])
    session.add_table("delta", path, "t")
    check_same(lake_rows(session, "t"), delta_rows(path))
    session.sql("SET TimeZone = 'Asia/Tokyo'")
    check_same(lake_rows(session, "t"), delta_rows(path))
    assert session.sql("SELECT n FROM t WHERE s = 'c/d=é%&?#[*]'").fetchall() == [(1,)]
    assert session.sql("SELECT n FROM t WHERE day IS NULL").fetchall() == [(0,)]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_mapped_and_altered(session: dl.Session, path: Path, mode: str) -> None:
    write(
        path,
        pa.table({"a": [1, 2], "b": ["x", "y"], "p": ["q", None], "s": [{"u": 1, "v": 2}, None]}),
        partition_by=["p"],
        configuration={"delta.columnMapping.mode": mode},
    )
    a, _, p, s = fields_of(path)
    u = s["type"]["fields"][0]
    s["type"]["fields"] = [{**u, "name": "w"}, field("u", "string", 11, "col-new-u")]
    fields = [field("b", "long", 12, "col-new-b"), {**a, "name": "renamed"}, {**p, "name": "part"}, s]
    alter_schema(path, fields, partitionColumns=["part"])
    session.add_table("delta", path, "t")
    expected = pa.table(
        {
            "b": pa.array([None, None], pa.int64()),
            "renamed": [1, 2],
            "part": ["q", None],
            "s": pa.array([{"w": 1, "u": None}, None], pa.struct({"w": pa.int64(), "u": pa.string()})),
        }
    )
    check_same(lake_rows(session, "t"), expected)
    check_same(lake_rows(session, "t"), delta_rows(path))


def test_deletion_vectors_become_delete_files(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": range(1000)}))
    write(path, pa.table({"i": range(1000, 1010)}), mode="append")
    delete_by_vector(path, [0, 7, 999])
    session.add_table("delta", path, "t")
    rows = lake_rows(session, "t")
    assert rows.num_rows == 1007
    check_same(rows, delta_rows(path))
    session.sql("DELETE FROM t WHERE i IN (1, 8, 1005)")
    assert session.sql("SELECT count(*), sum(i) FROM t").fetchall() == [(1004, 1009 * 505 - 1006 - 1014)]


def test_a_file_without_rows_left_is_left_out(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": [1, 2]}))
    write(path, pa.table({"i": [3]}), mode="append")
    delete_by_vector(path, [0, 1])
    session.add_table("delta", path, "t")
    assert session.sql("FROM t").fetchall() == [(3,)]


def test_versions_and_evolved_schemas(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"a": [1]}))
    write(path, pa.table({"a": [2], "b": ["x"]}), mode="append", schema_mode="merge")
    write(path, pa.table({"a": [3], "b": ["y"]}), mode="overwrite")
    for version in (0, 1, 2):
        session.add_table("delta", path, f"t{version}", version=version)
        check_same(lake_rows(session, f"t{version}"), delta_rows(path, version))
    with pytest.raises(dl.DuckLakeError, match="at version 9"):
        session.add_table("delta", path, "u", version=9)


def test_each_side_deletes_its_own_names(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": range(100)}))
    write(path, pa.table({"i": range(100, 200)}), mode="append")
    files = sorted(path.glob("*.parquet"))
    for name in ("t", "u"):
        session.add_table("delta", path, name)
    session.sql("DELETE FROM t WHERE i % 2 = 0")
    session.sql("CALL lake.rewrite_data_files('t', delete_threshold => 0.1)")
    session.sql("DROP TABLE t")
    session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
    session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")
    assert sorted(path.glob("*.parquet")) == files
    assert deltalake.DeltaTable(path).to_pyarrow_table().num_rows == 200
    shutil.rmtree(path)
    assert session.sql("SELECT count(*), sum(i) FROM u").fetchall() == [(200, 19900)]


def test_an_empty_table_has_its_columns(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": pa.array([], pa.int32())}))
    session.add_table("delta", path, "t")
    assert session.sql("FROM t").fetchall() == [] and session.table("t").schema[0].type == "int32"


def test_within_a_transaction(session: dl.Session, path: Path, tmp_path: Path) -> None:
    write(path, pa.table({"i": range(10)}))
    delete_by_vector(path, [3])
    session.sql("BEGIN")
    session.add_table("delta", path, "t")
    session.sql("DELETE FROM t WHERE i = 4")
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(8,)]
    session.sql("ROLLBACK")
    assert not [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
    assert len(list(path.glob("*.parquet"))) == 1


def test_refusals_leave_nothing_behind(session: dl.Session, path: Path, tmp_path: Path) -> None:
    write(path, pa.table({"i": [1], "p": [b"x"]}), partition_by=["p"])
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.UnsupportedFeatureError, match="partitioned by p, whose values are binary"):
        session.add_table("delta", path, "t")
    alter_schema(path, [{"name": "i", "type": "variant", "nullable": True, "metadata": {}}])
    with pytest.raises(dl.DuckLakeError):
        session.add_table("delta", path, "t")
    other = tmp_path / "foreign" / "int96"
    write(other, pa.table({"t": pa.array([0], pa.timestamp("us", tz="UTC"))}))
    file = next(other.glob("*.parquet"))
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)
    add = dict(action(other, "add"))
    commit(other, [{"add": {**add, "size": file.stat().st_size}}])
    with pytest.raises(dl.DuckLakeError, match="found type TIMESTAMP"):
        session.add_table("delta", other, "t")
    # the file beside the table stays, and one of another type is not cast
    alter_schema(other, [{"name": "t", "type": "integer", "nullable": True, "metadata": {}}])
    with pytest.raises(dl.ConstraintError, match="Expected INTEGER"):
        session.add_table("delta", other, "t", copy=True)
    file.write_bytes(b"")
    with pytest.raises(dl.DataFileError, match="has 0 bytes instead of"):
        session.add_table("delta", other, "t")
    file.unlink()
    with pytest.raises(dl.DataFileError, match="names a file that is not there"):
        session.add_table("delta", other, "t")
    with pytest.raises(dl.UsageError, match="is no Delta table"):
        session.add_table("delta", tmp_path / "nowhere", "t")
    with pytest.raises(dl.UsageError, match="is not a table format"):
        session.add_table("hudi", other, "t")  # type: ignore[arg-type]
    with pytest.raises(dl.UnsupportedFeatureError, match="not on this machine's disks"):
        session.add_table("delta", "s3://bucket/t", "t")
    assert session.current_snapshot().snapshot_id == before
    assert not [file for file in (tmp_path / "data").rglob("*") if file.is_file()]


def test_the_missing_package_is_named(session: dl.Session, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(dl.UnsupportedFeatureError, match=r'pip install "ducklake-lab\[delta\]"'):
        session.add_table("delta", path, "t")


def test_sql_adds_a_table(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": [1]}))
    write(path, pa.table({"i": [2]}), mode="append")
    session.sql("CREATE SCHEMA s")
    added = session.sql(f"CALL lake.add_delta_table('t', '{path}', schema => 's', version => 0)")
    assert added.fetchall() == [("s", "t", 1)]
    session.sql(f"CALL ducklake_add_delta_table('lake', 'u', '{path}')")
    assert session.sql("SELECT (SELECT count(*) FROM s.t), (SELECT count(*) FROM u)").fetchall() == [(1, 2)]
    with pytest.raises(dl.EntryExistsError, match="u"):
        session.sql(f"CALL lake.add_delta_table('u', '{path}')")
    with pytest.raises(dl.UsageError, match="whole number"):
        session.sql(f"CALL lake.add_delta_table('v', '{path}', version => 'x')")
    with pytest.raises(dl.UsageError, match="both as texts"):
        session.sql("CALL lake.add_delta_table('v', 7)")


def test_times_of_spark_are_written(session: dl.Session, path: Path) -> None:
    """Spark writes INT96, which DuckDB reads without a zone."""
    rows = pa.table({"i": range(1000), "t": pa.array(range(1000), pa.timestamp("us", tz="UTC")), "p": ["x"] * 1000})
    write(path, rows, partition_by=["p"])
    write(path, rows.slice(0, 5), mode="append")
    file = path / actions(path, 0)[-1]["add"]["path"]
    pq.write_table(pq.read_table(file, partitioning=None), file, use_deprecated_int96_timestamps=True)
    commit(path, [{"add": {**actions(path, 0)[-1]["add"], "size": file.stat().st_size}}])
    delete_by_vector(path, [0, 999], number=-1)
    with pytest.raises(dl.ConstraintError, match="With copy=True"):
        session.add_table("delta", path, "t")
    session.sql("SET TimeZone = 'Asia/Tokyo'")
    session.add_table("delta", path, "t", copy=True)
    found = lake_rows(session, "t")
    check_same(found, pa.concat_tables([rows.slice(1, 998), rows.slice(0, 5)]))
    check_same(found, delta_rows(path))


def test_features_that_change_rows_are_refused(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": [1]}))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["typeWidening"]}
    commit(path, [{"protocol": {**protocol, "writerFeatures": ["typeWidening"]}}])
    with pytest.raises(dl.UnsupportedFeatureError, match="it uses typeWidening"):
        session.add_table("delta", path, "t")


def test_names_in_another_case_are_refused(session: dl.Session, path: Path) -> None:
    write(path, pa.table({"i": [1], "Name": ["x"]}))
    i, name = fields_of(path)
    alter_schema(path, [i, {**name, "name": "name"}])
    with pytest.raises(dl.ConstraintError, match="in other upper and lower case"):
        session.add_table("delta", path, "t")
    alter_schema(path, [i, {**i, "name": "I"}])
    with pytest.raises(dl.DuckLakeError):
        session.add_table("delta", path, "t")


def test_damaged_deletion_vectors(session: dl.Session, path: Path, tmp_path: Path) -> None:
    write(path, pa.table({"i": [1, 2]}))
    delete_by_vector(path, [7])
    with pytest.raises(dl.DataFileError):
        session.add_table("delta", path, "t")
    (path / "deletion_vector.bin").write_bytes(b"\x01nonsense")
    with pytest.raises(dl.DataFileError):
        session.add_table("delta", path, "t")
    assert not [file for file in (tmp_path / "data").rglob("*") if file.is_file()]


def test_a_lake_that_is_read_only_gets_nothing(path: Path, tmp_path: Path) -> None:
    write(path, pa.table({"i": [1]}))
    uri = f"ducklake:{tmp_path}/only.ducklake"
    dl.connect(uri, data_path=f"{tmp_path}/[data] *").close()
    with dl.connect(uri, read_only=True) as session, pytest.raises(dl.TransactionError):
        session.add_table("delta", path, "t")
    assert not [file for file in tmp_path.glob("[[]data*/**/*") if file.is_file()]


def test_folders_with_signs_of_patterns(path: Path, tmp_path: Path) -> None:
    write(path, pa.table({"i": [1], "p": ["x*"]}), partition_by=["p"])
    with dl.connect(f"ducklake:{tmp_path}/odd.ducklake", data_path=f"{tmp_path}/column_2=y") as session:
        session.add_table("delta", path, "t")
        assert session.sql("FROM t").fetchall() == [(1, "x*")]
        session.add_table("delta", path.rename(path.parent / "a[b]*c?#"), "u")
        assert session.sql("FROM u").fetchall() == [(1, "x*")]


def test_two_sessions_add_one_name(path: Path, tmp_path: Path) -> None:
    write(path, pa.table({"i": [1]}))
    uri = f"ducklake:sqlite:{tmp_path}/two.db"
    with dl.connect(uri, data_path=f"{tmp_path}/two") as one, dl.connect(uri) as two:
        one.sql("BEGIN")
        one.add_table("delta", path, "t")
        two.add_table("delta", path, "t")
        with pytest.raises(dl.TransactionConflictError):
            one.sql("COMMIT")
        assert one.sql("FROM t").fetchall() == [(1,)]
    assert len(list((tmp_path / "two").rglob("*.parquet"))) == 1


def test_added_tables_are_altered_merged_and_branched(session: dl.Session, path: Path) -> None:
    rows = pa.table({"i": range(6), "p": [1, 1, 2, 2, None, None], "s": ["a b", "c/d", None, "null", "x", "y"]})
    write(path, rows, partition_by=["p", "s"])
    session.add_table("delta", path, "t")
    before = session.current_snapshot().snapshot_id
    session.sql("ALTER TABLE t RENAME COLUMN s TO z; ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 3")
    session.sql("UPDATE t SET p = 9 WHERE i = 0; DELETE FROM t WHERE i = 5")
    session.sql("CALL lake.merge_adjacent_files(); CALL lake.rewrite_data_files('t', delete_threshold => 0)")
    expected = [(0, 9, "a b", 3), (1, 1, "c/d", 3), (2, 2, None, 3), (3, 2, "null", 3), (4, None, "x", 3)]
    assert session.sql("FROM t ORDER BY i").fetchall() == expected
    check_same(session.sql(f"FROM t AT (VERSION => {before})").arrow(), rows)
    changed = session.sql(f"FROM lake.table_changes('t', {before}, {before})").arrow()
    check_same(changed.select(["i", "p", "s"]), rows)
    session.branch("b")
    session.switch("b")
    assert session.sql("FROM t ORDER BY i").fetchall() == expected

"""Files of a write that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as ds
from pyspark.sql.types import LongType, StructField, StructType

import ducklake_lab as dl
from ducklake_lab.datasource import writer as w
from ducklake_lab.datasource.options import Target
from ducklake_lab.datasource.source import DuckLakeDataSource
from ducklake_lab.errors import CommitUnknownError, TransactionConflictError, UnsupportedFeatureError


@pytest.fixture
def writer(tmp_path: Path) -> w.TableWriter:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i BIGINT)")
    target = Target.of({"path": uri, "table": "t"})
    return w.TableWriter(target, StructType([StructField("i", LongType())]), overwrite=False)


def _written(writer: w.TableWriter, folder: Path) -> tuple[Any, Path]:
    message = writer.write(iter([pa.RecordBatch.from_pydict({"i": list(range(50))})]))
    (file,) = folder.rglob("*.parquet")
    return message, file


def test_files_of_a_commit_that_may_have_landed_stay(
    writer: w.TableWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    message, file = _written(writer, tmp_path)

    def lost(transaction: object) -> None:
        raise CommitUnknownError("the connection broke")

    monkeypatch.setattr(w, "commit", lost)
    with pytest.raises(CommitUnknownError):
        writer.commit([message])
    writer.abort([message])  # as Spark does
    assert file.exists()


def test_files_of_a_refused_commit_go(writer: w.TableWriter, tmp_path: Path):
    message, file = _written(writer, tmp_path)
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        session.sql("ALTER TABLE t ADD COLUMN j INTEGER")
    with pytest.raises(TransactionConflictError, match="altered"):
        writer.commit([message])
    assert not file.exists()
    writer.abort([message])


def test_files_go_where_another_task_failed(writer: w.TableWriter, tmp_path: Path):
    message, file = _written(writer, tmp_path)
    writer.abort([message, None])
    assert not file.exists()


def test_streams_are_refused_before_pyspark_4_1(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(ds, "DataSourceStreamArrowWriter", raising=False)
    source = DuckLakeDataSource({"path": "ducklake:lake.ducklake", "table": "t"})
    with pytest.raises(UnsupportedFeatureError, match=r"PySpark 4\.1 .* foreachBatch"):
        source.streamWriter(StructType([StructField("i", LongType())]), overwrite=False)

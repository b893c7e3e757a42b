"""Uploads of a session whose engine is Spark: the rows, types and errors of those in process, from a disk and an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

import ducklake_lab as dl
from tests.object_store import object_store

pytestmark = pytest.mark.sampled(5)

TYPES = (
    "d,t,ts,tz,b,tn,n,p,q\n"
    "2024-01-01,10:00:00,2024-01-01 10:00:00.123456,2024-01-01 10:00:00+02:00,true,2024-01-01 10:00:00.123456789,1,0.1,007\n"
    "0044-03-15 (BC),23:59:59.999999,1900-01-01 00:00:00,1900-01-01 00:00:00Z,false,2024-01-01 10:00:00,-7,1e300,\n"
)
#: Files by name, and how they are uploaded.
CASES: tuple[tuple[dict[str, str | bytes | Callable[[Path], None]], dict[str, Any]], ...] = (
    ({"a.csv": "a,b\n1,2\n3,4,5\n"}, {}),
    ({"a.csv": "name\nAnn\nBob; Eve\n"}, {}),
    ({"a.csv": "x,price\n1,$1,000\n"}, {}),
    ({"a.csv": TYPES}, {}),
    ({"a.csv": "n\n5.7\n"}, {"types": {"n": "INTEGER"}}),
    ({"a.csv": "n\n5.7\n"}, {"types": {"n": "INTEGER"}, "round": True}),
    ({"0.csv": "a,b\n1,2\n", "1.csv": "3,4\n5,6\n"}, {}),
    ({"0.csv": "a,b\n1,x\n", "1.csv": "b,a\ny,4\n"}, {}),
    ({"a.csv": "x\n12345678901234567.89\n"}, {}),
    ({"a.json": '{"x": 18446744073709551617}'}, {}),
    ({"a.json": '{"x": 1e400}'}, {}),
    ({"0.json": '{"a": 9007199254740993}', "1.json": '{"a": 0.5, "b": "x"}'}, {}),
    ({"a.csv": "n,s\n1,ä\n".encode("latin-1")}, {}),
    ({"a.csv": "n,s\n1,ä\n".encode("latin-1")}, {"encoding": "latin-1"}),
    ({"0.xlsx": [["a", "b"], [1, "NA"]], "1.xlsx": [["a", "b"], [2.5, "y"]]}, {}),  # type: ignore[dict-item]
    ({"0.xlsx": [["a", "b"], [1, "NA"]], "1.xlsx": [["a"], [2]]}, {}),  # type: ignore[dict-item]
    ({"0.parquet": pa.table({"x": [1], "y": ["q"]}), "1.parquet": pa.table({"x": [2]})}, {}),
    ({"0.parquet": pa.table({"x": [2**53 + 1]}), "1.parquet": pa.table({"x": [0.5]})}, {}),
    ({"0.parquet": pa.table({"x": [{"a": 1}]}), "1.parquet": pa.table({"x": [{"a": 0.5, "b": "z"}]})}, {}),
)


@pytest.fixture(scope="module")
def sessions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dl.Session]]:
    folder = tmp_path_factory.mktemp("uploads")
    with (
        dl.connect(f"ducklake:{folder}/s.ducklake", engine="spark", spark=spark) as on_spark,
        dl.connect(f"ducklake:{folder}/d.ducklake", engine="duckdb") as in_process,
    ):
        yield [on_spark, in_process]


def _write(folder: Path, files: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, pa.Table):
            pq.write_table(content, folder / name)
        elif isinstance(content, list):
            book = openpyxl.Workbook()
            for row in content:
                book.active.append(row)
            book.save(folder / name)
        else:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def _uploaded(session: dl.Session, source: str, options: dict[str, Any]) -> tuple[object, ...]:
    try:
        found = session.upload(source, "t", "replace", **options)
        found.apply()
    except dl.DuckLakeError as error:
        return type(error), str(error)
    result = session.sql("SELECT *, COLUMNS(*)::VARCHAR FROM t")
    return list(map(repr, found)), found.note, result.types, sorted(map(repr, result.fetchall()))


@pytest.mark.parametrize("case", range(len(CASES)))
def test_both_engines_take_the_same(sessions: list[dl.Session], tmp_path: Path, case: int) -> None:
    files, options = CASES[case]
    _write(tmp_path / "f", files)
    source = f"{tmp_path}/f/*" if len(files) > 1 else f"{tmp_path}/f/{next(iter(files))}"
    on_spark, in_process = (_uploaded(session, source, options) for session in sessions)
    assert on_spark == in_process


def test_files_of_an_object_store(sessions: list[dl.Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    with object_store("uploads") as store:
        remote = fs.S3FileSystem(
            access_key="k", secret_key="s", region="us-east-1", endpoint_override=store.endpoint, scheme="http"
        )
        for case in range(len(CASES)):
            _write(tmp_path / f"{case}", CASES[case][0])
        for year in (2023, 2024):
            _write(tmp_path / f"years/year={year}", {"0.parquet": pa.table({"x": [year]})})
        fs.copy_files(str(tmp_path), "uploads", source_filesystem=fs.LocalFileSystem(), destination_filesystem=remote)
        for session in sessions:
            session.sql(
                "CREATE OR REPLACE SECRET store (TYPE s3, KEY_ID 'k', SECRET 's', REGION 'us-east-1', "
                f"ENDPOINT '{store.endpoint.removeprefix('http://')}', USE_SSL false, SCOPE 's3://uploads')"
            )
        for case, (files, options) in enumerate(CASES):
            pattern = "*" if len(files) > 1 else next(iter(files))
            far, other, near = (
                _uploaded(session, f"{place}/{case}/{pattern}", options)
                for session, place in zip(
                    (*sessions, sessions[1]), ("s3://uploads", "s3://uploads", tmp_path), strict=True
                )
            )
            assert far == other
            if not isinstance(near[0], type):
                assert far[2:] == near[2:]
            else:
                assert far[0] == near[0]
                assert str(far[1]).replace("s3://uploads", str(tmp_path)) == near[1]
        for session in sessions:
            session.upload("s3://uploads/years/year=*/*.parquet", "y", "replace").apply()
            assert session.sql("SELECT x, year FROM y ORDER BY x").fetchall() == [(2023, 2023), (2024, 2024)]
            with pytest.raises(dl.UsageError, match=r"^No file matches s3://uploads/none/\*\.csv\.$"):
                session.upload("s3://uploads/none/*.csv")
            with pytest.raises(dl.DataFileError, match=r"^The file s3://uploads/none\.csv does not exist\.$"):
                session.upload("s3://uploads/none.csv")

"""Catalog files have a storage version that DuckDB 1.5 reads; an error names the DuckDB that reads others."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.version import READS_VARIANT_BYTES, SINCE_DUCKDB_2

#: What DuckDB 1.5 writes, and what 2.0 does.
_OLD, _NEW = 68, 999


def number(path: Path) -> int:
    """The storage version of a file."""
    return int(struct.unpack("<Q", path.read_bytes()[12:20])[0])


def test_a_new_file_is_read_by_duckdb_1_5(tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    kind = "VARIANT" if READS_VARIANT_BYTES else "INTEGER[]"
    for _ in range(2):
        with dl.connect(f"ducklake:{path}") as session:
            session.sql(f"CREATE TABLE IF NOT EXISTS t (i INTEGER, v {kind}); INSERT INTO t VALUES (1, [1, 2])")
        assert number(path) == _OLD


@pytest.mark.skipif(not SINCE_DUCKDB_2, reason="DuckDB 1.5 writes one storage version")
@pytest.mark.parametrize(
    "asked",
    [
        "ATTACH 'ducklake:{0}' AS lake (STORAGE_VERSION 'v2.0.0')",
        "ATTACH 'ducklake:{0}' AS lake (META_STORAGE_VERSION 'latest')",
        "SET storage_compatibility_version = 'v2.0.0'; ATTACH 'ducklake:{0}' AS lake",
    ],
)
def test_a_newer_storage_is_asked_for(asked: str, tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    with dl.Session() as session:
        session.sql(asked.format(path))
        session.sql("CREATE TABLE lake.t (i INTEGER); INSERT INTO lake.t VALUES (1)")
        session.sql("RESET storage_compatibility_version")
        session.sql(f"ATTACH 'ducklake:{tmp_path}/other.ducklake' AS other")
    assert (number(path), number(tmp_path / "other.ducklake")) == (_NEW, _OLD)
    with dl.connect(f"ducklake:{path}") as session:
        session.sql("INSERT INTO t VALUES (2)")
        assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,)]
    assert number(path) == _NEW


@pytest.mark.parametrize("name", ["v1.4.0", "v1.5", "2", "newest"])
def test_a_storage_that_catalogs_cannot_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(dl.UsageError, match=f"^{name} is no storage version that catalogs can have; use v1.5.0, "):
        dl.connect(f"ducklake:{tmp_path}/lake.ducklake", storage_version=name)
    with dl.Session() as session, pytest.raises(dl.UsageError, match="no storage version"):
        session.sql(f"SET storage_compatibility_version = '{name}'")
    assert list(tmp_path.iterdir()) == []


def test_other_catalogs_have_none(tmp_path: Path) -> None:
    with pytest.raises(dl.UnsupportedFeatureError, match="Catalogs in sqlite have no storage version"):
        dl.connect(f"ducklake:sqlite:{tmp_path}/lake.sqlite", storage_version="latest")


def test_a_file_of_a_newer_duckdb_says_which_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "lake.ducklake"
    header = bytearray(12_288)
    header[8:12] = b"DUCK"
    header[12:20] = struct.pack("<Q", 9_999)
    header[52:58] = b"v9.1.0"
    path.write_bytes(header)
    with pytest.raises(duckdb.Error, match="computed checksum") as wrong:
        duckdb.connect(path)
    (checksum,) = re.findall(r"computed checksum (\d+)", str(wrong.value))
    header[:8] = struct.pack("<Q", int(checksum))
    path.write_bytes(header)
    with pytest.raises(dl.CatalogError) as caught:
        dl.connect(f"ducklake:{path}")
    assert str(caught.value) == (
        f"DuckDB {duckdb.__version__} cannot read the catalog lake.ducklake; "
        "use DuckDB 9.1.0, which wrote it: pip install 'duckdb==9.1.*'."
    )
    assert path.read_bytes() == header

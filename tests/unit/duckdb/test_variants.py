"""Variants, where the installed DuckDB cannot make them of bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb import variants


def test_they_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "READS_VARIANT_BYTES", False)
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake") as session:
        session.sql("CREATE TABLE t (i INTEGER, v VARIANT)")
        with pytest.raises(dl.UnsupportedFeatureError, match=r"VARIANT need DuckDB 1\.5\.4 or newer; update duckdb"):
            session.sql("INSERT INTO t VALUES (1, 5)")
        assert session.current_snapshot().snapshot_id == 1

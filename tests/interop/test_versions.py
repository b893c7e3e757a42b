"""Spec version of a new lake: asked for at ATTACH, by a setting, or by the installed DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.catalog import versions
from tests.interop.test_independent import Make
from tests.interop.test_independent_written import connect

pytestmark = pytest.mark.sampled(5)


@pytest.mark.parametrize("name", ["1.2", "0.4", "latest", "1.1-dev1"])
def test_only_versions_that_are_written_can_be_asked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(dl.UsageError, match=r"use 1\.0 or 1\.1"):
        connect(f"ducklake:{tmp_path}/x.ducklake", tmp_path, ducklake_version=name)
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.UsageError, match=r"use 1\.0 or 1\.1"):
        session.sql(f"ATTACH 'ducklake:{tmp_path}/x.ducklake' AS x (DUCKLAKE_VERSION '{name}')")


def test_a_setting_says_the_version_of_new_lakes(lake_uri: Make, tmp_path: Path) -> None:
    new, old = lake_uri("new"), lake_uri("old")
    with dl.Session(engine="duckdb") as session:
        with pytest.raises(dl.UsageError, match=r"use 1\.0 or 1\.1"):
            session.sql("SET ducklake_default_version = '0.3'")
        session.sql("SET ducklake_default_version = '1.1'")
        session.sql(f"ATTACH '{new}' AS new (DATA_PATH '{tmp_path}/new')")
        session.sql(f"ATTACH '{old}' AS old (DATA_PATH '{tmp_path}/old', DUCKLAKE_VERSION '1.0')")
        session.sql("RESET ducklake_default_version")
        session.sql(f"ATTACH '{lake_uri('reset')}' AS again (DATA_PATH '{tmp_path}/again')")
        assert [lake.version.name for lake in session.lakes] == ["1.1", "1.0", versions.DEFAULT.name]
        session.sql("DETACH old; DETACH new")
        session.sql("SET ducklake_default_version = '1.1'")
        session.sql(f"ATTACH '{new}' AS new")
        with pytest.raises(
            dl.CatalogVersionError, match=r"not 1\.1; RESET ducklake_default_version.*, or attach it with"
        ):
            session.sql(f"ATTACH '{old}' AS old")
        session.sql("DETACH new; SET ducklake_default_version = '1.0'")
        with pytest.raises(
            dl.CatalogVersionError, match=r"not 1\.0; RESET ducklake_default_version.*; there is no way"
        ):
            session.sql(f"ATTACH '{new}' AS new")
        session.sql(f"ATTACH '{new}' AS new (DUCKLAKE_VERSION '1.1')")
        session.sql(f"ATTACH '{old}' AS old (AUTOMATIC_MIGRATION)")
        found = {lake.alias: lake.version.name for lake in session.lakes}
        assert found["new"] == "1.1" and found["old"] == "1.0"
    with dl.connect(lake_uri("kept"), data_path=f"{tmp_path}/kept") as session:
        assert session.current_lake.version is versions.DEFAULT


#: What a lake of either version can do.
BOTH = """
CREATE TABLE n (i INTEGER, s VARCHAR, d DECIMAL(9,2) DEFAULT 1.5, v STRUCT(a INTEGER, b VARCHAR[]));
INSERT INTO n SELECT i, 'x' || i, i / 4, {'a': i, 'b': ['y']} FROM range(5) AS r(i);
INSERT INTO n SELECT i, 'x' || i, i / 4, NULL FROM range(5, 500) AS r(i);
UPDATE n SET s = 'seven' WHERE i IN (2, 7);
DELETE FROM n WHERE i % 50 = 3;
MERGE INTO n USING (SELECT 4 AS i UNION ALL SELECT 2000) AS m ON n.i = m.i
    WHEN MATCHED THEN UPDATE SET s = 'four' WHEN NOT MATCHED THEN INSERT (i, s) VALUES (m.i, 'new');
ALTER TABLE n ADD COLUMN e DATE DEFAULT '2024-02-29';
INSERT INTO n (i) VALUES (1000);
CALL ducklake_flush_inlined_data('lake');
INSERT INTO n (i) SELECT 2000 + i FROM range(50) AS r(i);
CALL ducklake_merge_adjacent_files('lake');
CALL lake.restore('n', to => 4);
DELETE FROM n WHERE i > 480;
CALL ducklake_rewrite_data_files('lake', delete_threshold => 0);
TRUNCATE n
"""


@pytest.mark.every_catalog
@pytest.mark.parametrize("vectors", [False, True])
def test_both_versions_have_the_same_rows_at_every_snapshot(lake_uri: Make, tmp_path: Path, *, vectors: bool) -> None:
    found = []
    for version in versions.WRITTEN:
        with connect(lake_uri(version), tmp_path / version, ducklake_version=version) as session:
            session.sql(f"CALL ducklake_set_option('lake', 'write_deletion_vectors', {vectors})")
            session.sql(BOTH)
            last = session.current_snapshot().snapshot_id
            rows = [
                session.sql(f"SELECT rowid, * FROM n AT (VERSION => {at}) ORDER BY 1").fetchall()
                for at in range(1, last)
            ]
            feed = session.sql(f"FROM ducklake_table_changes('lake', 'main', 'n', 1, {last}) ORDER BY ALL").fetchall()
            moved = [(entry.rows_added, entry.rows_removed) for entry in session.snapshots()]
            session.sql("CALL ducklake_expire_snapshots('lake', versions => [2, 3, 5])")
            session.sql("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
            left = session.sql("SELECT count(*) FROM n AT (VERSION => 4)").fetchall()
            found.append((rows, feed, moved, left))
    assert found[0] == found[1] and max(map(len, found[0][0])) > 500


def test_attach_says_the_version(lake_uri: Make, tmp_path: Path) -> None:
    for version in versions.WRITTEN:
        uri = lake_uri(f"lake{version}")
        with dl.Session(engine="duckdb") as session:
            session.sql(f"ATTACH '{uri}' AS x (DUCKLAKE_VERSION '{version}', DATA_PATH '{tmp_path}/d{version}')")
            session.sql("CREATE TABLE x.t AS SELECT 1 AS i")
            found = session.sql("SELECT value FROM __ducklake_metadata_x.ducklake_metadata WHERE key = 'version'")
            assert found.fetchall() == [(version,)]
            session.sql("DETACH x")
        other = next(name for name in versions.WRITTEN if name != version)
        with pytest.raises(dl.CatalogVersionError, match=rf"is of version {version}, not {other}"):
            dl.connect(uri, ducklake_version=other)

"""Lakes of 1.0 and before, brought to 1.1: as the independent implementation does, readable at every snapshot."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog.uri import parse_uri
from tests.independent import KINDS, history, open_lake
from tests.interop.comparing import attach, detach
from tests.interop.test_independent import Make, check_history, run
from tests.interop.test_independent_written import content
from tests.interop.test_old_lakes import check_rows, uri
from tests.old_lakes.make import unpack

SCRIPT = """
CREATE SCHEMA lake.other; USE lake;
CREATE TABLE n (i INTEGER, s VARCHAR, d DATE, st STRUCT(a INTEGER, b VARCHAR));
INSERT INTO n VALUES (1, 'one', '2024-02-29', {'a': 1, 'b': 'x'}), (2, NULL, NULL, NULL);
INSERT INTO n SELECT i, 'row ' || i, NULL, NULL FROM range(10, 200) AS r(i);
DELETE FROM n WHERE i = 2; DELETE FROM n WHERE i = 50; DELETE FROM n WHERE i > 150;
ALTER TABLE n ADD COLUMN e DOUBLE DEFAULT 1.5;
INSERT INTO n VALUES (3, 'three', NULL, NULL, NULL);
CREATE TABLE other.few AS SELECT 1 AS i;
CREATE VIEW v AS SELECT count(*) AS c FROM n;
COMMENT ON TABLE n IS 'numbers';
ALTER TABLE n ADD COLUMN f INTEGER;
INSERT INTO n (i, f) VALUES (4, 5)
"""


def copied(place: str, kind: str, new_catalog: Make) -> str:
    """A second catalog with the same tables."""
    other = new_catalog(kind, "copy")
    if kind == "sqlite":
        shutil.copy(place.split(":", 2)[2], other.split(":", 2)[2])
        return other
    source, target = (sa.create_engine(parse_uri(uri).url) for uri in (place, other))
    with source.connect() as reader, target.begin() as writer:
        metadata = sa.MetaData()
        metadata.reflect(source)
        metadata.create_all(writer)
        for table in metadata.sorted_tables:
            rows = [dict(row) for row in reader.execute(sa.select(table)).mappings()]
            if rows:
                writer.execute(table.insert(), rows)
    source.dispose()
    target.dispose()
    return other


@pytest.mark.parametrize("kind", KINDS)
def test_the_metadata_is_as_the_independent_implementation_leaves_it(
    kind: str, new_catalog: Make, tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    place = new_catalog(kind)
    reference.execute(f"ATTACH '{place}' AS lake (DATA_PATH '{tmp_path}/data/')")
    reference.execute(SCRIPT)
    detach(reference)
    rows = history(open_lake(place, version="1.0"))
    # what earlier writers left behind: no row for the version of a table of inlined rows
    last = "(SELECT MAX(schema_version) FROM ducklake_schema_versions WHERE table_id = 2)"
    run(place, f"DELETE FROM ducklake_schema_versions WHERE schema_version = {last}")
    theirs = copied(place, kind, new_catalog)
    catalog = open_lake(theirs, version="1.1", automatic_migration=True)
    assert str(catalog.spec_version()) == "1.1"
    dl.connect(place, ducklake_version="1.1", automatic_migration=True).close()
    found, expected = content(place), content(theirs)
    assert set(found) == set(expected) >= {"ducklake_view_column_tag"}
    for name, listed in expected.items():
        assert found[name] == listed, name
    assert len(found["ducklake_schema_versions"]) == 5
    check_history(place, rows)
    with dl.connect(place, alias="lake", engine="duckdb") as session:
        session.sql(
            "INSERT INTO n (i) VALUES (1000); CREATE SCHEMA other.deep; CREATE TABLE other.deep.t AS SELECT 2 AS i"
        )
    check_history(place, history(open_lake(place)))


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("spec", ["0.1", "0.4", "1.1-dev1"])
def test_other_versions_are_brought_to_1_1(spec: str, kind: str, tmp_path: Path) -> None:
    expected = unpack(spec, kind, tmp_path)
    options = {} if spec == "1.1-dev1" else {"ducklake_version": "1.1"}
    with dl.connect(uri(tmp_path, kind), alias="lake", automatic_migration=True, engine="duckdb", **options) as session:
        found = session.sql("SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'version'")
        assert found.fetchall() == [("1.1",)]
        check_rows(session, expected)
        session.sql("INSERT INTO notes VALUES (9, 'new', true, 2, NULL)")
        assert session.sql("SELECT s FROM notes WHERE i = 9").fetchall() == [("new",)]


def test_nothing_is_migrated_without_being_asked(lake_uri: Make, tmp_path: Path) -> None:
    place = lake_uri()
    dl.connect(place, data_path=f"{tmp_path}/data/").close()
    with pytest.raises(
        dl.CatalogVersionError, match=r"is of version 1\.0, not 1\.1; attach it with automatic_migration"
    ):
        dl.connect(place, ducklake_version="1.1")
    with dl.connect(place, alias="lake", automatic_migration=True) as session:
        found = session.sql("SELECT value FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'version'")
        assert found.fetchall() == [("1.0",)]
    if ":mysql:" in place:
        with pytest.raises(dl.UnsupportedFeatureError, match="MySQL cannot undo a migration"):
            dl.connect(place, automatic_migration=True, ducklake_version="1.1")
        with dl.connect(place, ducklake_version="1.0"):
            return
    dl.connect(place, automatic_migration=True, ducklake_version="1.1").close()
    with pytest.raises(dl.CatalogVersionError, match=r"is of version 1\.1, not 1\.0; there is no way back"):
        dl.connect(place, automatic_migration=True, ducklake_version="1.0")


@pytest.mark.parametrize("kind", KINDS)
def test_a_migration_that_is_refused_changes_nothing(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    place = new_catalog(kind)
    with dl.connect(place, alias="lake", data_path=f"{tmp_path}/data/", engine="duckdb") as session:
        session.sql("CREATE TABLE a (i INTEGER); CREATE TABLE b (_ducklake_row_id INTEGER)")
        session.sql("INSERT INTO a VALUES (1)")
    before = content(place)
    with pytest.raises(dl.CatalogError, match=r"could not be migrated from version 1\.0 to 1\.1; it was left as"):
        dl.connect(place, automatic_migration=True, ducklake_version="1.1")
    assert content(place) == before


def test_the_reference_of_1_0_does_not_open_it(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    place = f"ducklake:{tmp_path}/lake.ducklake"
    dl.connect(place, ducklake_version="1.1").close()
    with pytest.raises(duckdb.Error, match=r"1\.1"):
        attach(reference, place)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_session_notes_that_its_lake_was_migrated(kind: str, new_catalog: Make, tmp_path: Path) -> None:
    place = new_catalog(kind)
    with dl.connect(place, alias="lake", data_path=f"{tmp_path}/data/", engine="duckdb") as session:
        session.sql("CREATE TABLE a AS SELECT 1 AS i")
        dl.connect(place, automatic_migration=True, ducklake_version="1.1").close()
        for statement in ("SELECT * FROM a", "INSERT INTO a VALUES (2)", "CREATE TABLE b (i INTEGER)"):
            with pytest.raises(dl.CatalogVersionError, match=r"was of version 1\.0.*attach it again"):
                session.sql(statement).fetchall()

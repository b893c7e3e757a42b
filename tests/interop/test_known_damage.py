"""Damage that users of the reference have reported, made again: found, repaired, and both clients read what was there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop import faults
from tests.reference import connect

pytestmark = pytest.mark.sampled(4, "seeded faults")


@pytest.fixture
def reference() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connect()
    yield connection
    connection.close()


class Lake:
    """A lake of the reference with one table `t`.

    Attributes:
        folder: its folder; its data is below `data/`.
    """

    def __init__(self, folder: Path, reference: duckdb.DuckDBPyConnection) -> None:
        self.folder, self._reference = folder, reference
        self.by_reference(lambda run: None, f"(DATA_PATH '{folder}/data')")

    def by_reference(self, work: Callable[[Callable[[str], list[Any]]], Any], options: str = "") -> Any:
        self._reference.execute(f"ATTACH '{faults.uri(self.folder)}' AS lake {options}; USE lake")
        try:
            return work(lambda sql: self._reference.execute(sql).fetchall())
        finally:
            self._reference.execute("USE memory; DETACH lake")

    def run(self, *statements: str) -> None:
        self.by_reference(lambda run: [run(statement) for statement in statements])

    def catalog(self, *statements: str) -> list[Any]:
        with duckdb.connect(f"{self.folder}/lake.ducklake") as catalog:
            return [catalog.execute(statement).fetchall() for statement in statements][-1]

    def states(self) -> dict[str, dict[int, Any]]:
        """The rows that both clients read at each snapshot, and the number that count(*) gives."""
        newest = self.catalog("SELECT max(snapshot_id) FROM ducklake_snapshot")[0][0]
        first = self.catalog("SELECT min(begin_snapshot) FROM ducklake_table")[0][0]

        def read(run: Callable[[str], list[Any]]) -> dict[int, Any]:
            found: dict[int, Any] = {}
            for at in range(first, newest + 1):
                source = f"t AT (VERSION => {at})"
                try:
                    found[at] = sorted(run(f"SELECT i FROM {source}")), run(f"SELECT count(*) FROM {source}")
                except duckdb.Error as error:
                    found[at] = str(error)
            return found

        with dl.connect(faults.uri(self.folder), "lake", engine="duckdb") as session:
            ours = read(lambda sql: session.sql(sql).fetchall())
        return {"ours": ours, "theirs": self.by_reference(read)}

    def findings(self) -> dict[str, int | None]:
        """Checks that find errors or warnings, each with its first snapshot."""
        with dl.connect(faults.uri(self.folder), "lake", engine="duckdb") as session:
            return {one.check: one.since_snapshot for one in session.doctor().findings if one.severity != "info"}

    def repair(self) -> list[str]:
        with dl.connect(faults.uri(self.folder), "lake", engine="duckdb") as session:
            done = session.repair("all", dry_run=False)
            assert not session.doctor(deep=True).is_ill, session.doctor(deep=True).fetchall()
        return [one.note for one in done.repaired if one.finding.severity != "info"]


def rows(*values: Any) -> tuple[list[tuple[int]], list[tuple[int]]]:
    """The state of a table with some values: its rows, and count(*)."""
    listed = sorted((int(value),) for value in values)
    return listed, [(len(listed),)]


def test_deleted_rows_that_show_again(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """A row is deleted by a delete file and by the catalog, as two clients at once left it."""
    lake = Lake(tmp_path, reference)
    lake.run("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(100) r(i)")
    lake.run("DELETE FROM t WHERE i = 50", "DELETE FROM t WHERE i BETWEEN 51 AND 79")
    # the second commit did not see the first, whose row it deletes too
    path = lake.catalog("SELECT path, delete_file_id FROM ducklake_delete_file")[0]
    place = tmp_path / "data" / "main" / "t" / path[0]
    duckdb.execute(
        f"COPY (SELECT file_path, pos FROM (SELECT min(file_path) AS file_path, 50 AS pos FROM '{place}' UNION ALL "
        f"SELECT file_path, pos FROM '{place}') ORDER BY pos) TO '{place}.new' "
        "(FORMAT parquet, FIELD_IDS {file_path: 2147483646, pos: 2147483645})"
    )
    Path(f"{place}.new").replace(place)
    footer = int.from_bytes(place.read_bytes()[-8:-4], "little")
    lake.catalog(
        f"UPDATE ducklake_delete_file SET delete_count = 30, file_size_bytes = {place.stat().st_size}, footer_size = {footer}"
    )
    whole = {1: rows(*range(100)), 2: rows(*range(50), *range(51, 100)), 3: rows(*range(50), *range(80, 100))}
    assert lake.states()["theirs"] != whole
    assert lake.findings() == {"deletion_in_two_places": 3}
    assert lake.repair() == ["repaired"]
    states = lake.states()
    for reader in ("ours", "theirs"):
        assert {at: states[reader][at] for at in whole} == whole
        assert states[reader][4] == whole[3]


def test_deletions_that_a_flush_left_behind(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """A flush wrote deletions to a delete file, and left them in the catalog: counts are negative."""
    lake = Lake(tmp_path, reference)
    lake.run("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(12) r(i)")
    lake.run("DELETE FROM t WHERE i < 4", "DELETE FROM t WHERE i < 8")
    whole = {1: rows(*range(12)), 2: rows(*range(4, 12)), 3: rows(*range(8, 12))}
    table = lake.catalog("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'ducklake_inlined_delete_%'")[0][
        0
    ]
    lake.catalog(f"CREATE TABLE kept AS FROM {table}")
    lake.run("CALL ducklake_flush_inlined_data('lake')")
    lake.catalog(f"DELETE FROM {table}", f"INSERT INTO {table} FROM kept", "DROP TABLE kept")
    flushed = lake.catalog("SELECT count(*) FROM ducklake_delete_file")[0][0]
    assert flushed
    found = lake.findings()
    assert found["deletion_in_two_places"] == 2 and "deletions_exceed_rows" in found
    notes = lake.repair()
    assert set(notes) <= {"repaired", "none: it is gone"} and notes[0] == "repaired"
    states = lake.states()
    for reader in ("ours", "theirs"):
        assert {at: states[reader][at] for at in whole} == whole
        assert all(states[reader][at] == whole[3] for at in states[reader] if at > 3)


def test_maintenance_that_changes_old_snapshots(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """A flush dated delete files back, without an end, to a data file that a rewrite had retired."""
    lake = Lake(tmp_path, reference)
    lake.run("CALL lake.set_option('data_inlining_row_limit', 0)")
    lake.run("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(100) r(i)")
    lake.run("DELETE FROM t WHERE i < 10", "DELETE FROM t WHERE i < 30")
    lake.run("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
    whole = lake.states()
    assert whole["ours"] == whole["theirs"]
    first = lake.catalog("SELECT min(delete_file_id) FROM ducklake_delete_file")[0][0]
    lake.catalog(
        "INSERT INTO ducklake_delete_file BY NAME SELECT * REPLACE (5000 AS delete_file_id, NULL AS end_snapshot) "
        f"FROM ducklake_delete_file WHERE delete_file_id = {first}",
        f"UPDATE ducklake_snapshot SET next_file_id = 5001 WHERE snapshot_id = {max(whole['ours'])}",
    )
    assert lake.states()["theirs"] != whole["theirs"]
    assert lake.findings() == {"overlapping_delete_files": 2}
    assert lake.repair() == ["repaired"]
    states = lake.states()
    for reader in ("ours", "theirs"):
        assert {at: states[reader][at] for at in whole[reader]} == whole[reader]


def test_live_files_that_look_orphaned(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """The data path is spelled in another way than the storage lists it; a clean-up would delete what is read."""
    lake = Lake(tmp_path, reference)
    lake.run("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(100) r(i)")
    lake.catalog(f"UPDATE ducklake_metadata SET value = '{tmp_path}/data/./' WHERE key = 'data_path'")
    assert lake.findings() == {"data_path_odd": None}
    assert lake.repair() == ["repaired"]
    dry = "CALL ducklake_delete_orphaned_files('lake', dry_run => true, cleanup_all => true)"
    assert lake.by_reference(lambda run: run(dry)) == []
    assert lake.states() == {reader: {1: rows(*range(100)), 2: rows(*range(100))} for reader in ("ours", "theirs")}


def test_files_that_look_orphaned(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """A file's own path is spelled in another way than the storage lists it."""
    lake = Lake(tmp_path, reference)
    lake.run("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(100) r(i)")
    lake.catalog("UPDATE ducklake_data_file SET path = './/' || path")
    dry = "CALL ducklake_delete_orphaned_files('lake', dry_run => true, cleanup_all => true)"
    assert lake.by_reference(lambda run: run(dry)) != []
    assert lake.findings() == {"live_file_looks_orphaned": 1}
    assert lake.repair() == ["repaired"]
    assert lake.by_reference(lambda run: run(dry)) == []
    assert lake.states() == {reader: {1: rows(*range(100)), 2: rows(*range(100))} for reader in ("ours", "theirs")}


def test_statistics_that_name_a_view(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """A row of table statistics has the id of a view, which clients look for among tables."""
    lake = Lake(tmp_path, reference)
    lake.run("CREATE TABLE t AS SELECT i::INTEGER AS i FROM range(100) r(i)", "CREATE VIEW v AS SELECT i FROM t")
    whole = lake.states()
    lake.catalog("INSERT INTO ducklake_table_stats SELECT view_id, 1, 1, 1 FROM ducklake_view")
    assert lake.findings() == {"table_stats_of_no_table": None}
    assert lake.repair() == ["repaired"]
    states = lake.states()
    for reader in ("ours", "theirs"):
        assert {at: states[reader][at] for at in whole[reader]} == whole[reader]

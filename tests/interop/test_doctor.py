"""Faults seeded into lakes of both clients: each is found with its snapshots, and repaired so that both read what was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop import faults
from tests.interop.faults import FAULTS, Fault
from tests.reference import connect

pytestmark = pytest.mark.sampled(8, "seeded faults")


class Lake:
    """A whole lake, what both clients read of it, and the names of its tables of inlined rows."""

    def __init__(self, folder: Path, maker: str) -> None:
        self.folder, self.reference = folder, connect()
        faults.make(folder, maker, self.reference)
        with duckdb.connect(f"{folder}/lake.ducklake", read_only=True) as catalog:

            def one(sql: str) -> Any:
                row = catalog.execute(sql).fetchone()
                assert row is not None
                return row[0]

            self.names = {
                "marks": one(
                    "SELECT max(table_name) FROM duckdb_tables() WHERE table_name LIKE 'ducklake_inlined_delete_%'"
                ),
                "inlined": one(
                    "SELECT table_name FROM ducklake_inlined_data_tables WHERE table_id = "
                    f"{faults._W} ORDER BY schema_version DESC LIMIT 1"
                ),
                "t": one(f"SELECT {faults._T}"),
                "u": one(f"SELECT {faults._U}"),
                "w": one(f"SELECT {faults._W}"),
            }
            self.snapshots = range(one("SELECT max(snapshot_id) FROM ducklake_snapshot") + 1)
        self.rows = faults.read_both(folder, self.reference, self.snapshots)


@pytest.fixture(scope="module", params=["ours", "theirs"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp(request.param) / "lake", request.param)


def named(fault: Fault, lake: Lake) -> Fault:
    """The fault with names of this lake."""

    def fill(text: str | None) -> Any:
        for name, value in lake.names.items():
            text = text.replace(f"{{{name}}}", str(value)) if text is not None else None
        return text

    return Fault(fault.check, fill(fault.sql), fill(fault.since), fault.mends, fault.deep, fault.files)


def test_both_clients_agree_on_the_whole_lake(whole: Lake) -> None:
    assert whole.rows["ours"] == whole.rows["theirs"]
    with dl.connect(faults.uri(whole.folder), "lake", engine="duckdb") as session:
        found = session.doctor(deep=True)
    assert not found.is_ill, found.fetchall()


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{at}-{fault.check}" for at, fault in enumerate(FAULTS)])
def test_a_fault_is_found_and_repaired(whole: Lake, fault: Fault, tmp_path: Path) -> None:
    fault, folder = named(fault, whole), tmp_path / "lake"
    faults.copy(whole.folder, folder)
    since = fault.seed(folder)
    with dl.Session(engine="duckdb") as session:
        session.attach(faults.uri(folder), "lake", create_if_not_exists=False)
        before = session.doctor(deep=fault.deep)
        found = [one for one in before.findings if one.check == fault.check]
        assert found, [one.finding for one in before.findings]
        assert since in {one.since_snapshot for one in found}
        assert not [one.finding for one in before.findings if "cannot be asked" in one.finding and not fault.deep]
        for one in found:
            assert session.sql(one.evidence).fetchall()
        looked = (folder / "lake.ducklake").read_bytes()
        planned = session.repair(found, dry_run=True)
        assert (folder / "lake.ducklake").read_bytes() == looked
        done = session.repair(found, dry_run=False)
        if not fault.mends:
            assert all(one.note.startswith("none: ") for one in done.repaired), done.fetchall()
            assert all(one.note.startswith("none: ") and len(one.note) > 20 for one in planned.repaired)
            return
        assert all(one.note == "repaired" for one in done.repaired), done.fetchall()
        assert all(one.note == "to repair" for one in planned.repaired), planned.fetchall()
        left = session.doctor(deep=fault.deep)
        assert not left.is_ill, [one.finding for one in left.findings if one.severity != "info"]
    assert faults.read_both(folder, whole.reference, whole.snapshots) == whole.rows
    write_on(folder, whole.reference)


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS if not fault.mends],
    ids=[f"{at}-{fault.check}" for at, fault in enumerate(FAULTS) if not fault.mends],
)
def test_repairs_remove_no_row_beside_damage(whole: Lake, fault: Fault, tmp_path: Path) -> None:
    fault, folder = named(fault, whole), tmp_path / "lake"
    faults.copy(whole.folder, folder)
    fault.seed(folder)
    kept = _rows_kept(folder)
    with dl.connect(faults.uri(folder), "lake", engine="duckdb") as session:
        session.repair("all", dry_run=False)
    assert _rows_kept(folder) == kept


def _rows_kept(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Reads the rows that the catalog holds or names: inlined rows, data files and delete files."""
    with duckdb.connect(f"{folder}/lake.ducklake") as catalog:
        tables = catalog.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'ducklake_inlined_%_%' "
            "AND table_name <> 'ducklake_inlined_data_tables'"
        ).fetchall()
        rows = {name: catalog.execute(f"FROM {name} ORDER BY ALL").fetchall() for (name,) in tables}
        for kind in ("data", "delete"):
            rows[kind] = catalog.execute(
                f"SELECT {kind}_file_id, path FROM ducklake_{kind}_file ORDER BY ALL"
            ).fetchall()
    return rows


def write_on(folder: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Both clients go on writing after a repair."""
    with dl.connect(faults.uri(folder), "lake", engine="duckdb") as session:
        session.sql("INSERT INTO t VALUES (9000, 'o', 1); DELETE FROM t WHERE i = 20")
    reference.execute(f"ATTACH '{faults.uri(folder)}' AS lake; USE lake")
    try:
        reference.execute("INSERT INTO t SELECT i, 'n', 1 FROM range(9001, 9101) r(i)")
        reference.execute("DELETE FROM t WHERE i = 21")
        theirs = reference.execute("SELECT count(*), count(DISTINCT rowid), sum(i) FROM t").fetchall()
    finally:
        reference.execute("USE memory; DETACH lake")
    with dl.connect(faults.uri(folder), "lake", engine="duckdb") as session:
        assert session.sql("SELECT count(*), count(DISTINCT rowid), sum(i) FROM t").fetchall() == theirs
        assert not session.doctor().is_ill


def test_there_are_forty_kinds_of_faults() -> None:
    assert len({fault.check for fault in FAULTS}) >= 40

"""The doctor of a session: on every kind of catalog, beside other clients, over hostile names, and as views."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.doctor.context import Context
from ducklake_lab.doctor.registry import CHECKS

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 's' FROM range(50) r(i)")
        session.sql(
            "DELETE FROM t WHERE i < 3; DELETE FROM t WHERE i BETWEEN 10 AND 30; INSERT INTO t VALUES (90, 'x')"
        )
        yield session


def damage(session: dl.Session, *statements: str) -> None:
    """Changes the catalog as no client would."""
    lake = session.current_lake
    with lake.connect(fresh=True) as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
        connection.commit()
    lake.cache.store(None)
    lake.cache.forget()


def found(session: dl.Session, *, deep: bool = False) -> list[str]:
    return [one.check for one in session.doctor(deep=deep).findings if one.severity != "info"]


@pytest.mark.every_catalog
def test_each_check_is_asked_of_every_catalog(session: dl.Session) -> None:
    session.sql(
        "ALTER TABLE t ADD COLUMN n INTEGER; INSERT INTO t VALUES (91, 'y', 1); CREATE VIEW v AS SELECT i FROM t"
    )
    diagnosis = session.doctor(deep=True)
    assert not diagnosis.is_ill, [(one.check, one.finding) for one in diagnosis.findings]
    assert diagnosis.examination.checked == len(CHECKS)
    assert diagnosis.columns == ["severity", "object", "finding", "evidence", "since_snapshot", "repair"]
    assert "healthy" in diagnosis.summary


@pytest.mark.every_catalog
def test_bounds_that_are_no_finite_number_are_healthy(session: dl.Session) -> None:
    session.sql("CREATE TABLE f (i INTEGER, d DOUBLE, r FLOAT)")
    session.sql("INSERT INTO f VALUES (1, 'nan', 'nan'), (2, 0, '-inf')")
    for value in ("inf", "-inf", "nan", "1e300", "-1e-300"):
        values = f"CASE r WHEN 5 THEN '{value}'::DOUBLE ELSE r + 1 END"
        session.sql(f"INSERT INTO f SELECT r, {values}, TRY_CAST({values} AS FLOAT) FROM range(50) s(r)")
    diagnosis = session.doctor(deep=True)
    assert not diagnosis.is_ill, [(one.check, one.finding) for one in diagnosis.findings]
    damage(session, "UPDATE ducklake_file_column_stats SET min_value = '70' WHERE max_value = '50.0'")
    assert {*found(session)} == {"bounds_reversed"}


@pytest.mark.every_catalog
def test_bounds_of_odd_years_are_healthy(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    session.sql("CREATE TABLE y (d DATE, t TIMESTAMP, s TIMESTAMP_S, m TIMESTAMP_MS)")
    days = "'0044-03-15 (BC)'", "'0100-03-15 (BC)'", "'99999-03-15'", "'2024-01-01'", "'infinity'", "'-infinity'"
    for one, other in zip(days, (*days[1:], days[0]), strict=True):
        session.sql(f"INSERT INTO y(d, t) SELECT d::DATE, d::DATE FROM (VALUES ({one}), ({other})) AS v(d)")
    session.sql(f"INSERT INTO y(s, m) SELECT d::DATE, d::DATE FROM (VALUES ({days[0]}), ({days[1]})) AS v(d)")
    points = "'5000-01-01 (BC) 00:00:00'", "'2024-01-01 00:00:00.1234'"
    session.sql(f"INSERT INTO y(t) VALUES ({points[0]}::TIMESTAMP), ({points[1]}::TIMESTAMP)")
    diagnosis = session.doctor("y", deep=True)
    assert not diagnosis.is_ill, [(one.check, one.finding) for one in diagnosis.findings]
    session.sql("CREATE TABLE z (d DATE, t TIMESTAMP)")
    session.sql("INSERT INTO z VALUES ('2024-01-02', '2024-01-02 10:00:00'), ('2024-01-03', '2024-01-03 10:00:00')")
    table_id = session.state().table("main", "z").table_id
    damage(
        session,
        "UPDATE ducklake_file_column_stats SET max_value = CASE length(max_value) WHEN 10 THEN '2024-01-01' "
        f"ELSE '2024-01-02 09:00:00' END WHERE table_id = {table_id}".replace(":", "\\:"),
    )
    assert sorted(found(session)) == ["bounds_reversed", "bounds_reversed"]


@pytest.mark.every_catalog
def test_damaged_inlined_rows_are_not_dead(session: dl.Session) -> None:
    session.sql("CREATE TABLE u (k INTEGER); INSERT INTO u SELECT i FROM range(6) r(i)")
    (name,) = [name for of, name in inlined(session) if of == session.state().table("main", "u").table_id]
    session.sql("DELETE FROM t WHERE i = 90")
    damage(
        session,
        f"UPDATE {name} SET end_snapshot = 0 WHERE k = 0",
        f"UPDATE {name} SET end_snapshot = begin_snapshot WHERE k = 1",
        f"UPDATE {name} SET row_id = NULL, end_snapshot = begin_snapshot WHERE k = 2",
        f"UPDATE {name} SET end_snapshot = 1, begin_snapshot = NULL WHERE k = 3",
    )
    assert {"inlined_interval_reversed", "inlined_row_without_id"} <= set(found(session))
    repaired = [one.finding.check for one in session.repair("all", dry_run=False).repaired if one.note == "repaired"]
    assert repaired == ["dead_inlined_rows"]
    with session.current_lake.connect(fresh=True) as connection:
        left = connection.execute(sa.text(f"SELECT k FROM {name} ORDER BY k")).scalars().all()
    # a row that ends where it begins was inserted and deleted by one transaction
    assert left == [0, 2, 3, 4, 5]
    assert {"inlined_interval_reversed", "inlined_row_without_id"} <= set(found(session))


def inlined(session: dl.Session) -> list[tuple[int, str]]:
    """Lists tables of inlined rows, with the ids of their tables."""
    with session.current_lake.connect(fresh=True) as connection:
        return Context(session.current_lake, connection).readable


@pytest.mark.every_catalog
def test_damaged_intervals_are_no_ground_for_repairs(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE f (i INTEGER)")
    session.sql("INSERT INTO f SELECT i FROM range(9) r(i)")
    table_id = session.state().table("main", "f").table_id
    damage(session, f"UPDATE ducklake_data_file SET end_snapshot = 1 WHERE table_id = {table_id}")
    findings = {one.check for one in session.doctor().findings}
    assert "interval_reversed" in findings and "unseen_files" not in findings


@pytest.mark.every_catalog
def test_repairs_on_every_catalog(session: dl.Session) -> None:
    rows = session.sql("SELECT rowid, * FROM t ORDER BY ALL").fetchall()
    newest = session.current_snapshot().snapshot_id
    name = f"ducklake_inlined_delete_{session.state().table('main', 't').table_id}"
    damage(
        session,
        "UPDATE ducklake_table_stats SET next_row_id = 7",
        "UPDATE ducklake_data_file SET end_snapshot = 4000",
        f"INSERT INTO {name} SELECT file_id, row_id, begin_snapshot + 1 FROM {name} WHERE row_id = 1",
        f"UPDATE ducklake_snapshot SET next_file_id = 1 WHERE snapshot_id = {newest}",
    )
    wanted = {"next_row_id_too_small", "ends_in_the_future", "inlined_deletion_twice", "next_file_id_too_small"}
    assert wanted <= set(found(session))
    planned = session.repair("all")
    assert wanted <= set(found(session))
    assert {one.finding.check for one in planned.repaired} >= wanted
    done = session.repair("all", dry_run=False)
    assert {one.finding.check for one in done.repaired if one.note == "repaired"} >= wanted
    assert found(session, deep=True) == []
    assert session.sql("SELECT rowid, * FROM t ORDER BY ALL").fetchall() == rows
    made = [entry for entry in session.snapshots() if entry.info.snapshot_id > newest]
    assert len(made) == len([one for one in done.repaired if one.note == "repaired"])
    assert all((entry.info.commit_message or "").startswith("repair of ") for entry in made)
    assert all(entry.rows_added == 0 and not entry.rows_removed for entry in made)
    session.sql("INSERT INTO t SELECT i, 'n' FROM range(100) r(i)")
    assert session.sql("SELECT count(DISTINCT rowid) = count(*) FROM t").fetchall() == [(True,)]


@pytest.fixture
def local(tmp_path: Path) -> Iterator[dl.Session]:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE t (i INTEGER); INSERT INTO t SELECT i FROM range(50) r(i); CREATE TABLE u (a INTEGER)"
        )
        yield session


def test_rows_that_a_restore_brought_back_are_there_once(local: dl.Session) -> None:
    local.sql("CREATE TABLE back AS SELECT i FROM range(100) AS r(i)")
    at = local.current_snapshot().snapshot_id
    local.sql(f"DELETE FROM back WHERE i IN (5, 60); CALL lake.restore('back', to => {at})")
    assert local.sql("SELECT count(DISTINCT rowid) FROM back").fetchall() == [(100,)]
    assert not [one.finding for one in local.doctor("back", deep=True).findings if one.severity != "info"]


def test_damaged_intervals_are_no_ground_for_other_repairs(local: dl.Session) -> None:
    local.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE d AS SELECT i FROM range(9) r(i)")
    local.sql("DELETE FROM d WHERE i = 0; DELETE FROM d WHERE i = 1; DELETE FROM d WHERE i IN (2, 3)")
    rows = local.sql("FROM d").fetchall()
    file = "table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'd')"
    damage(
        local,
        # a delete file that applies to no snapshot, and one that applies beside others
        "INSERT INTO ducklake_delete_file BY NAME SELECT * REPLACE (4999 AS delete_file_id, 0 AS end_snapshot) "
        f"FROM ducklake_delete_file WHERE {file} AND end_snapshot IS NULL",
        "INSERT INTO ducklake_delete_file BY NAME SELECT * REPLACE (5000 AS delete_file_id) FROM ducklake_delete_file "
        f"WHERE {file} AND end_snapshot IS NULL",
        # a version of the table that no snapshot has, between two that overlap
        "INSERT INTO ducklake_table BY NAME SELECT * REPLACE (begin_snapshot + 2 AS begin_snapshot) FROM ducklake_table "
        "WHERE table_name = 'd'",
        "INSERT INTO ducklake_table BY NAME SELECT * REPLACE (begin_snapshot + 1 AS begin_snapshot, 0 AS end_snapshot) "
        "FROM ducklake_table WHERE table_name = 'd' ORDER BY begin_snapshot LIMIT 1",
    )
    notes = {one.finding.check: one.note for one in local.repair("all", dry_run=False).repaired}
    assert "interval that is damaged itself" in notes["overlapping_delete_files"]
    assert notes["versions_overlap"] == "repaired"
    with local.current_lake.connect(fresh=True) as connection:
        versions = connection.execute(
            sa.text("SELECT begin_snapshot, end_snapshot FROM ducklake_table WHERE table_name = 'd' ORDER BY 1")
        ).all()
    assert versions[0][1] == versions[2][0] == versions[0][0] + 2
    damage(local, "DELETE FROM ducklake_delete_file WHERE delete_file_id >= 4999")
    assert local.sql("FROM d").fetchall() == rows


def test_a_doubled_file_with_deletions_of_its_own_stays(local: dl.Session) -> None:
    local.sql("CREATE TABLE d AS SELECT i FROM range(100) r(i)")
    file = "table_id = (SELECT table_id FROM ducklake_table WHERE table_name = 'd')"
    damage(
        local,
        f"INSERT INTO ducklake_data_file BY NAME SELECT * REPLACE (5000 AS data_file_id) FROM ducklake_data_file WHERE {file}",
        "UPDATE ducklake_snapshot SET next_file_id = 5001",
    )
    local.sql("DELETE FROM d WHERE i = 5")
    notes = {one.finding.check: one.note for one in local.repair("all", dry_run=False).repaired}
    assert notes["file_twice"] == "none: deletions in the catalog name data file 5000"


def test_a_table_limits_the_findings(local: dl.Session) -> None:
    damage(local, "UPDATE ducklake_table_stats SET next_row_id = 7")
    assert [one.check for one in local.doctor("t").findings] == ["next_row_id_too_small"]
    assert local.doctor("main.u").findings == ()


def test_a_repair_looks_again_under_the_lock(local: dl.Session, tmp_path: Path) -> None:
    damage(local, "UPDATE ducklake_table_stats SET next_row_id = 7")
    findings = local.doctor().findings
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", engine="duckdb") as other:
        assert [one.note for one in other.repair("all", dry_run=False).repaired] == ["repaired"]
        newest = other.current_snapshot().snapshot_id
    done = local.repair(findings, dry_run=False)
    assert [one.note for one in done.repaired] == ["none: it is gone"]
    assert local.current_snapshot().snapshot_id == newest


def test_a_repair_that_would_not_help_writes_nothing(
    local: dl.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ducklake_lab.doctor import repairing

    damage(local, "UPDATE ducklake_table_stats SET next_row_id = 7")
    monkeypatch.setattr(repairing, "apply", lambda context, plan, writes: None)
    before = (local.current_snapshot().snapshot_id, local.doctor().fetchall())
    assert local.repair("all", dry_run=False).repaired[0].note == "none: the repair would leave it as it is"
    assert (local.current_snapshot().snapshot_id, local.doctor().fetchall()) == before


def test_the_note_of_a_repair_undoes_it(local: dl.Session) -> None:
    damage(local, "UPDATE ducklake_table_stats SET next_row_id = 7")
    local.repair("next_row_id_too_small", dry_run=False)
    (change,) = json.loads(local.snapshots()[-1].info.commit_extra_info or "")["repaired"]
    assert change["table"] == "ducklake_table_stats"
    assert (change["old"]["next_row_id"], change["new"]["next_row_id"]) == (7, 50)


def test_what_is_refused(local: dl.Session, tmp_path: Path) -> None:
    with pytest.raises(dl.UsageError, match=r"no check \"next_row_id\".*Did you mean next_row_id_too_small"):
        local.repair("next_row_id")
    with pytest.raises(dl.EntryNotFoundError):
        local.doctor("nothing")
    local.sql("BEGIN")
    with pytest.raises(dl.TransactionError, match="COMMIT or ROLLBACK"):
        local.repair("all")
    local.sql("ROLLBACK")
    damage(local, "UPDATE ducklake_table_stats SET next_row_id = 7")
    local.close()
    with dl.Session(engine="duckdb") as session:
        session.attach(f"ducklake:{tmp_path}/lake.ducklake", "lake", read_only=True)
        assert session.repair("all").repaired[0].note == "to repair"
        with pytest.raises(dl.TransactionError, match="read-only"):
            session.repair("all", dry_run=False)


def test_views_escape_hostile_names(local: dl.Session) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e"
    local.sql(f'CREATE TABLE "{hostile}" AS SELECT i FROM range(20) r(i)')
    damage(
        local,
        "UPDATE ducklake_data_file SET file_format = '<script>''\"', path = '{nothing} ''; DROP TABLE x' || path",
        "UPDATE ducklake_table_stats SET next_row_id = 1",
    )
    diagnosis = local.doctor()
    assert "file_format_unknown" in [one.check for one in diagnosis.findings]
    html = diagnosis._repr_html_()
    assert "<img" not in html and "<script" not in html and "\u202e" not in html
    assert "&lt;img" in html and "Errors" in html
    for one in diagnosis.findings:
        if one.check != "data_file_missing":
            local.sql(one.evidence).fetchall()
    assert not any(one.note == "repaired" and "missing" in one.finding.check for one in local.repair("all").repaired)


def test_a_healthy_lake_is_one_line(local: dl.Session) -> None:
    diagnosis = local.doctor()
    assert len(diagnosis) == 0
    html = diagnosis._repr_html_()
    assert "<table" not in html
    assert "healthy: nothing found by " in html and "2 tables, 1 data files" in html


def test_the_command(local: dl.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = f"{tmp_path}/lake.ducklake"
    assert main(["doctor", lake]) == 0
    assert "lake is healthy" in capsys.readouterr().out
    damage(local, "UPDATE ducklake_table_stats SET next_row_id = 7")
    assert main(["doctor", lake]) == 1
    shown = capsys.readouterr().out
    assert "error  main.t: row ids: The next row id is 7" in shown and "repair: count on from 50" in shown
    assert main(["doctor", lake, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["check"], finding["severity"], finding["since_snapshot"]) == (
        "next_row_id_too_small",
        "error",
        None,
    )
    assert main(["doctor", lake, "--repair", "--json"]) == 0
    members = json.loads(capsys.readouterr().out)
    assert not members["ill"] and members["repaired"][0]["result"] == "repaired"
    assert main(["doctor", lake, "--deep"]) == 0
    assert main(["doctor", f"{lake}x"]) == 2


def test_the_magic(local: dl.Session) -> None:
    from ducklake_lab.magics.arguments import parsers

    given = parsers()["doctor"].parse_args(["t", "--deep", "--repair", "--apply"])
    assert (given.table, given.deep, given.repair, given.apply) == ("t", True, True, True)


def test_encrypted_lakes_take_no_plain_vectors_unasked(tmp_path: Path) -> None:
    uri, data = f"ducklake:{tmp_path}/lake.ducklake", f"{tmp_path}/data"
    with dl.Session(engine="duckdb") as session:
        with pytest.raises(dl.UnsupportedFeatureError, match="not encrypted"):
            session.attach(uri, "lake", data_path=data, encrypted=True, write_deletion_vectors=True)
        assert not (tmp_path / "lake.ducklake").exists()
        session.attach(uri, "lake", data_path=data, encrypted=True)
        with pytest.raises(dl.UnsupportedFeatureError, match="'plain'"):
            session.sql("CALL lake.set_option('write_deletion_vectors', true)")
        session.sql("CALL lake.set_option('write_deletion_vectors', 'plain')")
        assert ("write_deletion_vectors", "true") in [(row["option"], row["value"]) for row in session.options()]
        damage(session, "UPDATE ducklake_metadata SET value = 'false' WHERE \"key\" = 'write_deletion_vectors'")
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.UsageError, match="true, false or plain"):
        session.attach(uri, "lake", write_deletion_vectors="sometimes")  # type: ignore[arg-type]


def test_statistics_that_deny_nan(lake_uri: Callable[..., str], tmp_path: Path):
    uri = lake_uri()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t (i INTEGER, f DOUBLE)")
        session.sql("INSERT INTO t SELECT i, CASE WHEN i = 7 THEN 'nan'::DOUBLE ELSE i END FROM range(20) r(i)")
        assert session.sql("SELECT i FROM t WHERE f > 100").fetchall() == [(7,)]
        session.sql("UPDATE __ducklake_metadata_lake.ducklake_file_column_stats SET contains_nan = false")
        (found,) = (one for one in session.doctor(deep=True).findings if one.severity == "error")
        assert found.check == "bounds_exclude_rows" and "NaN" in found.finding
        assert [one.note for one in session.repair([found], dry_run=False).repaired] == ["repaired"]
        assert not session.doctor(deep=True).is_ill
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql("SELECT i FROM t WHERE f > 100").fetchall() == [(7,)]

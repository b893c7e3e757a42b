"""Maintenance by policy: its plan, its run beside other clients, and its settings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.autopilot import run as running
from ducklake_lab.cli.command import main

#: Files are maintained at once.
NOW = {"settled": 0}


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


def _small(session: dl.Session, *partitions: str, files: int = 3) -> None:
    session.sql("CREATE TABLE t (i INTEGER, p VARCHAR); ALTER TABLE t SET PARTITIONED BY (p)")
    for partition in partitions:
        for _ in range(files):
            session.sql(f"INSERT INTO t SELECT r, '{partition}' FROM range(50) s(r)")


def _rows(session: dl.Session, at: int | None = None) -> list[tuple[Any, ...]]:
    when = "" if at is None else f" AT (VERSION => {at})"
    return session.sql(f"SELECT rowid, * FROM t{when} ORDER BY ALL").fetchall()


def test_a_plan_changes_nothing_and_its_run_does_what_it_says(session: dl.Session):
    _small(session, "a", "b")
    session.sql("CREATE TABLE one AS SELECT 1 AS i FROM range(20)")
    before = session.current_snapshot().snapshot_id
    rows = [_rows(session, at) for at in range(2, before + 1)]
    plan = session.autopilot(NOW)
    assert [(one["table"], one["step"], one["files"], one["effect"]) for one in plan] == [
        ("main.t", "merge", 6, "6 files become 2")
    ]
    assert session.current_snapshot().snapshot_id == before
    (done,) = session.autopilot(NOW, dry_run=False)
    assert (done["outcome"], done["snapshot"]) == ("done", before + 1)
    assert session.history()[-1].info.commit_message == "autopilot: 6 files become 2 in main.t"
    assert [_rows(session, at) for at in range(2, before + 1)] == rows
    assert _rows(session) == rows[-1]
    assert len(session.table("t").files()) == 2
    assert not session.autopilot(NOW) and not session.autopilot(NOW, dry_run=False)
    assert session.current_snapshot().snapshot_id == before + 1


def test_pieces_are_as_large_as_the_policy_says(session: dl.Session):
    _small(session, "a", "b", "c")
    size = session.table("t").files()[0].data_file.file_size_bytes
    pieces = session.autopilot({**NOW, "piece_bytes": 4 * size})
    assert [one["files"] for one in pieces] == [3, 3, 3]
    found = session.autopilot({**NOW, "piece_bytes": 4 * size, "budget_bytes": 7 * size}, dry_run=False)
    assert [one["outcome"] for one in found] == ["done", "done", "over the budget"]
    assert len(session.table("t").files()) == 5
    (left,) = session.autopilot({**NOW, "budget_seconds": 0}, dry_run=False)
    assert left["outcome"] == "over the budget" and left["effect"] == "the run had its 0 seconds"


def test_worn_files_and_inlined_rows(session: dl.Session):
    session.sql("CREATE TABLE t AS SELECT r AS i, 'x' AS p FROM range(100) s(r); DELETE FROM t WHERE i < 30")
    session.sql(
        "CREATE TABLE kept (i INTEGER); CALL lake.set_option('data_inlining_row_limit', '200', table_name => 'kept')"
    )
    session.sql("INSERT INTO kept SELECT r FROM range(120) s(r)")
    before = _rows(session)
    done = {(one["table"], one["step"], one["outcome"]) for one in session.autopilot(NOW, dry_run=False)}
    assert done == {("main.t", "rewrite", "done"), ("main.kept", "flush", "done")}
    assert _rows(session) == before
    (file,) = session.table("t").files()
    assert file.data_file.record_count == 70
    assert session.sql("SELECT count(*) FROM kept").fetchall() == [(120,)]
    assert not session.autopilot(NOW)


def test_small_files_with_deleted_rows_join_others(session: dl.Session):
    _small(session, "a", "b")
    session.sql("DELETE FROM t WHERE i = 7 AND p = 'a'")
    before = session.current_snapshot().snapshot_id
    rows = [_rows(session, at) for at in range(2, before + 1)]
    effects = [(one["partitions"], one["step"], one["effect"]) for one in session.autopilot(NOW)]
    assert sorted(effects) == [
        ("p = a", "rewrite", "3 deleted rows leave 3 files, which become 1"),
        ("p = b", "merge", "3 files become 1"),
    ]
    assert {one["outcome"] for one in session.autopilot(NOW, dry_run=False)} == {"done"}
    assert len(session.table("t").files()) == 2
    assert [_rows(session, at) for at in range(2, before + 1)] == rows and _rows(session) == rows[-1]
    assert session.table("t").changes(before + 1, session.current_snapshot().snapshot_id).fetchall() == []
    assert not session.autopilot(NOW)


def test_large_files_are_not_read_again_for_a_few_rows(session: dl.Session):
    session.sql("CREATE TABLE t AS SELECT r AS i, 'x' AS p FROM range(10000) s(r); DELETE FROM t WHERE i = 7")
    for _ in range(3):
        session.sql("INSERT INTO t SELECT r, 'x' FROM range(50) s(r)")
    assert [one["effect"] for one in session.autopilot(NOW, dry_run=False)] == ["3 files become 1"]
    session.sql("DELETE FROM t WHERE i = 8")
    assert not session.autopilot(NOW)
    session.sql("INSERT INTO t SELECT r, 'x' FROM range(2000) s(r)")
    (done,) = session.autopilot(NOW, dry_run=False)
    assert done["effect"] == "5 deleted rows leave 3 files, which become 1"
    assert len(session.table("t").files()) == 1 and len(_rows(session)) == 10000 + 150 + 2000 - 1 - 4


def test_young_files_wait(session: dl.Session):
    _small(session, "a")
    assert not session.autopilot() and len(session.autopilot(NOW)) == 1


def test_files_of_other_columns_are_left(session: dl.Session):
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t FROM range(20); ALTER TABLE t ADD COLUMN j INTEGER")
    session.sql("INSERT INTO t SELECT r, r FROM range(20) s(r)")
    assert not session.autopilot(NOW)
    session.sql("INSERT INTO t SELECT r, r FROM range(20) s(r)")
    (done,) = session.autopilot(NOW, dry_run=False)
    assert (done["files"], done["outcome"]) == (2, "done")
    assert not session.autopilot(NOW)


def test_it_yields_to_another_client(session: dl.Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    _small(session, "a")
    merge = running.merge_adjacent_files
    uri = session.current_lake.location.uri

    def beside(*args: Any) -> Any:
        written = merge(*args)
        with dl.connect(uri, alias="lake", engine="duckdb") as other:
            other.sql("DELETE FROM t WHERE i = 7")
        return written

    monkeypatch.setattr(running, "merge_adjacent_files", beside)
    files = set(tmp_path.rglob("*.parquet"))
    (left,) = session.autopilot(NOW, dry_run=False)
    assert left["outcome"] == "yielded" and "another transaction has deleted from it" in str(left["effect"])
    assert len(_rows(session)) == 147
    assert set(tmp_path.rglob("*.parquet")) == files  # what it wrote is gone


def test_snapshots_with_tags_stay_and_unneeded_files_go(session: dl.Session):
    _small(session, "a")
    session.tag("kept", 2)
    assert session.autopilot(NOW, dry_run=False)[0]["outcome"] == "done"
    session.sql(
        "CALL lake.set_option('expire_older_than', '0 seconds'); CALL lake.set_option('delete_older_than', '0 seconds')"
    )
    found = [(one["step"], one["outcome"]) for one in session.autopilot(NOW, dry_run=False)]
    assert ("expire", "done") in found and ("clean up", "done") in found
    assert [entry.info.snapshot_id for entry in session.history()] == [2, session.current_snapshot().snapshot_id]
    assert len(_rows(session)) == 150


def test_settings_are_kept_by_scope(session: dl.Session, tmp_path: Path):
    _small(session, "a")
    assert not session.policy().enabled
    assert session.set_policy({"enabled": True, "settled": 0, "hours": "22-6"}).hours == "22-6"
    assert session.set_policy({"enabled": False, "small": 0.5}, table="t").enabled is False
    assert session.set_policy({"deleted": 0.4}, schema="main").deleted == 0.4
    of_table = session.policy("t")
    assert (of_table.enabled, of_table.small, of_table.deleted, of_table.settled) == (False, 0.5, 0.4, 0)
    assert session.set_policy({"enabled": None}, table="t").enabled is True
    assert session.set_policy({"hours": None}).hours is None
    before = session.current_snapshot().snapshot_id
    with dl.connect(session.current_lake.location.uri, alias="lake", engine="duckdb") as other:
        assert other.policy("t").small == 0.5 and len(other.autopilot(only_enabled=True)) == 1
        assert other.current_snapshot().snapshot_id == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smal": 0.5}, 'no setting "smal". Did you mean small?'),
        ({"small": 0}, "takes no 0"),
        ({"small": float("nan")}, "takes no nan"),
        ({"deleted": True}, "takes no True"),
        ({"hours": "25-3"}, "takes no '25-3'"),
        ({"settled": -1}, "takes no -1"),
        ({"settled": float("inf")}, "takes no inf"),
        ({"budget_bytes": 1.5}, "takes no 1.5"),
        ({"enabled": "yes"}, "takes no 'yes'"),
        ({"quiet": -1}, "takes no -1"),
        ({"where": 3}, "takes no 3"),
        ({"inlined_rows": None}, None),
    ],
)
def test_wrong_settings(session: dl.Session, settings: dict[str, object], message: str | None):
    if message is None:
        session.set_policy(settings)
        return
    for ask in (session.set_policy, session.autopilot):
        with pytest.raises(dl.UsageError, match=message.replace("?", r"\?")):
            ask(settings)


def _days(session: dl.Session) -> None:
    """A table with three files of each of two days, one day without a value, and two unpartitioned ones."""
    session.sql("CREATE TABLE t (i INTEGER, day DATE, p VARCHAR); ALTER TABLE t SET PARTITIONED BY (day)")
    for day in ("DATE '2024-01-31'", "current_date - 1", "NULL"):
        for _ in range(3):
            session.sql(f"INSERT INTO t SELECT r, {day}, 'x' FROM range(50) s(r)")


def test_a_condition_chooses_partitions(session: dl.Session):
    _days(session)
    assert [one["files"] for one in session.autopilot(NOW)] == [9]
    old = {**NOW, "where": "day < current_date - 7"}
    (piece,) = session.autopilot(old)
    assert (piece["files"], piece["partitions"]) == (3, "day = 2024-01-31")
    (piece,) = session.autopilot({**NOW, "where": "day IS NULL OR date_trunc('month', day) = DATE '2024-01-01'"})
    assert piece["files"] == 6 and str(piece["partitions"]).endswith(" and 1 more")
    rows = _rows(session)
    (done,) = session.autopilot(old, dry_run=False)
    assert (done["outcome"], done["effect"]) == ("done", "3 files become 1")
    assert len(session.table("t").files()) == 7 and _rows(session) == rows
    assert not session.autopilot(old)


def test_a_condition_is_of_partition_keys_alone(session: dl.Session):
    _days(session)
    session.sql("CREATE TABLE other (i INTEGER); INSERT INTO other FROM range(50); INSERT INTO other FROM range(50)")
    assert len(session.autopilot(NOW)) == 2
    assert [one["table"] for one in session.autopilot({**NOW, "where": "day < DATE '2025-01-01'"})] == ["main.t"]
    for where in ("i < 4", "dya < DATE '2025-01-01'"):
        with pytest.raises(dl.UsageError, match="does not fit the partition keys"):
            session.autopilot({**NOW, "where": where})
    with pytest.raises(dl.UsageError, match="which are day"):
        session.set_policy({"where": "p = 'x'"}, table="t")
    for where in ("day IN (SELECT day FROM t)", "getenv('HOME') = 'x'", "random() < 0.5", "max(day) = day"):
        with pytest.raises(dl.UnsupportedFeatureError, match="condition of partitions"):
            session.set_policy({"where": where})
    assert session.set_policy({"where": "day < DATE '2025-01-01'"}, table="t").where == "day < DATE '2025-01-01'"
    assert [(one["table"], one["files"]) for one in session.autopilot(NOW)] == [("main.t", 3), ("main.other", 2)]


def test_keys_of_transforms_and_of_earlier_keys(session: dl.Session):
    session.sql("CREATE TABLE t (i INTEGER, ts TIMESTAMP); ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts))")
    for moment in ("2023-05-01", "2024-11-30", "2024-02-01"):
        for _ in range(2):
            session.sql(f"INSERT INTO t SELECT r, TIMESTAMP '{moment}' FROM range(50) s(r)")
    (piece,) = session.autopilot({**NOW, "where": "make_date(year, month, 1) < DATE '2024-03-01'"})
    assert piece["files"] == 4
    session.sql("ALTER TABLE t SET PARTITIONED BY (i)")
    assert not session.autopilot({**NOW, "where": "i < 1000"})
    (piece,) = session.autopilot(NOW)
    assert piece["partitions"] == "3 of earlier keys"


def test_partitions_that_are_written_to_wait(session: dl.Session):
    _small(session, "a")
    assert len(session.autopilot({**NOW, "quiet": 0})) == 1
    assert not session.autopilot({**NOW, "quiet": 3600})


def test_times_are_expected_from_recorded_runs(session: dl.Session):
    _small(session, "a", "b")
    plan = session.autopilot(NOW)
    assert "no run is recorded yet" in plan.note and plan[0]["expected"] > 0
    session.autopilot(NOW, dry_run=False)
    note = json.loads(session.history()[-1].info.commit_extra_info)["autopilot"]
    assert note["step"] == "merge" and note["amount"] == plan[0]["bytes"] and note["seconds"] > 0
    for _ in range(3):
        session.sql("INSERT INTO t SELECT r, 'a' FROM range(50) s(r)")
    plan = session.autopilot(NOW)
    assert "times are estimates from 1 recorded run" in plan.note
    assert plan[0]["expected"] >= round(note["seconds"], 1)
    assert "expected" in plan._repr_html_()


@pytest.mark.parametrize(
    "note", ["", "[]", '{"autopilot": 3}', '{"autopilot": {"step": "merge", "amount": "nan", "seconds": 1}}', "[" * 5000,
             '{"autopilot": {"step": "other", "amount": 1, "seconds": 1}}', '{"autopilot": {"step": "merge", "amount": 1, "seconds": 0}}']
)  # fmt: skip
def test_a_record_of_another_form_is_none(session: dl.Session, note: str):
    _small(session, "a")
    with session.transaction(message="autopilot: mine", extra_info=note):
        session.sql("INSERT INTO t VALUES (1, 'a')")
    assert "no run is recorded yet" in session.autopilot(NOW).note


def test_files_that_a_snapshot_needs_are_not_counted(session: dl.Session):
    _small(session, "a")
    session.autopilot(NOW, dry_run=False)
    session.sql("CALL lake.set_option('delete_older_than', '0 seconds')")
    assert [one["effect"] for one in session.autopilot(NOW, dry_run=False)] == ["3 unneeded files are deleted"]
    path = session.table("t").files()[0].data_file.path
    session.sql(
        "INSERT INTO __ducklake_metadata_lake.ducklake_files_scheduled_for_deletion VALUES "
        f"(999, 'main/t/{path}', true, '2000-01-01 00:00:00')"
    )
    assert not session.autopilot(NOW)
    assert not session.autopilot(NOW, dry_run=False)
    assert len(_rows(session)) == 150


def test_budgets_belong_to_the_lake(session: dl.Session):
    _small(session, "a")
    with pytest.raises(dl.UsageError, match="set it without a table"):
        session.set_policy({"budget_bytes": 10}, table="t")
    with pytest.raises(dl.UsageError, match="name one of the two"):
        session.set_policy({"small": 0.5}, table="t", schema="main")


@pytest.mark.parametrize("text", ["{", "[]", '{"small": 7}', '{"other": 1}', "[" * 100_000])
def test_a_damaged_policy_is_one_line(session: dl.Session, text: str):
    lake = session.current_lake
    with session._transactions.writing(lake) as transaction:
        transaction.set_option((None, None), "ducklake_lab_autopilot", text)
    with pytest.raises(dl.CatalogError, match="is damaged"):
        session.autopilot()


def test_it_runs_in_no_open_transaction_and_no_read_only_lake(session: dl.Session):
    _small(session, "a")
    session.sql("BEGIN; INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(dl.TransactionError, match="COMMIT or ROLLBACK"):
        session.autopilot(NOW, dry_run=False)
    session.sql("ROLLBACK")
    with dl.connect(session.current_lake.location.uri, alias="lake", read_only=True, engine="duckdb") as other:
        assert len(other.autopilot(NOW)) == 1
        with pytest.raises(dl.TransactionError):
            other.autopilot(NOW, dry_run=False)


def test_the_command(new_catalog: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    uri = new_catalog()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        _small(session, "a")
    assert main(["autopilot", uri, "--once"]) == 0 and capsys.readouterr().out == ""  # off until it is switched on
    assert main(["autopilot", uri, "--set", "enabled=true", "--set", "settled=0", "--set", "budget_bytes=2GB"]) == 0
    assert "budget_bytes=2000000000" in capsys.readouterr().out
    assert main(["autopilot", uri, "--json"]) == 0
    (piece,) = json.loads(capsys.readouterr().out)
    assert piece["effect"] == "3 files become 1"
    assert main(["autopilot", uri, "--once"]) == 0 and "done" in capsys.readouterr().out
    assert main(["autopilot", uri]) == 0 and capsys.readouterr().out == "Nothing to do.\n"
    assert main(["autopilot", uri, "--set", "nothing"]) == 2 and "name=value" in capsys.readouterr().err


@pytest.mark.slow
def test_a_watcher_waits_for_a_catalog_file_in_use(tmp_path: Path):
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        _small(session, "a")
        session.set_policy({"enabled": True, "settled": 0})
    command = [sys.executable, "-m", "ducklake_lab.cli", "autopilot", uri, "--watch", "0.2", "--json"]
    with dl.connect(uri, alias="lake", engine="duckdb", exclusive=True) as holder:
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watcher.stderr is not None and "ducklake-lab: " in watcher.stderr.readline()  # the file is in use
        assert len(holder.table("t").files()) == 3
    try:
        assert watcher.stdout is not None
        (done,) = json.loads(watcher.stdout.readline())
        assert (done["effect"], done["outcome"]) == ("3 files become 1", "done")
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate(timeout=60)
    assert watcher.returncode == 130

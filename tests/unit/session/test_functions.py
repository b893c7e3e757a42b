"""Table functions of a lake: found, called and checked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        yield session
        assert not session.spark_started


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


@pytest.mark.parametrize(
    "call",
    [
        "FROM lake.current_snapshot()",
        "FROM lake.main.current_snapshot()",
        "FROM ducklake_current_snapshot('lake')",
        "SELECT id FROM ducklake_current_snapshot('lake')",
        "CALL lake.current_snapshot()",
        "CALL ducklake_current_snapshot('LAKE')",
        "CALL Ducklake_Current_Snapshot('lake')",
    ],
)
def test_every_spelling_of_a_call(session: dl.Session, call: str) -> None:
    assert rows(session, call) == [(2,)]


@pytest.mark.parametrize("arrow", ["=>", ":="])
def test_named_arguments(session: dl.Session, arrow: str) -> None:
    assert rows(session, f"FROM ducklake_list_files('lake', 't', schema {arrow} 'main')") == []
    assert rows(session, f"CALL lake.list_files('t', snapshot_version {arrow} 1 + 1, schema {arrow} 'main')") == []
    assert rows(session, f"FROM lake.list_files('t', schema {arrow} NULL)") == []
    assert rows(session, "FROM lake.list_files('t', snapshot_time => '2999-01-01 00:00:00')") == []


def test_wrong_calls_say_what_is_wrong(session: dl.Session) -> None:
    for call, message in (
        ("FROM lake.snapshot()", "no function snapshot. Did you mean"),
        ("CALL lake.list_files('t', shema => 'main')", "no argument shema. Did you mean schema"),
        ("CALL lake.list_files()", "list_files takes 1 arguments; it was given 0"),
        ("CALL ducklake_snapshots()", "the name of a lake"),
        ("CALL nothing()", "There is no table function nothing"),
        ("CALL nolake.set_option('a', 1)", 'No lake "nolake" is attached'),
        ("FROM nolake.snapshots()", 'No lake "nolake" is attached'),
        ("SELECT * FROM nolake.main.list_files('t')", 'No lake "nolake" is attached'),
        ("CALL lake.set_commit_message('a', 'm')", "BEGIN"),
    ):
        with pytest.raises(dl.DuckLakeError, match=message.replace("(", r"\(")):
            session.sql(call)


@pytest.mark.parametrize("form", ["CALL lake.set_commit_message", "FROM lake.set_commit_message"])
def test_a_function_with_side_effects_runs_in_the_open_transaction(session: dl.Session, form: str) -> None:
    session.sql("BEGIN")
    assert rows(session, f"{form}('me', 'what', extra_info => '{{}}')") == []
    assert rows(session, "DESCRIBE FROM lake.set_commit_message('you', 'no')")[0][:2] == ("Success", "BOOLEAN")
    session.sql("INSERT INTO t VALUES (2); COMMIT")
    last = rows(session, "SELECT author, commit_message, commit_extra_info FROM lake.snapshots()")[-1]
    assert last == ("me", "what", "{}")

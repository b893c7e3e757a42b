"""Notes of commits about their statements in `commit_extra_info`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.model.commit_notes import LONGEST, CommitNote, StatementNote, read, write
from tests.interop.comparing import attach


def notes(session: dl.Session) -> list[Any]:
    texts = [entry.info.commit_extra_info for entry in session.snapshots()][1:]
    return [text and json.loads(text) for text in texts]


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Any:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


def test_nothing_is_noted_by_default(session: dl.Session) -> None:
    assert not session.record_statements
    session.sql("CREATE TABLE t (i INTEGER)")
    assert notes(session) == [None]


@pytest.mark.slow
def test_each_commit_names_its_statement(session: dl.Session) -> None:
    session.record_statements = lambda: {"notebook": 'é "1".ipynb', "cell": 7, "more": None}
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (:v), (2);;", {"v": 1})
    session.sql("ALTER TABLE t ADD COLUMN s VARCHAR")
    session.sql("  UPDATE t SET s = 'ü\u0001; --' WHERE i = 1 ")
    session.sql("SELECT * FROM t; DELETE FROM t WHERE i = 99")
    session.sql("MERGE INTO t USING (SELECT 3 AS i) AS n ON t.i = n.i WHEN NOT MATCHED THEN INSERT (i) VALUES (3)")
    session.sql("CALL lake.flush_inlined_data()")
    session.record_statements = False
    session.sql("TRUNCATE t")
    found = notes(session)
    took = [note.pop("duration_ms") for note in found if note is not None]
    assert all(0 < value < 60_000 for value in took)
    place = {"notebook": 'é "1".ipynb', "cell": 7}
    merge = "MERGE INTO t USING (SELECT 3 AS i) AS n ON t.i = n.i WHEN NOT MATCHED THEN INSERT (i) VALUES (3)"
    assert found == [
        {"statement": "CREATE TABLE t (i INTEGER)", "kind": "CREATE TABLE", **place},
        {"statement": "INSERT INTO t VALUES (:v), (2)", "kind": "INSERT", **place},
        {"statement": "ALTER TABLE t ADD COLUMN s VARCHAR", "kind": "ALTER TABLE", **place},
        {"statement": "UPDATE t SET s = 'ü\u0001; --' WHERE i = 1", "kind": "UPDATE", **place},
        {"statement": merge, "kind": "MERGE", **place},
        {"statement": "CALL lake.flush_inlined_data()", "kind": "CALL", **place},
        None,
    ]


@pytest.mark.every_catalog
def test_a_transaction_lists_its_statements(session: dl.Session) -> None:
    session.record_statements = True
    session.sql("BEGIN; CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    with pytest.raises(dl.BindError):
        session.sql("INSERT INTO t (x) VALUES (1)")
    session.sql("INSERT INTO t VALUES (2); COMMIT")
    with session.transaction(extra_info="mine"):
        session.sql("INSERT INTO t VALUES (3)")
    session.sql("BEGIN; DELETE FROM t; CALL set_commit_message('Ann', 'gone', extra_info => 'hers'); COMMIT")
    session.restore("t", to=1)
    texts = [entry.info.commit_extra_info for entry in session.snapshots()][1:]
    assert texts[1:] == ["mine", "hers", '{"restored": [{"table_id": 1, "snapshot_id": 1}]}']
    note = read(texts[0])
    assert note is not None and note.kind == "CREATE TABLE, INSERT"
    assert note.statement == "CREATE TABLE t (i INTEGER);\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2)"


@pytest.mark.parametrize(
    ("sql", "noted"),
    [
        ("CREATE TABLE u AS SELECT 'x' AS password", "CREATE TABLE u AS SELECT '***' AS password"),
        (
            "INSERT INTO t SELECT i FROM range(3) AS r(i) WHERE 'https://ann:pw@host/x?a=b' <> ''",
            "INSERT INTO t SELECT i FROM range(3) AS r(i) WHERE 'https://***@host/x?***' <> ''",
        ),
        (
            "UPDATE t SET i = 2 WHERE 'Ann Smith' <> '0192a3b4-1111-7222-8333-444455556666'",
            "UPDATE t SET i = 2 WHERE 'Ann Smith' <> '0192a3b4-1111-7222-8333-444455556666'",
        ),
    ],
)
def test_secrets_are_hidden_and_the_rest_is_read(session: dl.Session, sql: str, noted: str) -> None:
    session.record_statements = True
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    session.sql(sql)
    assert notes(session)[-1]["statement"] == noted


def test_a_secret_at_the_cut_is_not_halved(session: dl.Session) -> None:
    session.record_statements = True
    session.sql("CREATE TABLE t (s VARCHAR)")
    for before in (LONGEST - 20, 2 * LONGEST - 60):
        session.sql(f"INSERT INTO t VALUES ('{'word ' * (before // 5)} ghp_{'aB3xY9' * 8}') -- {'end ' * LONGEST}")
        assert "aB3" not in notes(session)[-1]["statement"]
        assert notes(session)[-1]["is_cut"]


def test_the_reference_reads_such_lakes(
    lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = lake_uri()
    if ":mysql:" in uri:
        pytest.skip("the reference's MySQL catalogs are not tested")
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", ducklake_version="1.0") as session:
        session.record_statements = True
        session.sql("CREATE TABLE t AS SELECT 'a''b\"c' AS s")
    attach(reference, uri)
    reference.execute("INSERT INTO t VALUES ('d')")
    found = reference.execute("SELECT commit_extra_info->>'statement' FROM lake.snapshots() ORDER BY ALL").fetchall()
    assert found == [("CREATE TABLE t AS SELECT 'a''b\"c' AS s",), (None,), (None,)]


def test_long_statements_are_cut() -> None:
    long = StatementNote("x" * LONGEST, "INSERT", 1.0)
    assert read(write([long], {})) == CommitNote("x" * LONGEST, False, "INSERT", 1000.0)
    note = read(write([long, StatementNote("y", "UPDATE", 0.5)], {}))
    assert note == CommitNote("x" * LONGEST, True, "INSERT, UPDATE", 1500.0)
    assert write([], {}) is None and write([], {"cell": None}) is None
    assert write([], {"notebook": "\ud800.ipynb"}) == '{"notebook": "?.ipynb"}'


@pytest.mark.parametrize(
    "text",
    [None, "", "text", "[1]", "{", '{"a": 1}', '{"statement": 5, "cell": "x", "duration_ms": true}', '{"x":' * 30_000],
)
def test_texts_of_others_are_not_understood(text: str | None) -> None:
    assert read(text) is None


def test_members_of_other_types_are_left_out() -> None:
    text = '{"statement": null, "kind": "X", "duration_ms": -1, "notebook": {}, "cell": true, "is_cut": 1}'
    assert read(text) == CommitNote(kind="X")
    assert read('{"duration_ms": 1e400}') is None and read('{"duration_ms": NaN}') is None

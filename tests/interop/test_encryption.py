"""Encrypted lakes: each client reads what the other wrote, and nobody reads a file without its key."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb import file_access
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.files import deletes, options, writer
from tests.interop.comparing import attach, by_row_id, detach, our_history, reference_history
from tests.reference import extension, installed

pytestmark = pytest.mark.sampled(4)

_INSTALLED = installed("httpfs")
_UNSAFE = "SET GLOBAL force_mbedtls_unsafe = 'true'"

OURS = [
    "CREATE TABLE t (i INTEGER, s VARCHAR, k INTEGER DEFAULT 7)",
    "INSERT INTO t (i, s) VALUES (-1, 'inlined')",
    "INSERT INTO t SELECT i, 'n' || i, i % 3 FROM range(300) AS r(i)",
    "DELETE FROM t WHERE i BETWEEN 10 AND 40",
    "DELETE FROM t WHERE i BETWEEN 50 AND 80",
    "UPDATE t SET s = 'changed' WHERE i > 250",
    "ALTER TABLE t ADD COLUMN u UBIGINT DEFAULT 18446744073709551615",
    "DELETE FROM t WHERE i = 100",
    "CALL lake.flush_inlined_data()",
    "ALTER TABLE t SET PARTITIONED BY (k)",
    "INSERT INTO t SELECT i, 'secret', i % 2, NULL FROM range(1000, 1100) AS r(i)",
]
THEIRS = [
    "DELETE FROM t WHERE i BETWEEN 90 AND 130",
    "INSERT INTO t SELECT i, 'theirs', 5, 9 FROM range(2000, 2100) AS r(i)",
    "DELETE FROM t WHERE i = 2000",
    "DELETE FROM t WHERE i BETWEEN 2010 AND 2030",
]
OURS_AGAIN = [
    "DELETE FROM t WHERE i BETWEEN 2040 AND 2070",
    "CALL lake.flush_inlined_data()",
    "CALL lake.rewrite_data_files('t', delete_threshold => 0.1)",
    "INSERT INTO t SELECT i, 'more', 5, NULL FROM range(3000, 3020) AS r(i)",
    "INSERT INTO t SELECT i, 'more', 5, NULL FROM range(3020, 3040) AS r(i)",
    "CALL lake.merge_adjacent_files()",
]


@pytest.fixture
def theirs(reference: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """The reference, able to write encrypted files."""
    reference.execute(f"LOAD '{extension('httpfs')}'" if _INSTALLED else _UNSAFE)
    return reference


@pytest.fixture(autouse=True)
def _able_to_encrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extension, tests make do with random numbers that are not good enough for others."""
    if not _INSTALLED:
        for module in (deletes, options, writer):
            monkeypatch.setattr(module, "load_encryption", lambda connection: connection.execute(_UNSAFE))


def _keys(theirs: duckdb.DuckDBPyConnection, uri: str) -> Iterator[str]:
    attach(theirs, uri)
    for table in ("ducklake_data_file", "ducklake_delete_file"):
        for (key,) in theirs.execute(f"SELECT encryption_key FROM __ducklake_metadata_lake.{table}").fetchall():
            yield key
    detach(theirs)


def test_each_reads_what_the_other_wrote(tmp_path: Path, theirs: duckdb.DuckDBPyConnection, spark: Any) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    session = dl.Session(spark=spark, engine="duckdb")
    session.attach(uri, alias="lake", data_path=f"{tmp_path}/data", encrypted=True)
    session.use("lake")
    for sql in OURS:
        session.sql(sql)
    assert our_history(session, "duckdb") == reference_history(theirs, uri)
    files = sorted((tmp_path / "data").rglob("*.parquet"))
    assert len(files) > 5 and all(file.read_bytes()[:4] == b"PARE" for file in files)
    # values would be read in the names of folders
    assert {str(file.parent) for file in files} == {f"{tmp_path}/data/main/t"}
    keys = list(_keys(theirs, uri))
    assert len(set(keys)) == len(keys) > 5 and all(len(base64.b64decode(key)) == 16 for key in keys)

    attach(theirs, uri)
    for sql in THEIRS:
        theirs.execute(sql)
    listed = theirs.execute("FROM ducklake_list_files('lake', 't') ORDER BY ALL").fetchall()
    detach(theirs)
    assert sorted(session.sql("FROM lake.list_files('t')").fetchall(), key=repr) == sorted(listed, key=repr)
    assert our_history(session, "duckdb") == reference_history(theirs, uri)
    for sql in OURS_AGAIN:
        session.sql(sql)
    expected = reference_history(theirs, uri)
    assert our_history(session, "duckdb") == expected
    newest = session.current_snapshot().snapshot_id
    session.restore("t", to=4)
    restored = reference_history(theirs, uri)[newest + 1, '"main"."t"']
    assert [row[2:] for row in restored] == [row[2:] for row in expected[4, '"main"."t"']]
    keys = [
        shown for key in _keys(theirs, uri) for shown in (key, base64.b64decode(key).hex(), repr(base64.b64decode(key)))
    ]

    # on Spark: rows, positions and lineage of files, and what was deleted from them
    for at in (6, newest):
        sql = f"SELECT rowid, snapshot_id, * FROM t AT (VERSION => {at})"
        rows = by_row_id(session.sql(sql, engine="spark").fetchall())
        assert rows == expected[at, '"main"."t"']
    deleted = [
        sorted(session.sql("SELECT rowid, i FROM lake.table_deletions('t', 4, 5)", engine=e).fetchall())  # type: ignore[arg-type]
        for e in ("spark", "duckdb")
    ]
    assert deleted[0] == deleted[1] and len(deleted[0]) == 62
    frame = session.table("t", at=newest).spark()
    plan = frame._jdf.queryExecution().toString() if hasattr(frame, "_jdf") else ""
    shown = [plan, repr(session.table("t").files()), session.table("t").files()._repr_html_(), repr(frame)]
    shown += [row[0] for row in session.sql("EXPLAIN SELECT * FROM t").fetchall()]
    assert not [key for key in keys if any(key in text for text in shown)]


def test_a_file_that_cannot_be_decrypted_shows_no_key(tmp_path: Path, theirs: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    theirs.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/data', ENCRYPTED); USE lake")
    theirs.execute("CREATE TABLE t AS SELECT i FROM range(100) AS r(i)")
    other = base64.b64encode(b"0123456789abcdef").decode()
    for key, message in (
        (other, "does not open with the key in the catalog"),
        ("x" * 16, "no valid encryption key"),
        ("'", "no valid encryption"),
    ):
        theirs.execute("UPDATE __ducklake_metadata_lake.ducklake_data_file SET encryption_key = ?", [key])
        detach(theirs)
        session = dl.connect(uri, alias="lake", engine="duckdb")
        with pytest.raises(dl.DataFileError, match=message) as found:
            session.sql("SELECT * FROM t").fetchall()
        assert len(key) < 3 or key not in repr([found.value, found.value.__cause__])
        with pytest.raises(dl.UnsupportedFeatureError, match="encrypted lake"):
            session.sql(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/x.parquet')")
        session.close()
        attach(theirs, uri)


def test_lakes_are_made_encrypted_or_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dl.connect(f"ducklake:{tmp_path}/plain.ducklake", alias="plain").close()
    with pytest.raises(dl.UsageError, match="made without encryption"):
        dl.Session().sql(f"ATTACH 'ducklake:{tmp_path}/plain.ducklake' AS lake (ENCRYPTED)")
    monkeypatch.undo()
    monkeypatch.setattr(file_access, "load", lambda connection, name: False)
    monkeypatch.setattr(file_access._local, "encrypts", False, raising=False)
    with dl.Session(engine="duckdb") as session:
        session.sql(f"ATTACH 'ducklake:{tmp_path}/lake.ducklake' AS lake (ENCRYPTED); USE lake")
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
        with pytest.raises(dl.UnsupportedFeatureError, match="pip install duckdb-extension-httpfs=="):
            session.sql("INSERT INTO t SELECT i FROM range(100) AS r(i)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(1,)]


@pytest.mark.skipif(not _INSTALLED, reason="executors need the extension")
def test_executors_encrypt(tmp_path: Path, theirs: duckdb.DuckDBPyConnection, spark: Any) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    session = dl.Session(spark=spark)
    session.attach(uri, alias="lake", data_path=f"{tmp_path}/data", encrypted=True)
    session.use("lake")
    session.write(
        spark.range(5000).selectExpr("id AS i", "id % 2 = 0 AS even", "cast(id AS string) AS s"), "t", mode="create"
    )
    history = reference_history(theirs, uri)
    assert len(history[session.current_snapshot().snapshot_id, '"main"."t"']) == 5000
    assert our_history(session, "duckdb") == history
    assert all(file.read_bytes()[:4] == b"PARE" for file in (tmp_path / "data").rglob("*.parquet"))


def test_parts_of_nested_columns_are_found_by_name_or_refused(
    tmp_path: Path, theirs: duckdb.DuckDBPyConnection, spark: Any
) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.Session(spark=spark, engine="duckdb") as session:
        session.attach(uri, alias="lake", data_path=f"{tmp_path}/data", encrypted=True)
        session.use("lake")
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql("CREATE TABLE made AS SELECT {'x': 1} AS s")
        assert session.sql("FROM made").fetchall() == [({"x": 1},)]
        session.sql("CREATE TABLE t (a INTEGER, s STRUCT(x INTEGER, y VARCHAR))")
        session.sql("INSERT INTO t VALUES (1, {'x': 5, 'y': 'a'})")
        session.sql("ALTER TABLE t ADD COLUMN s.z INTEGER")
        assert session.sql("FROM t").fetchall() == [(1, {"x": 5, "y": "a", "z": None})]
        session.sql("ALTER TABLE t RENAME s.x TO w")
        session.sql("ALTER TABLE t RENAME s.y TO x")
        with pytest.raises(UnsupportedFeatureError, match="Fields of s changed their names"):
            session.sql("FROM t")
        with pytest.raises(UnsupportedFeatureError, match="Fields of s changed their names"):
            session.sql("UPDATE t SET a = 2")
        assert session.sql("FROM t AT (VERSION => 3)").fetchall() == [(1, {"x": 5, "y": "a"})]


SWAP = (
    "ALTER TABLE t RENAME s.a TO x",
    "ALTER TABLE t RENAME s.b TO a",
    "ALTER TABLE t RENAME s.x TO b",
)
WRITE = "INSERT INTO t SELECT i, {'a': i, 'b': 100 + i} FROM range(50) r(i)"


def test_fields_that_swap_names_in_the_transaction_of_a_file_are_not_mixed_up(
    theirs: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    uri = f"ducklake:{tmp_path}/x.ducklake"
    theirs.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/d', ENCRYPTED true); USE lake")
    for statement in ("CREATE TABLE t (i INT, s STRUCT(a INT, b INT))", "BEGIN", WRITE, *SWAP, "COMMIT"):
        theirs.execute(statement)
    for statement in ("CREATE TABLE u (i INT, s STRUCT(a INT))", "BEGIN", "ALTER TABLE u ADD COLUMN s.c INT"):
        theirs.execute(statement)
    theirs.execute("INSERT INTO u SELECT i, {'a': i, 'c': 100 + i} FROM range(50) r(i); COMMIT")
    assert theirs.execute("SELECT max(s.a), max(s.b) FROM t").fetchall() == [(149, 49)]
    detach(theirs)
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        feed = "FROM ducklake_table_changes('lake', 'main', 't', 0, 2)"
        for read in (lambda: session.sql("SELECT s.a FROM t"), session.table("t").arrow, lambda: session.sql(feed)):
            with pytest.raises(dl.UnsupportedFeatureError, match="Fields of s took each other's names"):
                read()
        assert session.sql("SELECT max(s.a), max(s.c) FROM u").fetchall() == [(49, 149)]


@pytest.mark.parametrize("change", [SWAP[0], "ALTER TABLE t DROP COLUMN s.a"])
def test_fields_of_an_encrypted_file_keep_their_names_until_the_commit(change: str, tmp_path: Path) -> None:
    with dl.Session(engine="duckdb") as session:
        session.sql(
            f"ATTACH 'ducklake:{tmp_path}/x.ducklake' AS lake (DATA_PATH '{tmp_path}/d', ENCRYPTED true); USE lake"
        )
        session.sql("CREATE TABLE t (i INT, s STRUCT(a INT, b INT)); BEGIN")
        session.sql(WRITE)
        with pytest.raises(dl.UnsupportedFeatureError, match="fields of s is not supported in a transaction"):
            session.sql(change)
        session.sql("ROLLBACK; BEGIN")
        session.sql(WRITE)
        session.sql("ALTER TABLE t RENAME i TO n; ALTER TABLE t ADD COLUMN s.c INT; COMMIT")
        assert session.sql("SELECT max(n), max(s.a), max(s.b), max(s.c) FROM t").fetchall() == [(49, 49, 149, None)]

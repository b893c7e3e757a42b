"""Commits to catalogs that a DuckDB serves by its extension quack: each is one text, and servers and clients are lost amid them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.remote import RemoteConnection
from ducklake_lab.duckdb.served import served
from tests.quack import TOKEN, Servers

pytestmark = pytest.mark.sampled(2)


@pytest.fixture
def two(place: str) -> Iterator[tuple[RemoteConnection, RemoteConnection]]:
    first, second = (RemoteConnection(f"quack:{place}", TOKEN) for _ in range(2))
    first.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, s VARCHAR)")
    first.commit()
    yield first, second
    first.close()
    second.close()


def _ids(connection: RemoteConnection) -> list[int]:
    return [i for (i,) in connection.execute("SELECT i FROM t ORDER BY i").fetchall()]


def test_writes_are_held_until_commit(two: tuple[RemoteConnection, RemoteConnection]):
    first, second = two
    first.begin()
    assert _ids(first) == []
    first.execute("INSERT INTO t VALUES (?, ?)", [1, "it's\0"])
    # no transaction of the server has it, so nobody waits for this client if it dies now
    second.execute("INSERT INTO t VALUES (1, 'second')")
    second.commit()
    with pytest.raises(duckdb.ConstraintException, match="Duplicate key"):
        first.commit()
    first.rollback()
    first.begin()
    first.execute("INSERT INTO t VALUES (?, ?)", [2, "it's\0"])
    assert _ids(first) == [1, 2]  # its own reads see them
    assert _ids(second) == [1]
    first.rollback()
    assert _ids(first) == [1]
    first.begin()
    first.executemany("INSERT INTO t VALUES ($1, $2)", [(3, "it's\0"), (4, None)])
    first.commit()
    assert second.execute("SELECT i, s FROM t WHERE i > 2 ORDER BY i").fetchall() == [(3, "it's\0"), (4, None)]


def test_a_commit_is_whole_or_nothing(two: tuple[RemoteConnection, RemoteConnection]):
    first, second = two
    first.begin()
    first.execute("INSERT INTO t VALUES (1, 'a')")
    first.execute("INSERT INTO t VALUES ('no number', 'b')")
    first.execute("INSERT INTO t VALUES (3, 'c')")
    with pytest.raises(duckdb.ConversionException, match="Could not convert"):
        first.commit()
    first.rollback()
    assert _ids(second) == []
    first.begin()
    second.begin()
    assert _ids(first) == _ids(second) == []
    for connection in two:
        connection.execute("INSERT INTO t VALUES (1, 'a')")
    first.commit()
    with pytest.raises((duckdb.ConstraintException, duckdb.TransactionException)):
        second.commit()
    second.rollback()
    assert _ids(second) == [1]


def test_errors_show_none_of_the_text_that_was_sent(two: tuple[RemoteConnection, RemoteConnection]):
    with pytest.raises(duckdb.Error) as raised:
        two[0].execute("SELECT * FROM nowhere WHERE s = 'a secret of the row'")
    assert "Table with name nowhere does not exist" in str(raised.value)
    assert "quack_query_by_name" not in str(raised.value)


def test_order_and_names_of_many_rows(two: tuple[RemoteConnection, RemoteConnection]):
    found = two[0].execute("SELECT i, i FROM range(200_000) r(i) ORDER BY i").fetchall()
    assert found == [(i, i) for i in range(200_000)]


def test_a_server_that_was_started_anew(quack_server: Servers, tmp_path: Path):
    port = quack_server.serve(tmp_path / "lake.served")
    uri = f"ducklake:quack:localhost:{port}"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
        quack_server.stop(port)
        with pytest.raises(dl.CatalogError, match="no server answers"):
            session.sql("INSERT INTO t VALUES (2)")
        quack_server.serve(tmp_path / "lake.served", port)
        assert session.sql("FROM t").fetchall() == [(1,)]
        session.sql("INSERT INTO t VALUES (2)")
        quack_server.stop(port)
        quack_server.serve(tmp_path / "lake.served", port)
        session.sql("INSERT INTO t VALUES (3)")
        assert session.sql("FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]
    quack_server.stop(port)


class _Proxy:
    """Passes requests on to a server; loses requests, or answers, while it is asked to."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("localhost", 0))
        self.port = self._listening.getsockname()[1]
        #: What is lost of requests with COMMIT: "request", "answer", or nothing.
        self.loses = ""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(("localhost", self._target)) as server, contextlib.suppress(OSError):
            lost = threading.Event()

            def answers() -> None:
                with contextlib.suppress(OSError):
                    while data := server.recv(65536):
                        if lost.is_set():
                            break
                        client.sendall(data)
                    client.shutdown(socket.SHUT_RDWR)

            threading.Thread(target=answers, daemon=True).start()
            while data := client.recv(1 << 20):
                if b"COMMIT" in data and self.loses:
                    if self.loses == "request":
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    lost.set()
                server.sendall(data)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("loses", ["request", "answer"])
def test_a_commit_whose_answer_is_lost(loses: str, place: str, tmp_path: Path):
    proxy = _Proxy(int(place.rpartition(":")[2]))
    uri = f"ducklake:quack:localhost:{proxy.port}"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        before = session.current_snapshot().snapshot_id
        proxy.loses = loses
        if loses == "answer":
            session.sql("INSERT INTO t VALUES (1)")
        else:
            with pytest.raises(dl.CommitUnknownError, match=f"snapshot {before + 1} was committed"):
                session.sql("INSERT INTO t VALUES (1)")
        proxy.loses = ""
        # never twice
        assert session.current_snapshot().snapshot_id == before + (loses == "answer")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(int(loses == "answer"),)]
        session.sql("INSERT INTO t VALUES (2)")
        assert session.current_snapshot().snapshot_id == before + (loses == "answer") + 1
    proxy.close()


def test_a_snapshot_that_is_half_written_is_not_seen(place: str, tmp_path: Path):
    uri = f"ducklake:quack:{place}"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i")
        last = session.current_snapshot().snapshot_id
        metadata = "__ducklake_metadata_lake"
        # as DuckDB's own client does it: each statement by itself, the changes last
        session.sql(
            f"INSERT INTO {metadata}.ducklake_snapshot SELECT snapshot_id + 1, now(), schema_version, next_catalog_id, "
            f"next_file_id FROM {metadata}.ducklake_snapshot WHERE snapshot_id = {last}"
        )
        session.sql(f"INSERT INTO {metadata}.ducklake_inlined_data_1_1 VALUES (1, {last + 1}, NULL, 2)")
        assert session.sql("FROM t").fetchall() == [(1,)]
        assert session.current_snapshot().snapshot_id == last
        with pytest.raises(dl.SnapshotNotFoundError):
            session.sql(f"FROM t AT (VERSION => {last + 1})")
        assert session.sql("FROM t AT (TIMESTAMP => now()::TIMESTAMP + INTERVAL 1 DAY)").fetchall() == [(1,)]
        session.sql("SET ducklake_max_retry_count = 1")
        with pytest.raises(dl.TransactionError, match=f"snapshot {last + 1} of .* is half written") as refused:
            session.sql("INSERT INTO t VALUES (3)")
        _, _, advice = str(refused.value).partition("close the snapshot as it is: ")
        session.sql(advice.rstrip("."))
        session.sql("INSERT INTO t VALUES (3)")
        assert session.current_snapshot().snapshot_id == last + 2


def test_a_stored_data_path_of_the_server_gives_way(
    quack_server: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    with dl.connect("ducklake:lake.ducklake", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT range AS i FROM range(100)")
    monkeypatch.chdir(tmp_path)
    port = quack_server.serve(tmp_path / "home" / "lake.ducklake")
    data = f"{tmp_path}/home/lake.ducklake.files/"
    with dl.connect(f"ducklake:quack:localhost:{port}", data_path=data, engine="duckdb") as session:
        assert session.sql("SELECT sum(i) FROM t").fetchall() == [(4950,)]
    quack_server.stop(port)


def test_options_of_files_are_refused(place: str, tmp_path: Path):
    for option in ({"storage_version": "v1.5.0"}, {"exclusive": True}):
        with pytest.raises(dl.UnsupportedFeatureError, match="quack"):
            dl.connect(f"ducklake:quack:{place}", data_path=f"{tmp_path}/d", **option)


#: Transactions with all that a commit writes; `{files}` is a file to add.
_EVERYTHING = (
    "CREATE SCHEMA s; CREATE TABLE s.made (i INTEGER, v VARCHAR DEFAULT 'x'); INSERT INTO s.made (i) VALUES (1), (2)",
    "ALTER TABLE a ADD COLUMN c INTEGER DEFAULT 7; INSERT INTO a VALUES (3, 'c', 1); ALTER TABLE b ALTER i TYPE BIGINT; "
    "INSERT INTO b VALUES (9000000000, 'b'); ALTER TABLE a RENAME c TO d; UPDATE a SET d = 8 WHERE i = 1",
    "ALTER TABLE big ALTER f TYPE DOUBLE; INSERT INTO big SELECT i, i FROM range(2000) r(i); DELETE FROM big WHERE i < 5; "
    "DELETE FROM a WHERE i = 1; INSERT INTO b VALUES (1, 'x')",
    "COMMENT ON TABLE a IS 'it''s'; COMMENT ON COLUMN a.i IS '1'; CREATE VIEW w AS FROM a; CREATE MACRO m(x) AS x + 1; "
    "ALTER TABLE big SET PARTITIONED BY (i); ALTER TABLE b SET SORTED BY (i ASC)",
    "CALL ducklake_add_data_files('lake', 'added', '{files}'); INSERT INTO a (i) VALUES (5)",
    "DROP TABLE s.made; DROP VIEW w; DROP MACRO m; ALTER TABLE a RENAME TO other; ALTER TABLE other RENAME TO a",
    "CALL lake.set_option('parquet_compression', 'zstd'); INSERT INTO a (i) VALUES (6)",
)
#: Statements that are commits of their own.
_MAINTENANCE = (
    "CALL lake.set_option('data_inlining_row_limit', '20')",
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', 'big', delete_threshold => 0)",
    "CALL ducklake_expire_snapshots('lake', older_than => now())",
    "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    "CHECKPOINT",
)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts that clients send."""
    sent: list[str] = []
    run = RemoteConnection._run

    def noted(connection: RemoteConnection, text: str) -> None:
        sent.append(text)
        run(connection, text)

    monkeypatch.setattr(RemoteConnection, "_run", noted)
    return sent


def _check_none_is_left_open(texts: list[str]) -> None:
    for text in texts:
        began, ended = text.startswith("BEGIN TRANSACTION;"), text.endswith("\nCOMMIT")
        assert began == ended, text
        assert text != "ROLLBACK"
    texts.clear()


def test_no_transaction_is_open_between_two_requests(place: str, tmp_path: Path, texts: list[str]):
    duckdb.execute(f"COPY (SELECT 1 AS n, 'x' AS s) TO '{tmp_path}/added.parquet'")
    with dl.connect(f"quack:{place}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE a (i INTEGER, s VARCHAR); CREATE TABLE b (i INTEGER, s VARCHAR)")
        session.sql("CREATE TABLE big (i INTEGER, f FLOAT); CREATE TABLE added (n INTEGER, s VARCHAR)")
        session.sql("INSERT INTO a VALUES (1, 'a'), (2, 'b'); INSERT INTO b VALUES (1, 'a')")
        session.sql("INSERT INTO big SELECT i, i FROM range(1000) r(i)")
        for statements in _EVERYTHING:
            before = session.current_snapshot().snapshot_id
            session.sql(f"BEGIN; {statements.format(files=tmp_path / 'added.parquet')}")
            texts.clear()
            session.sql("COMMIT")
            assert len([text for text in texts if text.startswith("BEGIN")]) == 1
            _check_none_is_left_open(texts)
            assert session.current_snapshot().snapshot_id == before + 1
        for statement in _MAINTENANCE:
            session.sql(statement)
            _check_none_is_left_open(texts)
        session.tag("first")
        session.untag("first")
        session.sql("DELETE FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'none'")
        _check_none_is_left_open(texts)
        assert not session.doctor(deep=True).is_ill
        assert session.sql("SELECT i, s, d FROM a ORDER BY i").fetchall() == [
            (2, "b", 7), (3, "c", 1), (5, None, 7), (6, None, 7)
        ]  # fmt: skip
        assert session.sql("SELECT sum(i), count(*), max(f) FROM big").fetchall() == [(2498480, 2990, 1999.0)]
        assert session.sql("FROM added").fetchall() == [(1, "x")]


@pytest.mark.slow
def test_a_commit_that_the_server_refuses_at_any_statement(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The lake is as before, nothing is open, and the next commit is in at its first try."""
    with dl.connect(f"quack:{place}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE a (i INTEGER, s VARCHAR); CREATE TABLE b (i FLOAT)")
        session.sql("INSERT INTO a VALUES (1, 'a'), (2, 'b'); INSERT INTO b VALUES (1.5)")
        session.sql("SET ducklake_max_retry_count = 0")
        run, refused_at, count = RemoteConnection._run, 0, 0

        def refused(connection: RemoteConnection, text: str) -> None:
            nonlocal count
            statements = text.split(";\n")
            if len(statements) > 3:
                count = len(statements)
                if refused_at < count:
                    statements.insert(refused_at, "SELECT error('refused')")
            run(connection, ";\n".join(statements))

        monkeypatch.setattr(RemoteConnection, "_run", refused)
        changes = (
            "BEGIN; ALTER TABLE b ALTER i TYPE DOUBLE; INSERT INTO b VALUES (2.5); ALTER TABLE a ADD COLUMN c INTEGER; "
            "DELETE FROM a WHERE i = 1; INSERT INTO a (i) VALUES (9); COMMIT"
        )
        before = session.current_snapshot()
        while not count or refused_at < count:
            with pytest.raises(dl.DuckLakeError, match="The catalog refused the commit: refused"):
                session.sql(changes)
            if session.in_transaction:
                session.sql("ROLLBACK")
            assert session.current_snapshot() == before
            with contextlib.closing(RemoteConnection(f"quack:{place}", TOKEN)) as other:
                run(other, "UPDATE ducklake_metadata SET value = value || ' ' WHERE key = 'created_by'")
                run(other, "CHECKPOINT")
            refused_at += 1
        assert count > 10
        session.sql(changes)
        assert session.sql("SELECT i, c FROM a ORDER BY i").fetchall() == [(2, None), (9, None)]
        assert session.sql("SELECT sum(i) FROM b").fetchall() == [(4.0,)]


def test_a_commit_waits_for_its_turn_and_then_goes_without(two: tuple[RemoteConnection, RemoteConnection]):
    first, second = two
    # as a client that died between the refusal of its text and its ROLLBACK
    first._run("BEGIN; CREATE TYPE ducklake_lab_commit AS BOOLEAN; INSERT INTO t VALUES (1, 'a')")
    second.execute("INSERT INTO t VALUES (2, 'b')")
    second.commit()
    assert _ids(second) == [2]
    first._run("ROLLBACK")


@pytest.mark.usefixtures("quack_server")
def test_a_client_that_dies_after_a_refusal_leaves_nothing_open(tmp_path: Path):
    """On a server of DuckLake Lab: a client sends no ROLLBACK, nor anything else, after its first refusal."""
    with (
        served(f"{tmp_path}/lake.ours", "localhost", 0, TOKEN) as address,
        contextlib.closing(RemoteConnection(address, TOKEN)) as other,
    ):
        other.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, s VARCHAR)")
        other.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        other.commit()
        for number, (refused, statements) in enumerate(
            (
                (duckdb.TransactionException, ()),
                (duckdb.ConstraintException, ("INSERT INTO t VALUES (2, 'again')",)),
                (
                    duckdb.ConversionException,
                    ("CREATE TABLE made (i INTEGER)", "INSERT INTO t VALUES ('no number', '')"),
                ),
            )
        ):
            for reads in (False, True):
                client = RemoteConnection(address, TOKEN)
                client.execute("UPDATE t SET s = 'of the dead'")
                for statement in statements:
                    client.execute(statement)
                if not statements:
                    client.expect("1 = 2")
                if statements or not reads:
                    with pytest.raises(refused):
                        client.execute("FROM t") if reads else client.commit()
                client._local.close()  # without a word to the server
                other.execute(f"UPDATE t SET s = '{number}'")
                other.commit()
                other.execute("CHECKPOINT")
        assert other.execute("FROM t ORDER BY i").fetchall() == [(1, "2"), (2, "2")]


def test_reads_see_what_is_held(two: tuple[RemoteConnection, RemoteConnection], tmp_path: Path):
    with served(f"{tmp_path}/lake.ours", "localhost", 0, TOKEN) as address:
        ours = RemoteConnection(address, TOKEN)
        ours.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, s VARCHAR)")
        ours.execute("CREATE TABLE unkeyed (i INTEGER); INSERT INTO unkeyed VALUES (1)")
        ours.commit()
        assert ours.execute("FROM unkeyed").fetchall() == [(1,)]  # the text ran once
        for connection in (ours, two[0]):
            connection.execute("INSERT INTO t VALUES (1, 'b'), (2, NULL), (3, 'a')")
            connection.execute("DELETE FROM t WHERE i = 3")
            found = connection.execute(
                "SELECT i, [s, 'l'] AS l, {'a': {'b': i}} AS n, 5::HUGEINT AS h FROM t ORDER BY i DESC"
            )
            assert [column[0] for column in found.description] == ["i", "l", "n", "h"]
            assert found.fetchall() == [(2, [None, "l"], {"a": {"b": 2}}, 5), (1, ["b", "l"], {"a": {"b": 1}}, 5)]
            nothing = connection.execute("SELECT s FROM t WHERE i > 5")
            assert nothing.fetchall() == [] and nothing.description[0][0] == "s"
            connection.commit()
            assert _ids(connection) == [1, 2]
        ours.close()


def test_a_condition_that_does_not_hold_refuses_the_commit(two: tuple[RemoteConnection, RemoteConnection]):
    first, second = two
    first.expect("(SELECT count(*) FROM t) = 0")
    first.execute("INSERT INTO t VALUES (1, 'a')")
    second.execute("INSERT INTO t VALUES (2, 'b')")
    second.commit()
    with pytest.raises(duckdb.TransactionException, match="another client has committed"):
        first.commit()
    assert _ids(first) == [2]
    first.execute("INSERT INTO t VALUES (1, 'a')")
    first.commit()
    assert _ids(first) == [1, 2]


def test_names_that_look_like_sql(place: str, tmp_path: Path, texts: list[str]):
    hostile = "a\";\nCOMMIT; DROP TABLE ducklake_snapshot; -- ' ? $1 :x %s"
    quoted = hostile.replace('"', '""')
    with dl.connect(f"quack:{place}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql(f'CREATE TABLE "{quoted}" (i INTEGER, "{quoted}" VARCHAR)')
        text = hostile.replace("'", "''")
        session.sql(f"""INSERT INTO "{quoted}" VALUES (1, '{text}'), (2, NULL)""")
        session.sql(
            f"""BEGIN; ALTER TABLE "{quoted}" ADD COLUMN "x{quoted}" VARCHAR DEFAULT '{text}'; COMMENT ON TABLE "{quoted}" IS
            '{text}'; INSERT INTO "{quoted}" VALUES (3, '{text}', 'b'); DELETE FROM "{quoted}" WHERE i = 2; COMMIT""",
        )
        assert session.sql(f'FROM "{quoted}" ORDER BY i').fetchall() == [(1, hostile, hostile), (3, hostile, "b")]
    assert not [text for text in texts if text == "ROLLBACK"]

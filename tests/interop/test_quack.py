"""A catalog over the network beside DuckDB's own client, and a server that is killed while it commits."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach
from tests.quack import TOKEN, Servers

pytestmark = pytest.mark.sampled(2)

_VALUES = """
    i INTEGER, s VARCHAR, b BLOB, f DOUBLE, d DECIMAL(20, 3), t TIMESTAMPTZ, v INTERVAL, u UUID, h HUGEINT,
    l INTEGER[], n STRUCT(a VARCHAR, b BLOB[]), m MAP(VARCHAR, DATE), j JSON"""
_ROWS = r"""
    (1, 'it''s "x"' || chr(0) || chr(13), '\x00\xFF'::BLOB, 'nan', 12345678901234567.125, '290000-01-01 00:00:00+00',
     INTERVAL '1 month -2 days 3 microseconds', '01a21efc-b3ab-7f25-8726-5945ecacfe11', -170141183460469231731687303715884105728,
     [1, NULL], {'a': 'x''y', 'b': ['\x27'::BLOB, NULL]}, MAP {'k''': DATE '2020-01-01'}, '{"a": [1, "?$1"]}'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '', '', -0.0, 0, '1970-01-01 00:00:00+00', INTERVAL 0 SECOND, '00000000-0000-0000-0000-000000000000', 0,
     [], {'a': NULL, 'b': []}, MAP {}, 'null')"""


@pytest.mark.parametrize("kind", ["quack"])
def test_both_ways(
    kind: str, new_catalog: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri = new_catalog(kind)
    session = dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb")
    session.sql(f"CREATE TABLE t ({_VALUES})")
    session.sql(f"INSERT INTO t VALUES {_ROWS}")
    attach(reference, uri)
    plain = duckdb.connect()
    plain.execute("SET TimeZone = 'UTC'")
    plain.execute(f"CREATE TABLE t ({_VALUES})")
    plain.execute(f"INSERT INTO t VALUES {_ROWS}")
    shown = "SELECT CAST(COLUMNS(*) AS VARCHAR) FROM t ORDER BY ALL"
    expected = plain.execute(shown).fetchall()
    assert session.sql(shown).fetchall() == expected
    assert reference.execute(shown).fetchall() == expected
    reference.execute(f"INSERT INTO t VALUES {_ROWS}")
    reference.execute("UPDATE t SET i = 4 WHERE i = 1")
    session.sql("DELETE FROM t WHERE i = 3")
    assert session.sql(shown).fetchall() == reference.execute(shown).fetchall()
    assert session.sql("SELECT count(*), count(i) FROM t").fetchall() == [(4, 2)]
    reference.execute("INSERT INTO t (i) FROM range(1000)")
    session.sql("INSERT INTO t (i) FROM range(1000)")
    assert session.sql("SELECT count(*), sum(i) FROM t").fetchall() == [(2004, 999008)]
    assert reference.execute("SELECT count(*), sum(i) FROM t").fetchall() == [(2004, 999008)]
    detach(reference)
    session.close()


@pytest.mark.timeout(600)
def test_a_server_that_is_killed_while_it_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit alters a table and writes to two; what was said to be in is in, and no commit is in by half."""
    monkeypatch.setenv("QUACK_TOKEN", TOKEN)
    servers = Servers()
    path = tmp_path / "lake.served"
    port = servers.serve(path)
    done: list[int] = []
    unknown: list[int] = []
    with dl.connect(
        f"ducklake:quack:localhost:{port}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb"
    ) as session:
        session.sql("CREATE TABLE a (i INTEGER); CREATE TABLE b (i INTEGER)")
        n = 0
        for _ in range(4):
            killing = threading.Timer(random.uniform(0.2, 2), servers.kill)
            killing.start()
            while servers.process.poll() is None:
                n += 1
                try:
                    session.sql(
                        f"BEGIN; INSERT INTO a VALUES ({n}); COMMENT ON TABLE a IS '{n}'; ALTER TABLE b ALTER i SET DEFAULT {n}; "
                        f"INSERT INTO b VALUES ({n}); COMMIT"
                    )
                except dl.CommitUnknownError:
                    unknown.append(n)
                except dl.DuckLakeError:
                    pass
                else:
                    done.append(n)
                if session.in_transaction:
                    session.sql("ROLLBACK")
            killing.join()
            servers = _again(path, port)
            found = [i for (i,) in session.sql("SELECT i FROM a ORDER BY i").fetchall()]
            assert [i for (i,) in session.sql("SELECT i FROM b ORDER BY i").fetchall()] == found
            ((comment,),) = session.sql("SELECT comment FROM duckdb_tables() WHERE table_name = 'a'").fetchall()
            assert comment == (str(found[-1]) if found else None)
            assert set(done) <= set(found) <= {*done, *unknown}
            assert session.current_snapshot().snapshot_id == len(found) + 2
    servers.close()
    assert done


def _again(path: Path, port: int) -> Servers:
    time.sleep(0.1)
    servers = Servers()
    servers.serve(path, port)
    return servers


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["quack"])
def test_two_writers_that_alter_and_write(
    kind: str, new_catalog: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    uri, errors = new_catalog(kind), list[dl.DuckLakeError]()
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql(
            "CREATE TABLE shared (w INTEGER, n INTEGER); CREATE TABLE t0 (n INTEGER); CREATE TABLE t1 (n INTEGER)"
        )
        before = session.current_snapshot().snapshot_id

    def write(worker: int) -> None:
        try:
            with dl.connect(uri, alias="lake", engine="duckdb") as session:
                session.sql("SET ducklake_max_retry_count = 100; SET ducklake_retry_wait_ms = 5")
                for n in range(12):
                    session.sql(
                        f"BEGIN; ALTER TABLE t{worker} ADD COLUMN c{n} INTEGER DEFAULT {n}; "
                        f"INSERT INTO t{worker} (n) VALUES ({n}); INSERT INTO shared VALUES ({worker}, {n}); COMMIT"
                    )
        except dl.DuckLakeError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.current_snapshot().snapshot_id == before + 24
        assert not session.doctor(deep=True).is_ill
    attach(reference, uri)
    assert reference.execute("SELECT w, sum(n), count(*) FROM shared GROUP BY w ORDER BY w").fetchall() == [
        (0, 66, 12), (1, 66, 12)
    ]  # fmt: skip
    for worker in range(2):
        assert reference.execute(f"SELECT sum(n), sum(c0), sum(c11) FROM t{worker}").fetchall() == [(66, 0, 132)]
    detach(reference)

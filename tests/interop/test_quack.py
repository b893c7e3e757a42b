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
    """Each commit writes to two tables; what was said to be in is in, and no commit is in by half."""
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
                    session.sql(f"BEGIN; INSERT INTO a VALUES ({n}); INSERT INTO b VALUES ({n}); COMMIT")
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
            assert set(done) <= set(found) <= {*done, *unknown}
            assert session.current_snapshot().snapshot_id == len(found) + 2
    servers.close()
    assert done


def _again(path: Path, port: int) -> Servers:
    time.sleep(0.1)
    servers = Servers()
    servers.serve(path, port)
    return servers

"""An appender holds rows and commits them in batches, converted as an INSERT converts them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import BindError, ConstraintError, EntryNotFoundError, UnsupportedFeatureError, UsageError
from ducklake_lab.session import appender as module
from ducklake_lab.version import READS_VARIANT_BYTES

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[[str], str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri("appended"), alias="lake", data_path=f"{tmp_path}/data") as opened:
        opened.sql("CREATE TABLE t (id INTEGER, name VARCHAR DEFAULT 'nobody', v DOUBLE)")
        yield opened


def snapshots(session: dl.Session) -> int:
    (row,) = session.sql("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    return int(row[0])


def test_each_flush_is_one_commit(session: dl.Session) -> None:
    before = snapshots(session)
    with session.appender("t", rows=10) as appender:
        for number in range(25):
            appender.append((number, f"n{number}", number / 4))
        assert (appender.appended, appender.held) == (20, 5)
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
    assert (appender.appended, appender.held) == (25, 0)
    assert snapshots(session) == before + 3
    assert appender.snapshot is not None
    assert appender.snapshot.snapshot_id == before + 3
    expected = [(number, f"n{number}", number / 4) for number in range(25)]
    assert session.sql("FROM t ORDER BY id").fetchall() == expected
    assert session.sql("SELECT rowid FROM t ORDER BY id").fetchall() == [(number,) for number in range(25)]


def test_rows_by_name_and_in_arrow(session: dl.Session) -> None:
    with session.appender("lake.main.t") as appender:
        appender.append({"ID": 1, "v": 2})
        appender.append({"v": 0.5, "id": 2, "name": None})
        appender.extend(pa.table({"NAME": ["x", "y"], "id": pa.array([3, 4], pa.uint8())}))
        appender.extend(pa.record_batch({"id": ["5"]}))
        appender.extend([(6, "z", None), [7, "w", True]])
    assert session.sql("FROM t ORDER BY id").fetchall() == [
        (1, "nobody", 2.0),
        (2, None, 0.5),
        (3, "x", None),
        (4, "y", None),
        (5, "nobody", None),
        (6, "z", None),
        (7, "w", 1.0),
    ]
    with session.appender("t", ["v", "id"]) as appender:
        appender.append((1.5, 8))
    assert session.sql("FROM t WHERE id = 8").fetchall() == [(8, "nobody", 1.5)]


def test_rows_keep_their_order(session: dl.Session) -> None:
    row = [0, "list", 0.0]
    with session.appender("t") as appender:
        for number in range(0, 40, 4):
            appender.append({"id": number})
            row[0] = number + 1
            appender.append(row)  # changed again before the flush
            appender.extend(pa.table({"id": [number + 2]}))
            appender.append({"v": 1, "id": number + 3})
    assert session.sql("SELECT id FROM t ORDER BY rowid").fetchall() == [(number,) for number in range(40)]
    assert session.sql("SELECT count(*) FROM t WHERE name = 'list'").fetchall() == [(10,)]


def test_a_flush_is_due_after_some_seconds(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    appender = session.appender("t", seconds=5)
    appender.append((1, "a", 0))
    now[0] += 4.9
    appender.append((2, "b", 0))
    assert appender.held == 2
    now[0] += 0.2
    appender.append((3, "c", 0))
    assert (appender.held, appender.appended) == (0, 3)
    appender.append((4, "d", 0))
    assert appender.held == 1
    appender.close()
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(4,)]


@pytest.mark.every_catalog
def test_many_rows_go_to_a_file(session: dl.Session) -> None:
    with session.appender("t", rows=100_000) as appender:
        appender.extend((number, str(number), None) for number in range(5_000))
    assert session.sql("SELECT count(*), sum(id) FROM t").fetchall() == [(5_000, 12_497_500)]
    assert len(session.table("t").files()) == 1


def test_what_fails_keeps_its_rows(session: dl.Session) -> None:
    before = snapshots(session)
    appender = session.appender("t")
    appender.append((1, "a", 0))
    appender.append(("one", "b", 0))
    with pytest.raises(ConstraintError, match='Column "id" cannot take values of int and str together'):
        appender.flush()
    assert (appender.held, snapshots(session)) == (2, before)
    appender.drop()
    appender.append(("one", "b", 0))
    with pytest.raises(ConstraintError, match="one"):
        appender.close()
    appender.drop()
    appender.append((2**31, "b", 0))
    with pytest.raises(ConstraintError, match="2147483648"):
        appender.flush()
    appender.drop()
    assert appender.flush() is None
    session.sql("CREATE TABLE n (v INTEGER NOT NULL)")
    with pytest.raises(ConstraintError, match=r"n\.v is NOT NULL"), session.appender("n") as appender:
        appender.append((None,))
    assert session.sql("SELECT count(*) FROM n").fetchall() == [(0,)]


def test_an_error_in_the_block_drops_held_rows(session: dl.Session) -> None:
    appender = session.appender("t", rows=2)
    with pytest.raises(BindError, match="a row has 4"), appender:
        appender.extend([(1, "a", 0), (2, "b", 0), (3, "c", 0), (4, "d", 0, 0)])
    assert (appender.appended, appender.held) == (2, 0)
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("row", "error", "words"),
    [
        ((1, "a"), BindError, "t needs 3 values, but a row has 2"),
        ({"id": 1, "nmae": "a"}, BindError, 'no column "nmae".*name'),
        ({"id": 1, "ID": 2}, BindError, '"id" of t is given twice'),
        ("abc", UsageError, "not str"),
        (5, UsageError, "not int"),
    ],
)
def test_rows_that_are_none(session: dl.Session, row: Any, error: type[Exception], words: str) -> None:
    appender = session.appender("t")
    with pytest.raises(error, match=words):
        appender.append(row)
    assert appender.held == 0


def test_bad_arguments(session: dl.Session) -> None:
    with pytest.raises(UsageError, match="rows=0"):
        session.appender("t", rows=0)
    with pytest.raises(EntryNotFoundError, match="tt"):
        session.appender("tt")
    with pytest.raises(BindError, match='no column "x"'):
        session.appender("t", ["x"])
    session.sql('CREATE TABLE r (id INTEGER, "at" DOUBLE DEFAULT random(), day TIMESTAMP DEFAULT now())')
    with pytest.raises(UnsupportedFeatureError, match='"at" has a default that differs by row'):
        session.appender("r", ["id"], rows=1).append((1,))
    with session.appender("r", ["id", "at"]) as appender:
        appender.append((1, 0.5))
    assert session.sql("SELECT id, r.at, day IS NOT NULL FROM r").fetchall() == [(1, 0.5, True)]


def test_an_open_transaction_takes_the_rows(session: dl.Session) -> None:
    before = snapshots(session)
    session.sql("BEGIN")
    session.appender("t", rows=1).append((1, "a", 0))
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(1,)]
    session.sql("ROLLBACK")
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
    with session.transaction():
        session.sql("INSERT INTO t VALUES (0, 'x', 0)")
        appender = session.appender("t")
        appender.append((1, "a", 0))
        assert appender.flush() is None
    assert session.sql("SELECT id, rowid FROM t ORDER BY id").fetchall() == [(0, 0), (1, 1)]
    assert snapshots(session) == before + 1


def test_a_changed_table(session: dl.Session) -> None:
    appender = session.appender("t")
    appender.append((1, "a", 0))
    session.sql("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7")
    appender.flush()
    assert session.sql("FROM t").fetchall() == [(1, "a", 0.0, 7)]
    appender.append((2, "b", 0))
    session.sql("ALTER TABLE t DROP COLUMN v")
    with pytest.raises(BindError, match='t has no column "v" any more'):
        appender.flush()


VALUES: dict[str, list[Any]] = {
    "TINYINT": [1, -128, "7", 2.5, None],
    "UBIGINT": [2**63, 0],
    "HUGEINT": [2**100, -1],
    "UHUGEINT": [2**127],
    "DECIMAL(9,2)": [Decimal("1.005"), Decimal("-12.3")],
    "DOUBLE": [1, float("nan"), float("inf")],
    "FLOAT": [0.1],
    "BOOLEAN": [True, None, False],
    "DATE": [date(2024, 2, 29), "0044-03-15 (BC)"],
    "TIMESTAMP": [datetime(2024, 1, 1, 12, 30, 0, 5), "infinity"],
    "TIMESTAMPTZ": [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 7, 1), "2024-11-03 01:30:00"],
    "TIMESTAMP_NS": ["2024-01-01 00:00:00.123456789"],
    "TIME": [time(1, 2, 3)],
    "TIMETZ": [time(1, 2, tzinfo=UTC), "01:02:03+05:45"],
    "INTERVAL": [timedelta(days=3, seconds=1), timedelta(seconds=-1), "1 month"],
    "UUID": [UUID(int=5), "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    "JSON": ['{"a": 1}'],
    "BLOB": [b"\x00\xff"],
    "INTEGER[]": [[1, None], [], None],
    "STRUCT(a INTEGER, b VARCHAR)": [{"a": 1, "b": "x"}, {"a": None}, None],
    "MAP(VARCHAR, INTEGER)": [{"k": 1}, {}, None],
    "STRUCT(m MAP(INTEGER, DATE), l DOUBLE[])[]": [[{"m": {1: date(2024, 1, 1)}, "l": [1.5]}]],
}
if READS_VARIANT_BYTES:
    VALUES["VARIANT"] = [5, "x"]


@pytest.mark.parametrize("kind", VALUES)
def test_values_become_the_column_s_type(session: dl.Session, kind: str) -> None:
    session.sql("SET TimeZone = 'America/New_York'")
    session.sql(f"CREATE TABLE v (n INTEGER, v {kind})")
    with session.appender("v", rows=1) as appender:
        for number, value in enumerate(VALUES[kind]):
            appender.append((number, value))
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = 'America/New_York'; CREATE TABLE v (n INTEGER, v {kind})")
        for number, value in enumerate(VALUES[kind]):
            text = str(value) if isinstance(value, time | UUID) else value
            if kind.startswith("MAP") and value is not None:
                connection.execute(f"INSERT INTO v SELECT ?, MAP {value}::{kind}", [number])
            elif kind.startswith("STRUCT(m"):
                connection.execute(
                    "INSERT INTO v VALUES (?, [{'m': MAP {1: DATE '2024-01-01'}, 'l': [1.5]}])", [number]
                )
            elif isinstance(value, dict) and "b" not in value:
                connection.execute("INSERT INTO v VALUES (?, {'a': NULL, 'b': NULL})", [number])
            else:
                connection.execute("INSERT INTO v VALUES (?, ?)", [number, text])
        expected = connection.execute("SELECT v::VARCHAR FROM v ORDER BY n").fetchall()
    assert session.sql("SELECT v::VARCHAR FROM v ORDER BY n").fetchall() == expected


@pytest.mark.slow
def test_the_catalog_file_is_held_in_the_block_only(tmp_path: Path) -> None:
    path = tmp_path / "m.ducklake"
    open_it = f"import duckdb; duckdb.connect({str(path)!r})"
    with dl.connect(f"ducklake:{path}") as session:
        session.sql("CREATE TABLE t (id INTEGER)")
        with session.appender("t") as appender:
            appender.append((1,))
            held = subprocess.run([sys.executable, "-c", open_it], check=False, capture_output=True, text=True)
            assert "lock" in held.stderr
        subprocess.run([sys.executable, "-c", open_it], check=True)
        outside = session.appender("t")
        outside.append((2,))
        outside.flush()
        subprocess.run([sys.executable, "-c", open_it], check=True)
        assert session.sql("FROM t ORDER BY id").fetchall() == [(1,), (2,)]

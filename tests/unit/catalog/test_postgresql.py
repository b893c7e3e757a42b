"""Round trips to PostgreSQL: what is held is sent in time, and errors come up where they are handled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row

import ducklake_lab as dl
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.postgresql import UNREAD
from ducklake_lab.transaction.metadata import Metadata

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def place(postgres: Callable[[], str]) -> str:
    return postgres()


@pytest.fixture
def session(place: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:postgres:{place}", alias="lake", data_path=f"{tmp_path}/d") as opened:
        opened.sql("CREATE TABLE t (i INTEGER)")
        yield opened


@pytest.fixture
def lake(session: dl.Session) -> Lake:
    return session.current_lake


def insert(snapshot_id: int) -> sa.TextClause:
    return sa.text(f"INSERT INTO ducklake_snapshot VALUES ({snapshot_id}, now(), 1, 1, 1)")


def snapshots(place: str) -> int:
    with psycopg.connect(place) as other:
        found = other.execute("SELECT count(*) FROM ducklake_snapshot").fetchone()
    assert found is not None
    count: int = found[0]
    return count


@pytest.mark.slow
def test_what_is_held_is_seen_by_the_next_statement_and_committed(lake: Lake, place: str) -> None:
    before = snapshots(place)
    with lake.connect(fresh=True) as connection:
        connection.execute(insert(100), execution_options=UNREAD)
        connection.execute(insert(101), execution_options=UNREAD)
        assert connection.scalar(sa.text("SELECT max(snapshot_id) FROM ducklake_snapshot")) == 101
        assert snapshots(place) == before
        connection.execute(insert(102), execution_options=UNREAD)
        connection.commit()
    assert snapshots(place) == before + 3


def test_what_is_held_is_rolled_back(lake: Lake, place: str) -> None:
    before = snapshots(place)
    with lake.connect(fresh=True) as connection:
        connection.execute(insert(100), execution_options=UNREAD)
    with lake.connect(fresh=True) as connection:
        connection.commit()
    assert snapshots(place) == before


@pytest.mark.parametrize("end", ["COMMIT", "SELECT 1"])
def test_the_first_error_of_what_is_held_is_raised_and_nothing_is_committed(end: str, lake: Lake, place: str) -> None:
    def write() -> None:
        with lake.connect(fresh=True) as connection:
            for number in (100, 101, 100, 102):
                connection.execute(insert(number), execution_options=UNREAD)
            if end == "COMMIT":
                connection.commit()
            connection.execute(sa.text(end)).all()

    before = snapshots(place)
    with pytest.raises(dl.CatalogError, match="ducklake_snapshot_pkey"):
        write()
    assert snapshots(place) == before


def test_a_refused_commit_is_known_to_have_failed(session: dl.Session, place: str) -> None:
    with psycopg.connect(place, autocommit=True) as other:
        other.execute("ALTER TABLE ducklake_table_column_stats ALTER COLUMN max_value TYPE varchar(1)")
    with pytest.raises(dl.TransactionError, match="refused the commit") as raised:
        session.sql("INSERT INTO t VALUES (77)")
    assert not isinstance(raised.value, dl.CommitUnknownError)
    session.sql("INSERT INTO t VALUES (8)")
    assert session.sql("FROM t").fetchall() == [(8,)]


def test_a_connection_that_the_server_has_ended_is_replaced(session: dl.Session, place: str) -> None:
    for text in ("INSERT INTO t VALUES (1)", "FROM t"):
        with psycopg.connect(place, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND datname = current_database()"
            )
        session.sql(text)
    assert session.sql("FROM t").fetchall() == [(1,)]


def test_a_statement_leaves_no_transaction_open(session: dl.Session, place: str) -> None:
    for text in ("INSERT INTO t VALUES (1)", "FROM t", "UPDATE t SET i = 2"):
        session.sql(text).fetchall()
        with psycopg.connect(place) as other:
            query = "SELECT state FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
            assert {state for (state,) in other.execute(query)} == {"idle"}


def test_an_insert_makes_few_round_trips(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("INSERT INTO t VALUES (1)")
    sent: list[str] = []
    fetch = psycopg.Connection.wait

    def counted(connection: psycopg.Connection, gen: object, *args: object, **kwargs: object) -> object:
        sent.append(getattr(gen, "__name__", ""))
        return fetch(connection, gen, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg.Connection, "wait", counted)
    in_pipeline = psycopg.Cursor.execute
    held: list[object] = []

    def execute(cursor: psycopg.Cursor, *args: object, **kwargs: object) -> object:
        if cursor.connection.info.pipeline_status != psycopg.pq.PipelineStatus.OFF:
            held.append(args[0])
        return in_pipeline(cursor, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg.Cursor, "execute", execute)
    session.sql("INSERT INTO t VALUES (2)")
    assert len(held) >= 8
    commands = [name for name in sent if name in ("_execute_gen", "_pipeline_exit_gen", "_exit_gen", "_commit_gen")]
    assert len(commands) - len(held) <= 3


def test_many_rows_are_one_array_for_each_column(lake: Lake, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ducklake_lab.catalog.writes._MOST", 20)
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
    texts = ["", "NULL", "{a,b}", "q\"uo'te", "back\\slash", "é", None]
    stats = [
        {"table_id": 1, "column_id": i, "contains_null": i % 2 == 0 if i % 3 else None, "contains_nan": None,
         "min_value": texts[i % 7], "max_value": texts[(i + 1) % 7], "extra_stats": None}
        for i in range(100, 150)
    ]  # fmt: skip
    old = [
        {"data_file_id": i, "path": f"{i}.parquet", "path_is_relative": True, "schedule_start": moment}
        for i in range(9)
    ]
    with lake.connect(fresh=True) as connection:
        metadata = Metadata(connection, 100)
        metadata.insert_many(t.table_column_stats, stats)
        metadata.insert_many(t.files_scheduled_for_deletion, old)
        metadata.flush()
        connection.commit()
    with psycopg.connect(place, row_factory=dict_row) as other:
        names = ", ".join(stats[0])
        query = f"SELECT {names} FROM ducklake_table_column_stats WHERE column_id >= 100 ORDER BY column_id"
        assert other.execute(query.encode()).fetchall() == stats
        assert other.execute("SELECT * FROM ducklake_files_scheduled_for_deletion ORDER BY 1").fetchall() == old


def test_a_row_of_many_that_does_not_fit_writes_none(lake: Lake, place: str) -> None:
    rows = [{"snapshot_id": i, "schema_version": None} for i in (*range(100, 120), 100)]
    with lake.connect(fresh=True) as connection:
        metadata = Metadata(connection, 100)
        metadata.insert_many(t.snapshot, rows)
        with pytest.raises(sa.exc.IntegrityError):
            metadata.flush()
    assert snapshots(place) == 2


@pytest.mark.slow
def test_more_files_are_cleaned_up_than_a_statement_takes_parameters(session: dl.Session, place: str) -> None:
    listed = "ducklake_files_scheduled_for_deletion"
    with psycopg.connect(place) as other:
        other.execute(
            f"INSERT INTO {listed} SELECT i, i || '.parquet', true, now() FROM generate_series(1, 70000) r(i)"
        )
    assert len(session.sql("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)").fetchall()) == 70_000
    with psycopg.connect(place) as other:
        assert other.execute(f"SELECT count(*) FROM {listed}").fetchone() == (0,)

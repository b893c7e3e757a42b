"""A connection that the server ends while a commit is on its way: what is known of it is said, and no file is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

import ducklake_lab as dl


@pytest.mark.parametrize("landed", [False, True])
def test_a_connection_that_breaks_at_commit(
    landed: bool, postgres: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = postgres()
    insert = "INSERT INTO t SELECT range FROM range(100)"
    with dl.connect(f"ducklake:postgres:{place}", alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        before = session.current_snapshot().snapshot_id
        commit = sa.Connection.commit

        def breaking(connection: sa.Connection) -> None:
            if landed:
                connection.connection.commit()
            (pid,) = connection.exec_driver_sql("SELECT pg_backend_pid()").one()
            with psycopg.connect(place, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [pid])
            commit(connection)

        with monkeypatch.context() as patch:
            patch.setattr(sa.Connection, "commit", breaking)
            if landed:
                session.sql(insert, engine="duckdb")
            else:
                with pytest.raises(dl.CommitUnknownError, match=f"snapshot {before + 1} was committed"):
                    session.sql(insert, engine="duckdb")
        assert session.current_snapshot().snapshot_id == before + landed
        assert len(list(tmp_path.rglob("*.parquet"))) == 1
        assert session.sql("SELECT count(*) FROM t", engine="duckdb").fetchall() == [(100 * landed,)]
        session.sql(insert, engine="duckdb")
        assert session.sql("SELECT count(*) FROM t", engine="duckdb").fetchall() == [(100 * landed + 100,)]

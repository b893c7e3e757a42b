"""Values of every type come back as they were, from files and from the catalog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from tests.type_matrix import VALUES

pytestmark = pytest.mark.sampled(8)


@pytest.mark.parametrize("copies", [1, 20], ids=["inlined", "files"])
@pytest.mark.parametrize("kind", VALUES)
def test_values_come_back(kind: str, copies: int, lake_uri: Callable[..., str], tmp_path: Path) -> None:
    name, values = VALUES[kind]
    listed = ", ".join(f"({i}, CAST({value} AS {name}))" for i, value in enumerate((*values, "NULL")))
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:

        def rows() -> list[tuple[str, ...]]:
            return session.sql("SELECT rowid, i, v::VARCHAR FROM t ORDER BY rowid").fetchall()

        def newest() -> int:
            return session.current_snapshot().snapshot_id

        session.sql(f"CREATE TABLE t (i INTEGER, v {name}, w INTEGER)")
        session.sql(f"INSERT INTO t SELECT x.i, x.v, 0 FROM (VALUES {listed}) AS x(i, v), range({copies})")
        before = rows()
        session.sql("UPDATE t SET v = NULL WHERE i < 2")
        updated, between = newest(), rows()
        session.sql("DELETE FROM t WHERE i > 0")
        deleted = newest()
        session.sql("UPDATE t SET w = 1")
        session.revert(deleted)
        assert rows() == between
        back = session.revert(updated)
        assert rows() == before
        assert back is not None
        session.revert(back.snapshot_id)
        assert rows() == between
        session.sql("ALTER TABLE t DROP COLUMN v")
        dropped = newest()
        session.sql("UPDATE t SET w = 2 WHERE i < 2")
        if "int128" not in kind:  # files hold doubles
            session.sql("CALL lake.flush_inlined_data()")
        session.revert(dropped)
        assert rows() == between

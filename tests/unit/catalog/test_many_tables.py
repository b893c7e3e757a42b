"""Lakes of many tables: columns are read of those that are named, from a snapshot that is still there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog import columns, state
from ducklake_lab.model.entries import Column

pytestmark = pytest.mark.sampled(3)

TABLES = 105


@pytest.fixture(params=["duckdb", "postgres"])
def attach(
    request: pytest.FixtureRequest, new_catalog: Callable[..., str], tmp_path: Path
) -> Callable[[str], dl.Session]:
    """Attaches a lake of many tables as the alias given."""
    uri = new_catalog(request.param)
    with dl.connect(uri, alias="lake", data_path=str(tmp_path / "d")) as writer, writer.transaction():
        writer.sql("".join(f"CREATE TABLE t{i} (k INTEGER, name_{i} VARCHAR);" for i in range(TABLES)))
        writer.sql("INSERT INTO t7 VALUES (1, 'one')")
    return lambda alias: dl.connect(uri, alias=alias)


@pytest.fixture
def session(attach: Callable[[str], dl.Session], reads: list[int | None]) -> Iterator[dl.Session]:
    """A session that has read no columns yet."""
    with attach("lake") as session:
        reads.clear()
        yield session


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The table of each query for columns; None for all tables."""
    found: list[int | None] = []
    read = columns.columns_of

    def noted(
        connection: sa.Connection, snapshot_id: int, table_id: int | None = None
    ) -> Callable[[int], tuple[Column, ...]]:
        found.append(table_id)
        return read(connection, snapshot_id, table_id)

    for module in (columns, state):
        monkeypatch.setattr(module, "columns_of", noted)
    return found


@pytest.mark.slow
def test_a_query_reads_the_columns_of_its_tables(session: dl.Session, reads: list[int | None]) -> None:
    joined = session.sql("SELECT t7.*, t8.k AS other FROM t7 LEFT JOIN t8 USING (k)")
    assert joined.columns == ["k", "name_7", "other"]
    assert joined.fetchall() == [(1, "one", None)]
    assert len(reads) == 2 and None not in reads


@pytest.mark.slow
def test_whoever_wants_all_tables_reads_them_at_once(session: dl.Session, reads: list[int | None]) -> None:
    columns = {info.table.name: [column.name for column in info.table.columns] for info in session.tables()}
    assert columns == {f"t{i}": ["k", f"name_{i}"] for i in range(TABLES)}
    assert reads.count(None) == 1 and len(reads) <= 10


@pytest.mark.slow
def test_names_need_no_columns(session: dl.Session, reads: list[int | None]) -> None:
    with pytest.raises(dl.DuckLakeError, match="Did you mean t104"):
        session.sql("SELECT * FROM t1004")
    assert reads == []


@pytest.mark.slow
def test_entries_of_a_snapshot_that_was_expired_since(session: dl.Session, attach: Callable[[str], dl.Session]) -> None:
    state = session.state()
    assert [column.name for column in state.tables.named(state.schema("main").schema_id, "t9").columns] == [
        "k",
        "name_9",
    ]
    with attach("other") as other:
        other.sql("ALTER TABLE t10 DROP COLUMN name_10")
        other.sql("CALL other.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    with pytest.raises(dl.SnapshotNotFoundError, match="There is no snapshot 1;"):
        state.tables.named(state.schema("main").schema_id, "t10")
    assert session.sql("SELECT * FROM t10").columns == ["k"]


@pytest.mark.slow
def test_a_transaction_whose_snapshot_was_expired(session: dl.Session, attach: Callable[[str], dl.Session]) -> None:
    session.sql("BEGIN")
    session.sql("SELECT * FROM t9")
    with attach("other") as other:
        other.sql("ALTER TABLE t10 DROP COLUMN name_10")
        other.sql("CALL other.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    with pytest.raises(dl.SnapshotNotFoundError):
        session.sql("SELECT * FROM t10")
    session.sql("ROLLBACK")


@pytest.mark.slow
def test_snapshots_of_one_schema_version_share_entries(
    session: dl.Session, attach: Callable[[str], dl.Session]
) -> None:
    session.sql("SELECT * FROM t9")
    with attach("other") as other:
        other.sql("INSERT INTO t7 VALUES (2, 'two')")
        other.sql("CALL other.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
    assert session.sql("SELECT name_7 FROM t7 ORDER BY k").fetchall() == [("one",), ("two",)]
    assert session.sql("SELECT * FROM t10").columns == ["k", "name_10"]

"""Tables of many columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The statements that catalogs are asked meanwhile."""
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.mark.slow
def test_an_insert_asks_no_more_for_more_columns(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    numbers = {}
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        for count in (3, 60):
            names = [f"c{i}" for i in range(count)]
            session.sql(f"CREATE TABLE t{count} ({', '.join(f'{name} INTEGER' for name in names)})")
            first = f"INSERT INTO t{count} SELECT {', '.join('i + 5' for _ in names)} FROM range(20) r(i)"
            session.sql(first)
            with counted() as asked:
                session.sql(first.replace("+ 5", "* 5"))
                session.sql(f"INSERT INTO t{count} VALUES ({', '.join(['-1'] * count)})")
            numbers[count] = len(asked)
            found = session.sql(f"SELECT count(*), min({names[-1]}), max({names[0]}) FROM t{count}").fetchall()
            assert found == [(41, -1, 95)]
    assert numbers[60] <= numbers[3]


def test_ids_count_the_parts_of_nested_columns(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (a INTEGER, b STRUCT(x INTEGER, y INTEGER[]), c MAP(VARCHAR, INTEGER), d INTEGER)")
        table = session.table("t").schema
        assert [column.column_id for column in table] == [1, 2, 6, 9]


@pytest.mark.slow
def test_thousands_of_columns(tmp_path: Path) -> None:
    count = 2000
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t ({', '.join(f'c{i} INTEGER' for i in range(count))})")
        session.sql(f"INSERT INTO t VALUES ({', '.join(map(str, range(count)))})")
        session.sql(f"INSERT INTO t SELECT {', '.join(f'i + {i}' for i in range(count))} FROM range(20) r(i)")
        rows = session.sql("FROM t ORDER BY c0, c1 LIMIT 3").fetchall()
        assert rows[0] == tuple(range(count)) == rows[1]
        assert rows[2] == tuple(range(1, count + 1))

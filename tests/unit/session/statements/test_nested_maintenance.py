"""Maintenance of a table in a nested schema, which functions take by its dotted path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    """A lake with a table in `sales.europe`, and one of the same name in a flat schema that is called so."""
    options = {"alias": "lake", "data_path": f"{tmp_path}/data", "ducklake_version": "1.1"}
    with dl.connect(lake_uri(), **options) as session:
        session.sql('CREATE SCHEMA sales; CREATE SCHEMA sales.europe; CREATE SCHEMA "sales.europe"')
        for schema in ("sales.europe", '"sales.europe"'):
            session.sql(f"CREATE TABLE lake.{schema}.orders (i INTEGER)")
        yield session


def rows(session: dl.Session, sql: str) -> list[tuple[object, ...]]:
    return session.sql(sql).fetchall()


@pytest.mark.slow
def test_rows_are_flushed(session: dl.Session) -> None:
    session.sql("INSERT INTO lake.sales.europe.orders VALUES (1), (2)")
    session.sql('INSERT INTO lake."sales.europe".orders VALUES (3)')
    flush = "CALL lake.flush_inlined_data(schema_name => '{}', table_name => 'orders')"
    assert rows(session, flush.format("sales.europe")) == [("sales.europe", "orders", 2)]
    ((_, _, flushed),) = rows(session, flush.format('"sales.europe"'))
    assert flushed == 1


@pytest.mark.slow
def test_files_are_merged_and_rewritten(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
    for start in (0, 10):
        session.sql(f"INSERT INTO lake.sales.europe.orders FROM range({start}, {start} + 10)")
        session.sql(f'INSERT INTO lake."sales.europe".orders FROM range({start}, {start} + 10)')
    merged = rows(session, "CALL lake.merge_adjacent_files('orders', schema => 'sales.europe')")
    assert merged == [("sales.europe", "orders", 2, 1)]
    session.sql("DELETE FROM lake.sales.europe.orders WHERE i % 5 <> 0")
    rewritten = rows(
        session, "CALL lake.rewrite_data_files('orders', schema => 'sales.europe', delete_threshold => 0.1)"
    )
    assert rewritten == [("sales.europe", "orders", 1, 1)]
    assert rows(session, "FROM lake.sales.europe.orders ORDER BY i") == [(0,), (5,), (10,), (15,)]
    assert rows(session, 'SELECT count(*) FROM lake."sales.europe".orders') == [(20,)]
    with pytest.raises(dl.EntryNotFoundError, match="asia"):
        session.sql("CALL lake.merge_adjacent_files('orders', schema => 'sales.asia')")

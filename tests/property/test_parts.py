"""Random histories by both clients: where the kernel calls an output fresh, its query gives the same rows at both snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.magics.questions import Questions
from ducklake_lab.widgets import recorded
from tests.interop.patching import lake_folder, opened
from tests.property.test_answers import ABSENT, QUERIES
from tests.property.test_lake_diffs import NAMES, Step, histories, run
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

MORE = (
    "SELECT k FROM a",
    "FROM a WHERE k < 10",
    "SELECT v + 1 AS more, count(*) FROM a WHERE k >= 25 GROUP BY ALL ORDER BY more",
    "SELECT v FROM b WHERE k IN (3, 60)",
    "SELECT a.k FROM a, c WHERE a.k = 4 AND c.k < 5",
    "SELECT x.v FROM b x, b y WHERE x.k = 4 AND y.k > 60",
    "SELECT a FROM a WHERE k = 5",
    "SELECT more FROM (SELECT 1 AS more, k FROM c WHERE k = 9) AS t",
)
#: Rows outside all conditions that have an upper bound, and a condition that has one.
FAR, NEAR = "INSERT INTO a (k, v) SELECT 1000 + i, 5 FROM range({}) r(i)", "SELECT sum(v) FROM a WHERE k < 10"


@st.composite
def alterations(draw: st.DrawFn) -> Step:
    name = draw(st.sampled_from(NAMES[:3]))
    column = draw(st.sampled_from(("more", "other", "k", "v", "a")))
    sql = draw(
        st.sampled_from(
            (
                f"ALTER TABLE {name} ADD COLUMN {column} INTEGER DEFAULT {draw(st.integers(0, 3))}",
                f"ALTER TABLE {name} DROP COLUMN {column}",
                f"ALTER TABLE {name} RENAME COLUMN {column} TO {draw(st.sampled_from(('more', 'other', 'v')))}",
                f"ALTER TABLE {name} ALTER COLUMN v SET DATA TYPE BIGINT",
                f"ALTER TABLE {name} SET PARTITIONED BY (k)",
                f"COMMENT ON TABLE {name} IS 'some'",
                f"INSERT INTO {name} (k, v) VALUES ({draw(st.integers(0, 70))}, 1)",
                f"DELETE FROM {name} WHERE k = {draw(st.integers(0, 70))}",
            )
        )
    )
    return Step(draw(st.booleans()), sql)


@contextmanager
def source(text: str) -> Iterator[None]:
    """Makes a text the source of the cell that runs."""
    before = recorded.source
    recorded.source = lambda: text
    try:
        yield
    finally:
        recorded.source = before


def asked(session: dl.Session, query: str, at: int) -> tuple[Any, ...] | None:
    """The answer at a snapshot, in an order of its own; None for an error."""
    try:
        found = session.sql(query, at=at)
        return (tuple(found.types), *sorted(found.fetchall(), key=repr))
    except (*ABSENT, dl.SqlError):
        return None


def record(session: dl.Session, query: str) -> list[dict[str, Any]] | None:
    """The states in the record of a query's output; None for an error."""
    with source(query), suppress(*ABSENT, dl.SqlError):
        found: list[dict[str, Any]] = json.loads(json.dumps(recorded.record_of(session.sql(query))))["ducklake"][
            "reads"
        ]
        return found
    return None


def is_same(session: dl.Session, reads: Sequence[dict[str, Any]]) -> bool:
    answers = Questions(lambda: {"": session}).ask("moved_on", {"reads": list(reads)})["reads"]
    return all(one["known"] and all(table["state"] == "same" for table in one["tables"]) for one in answers)


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    history=histories(),
    more=st.lists(st.tuples(st.integers(0, 20), alterations()), max_size=8),
    rows=st.integers(1, 30),
)
def test_fresh_outputs_show_the_rows_of_now(
    catalog: str,
    new_catalog: Callable[..., str],
    reference: duckdb.DuckDBPyConnection,
    history: list[Step],
    more: list[tuple[int, Step]],
    rows: int,
) -> None:
    for place, step in more:
        history.insert(3 + place % (len(history) - 2), step)
    records: list[tuple[str, int, list[dict[str, Any]]]] = []
    with lake_folder(catalog, new_catalog) as folder:
        for number in range(2, len(history) + 1):
            run(history[number - 1 : number] if number > 2 else history[:2], folder, reference)
            with opened(folder) as session:
                at = session.current_snapshot().snapshot_id
                for query in (*QUERIES, *MORE):
                    reads = record(session, query)
                    if reads is not None:
                        records.append((query, at, reads))
        with opened(folder) as session:
            there = {entry.info.snapshot_id for entry in session.snapshots()}
            near = record(session, NEAR)
            for query, at, reads in records:
                if at in there and is_same(session, reads):
                    now = session.current_snapshot().snapshot_id
                    assert asked(session, query, at) == asked(session, query, now), (query, at)
            if near is not None:
                session.sql(FAR.format(rows))
                assert is_same(session, near)

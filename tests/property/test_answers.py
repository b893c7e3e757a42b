"""Random histories of a few tables by both clients: answers over time, and their diffs, are those of plain SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.comparing import detach
from tests.interop.patching import attach_copy, lake_folder, opened
from tests.property.test_lake_diffs import Step, histories, run
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: Queries with conditions that statistics prove, that only rows prove, and with none.
QUERIES = (
    "SELECT count(*) FROM a",
    "SELECT count(*), sum(v) FROM a WHERE k = 7",
    "SELECT max(k) FROM a WHERE v = 1",
    "SELECT v, count(*) AS n FROM b WHERE k > 20 GROUP BY ALL",
    "SELECT count(*) FROM a JOIN b USING (k) WHERE a.v = 0 AND b.k < 12",
    "SELECT k FROM a WHERE v > 1 ORDER BY k",
    "FROM c WHERE k = 35 OR v = 3",
    "SELECT (SELECT max(v) FROM b WHERE k < 5), count(*) FROM a WHERE k BETWEEN 10 AND 12",
    "SELECT count(*) FROM (SELECT k FROM a EXCEPT SELECT k FROM b)",
)
ABSENT = (dl.EntryNotFoundError, dl.BindError)


def asked(session: dl.Session, query: str, at: int) -> tuple[Any, ...] | None:
    """The answer at a snapshot, in an order of its own; None where a table is not there."""
    try:
        found = session.sql(query, at=at)
        return (tuple(found.types), *sorted(found.fetchall(), key=repr))
    except ABSENT:
        return None


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories())
def test_when_is_asking_at_every_snapshot(
    catalog: str, new_catalog: Callable[..., str], reference: duckdb.DuckDBPyConnection, history: list[Step]
) -> None:
    with lake_folder(catalog, new_catalog) as folder:
        run(history, folder, reference)
        with opened(folder) as session:
            ids = [entry.info.snapshot_id for entry in session.snapshots()]
            for query in QUERIES:
                answers = {number: asked(session, query, number) for number in ids}
                expected = [
                    number
                    for before, number in zip([None, *ids], ids, strict=False)
                    if before is None or answers[before] != answers[number]
                ]
                if all(answer is None for answer in answers.values()):
                    continue
                while answers[expected[0]] is None:
                    del expected[0]
                found = session.when(query)
                assert found.columns == ["snapshot_id", "time", "author", "message", "answer"]
                assert [row[0] for row in found.fetchall()] == expected, query
                start, end = ids[len(ids) // 3], ids[-2]
                within = [number for number in expected if start < number <= end]
                rows = (
                    session.when(query, start, end).fetchall()
                    if any(answers[n] is not None for n in ids if start <= n <= end)
                    else [(start,), *((n,) for n in within)]
                )
                assert [row[0] for row in rows] == [start, *within], query


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=histories(), data=st.data())
def test_a_diff_of_answers_counts_as_sql_does(
    catalog: str,
    new_catalog: Callable[..., str],
    reference: duckdb.DuckDBPyConnection,
    history: list[Step],
    data: st.DataObject,
) -> None:
    grouped, plain = "SELECT k, count(*) AS n, sum(v) AS v FROM a{} GROUP BY k", "SELECT v FROM a{}"
    with lake_folder(catalog, new_catalog) as folder:
        run(history, folder, reference)
        with opened(folder) as session:
            ids = [entry.info.snapshot_id for entry in session.snapshots()]
            there = [number for number in ids if asked(session, plain.format(""), number) is not None]
            pairs = [(data.draw(st.sampled_from(there)), data.draw(st.sampled_from(there))) for _ in range(3)]
            by_key = {pair: session.compare(grouped.format(""), *pair) for pair in pairs}
            whole = {pair: session.compare(plain.format(""), *pair) for pair in pairs}
        attach_copy(reference, folder)
        try:
            for old, new in pairs:
                before, after = (grouped.format(f" AT (VERSION => {number})") for number in (old, new))
                numbers = reference.execute(
                    "SELECT count(*) FILTER (n.k IS NULL), count(*) FILTER (o.k IS NULL), "
                    "count(*) FILTER (n.k = o.k AND (n.n, n.v) IS DISTINCT FROM (o.n, o.v)), "
                    "count(*) FILTER (n.k = o.k AND (n.n, n.v) IS NOT DISTINCT FROM (o.n, o.v)) "
                    f"FROM ({before}) AS o FULL JOIN ({after}) AS n ON o.k = n.k"
                ).fetchone()
                found = by_key[old, new].summary
                assert (found.deleted, found.inserted, found.updated, found.unchanged) == numbers
                before, after = (plain.format(f" AT (VERSION => {number})") for number in (old, new))
                numbers = reference.execute(
                    f"SELECT (SELECT count(*) FROM ({before} EXCEPT ALL {after})), "
                    f"(SELECT count(*) FROM ({after} EXCEPT ALL {before}))"
                ).fetchone()
                found = whole[old, new].summary
                if not whole[old, new].key and found.deleted + found.inserted + found.updated > 1:
                    assert (found.deleted, found.inserted) == numbers
        finally:
            detach(reference)

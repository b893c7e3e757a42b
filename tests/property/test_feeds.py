"""Change feeds of random transactions: a snapshot's feed is the difference between its rows and those before."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.sampling import examples

pytestmark = pytest.mark.sampled(2, "histories and files at random")

_keys = st.integers(0, 40)
_numbers = itertools.count()


@st.composite
def _statements(draw: st.DrawFn) -> str:
    """A change of the table `{t}`."""
    low = draw(_keys)
    some = draw(st.sampled_from((f"k BETWEEN {low} AND {low + 15}", f"k % 3 = {low % 3}", f"v < {low - 20}", "true")))
    return draw(
        st.sampled_from(
            (
                f"INSERT INTO {{t}} SELECT r, {low} FROM range({low}, {low + 20}) s(r)",
                f"INSERT INTO {{t}} VALUES ({low}, 7)",
                f"UPDATE {{t}} SET v = v + 1 WHERE {some}",
                f"UPDATE {{t}} SET v = 0 - v WHERE {some}",
                f"DELETE FROM {{t}} WHERE {some}",
                f"MERGE INTO {{t}} USING (SELECT r FROM range({low}, {low + 3}) s(r)) AS s ON k = r AND v = 7 "
                "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (r, 7)",
            )
        )
    )


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


@pytest.mark.parametrize(("limit", "vectors"), [(0, False), (10, False), (0, True)])
def test_a_feed_is_the_difference_of_the_states(session: dl.Session, limit: int, vectors: bool) -> None:
    session.sql(f"CALL lake.set_option('data_inlining_row_limit', {limit})")
    session.sql(f"CALL lake.set_option('write_deletion_vectors', {vectors})")

    @settings(
        max_examples=examples(15),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        st.lists(st.lists(_statements(), min_size=1, max_size=4), min_size=1, max_size=5),
        st.booleans(),
        st.sampled_from(("", "flush_inlined_data", "merge_adjacent_files")),
    )
    def check(transactions: list[list[str]], spares: bool, maintenance: str) -> None:
        name = f"t{next(_numbers)}"
        session.sql(f"CREATE TABLE {name} (k INTEGER, v INTEGER)")
        if spares:
            session.sql(f"ALTER TABLE {name} EXPECT few CHECK (v < 12) ON VIOLATION drop")
        first = session.current_snapshot().snapshot_id
        for statements in transactions:
            session.sql("BEGIN")
            for statement in statements:
                session.sql(statement.format(t=name))
            session.sql("COMMIT")
        last = session.current_snapshot().snapshot_id
        if maintenance:
            session.sql(f"CALL lake.{maintenance}()")
        feed = session.sql(f"SELECT * FROM lake.table_changes('{name}', {first}, {last})").fetchall()
        before: dict[int, tuple[int, int]] = {}
        for snapshot in range(first + 1, last + 1):
            at = f"SELECT rowid, k, v FROM {name} AT (VERSION => {snapshot})"
            after = {row_id: (k, v) for row_id, k, v in session.sql(at).fetchall()}
            lines = Counter((row_id, kind, (k, v)) for at, row_id, kind, k, v in feed if at == snapshot)
            assert max(lines.values(), default=1) == 1
            came, went = after.keys() - before.keys(), before.keys() - after.keys()
            assert {(i, row) for i, kind, row in lines if kind == "insert"} == {(i, after[i]) for i in came}
            assert {(i, row) for i, kind, row in lines if kind == "delete"} == {(i, before[i]) for i in went}
            old = {i: row for i, kind, row in lines if kind == "update_preimage"}
            new = {i: row for i, kind, row in lines if kind == "update_postimage"}
            assert old.keys() == new.keys()
            changed = {i for i in before.keys() & after.keys() if before[i] != after[i]}
            assert changed <= new.keys() <= before.keys() & after.keys()
            assert all(before[i] == old[i] and after[i] == new[i] for i in new)
            before = after
        session.sql(f"DROP TABLE {name}")

    check()

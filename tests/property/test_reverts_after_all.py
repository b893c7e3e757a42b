"""Random histories with files, types, names and expired snapshots: a revert does what three readings of the reference say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.model.entries import Snapshot
from tests.property.test_blame import History, Step, histories, new_history
from tests.property.test_reverts import State, expected
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")


@settings(
    max_examples=examples(6),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=histories(), data=st.data())
def test_a_revert_takes_one_snapshot_of_any_history_back(
    history: list[Step],
    data: st.DataObject,
    catalog: str,
    new_catalog: Callable[..., str],
    reference: duckdb.DuckDBPyConnection,
) -> None:
    with new_history(catalog, new_catalog, reference) as made:
        vectors = made.draw_vectors(data)
        for number, step in enumerate(history):
            if not vectors or step.kind not in ("restore", "revert"):
                made.apply(number, step._replace(ours=step.ours or vectors))
        for _ in range(data.draw(st.integers(1, 3), label="reverts")):
            check(made, data)


def check(made: History, data: st.DataObject) -> None:
    """Reverts a snapshot, and compares."""
    session = made.session
    entries = {one.info.snapshot_id: one for one in session.table(made.name()).history()}
    chosen = [
        n for n in made.kept if n > 1 and n - 1 in made.kept and n in entries and entries[n].kind != "maintenance"
    ]
    if not chosen:
        return
    at = data.draw(st.sampled_from(chosen), label="snapshot")
    rule = data.draw(st.sampled_from([None, "keep", "revert"]), label="rule")
    newest = made.kept[-1]
    before, then, now = (State(*made.states[number]) for number in (at - 1, at, newest))
    first = defaults(made)

    def until(number: int, among: Collection[int]) -> Callable[[], Sequence[State]]:
        return lambda: [State(*made.states[n]) for n in range(number, 0, -1) if n in among]

    # files may hold what expired snapshots had
    found, known = (
        expected(before, then, now, first, rule, until(at - 1, among), until(newest, among))
        for among in (made.kept, made.states)
    )
    names = [made.names[number] for number in (at - 1, at, newest)]
    name, clash = names[2], False
    if names[0] != names[1] and names[2] != names[0]:
        clash = names[2] != names[1]
        name = names[2] if clash and rule != "revert" else names[0]
    total = len(found.conflicts) + clash
    folded = [one.casefold() for one in found.state.names.values()]
    result = attempt(session, at, rule)
    if isinstance(result, dl.DuckLakeError):
        assert session.current_snapshot().snapshot_id == newest
    if isinstance(result, dl.RevertConflictError):
        assert rule is None and result.total == len(result.conflicts) == total, (result, found.conflicts)
        rows = {row for row, _ in found.conflicts} | ({None} if clash else set())
        assert {one.row_id for one in result.conflicts} == rows
        return
    if isinstance(result, dl.EntryExistsError):
        assert len(set(folded)) < len(folded)
        return
    if isinstance(result, dl.UnsupportedFeatureError):
        is_type = "type of column" in str(result)
        if "expired" in str(result):
            assert len(made.kept) < len(made.states)
            return
        assert made.types[at - 1] != made.types[at] if is_type else "needs one" in str(result)
        return
    assert not isinstance(result, dl.DuckLakeError)
    assert not (rule is None and total), found.conflicts
    made.observe()
    after = made.states[made.kept[-1]]
    assert after.columns == found.state.names and after.rows.keys() == found.state.rows.keys()
    for row_id, row in after.rows.items():
        for column, value in row.items():
            assert value in (found.state.rows[row_id][column], known.state.rows[row_id][column]), (row_id, column)
    assert made.names[made.kept[-1]] == name
    if result is None:
        assert made.kept[-1] == newest and (after.columns, after.rows) == now


def attempt(session: dl.Session, at: int, rule: Any) -> Snapshot | dl.DuckLakeError | None:
    """Reverts a snapshot; returns the error that refuses it."""
    try:
        return session.revert(at, on_conflict=rule)
    except (dl.RevertConflictError, dl.EntryExistsError, dl.UnsupportedFeatureError) as error:
        return error


def defaults(made: History) -> dict[int, Any]:
    """The first default of each column, by id."""
    with made.attached():
        return dict(
            made.reference.execute(
                "SELECT column_id, any_value(initial_default) FROM __ducklake_metadata_lake.ducklake_column GROUP BY ALL"
            ).fetchall()
        )

"""Tables of a state are made when they are asked for, once, and changed ones are in their place."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ducklake_lab.errors import EntryNotFoundError
from ducklake_lab.model.entries import Schema, Snapshot, Table
from ducklake_lab.model.state import CatalogState, Tables


def test_tables_are_made_when_they_are_asked_for() -> None:
    made: list[int] = []

    def make(table_id: int) -> Table:
        made.append(table_id)
        return Table(table_id, f"u{table_id}", 0, f"t{table_id}", "", ())

    tables = Tables({i: (0, f"t{i}") for i in range(1_000)}, make)
    snapshot = Snapshot(3, datetime(2024, 1, 1, tzinfo=UTC), 1, 1, 1)
    state = CatalogState(snapshot, {0: Schema(0, "u", "main", "main/")}, tables)
    found = state.table("main", "T7")
    assert state.tables[7] is found is state.find_table("MAIN", "t7")
    assert (len(state.tables), 999 in state.tables, 1_000 in state.tables, state.tables.get(1_000)) == (
        1_000,
        True,
        False,
        None,
    )
    renamed = state.with_table(replace(found, name="other"))
    assert renamed.find_table("main", "t7") is None
    assert renamed.table("main", "other").table_id == 7
    assert state.table("main", "t7") is found
    gone = renamed.without_table(7).with_table(replace(found, table_id=2_000, name="new"))
    assert [gone.tables.get(7), gone.table("main", "new").table_id, len(gone.tables)] == [None, 2_000, 1_000]
    assert made == [7]
    with pytest.raises(EntryNotFoundError, match="Did you mean t998"):
        state.table("main", "t99x8")
    assert len(state.tables_of(0)) == 1_000
    assert sorted(made) == list(range(1_000))

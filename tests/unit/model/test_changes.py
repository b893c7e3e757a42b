from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ducklake_lab.errors import CatalogError
from ducklake_lab.model.changes import KINDS, Change, format_changes, parse_changes

NAMES = st.text(min_size=1).filter(lambda name: "\x00" not in name)
CHANGES = st.one_of(
    st.builds(Change, st.sampled_from(KINDS), st.integers(0, 2**62)),
    st.builds(Change, st.sampled_from(["created_schema"]), st.tuples(NAMES)),
    st.builds(Change, st.sampled_from(["created_table", "created_view"]), st.tuples(NAMES, NAMES)),
)


@given(st.lists(CHANGES))
def test_what_is_written_is_read_back(changes: list[Change]) -> None:
    assert sorted(map(str, parse_changes(format_changes(changes)))) == sorted(map(str, changes))


def test_a_comma_in_a_quoted_name_does_not_split() -> None:
    text = 'created_table:"a,b"."c""d.e",inserted_into_table:4'
    assert parse_changes(text) == [Change("created_table", ("a,b", 'c"d.e')), Change("inserted_into_table", 4)]


def test_the_order_is_the_references() -> None:
    changes = [Change("inlined_insert", 6), Change("created_table", ("s1", "v")), Change("dropped_table", 5)]
    assert format_changes(changes) == 'dropped_table:5,created_table:"s1"."v",inlined_insert:6'


def test_nothing_is_no_change() -> None:
    assert parse_changes("") == parse_changes(None) == []


def test_text_without_a_kind_is_refused() -> None:
    with pytest.raises(CatalogError, match="kind:value"):
        parse_changes("nonsense")

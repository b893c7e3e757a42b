"""Earlier names and types of columns, and earlier owners of a name, from the rows of `ducklake_column`."""

from __future__ import annotations

from ducklake_lab.model.entries import Column, ColumnVersion
from ducklake_lab.scan.column_history import ColumnHistory, history_of

#: A table of a, s(x, y) and b, made in snapshot 2.
FIRST = (
    ColumnVersion(1, None, "a", "int32", 2, None),
    ColumnVersion(2, None, "s", "struct", 2, None),
    ColumnVersion(3, 2, "x", "int32", 2, None),
    ColumnVersion(4, 2, "y", "varchar", 2, None),
    ColumnVersion(5, None, "b", "float32", 2, None),
)


def column(column_id: int, name: str, kind: str, *children: Column) -> Column:
    return Column(column_id, column_id, name, kind, children=children)


def history(a: Column, x: Column, *others: Column, versions: tuple[ColumnVersion, ...] = ()) -> ColumnHistory:
    """The history where s holds x and y, and b stands last, after what was added."""
    s = column(2, "s", "struct", x, column(4, "y", "varchar"))
    return history_of([a, s, *others, column(5, "b", "float32")], (*FIRST, *versions))


def altered(found: ColumnHistory) -> set[int]:
    return {part.column_id for top in found.columns for part in top.walk() if part.altered}


def test_a_table_as_it_was_made_has_nothing_altered() -> None:
    found = history(column(1, "a", "int32"), column(3, "x", "int32"))
    assert (altered(found), found.retyped, found.reused, found.ids) == (set(), set(), set(), {1, 2, 3, 4, 5})


def test_types_that_changed_are_known_at_any_depth() -> None:
    versions = (ColumnVersion(1, None, "a", "int64", 4, None), ColumnVersion(3, 2, "x", "int64", 5, None))
    found = history(column(1, "a", "int64"), column(3, "x", "int64"), versions=versions)
    assert found.retyped == {1, 3} and altered(found) == {1, 3} and found.reused == set()


def test_a_type_that_changed_in_the_open_transaction_is_known() -> None:
    found = history(column(1, "a", "int64"), column(3, "x", "int32"))
    assert found.retyped == {1} and altered(found) == {1}


def test_names_that_changed_are_no_types() -> None:
    versions = (ColumnVersion(1, None, "first", "int32", 4, None),)
    found = history(column(1, "first", "int32"), column(3, "x", "int32"), versions=versions)
    assert found.retyped == set() and altered(found) == {1} and found.reused == set()


def test_columns_that_were_added_are_altered() -> None:
    versions = (ColumnVersion(6, None, "c", "date", 3, None),)
    found = history(column(1, "a", "int32"), column(3, "x", "int32"), column(6, "c", "date"), versions=versions)
    assert altered(found) == {6} and found.retyped == set()


def test_a_name_that_another_column_had_is_reused_in_any_case() -> None:
    # a was dropped, and another one is called A
    versions = (ColumnVersion(6, None, "A", "int32", 4, None),)
    found = history(column(6, "A", "int32"), column(3, "x", "int32"), versions=versions)
    assert found.reused == {6} and found.ids == {1, 2, 3, 4, 5, 6}


def test_names_are_those_of_siblings() -> None:
    versions = (ColumnVersion(6, None, "x", "int32", 3, None),)
    found = history(column(1, "a", "int32"), column(3, "x", "int32"), column(6, "x", "int32"), versions=versions)
    assert found.reused == set()

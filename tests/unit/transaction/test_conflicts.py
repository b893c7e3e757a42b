"""The conflict matrix, case by case."""

from __future__ import annotations

import pytest

from ducklake_lab.model.changes import Change, parse_changes
from ducklake_lab.transaction.conflicts import find_conflict


def conflict(ours: str, theirs: str, *, same_files: bool = False) -> str | None:
    return find_conflict(
        parse_changes(ours),
        parse_changes(theirs),
        schema_ids={"main": 0},
        names={0: "main", 1: "main.t"},
        same_files=same_files,
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("inserted_into_table:1", "inserted_into_table:1"),
        ("inlined_insert:1", "inserted_into_table:1"),
        ("inserted_into_table:1", "deleted_from_table:2"),
        ("deleted_from_table:1", "deleted_from_table:1"),
        ('created_table:"main"."a"', 'created_table:"main"."b"'),
        ('created_table:"main"."a"', 'created_table:"other"."a"'),
        ("altered_table:1", "inserted_into_table:1"),
        ("dropped_table:1", "inserted_into_table:1"),
        ('created_scalar_macro:"main"."m"', 'created_table_macro:"main"."m"'),
        ('created_scalar_macro:"main"."m"', 'created_table:"main"."m"'),
        ("dropped_scalar_macro:6", "altered_table:1"),
    ],
)
def test_these_go_together(ours: str, theirs: str) -> None:
    assert conflict(ours, theirs) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("dropped_table:1", "dropped_table:1", "dropped it already"),
        ("inserted_into_table:1", "dropped_table:1", "dropped it"),
        ("inserted_into_table:1", "altered_table:1", "altered it"),
        ("inserted_into_table:1", "deleted_from_table:1", "deleted from it"),
        ("inlined_insert:1", "inlined_delete:1", "deleted from it"),
        ("deleted_from_table:1", "inserted_into_table:1", "inserted into it"),
        ("deleted_from_table:1", "inlined_insert:1", "inserted into it"),
        ("deleted_from_table:1", "inlined_delete:1", "deleted from it"),
        ("inlined_delete:1", "deleted_from_table:1", "deleted from it"),
        ("inlined_delete:1", "inline_flush:1", "flushed"),
        ("deleted_from_table:1", "merge_adjacent:1", "compacted it"),
        ("altered_table:1", "altered_table:1", "altered it"),
        ("altered_table:1", "dropped_table:1", "dropped it"),
        ('created_schema:"s"', 'created_schema:"S"', "created it"),
        ('created_table:"main"."a"', 'created_table:"main"."A"', "of that name"),
        ('created_table:"main"."a"', 'created_view:"main"."a"', "of that name"),
        ('created_table:"main"."a"', "dropped_schema:0", "dropped the schema"),
        ("dropped_schema:0", "dropped_schema:0", "dropped it already"),
        ("dropped_schema:0", 'created_table:"main"."a"', "created an entry in it"),
        ("dropped_schema:0", 'created_table_macro:"main"."m"', "created an entry in it"),
        ("dropped_view:5", "dropped_view:5", "dropped it already"),
        ("altered_view:5", "altered_view:5", "altered it"),
        ("altered_view:5", "dropped_view:5", "dropped it"),
        ("dropped_scalar_macro:6", "dropped_scalar_macro:6", "dropped it already"),
        ("dropped_table_macro:6", "dropped_table_macro:6", "dropped it already"),
        ('created_scalar_macro:"main"."m"', 'created_scalar_macro:"main"."M"', "a macro of that name"),
        ('created_table_macro:"main"."m"', 'created_table_macro:"main"."m"', "a table macro of that name"),
        ('created_scalar_macro:"main"."m"', "dropped_schema:0", "dropped the schema"),
    ],
)
def test_these_exclude_each_other(ours: str, theirs: str, said: str) -> None:
    message = conflict(ours, theirs)
    assert message is not None
    assert said in message


def test_the_message_names_the_table() -> None:
    assert "main.t" in (conflict("inserted_into_table:1", "altered_table:1") or "")


def test_deletions_from_one_file_exclude_each_other() -> None:
    assert conflict("deleted_from_table:1", "deleted_from_table:1", same_files=True) is not None


def test_nothing_conflicts_with_nothing() -> None:
    assert find_conflict([], [Change("dropped_table", 1)], schema_ids={}, names={}) is None


_TABLE_KINDS = (
    "dropped_table", "altered_table", "inserted_into_table", "inlined_insert", "deleted_from_table", "inlined_delete",
    "inline_flush", "merge_adjacent", "rewrite_delete",
)  # fmt: skip
#: One row for each kind of ours, one column for each of theirs, in the order above; x where they exclude each other.
_MATRIX = """
    dropped_table        x . . . . . . . .
    altered_table        x x . . . . . . .
    inserted_into_table  x x . . x x . . .
    inlined_insert       x x . . x x . . .
    deleted_from_table   x x x x . x . x x
    inlined_delete       x x x x x x x x x
    inline_flush         x . . . . x x . .
    merge_adjacent       x . . . x x . x x
    rewrite_delete       x . . . x x . x x
"""


def _cases() -> list[tuple[str, str, bool]]:
    rows = [line.split() for line in _MATRIX.strip().splitlines()]
    assert [row[0] for row in rows] == list(_TABLE_KINDS)
    return [(row[0], theirs, mark == "x") for row in rows for theirs, mark in zip(_TABLE_KINDS, row[1:], strict=True)]


@pytest.mark.parametrize(("ours", "theirs", "excluded"), _cases())
def test_changes_of_one_table(ours: str, theirs: str, excluded: bool) -> None:
    message = conflict(f"{ours}:1", f"{theirs}:1")
    assert (message is not None) is excluded
    assert message is None or "main.t" in message
    assert conflict(f"{ours}:1", f"{theirs}:2") is None


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ('created_table:"a"."b"."t"', "dropped_schema:5", "dropped the schema"),
        ('created_schema:"a"."c"', "dropped_schema:4", "dropped the schema around it"),
        ('created_schema:"a"."c"', 'created_schema:"A"."c"', "has created it"),
        ("dropped_schema:5", 'created_view:"a"."B"."v"', "created an entry in it"),
        ("dropped_schema:4", 'created_schema:"a"."x"', "created an entry in it"),
        ("dropped_schema:4", 'created_table:"a"."b"."t"', None),
        ('created_table:"a"."b"."t"', 'created_table:"a"."t"', None),
        ('created_schema:"a.b"', "dropped_schema:5", None),
    ],
)
def test_nested_schemas_go_by_their_paths(ours: str, theirs: str, expected: str | None) -> None:
    found = find_conflict(
        parse_changes(ours),
        parse_changes(theirs),
        schema_ids={"main": 0, "a": 4, '"a"."b"': 5},
        names={4: "a", 5: "a.b"},
    )
    assert found is None if expected is None else found is not None and found.endswith(expected)

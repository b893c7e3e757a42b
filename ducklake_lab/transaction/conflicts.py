"""Which concurrent changes exclude each other (spec: advanced_features/conflict_resolution). Pure: no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ducklake_lab.model.changes import Change

#: kind of ours -> kinds of another commit's on the same object that exclude it, with what that commit did
_BY_ID: dict[str, dict[str, str]] = {
    "dropped_table": {"dropped_table": "dropped it already"},
    "dropped_view": {"dropped_view": "dropped it already"},
    "dropped_schema": {"dropped_schema": "dropped it already"},
    "inserted_into_table": {
        "dropped_table": "dropped it",
        "altered_table": "altered it",
        "deleted_from_table": "deleted from it",
        "inlined_delete": "deleted from it",
    },
    "deleted_from_table": {
        "dropped_table": "dropped it",
        "altered_table": "altered it",
        "inlined_delete": "deleted from it",
        "merge_adjacent": "compacted it",
        "rewrite_delete": "compacted it",
        "compacted_table": "compacted it",
        "inserted_into_table": "inserted into it",
        "inlined_insert": "inserted into it",
    },
    "inlined_delete": {
        "dropped_table": "dropped it",
        "altered_table": "altered it",
        "inlined_delete": "deleted from it",
        "inline_flush": "flushed its inlined data",
        "flushed_inlined": "flushed its inlined data",
        "merge_adjacent": "compacted it",
        "rewrite_delete": "compacted it",
        "compacted_table": "compacted it",
        "deleted_from_table": "deleted from it",
        "inserted_into_table": "inserted into it",
        "inlined_insert": "inserted into it",
    },
    "altered_table": {"dropped_table": "dropped it", "altered_table": "altered it"},
    "altered_view": {"altered_view": "altered it", "dropped_view": "dropped it"},
}
_BY_ID["inlined_insert"] = _BY_ID["inserted_into_table"]

_VERBS = {
    "dropped_table": "drop table",
    "dropped_view": "drop view",
    "dropped_schema": "drop schema",
    "inserted_into_table": "insert into table",
    "inlined_insert": "insert into table",
    "deleted_from_table": "delete from table",
    "inlined_delete": "delete from table",
    "altered_table": "alter table",
    "altered_view": "alter view",
}


def find_conflict(
    ours: Iterable[Change],
    theirs: Iterable[Change],
    *,
    schema_ids: dict[str, int],
    names: dict[int, str],
    same_files: bool = False,
) -> str | None:
    """What excludes our changes, or None.

    Args:
        ours: changes about to be committed; objects that they create go by name.
        theirs: changes committed since the transaction began.
        schema_ids: id of every schema that our created tables are in, by name.
        names: names of objects by id, for the message.
        same_files: both sides deleted from one data file.
    """
    by_kind: dict[str, set[object]] = defaultdict(set)
    for change in theirs:
        by_kind[change.kind].add(_folded(change.value))
    for change in ours:
        if isinstance(change.value, int):
            for kind, did in _BY_ID.get(change.kind, {}).items():
                if change.value in by_kind[kind]:
                    what = names.get(change.value, f"with id {change.value}")
                    return f"attempting to {_VERBS[change.kind]} {what}, but another transaction has {did}"
            if change.kind == "dropped_schema" and _creates_in(by_kind, names.get(change.value, "")):
                return f"attempting to drop schema {names[change.value]}, but another transaction has created a table in it"
            continue
        name = ".".join(change.value)
        if change.kind == "created_schema" and _folded(change.value) in by_kind["created_schema"]:
            return f"attempting to create schema {name}, but another transaction has created it"
        if change.kind in ("created_table", "created_view"):
            if _folded(change.value) in by_kind["created_table"] | by_kind["created_view"]:
                return f"attempting to create {name}, but another transaction has created a table or view of that name"
            if schema_ids.get(change.value[0]) in by_kind["dropped_schema"]:
                return f"attempting to create {name}, but another transaction has dropped the schema"
    if same_files:
        return "attempting to delete from a data file, but another transaction has deleted from it"
    return None


def _creates_in(by_kind: dict[str, set[object]], schema: str) -> bool:
    created = by_kind["created_table"] | by_kind["created_view"]
    return any(isinstance(name, tuple) and name[0] == schema.casefold() for name in created)


def _folded(value: int | tuple[str, ...]) -> int | tuple[str, ...]:
    return value if isinstance(value, int) else tuple(name.casefold() for name in value)

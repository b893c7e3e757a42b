"""Rules for concurrent changes that exclude each other (spec: advanced_features/conflict_resolution). Pure: no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from ducklake_lab.model.changes import FLUSHES, OF_ROWS, REWRITES, Change
from ducklake_lab.model.quoting import path_parts, schema_path

_Kinds = dict[str, str]

# changes of another commit, by kind, in the words of the message
_DROPPED: _Kinds = {"dropped_table": "dropped it"}
_ALTERED: _Kinds = {"altered_table": "altered it"}
_INSERTED: _Kinds = {"inserted_into_table": "inserted into it", "inlined_insert": "inserted into it"}
_DELETED_INLINED: _Kinds = {"inlined_delete": "deleted from it"}
_DELETED: _Kinds = {"deleted_from_table": "deleted from it", **_DELETED_INLINED}
_FLUSHED: _Kinds = dict.fromkeys(FLUSHES, "flushed its inlined data")
_COMPACTED: _Kinds = dict.fromkeys(REWRITES, "compacted it")

_INSERT: _Kinds = {**_DROPPED, **_ALTERED, **_DELETED}
_FLUSH: _Kinds = {**_DROPPED, **_DELETED_INLINED, **_FLUSHED}
# deletions kept in the catalog since would be lost with their file
_COMPACT: _Kinds = {**_DROPPED, **_DELETED, **_COMPACTED}

#: kind of ours -> kinds of another commit's on the same object that exclude it, with their words
_BY_ID: dict[str, _Kinds] = {
    "dropped_table": {"dropped_table": "dropped it already"},
    "dropped_view": {"dropped_view": "dropped it already"},
    "dropped_scalar_macro": {"dropped_scalar_macro": "dropped it already"},
    "dropped_table_macro": {"dropped_table_macro": "dropped it already"},
    "dropped_schema": {"dropped_schema": "dropped it already"},
    "inserted_into_table": _INSERT,
    "inlined_insert": _INSERT,
    # data files distinguish delete files; positions in the catalog may belong to any file
    "deleted_from_table": {**_DROPPED, **_ALTERED, **_DELETED_INLINED, **_COMPACTED, **_INSERTED},
    "inlined_delete": {**_DROPPED, **_ALTERED, **_DELETED, **_FLUSHED, **_COMPACTED, **_INSERTED},
    "inline_flush": _FLUSH,
    "flushed_inlined": _FLUSH,
    "merge_adjacent": _COMPACT,
    "rewrite_delete": _COMPACT,
    "compacted_table": _COMPACT,
    "altered_table": {**_DROPPED, **_ALTERED},
    "altered_view": {"altered_view": "altered it", "dropped_view": "dropped it"},
}

#: Changes of a table that may change which rows it has, or what they mean.
_CHANGES_ROWS = frozenset({**_DROPPED, **_ALTERED, **_INSERTED, **_DELETED})

_VERBS = {
    "dropped_table": "drop table",
    "dropped_view": "drop view",
    "dropped_scalar_macro": "drop macro",
    "dropped_table_macro": "drop table macro",
    "dropped_schema": "drop schema",
    "inserted_into_table": "insert into table",
    "inlined_insert": "insert into table",
    "deleted_from_table": "delete from table",
    "inlined_delete": "delete from table",
    "altered_table": "alter table",
    "altered_view": "alter view",
    "inline_flush": "flush the inlined data of",
    "flushed_inlined": "flush the inlined data of",
    "merge_adjacent": "compact",
    "rewrite_delete": "compact",
    "compacted_table": "compact",
}


#: kind of ours -> the kinds that take the same name, and the created object
_CREATIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "created_table": (("created_table", "created_view"), "a table or view"),
    "created_view": (("created_table", "created_view"), "a table or view"),
    "created_scalar_macro": (("created_scalar_macro",), "a macro"),
    "created_table_macro": (("created_table_macro",), "a table macro"),
}


def find_conflict(
    ours: Iterable[Change],
    theirs: Iterable[Change],
    *,
    schema_ids: dict[str, int],
    names: dict[int, str],
    same_files: bool = False,
    apart: Collection[int] = (),
) -> str | None:
    """Return a message about the change that excludes ours, or None.

    Args:
        ours: changes about to be committed; objects that they create go by name.
        theirs: changes committed since the transaction began.
        schema_ids: id of every schema, by the name it goes by.
        names: names of objects by id, for the message.
        same_files: both sides deleted from one data file.
        apart: tables whose changes of rows are known not to exclude each other.
    """
    schemas = {schema_id: name for name, schema_id in schema_ids.items()}
    by_kind: dict[str, set[object]] = defaultdict(set)
    for change in theirs:
        by_kind[change.kind].add(_folded(change.value))
    for change in ours:
        if isinstance(change.value, int):
            for kind, did in _BY_ID.get(change.kind, {}).items():
                if change.value in by_kind[kind] and not (
                    change.value in apart and change.kind in OF_ROWS and kind in OF_ROWS
                ):
                    what = names.get(change.value, f"with id {change.value}")
                    return f"attempting to {_VERBS[change.kind]} {what}, but another transaction has {did}"
            if change.kind == "dropped_schema" and _creates_in(by_kind, schemas.get(change.value, "")):
                return f"attempting to drop schema {names[change.value]}, but another transaction has created an entry in it"
            continue
        name = ".".join(change.value)
        place = schema_path(change.value[:-1] or ("",))
        if change.kind == "created_schema" and _folded(change.value) in by_kind["created_schema"]:
            return f"attempting to create schema {name}, but another transaction has created it"
        if change.kind == "created_schema" and schema_ids.get(place) in by_kind["dropped_schema"]:
            return f"attempting to create schema {name}, but another transaction has dropped the schema around it"
        if change.kind in _CREATIONS:
            kinds, what = _CREATIONS[change.kind]
            if any(_folded(change.value) in by_kind[kind] for kind in kinds):
                return f"attempting to create {name}, but another transaction has created {what} of that name"
            if schema_ids.get(place) in by_kind["dropped_schema"]:
                return f"attempting to create {name}, but another transaction has dropped the schema"
    if same_files:
        return "attempting to delete from a data file, but another transaction has deleted from it"
    return None


def exclude_by_rows(ours: Change, theirs: Change) -> bool:
    """Return whether changes of the rows of one table exclude each other, as long as no more is known of the rows."""
    return (
        ours.value == theirs.value and {ours.kind, theirs.kind} <= OF_ROWS and theirs.kind in _BY_ID.get(ours.kind, {})
    )


def find_changed(needed: Collection[int], theirs: Iterable[Change]) -> int | None:
    """Return the id of a table whose rows or definition another commit changed, of those that are needed; or None."""
    if not needed:
        return None
    return next((int(str(one.value)) for one in theirs if one.value in needed and one.kind in _CHANGES_ROWS), None)


def _creates_in(by_kind: dict[str, set[object]], schema: str) -> bool:
    created = set[object]().union(*(by_kind[kind] for kind in (*_CREATIONS, "created_schema")))
    return any(isinstance(name, tuple) and name[:-1] == path_parts(schema.casefold()) for name in created)


def _folded(value: int | tuple[str, ...]) -> int | tuple[str, ...]:
    return value if isinstance(value, int) else tuple(name.casefold() for name in value)

"""Variants in Arrow: the bytes of Parquet's variant, or DuckDB's types and texts where Parquet's cannot hold a value.

Parquet's variants have no INTERVAL, TIMETZ, HUGEINT and others. A value with such a part is carried as a zero byte, with
which no variant of Parquet begins, then JSON. In it a list is `[null, [element, …]]`, an object `[[key, …], [value, …]]`,
anything else `[type, text]`, or `["", bytes]` with the bytes of Parquet's variant as hex digits.

Reading and writing are SQL without functions of Python. How deep it goes is part of the SQL, and costs; so values are
first carried as Parquet's, and a second time only where some of them are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.types import DataType
from ducklake_lab.version import READS_VARIANT_BYTES, SINCE_DUCKDB_2

#: The types that Parquet's variants lack, besides the width of decimals: DuckDB's name of the kind, and the type in SQL.
_LACKING = {
    "INTERVAL": "INTERVAL",
    "TIME_MICROS_TZ": "TIMETZ",
    "TIME_NANOS": "TIME_NS",
    "UINT64": "UBIGINT",
    "INT128": "HUGEINT",
    "UINT128": "UHUGEINT",
    "BIGNUM": "BIGNUM",
    "BITSTRING": "BIT",
    "TIMESTAMP_SEC": "TIMESTAMP_S",
    "TIMESTAMP_MILIS": "TIMESTAMP_MS",
    "GEOMETRY": "GEOMETRY",
}
#: Levels of lists and objects that the SQL reads, one attempt after the other; 0 reads Parquet's variants alone.
_ATTEMPTS = (0, 2, 4, 6)
_MARK = b"\0"
_MARK_SQL = r"'\x00'::BLOB"
#: How the error begins for a value that has no form.
NO_FORM = "Parquet has no variant for"


@dataclass(frozen=True, slots=True)
class Kept:
    """Properties that SQL needs of values that are carried as JSON.

    Attributes:
        depth: levels of lists and objects.
        kinds: DuckDB's names of the types of texts.
        objects: the keys of each object, in order.
    """

    depth: int
    kinds: tuple[str, ...]
    objects: tuple[tuple[str, ...], ...]


def kept_in(data_type: DataType, values: pa.Array | pa.ChunkedArray) -> Kept | None:
    """Return the properties of a column's variants that are carried as JSON; None where all are Parquet's."""
    trees = [json.loads(value[1:]) for value in _kept_values(data_type, values)]
    if not trees:
        return None
    heads = [node[0] for tree in trees for node in _nodes(tree) if node]
    kinds = dict.fromkeys(head for head in heads if isinstance(head, str) and head)
    objects = dict.fromkeys(tuple(head) for head in heads if isinstance(head, list))
    # DuckDB makes structs of these only
    usable = [
        keys for keys in objects if keys and "" not in keys and len({key.casefold() for key in keys}) == len(keys)
    ]
    return Kept(max(map(_depth, trees)), tuple(kinds), tuple(usable))


def read_all(read: Callable[[int], pa.Table], types: Sequence[DataType | None]) -> pa.Table:
    """Rows with all their variants; SQL that uses one that is nested too deeply fails.

    Args:
        read: gives the rows, whose variants are made by `carried_sql` with that depth.
        types: of its columns; None for one that is none of the model's.
    """
    for depth in _ATTEMPTS:
        table = read(depth)
        if not any(_is_left_out(kind, column) for kind, column in zip(types, table.columns, strict=True)):
            break
    return table


def _is_left_out(kind: DataType | None, column: pa.ChunkedArray) -> bool:
    if kind is None:
        return False
    return any(value == _MARK or False in _nodes(json.loads(value[1:])) for value in _kept_values(kind, column))


def _kept_values(data_type: DataType, values: pa.Array | pa.ChunkedArray) -> list[bytes]:
    """The distinct values that are not Parquet's."""
    kept: set[bytes] = set()
    if any(part.name == "variant" for part in data_type.walk()):
        for array in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            for variants in _variants(data_type, array):
                kept.update(variants.filter(pc.starts_with(variants, _MARK)).to_pylist())
    return list(kept)


def _variants(data_type: DataType, array: pa.Array) -> Iterator[pa.Array]:
    if data_type.name == "variant":
        yield array
    elif data_type.name == "struct":
        for index, (_, child) in enumerate(data_type.children):
            yield from _variants(child, pc.struct_field(array, [index]))
    elif data_type.name == "list":
        yield from _variants(data_type.children[0][1], pc.list_flatten(array))
    elif data_type.name == "map":
        yield from _variants(data_type.children[0][1], array.keys)
        yield from _variants(data_type.children[1][1], array.items)


def _nodes(tree: Any) -> Iterator[Any]:
    """A value and those in it; False for one that lay too deep."""
    yield tree
    if tree and not isinstance(tree[0], str):
        for node in tree[1]:
            yield from _nodes(node)


def _depth(tree: Any) -> int:
    return 0 if not tree or isinstance(tree[0], str) else 1 + max(map(_depth, tree[1]), default=0)


def carried_sql(expression: str, depth: int | None = None) -> str:
    """SQL of the Arrow form of a variant.

    Args:
        depth: levels of lists and objects to read where Parquet's cannot hold a value: for `read_all`, which sees what
            is left out. Without it such a value is an error of DuckDB's.
    """
    if depth is None:
        return _parquet_sql(expression)
    kept = _MARK_SQL
    if depth:
        # a name of its own: DuckDB would take the same parts of both out of TRY
        kept += f" || encode(CAST(list_transform([{expression}], lambda v: {_tree_sql('v', depth)})[1] AS VARCHAR))"
    return f"coalesce(TRY({_parquet_sql(expression)}), {kept})"


def _parquet_sql(expression: str) -> str:
    parts = f"CAST(variant_to_parquet_variant({expression}) AS STRUCT(metadata BLOB, value BLOB))"
    return f"list_transform([{parts}], lambda part: part.metadata || part.value)[1]"


def _tree_sql(value: str, depth: int) -> str:
    kind, each, entries = f"variant_typeof({value})", f"v{depth}", f"m{depth}"
    nested = "CAST('false' AS JSON)"
    if depth:
        listed = f"CASE WHEN {entries} IS NULL THEN CAST({value} AS VARIANT[]) ELSE map_values({entries}) END"
        parts = f"list_transform({listed}, lambda {each}: {_tree_sql(each, depth - 1)})"
        entry_map = f"CAST({value} AS MAP(VARCHAR, VARIANT))"
        if SINCE_DUCKDB_2:
            entry_map = f"error('{NO_FORM} an object with such values, which DuckDB 2 cannot take apart')"
        nested = (
            f"list_transform([CASE WHEN {kind} LIKE 'OBJECT(%' THEN {entry_map} END], "
            f"lambda {entries}: json_array(map_keys({entries}), {parts}))[1]"
        )
    return (
        f"CASE WHEN {kind} LIKE 'ARRAY(%' OR {kind} LIKE 'OBJECT(%' THEN {nested} "
        f"WHEN {kind} IN {tuple(_LACKING)} OR {kind} LIKE 'DECIMAL(%' THEN json_array({kind}, CAST({value} AS VARCHAR)) "
        f"ELSE json_array('', hex({_parquet_sql(value)})) END"
    )


def typed_sql(expression: str, kept: Kept | None) -> str:
    """SQL of the variant of its Arrow form; without what is `kept`, a value that Parquet's cannot hold is an error."""
    text = f"decode({expression}[2:])"
    if kept is None:
        kind = rf"""regexp_extract({text}, '\["({"|".join(_LACKING)})","', 1)"""
        other = f"error('{NO_FORM} ' || {kind})"
    else:
        tree = _variant_sql("tree", kept.depth, kept)
        other = f"list_transform([CAST({text} AS JSON)], lambda tree: {tree})[1]"
    return f"CASE WHEN {expression}[1:1] = {_MARK_SQL} THEN {other} ELSE {from_bytes_sql(expression)} END"


def from_bytes_sql(expression: str) -> str:
    """SQL of the variant of its bytes in Parquet: the metadata, then the value.

    Raises:
        UnsupportedFeatureError: the installed DuckDB has no function for it.
    """
    if not READS_VARIANT_BYTES:
        raise UnsupportedFeatureError("Values of type VARIANT need DuckDB 1.5.4 or newer; update duckdb.")
    return f"variant_bytes_to_variant({expression})"


def _variant_sql(tree: str, depth: int, kept: Kept) -> str:
    kind, text = f"json_extract_string({tree}, '$[0]')", f"json_extract_string({tree}, '$[1]')"
    leaves = "".join(
        f" WHEN '{name}' THEN CAST(CAST({text} AS {_LACKING.get(name, name)}) AS VARIANT)" for name in kept.kinds
    )
    deep = (
        f"error('{NO_FORM} a value under more than {_ATTEMPTS[-1]} levels of lists and objects; select other columns')"
    )
    leaf = f"CASE {kind} WHEN '' THEN {from_bytes_sql(f'unhex({text})')}{leaves} ELSE {deep} END"
    if depth == 0:
        return leaf
    each, parts = f"t{depth}", f"p{depth}"
    made = ""
    for keys in kept.objects:
        fields = ", ".join(f"{quote_text(key)}: {parts}[{place}]" for place, key in enumerate(keys, 1))
        listed = ", ".join(map(quote_text, keys))
        made += f" WHEN CAST(json_extract({tree}, '$[0]') AS VARCHAR[]) = [{listed}] THEN CAST({{{fields}}} AS VARIANT)"
    return (
        f"CASE WHEN coalesce(json_type({tree}, '$[0]'), 'VARCHAR') = 'VARCHAR' THEN {leaf} ELSE list_transform(["
        f"list_transform(json_extract({tree}, '$[1][*]'), lambda {each}: {_variant_sql(each, depth - 1, kept)})], "
        f"lambda {parts}: CASE WHEN json_type({tree}, '$[0]') = 'NULL' THEN CAST({parts} AS VARIANT){made} "
        f"ELSE error('{NO_FORM} an object with the keys ' || {kind}) END)[1] END"
    )

"""Replaces rows of a live table by the rows that its query gives; rows that stay keep their row ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ducklake_lab.duckdb.casting import has_part
from ducklake_lab.engine.rows import Here, InMemory, Rows
from ducklake_lab.engine.staging import stage_deleted
from ducklake_lab.errors import UsageError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.staged import ROW_ID, VIRTUAL_COLUMNS
from ducklake_lab.model.types import DataType
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.sql import parse_query
from ducklake_lab.transaction.transaction import Transaction

#: Types whose equal values are one and the same value.
_ONE_FORM = frozenset(
    "boolean int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 date time timestamp timestamptz timestamp_s "
    "timestamp_ms timestamp_ns varchar uuid blob".split()
)


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys whose rows are replaced.

    Attributes:
        columns: the columns of the live table that they are values of.
        view: the name of the rows with the keys, `k0`, `k1`, …
        nullable: whether a key has NULLs.
    """

    columns: Sequence[str]
    view: str
    nullable: Sequence[bool]


def has_one_form(kind: DataType) -> bool:
    """Returns whether equal values of a type are the same value, as those of floats and intervals may not be."""
    return kind.name in _ONE_FORM or kind.name.startswith("decimal")


def replace_rows(
    dml: Dml, sources: Sources, transaction: Transaction, table: Table, path: str, rows: Rows, keys: Keys | None
) -> int:
    """Stages that rows take the place of those of some keys, or of all; returns the number of deleted and new rows.

    Args:
        path: the quoted path of the table.
        keys: None for all rows.
    """
    plan = sources.plan(parse_query(_rows_of(table, path, keys)))
    count = len(table.columns)
    with dml.matching(table, plan) as matched:
        near = _near(rows, dml.few(table))
        if near is None or matched.rows.is_on_spark:
            # computed once: a second run could give sums with other last digits
            dml.delete_matched(table, matched)
            gone: int = matched.count
            return gone + dml.append(table, rows)
        own = matched.rows.here().first(count + len(VIRTUAL_COLUMNS), [*VIRTUAL_COLUMNS, *_names(count)])
        deleted, inserted = _differences(table, own, near)
        stage_deleted(transaction, matched.target, matched.scan, deleted, deleted.table.num_rows)
    added = dml.append(table, inserted) if inserted.table.num_rows else 0
    staged: int = deleted.table.num_rows + added
    return staged


def _near(rows: Rows, few: int) -> Here | None:
    """Returns rows that are in this process, or few enough to be fetched; None for others."""
    if not rows.is_on_spark:
        return rows.here()
    first = rows.head(few + 1)
    return InMemory(first) if first.num_rows <= few else None


def _rows_of(table: Table, path: str, keys: Keys | None) -> str:
    names = {column.name.casefold() for column in table.columns}
    hidden = next((name for name in VIRTUAL_COLUMNS if name.casefold() in names), None)
    if hidden is not None:
        raise UsageError(f'A live table can have no column "{hidden}"; name it otherwise with AS.')
    shown = [*VIRTUAL_COLUMNS, *(column.name for column in table.columns)]
    text = f"SELECT {', '.join(f't.{quote_identifier(name)}' for name in shown)} FROM {path} AS t"
    if keys is None:
        return text
    conditions = [
        f"t.{quote_identifier(name)} {'IS NOT DISTINCT FROM' if may_be_null else '='} k.k{i}"
        for i, (name, may_be_null) in enumerate(zip(keys.columns, keys.nullable, strict=True))
    ]
    return f"{text} SEMI JOIN {keys.view} AS k ON {' AND '.join(conditions)}"


def _names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


def _differences(table: Table, own: Here, rows: Here) -> tuple[InMemory, InMemory]:
    """Returns the virtual columns of rows that go, and rows that come. Of equal rows, each has one counterpart."""
    kinds = [column.data_type for column in table.columns]
    names = _names(len(kinds))
    casts = ", ".join(f"CAST({name} AS {kind.sql()}) AS {name}" for name, kind in zip(names, kinds, strict=True))
    same = [name if has_one_form(kind) else f"CAST({name} AS VARCHAR)" for name, kind in zip(names, kinds, strict=True)]
    listed = "".join(f", {value} AS s{i}" for i, value in enumerate(same))
    parts = ", ".join(same)
    conditions = [*(f"a.s{i} IS NOT DISTINCT FROM b.s{i}" for i in range(len(same))), "a.n = b.n"]
    if any(has_part(kind, ("variant",)) for kind in kinds):
        conditions.append("false")  # variants of two types may have one text
    both = " AND ".join(conditions)
    virtual = ", ".join(map(quote_identifier, VIRTUAL_COLUMNS))
    mine = f"SELECT *, row_number() OVER (PARTITION BY {parts} ORDER BY {ROW_ID}) AS n{listed} FROM rows"
    theirs = f"SELECT *, row_number() OVER (PARTITION BY {parts}) AS n{listed} FROM (SELECT {casts} FROM others)"
    own, rows = InMemory(own.arrow()), InMemory(rows.arrow().rename_columns(names))
    gone = own.query(f"SELECT {virtual} FROM ({mine}) AS a ANTI JOIN ({theirs}) AS b ON {both}", others=rows)
    new = own.query(f"SELECT {', '.join(names)} FROM ({theirs}) AS a ANTI JOIN ({mine}) AS b ON {both}", others=rows)
    shown = [column.name for column in table.columns]
    return InMemory(gone.arrow()), InMemory(new.arrow().rename_columns(shown))

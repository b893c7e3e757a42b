"""Rows that are kept in the catalog."""

from __future__ import annotations

from ducklake_lab.doctor import mending, probes
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import NEWEST, Context
from ducklake_lab.model.quoting import quote_identifier


def _of_no_table(_: Context) -> str:
    return (
        "SELECT i.table_id AS id, NULL AS table_id, i.table_name AS name, NULL AS since, NULL AS until "
        "FROM ducklake_inlined_data_tables AS i "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_table AS x WHERE x.table_id = i.table_id)"
    )


def _twice(_: Context) -> str:
    return (
        "SELECT table_id, table_name AS name, count(*) AS times, NULL AS since, NULL AS until "
        "FROM ducklake_inlined_data_tables GROUP BY table_id, table_name HAVING count(*) > 1"
    )


def _rows(context: Context, condition: str) -> str | None:
    row_id, begin, end = context.inlined_columns
    parts = [
        f"SELECT {table_id:d} AS table_id, '{name}' AS name, count(*) AS n, min({begin}) AS since, NULL AS until "
        f"FROM {quote_identifier(name)} WHERE {condition.format(row_id=row_id, begin=begin, end=end)} HAVING count(*) > 0"
        for table_id, name in context.readable
    ]
    return " UNION ALL ".join(parts) or None


def _reversed(context: Context) -> str | None:
    return _rows(context, "{end} < {begin}")


def _no_id(context: Context) -> str | None:
    return _rows(context, "{row_id} IS NULL OR {begin} IS NULL")


def _ends_later(context: Context) -> str | None:
    return _rows(context, f"{{end}} > {NEWEST} AND {{begin}} <= {NEWEST}")


def _begins_later(context: Context) -> str | None:
    return _rows(context, f"{{begin}} > {NEWEST}")


CHECKS = (
    Check(
        "inlined_table_missing", "inlined rows", "error", "fails", "{name}",
        "The catalog names this table of inlined rows, and has no such table.",
        probe=probes.missing_inlined_tables, key=("table_id", "name"),
        reason="rows may have been in it; restore it from a backup",
    ),
    Check(
        "inlined_table_unnamed", "inlined rows", "error", "wrong", "{name}",
        "It has {n} inlined rows, and ducklake_inlined_data_tables does not name it: nobody reads them.",
        probe=probes.unnamed_inlined_tables, key=("table_id", "name"),
        repair=Repair("name it, if its columns fit and no file has its rows", mending.name_inlined_table),
    ),
    Check(
        "inlined_table_of_no_table", "inlined rows", "warning", "later", "{name}",
        "It holds rows of table {id}, which the catalog lacks: maintenance fails as it looks for it.",
        query=_of_no_table, key=("id", "name"),
        repair=Repair("take its name off the list, if it holds no row", mending.drop_inlined_name),
    ),
    Check(
        "inlined_table_twice", "inlined rows", "error", "wrong", "{name}",
        "The catalog names it {times} times: readers count its rows as often.",
        query=_twice, key=("table_id", "name"),
        repair=Repair("name it once", mending.name_once),
    ),
    Check(
        "inlined_columns_differ", "inlined rows", "error", "fails", "{name}",
        "It lacks the column {column}, which its rows have by the catalog.",
        probe=probes.differing_inlined_columns, key=("table_id", "name", "column"),
        reason="values of the column are not known; restore the table from a backup",
    ),
    Check(
        "inlined_interval_reversed", "inlined rows", "error", "wrong", "{name}",
        "{n} inlined rows end before they begin: no snapshot has them.",
        query=_reversed, key=("table_id", "name"), reason="which of the two snapshots is wrong is not known",
    ),
    Check(
        "inlined_row_without_id", "inlined rows", "error", "wrong", "{name}",
        "{n} inlined rows have no row id, or no first snapshot.",
        query=_no_id, key=("table_id", "name"), reason="their ids are not known; restore the table from a backup",
    ),
    Check(
        "inlined_row_ends_in_the_future", "inlined rows", "error", "later", "{name}",
        "{n} inlined rows end with a snapshot that is yet to come, and would vanish then.",
        query=_ends_later, key=("table_id", "name"),
        repair=Repair("let them go on; no snapshot there is sees the difference", mending.inlined_end_never),
    ),
    Check(
        "inlined_row_begins_in_the_future", "inlined rows", "error", "later", "{name}",
        "{n} inlined rows begin with a snapshot that is yet to come, and would appear then.",
        query=_begins_later, key=("table_id", "name"),
        reason="they may belong to a snapshot that is lost; restore the catalog from a backup",
    ),
)  # fmt: skip

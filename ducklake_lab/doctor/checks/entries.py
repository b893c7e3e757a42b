"""Schemas, tables, views, columns and keys: the versions of each, and who belongs to whom."""

from __future__ import annotations

from ducklake_lab.doctor import catalog_mending, probes
from ducklake_lab.doctor.check import Check, Repair
from ducklake_lab.doctor.context import NEVER, NEWEST, Context, later, overlap, sooner
from ducklake_lab.doctor.plan import metadata_table

#: Metadata tables of things with a begin and an end: how they are called, and the columns that identify one.
_VERSIONED = (
    ("ducklake_table", "table", "table_id", "x.table_id"),
    ("ducklake_schema", "schema", "schema_id", "NULL"),
    ("ducklake_view", "view", "view_id", "NULL"),
    ("ducklake_column", "column", "column_id", "x.table_id"),
    ("ducklake_data_file", "data file", "data_file_id", "x.table_id"),
    ("ducklake_delete_file", "delete file", "delete_file_id", "x.table_id"),
    ("ducklake_partition_info", "partition", "partition_id", "x.table_id"),
    ("ducklake_sort_info", "sort key", "sort_id", "x.table_id"),
    ("ducklake_macro", "macro", "macro_id", "NULL"),
)


_IN_SCHEMAS = (("table", "x.table_id"), ("view", "NULL"), ("macro", "NULL"))


def _all(condition: str, until: str = "x.end_snapshot") -> str:
    return " UNION ALL ".join(
        f"SELECT {of} AS table_id, '{kind}' AS kind, '{table}' AS of_table, x.{key} AS id, x.begin_snapshot AS first_one, "
        f"x.end_snapshot AS last_one, x.begin_snapshot AS since, {until} AS until "
        f"FROM {table} AS x WHERE {condition}"
        for table, kind, key, of in _VERSIONED
    )


def _reversed(_: Context) -> str:
    return _all("x.end_snapshot < x.begin_snapshot", "NULL")


def _ends_later(_: Context) -> str:
    return _all(f"x.end_snapshot > {NEWEST} AND x.begin_snapshot <= {NEWEST}")


def _begins_later(_: Context) -> str:
    return _all(f"x.begin_snapshot > {NEWEST}")


def _two_versions(table: str, kind: str, key: str, of: str, own: str = "") -> str:
    return (
        f"SELECT {of} AS table_id, '{kind}' AS kind, '{table}' AS of_table, a.{key} AS id, a.begin_snapshot AS first_one, "
        f"b.begin_snapshot AS other, {later('a.begin_snapshot', 'b.begin_snapshot')} AS since, "
        f"{sooner('a.end_snapshot', 'b.end_snapshot')} AS until FROM {table} AS a JOIN {table} AS b ON b.{key} = a.{key} {own} "
        f"AND b.begin_snapshot > a.begin_snapshot WHERE {overlap('a', 'b')}"
    )


def _versions_overlap(_: Context) -> str:
    return " UNION ALL ".join(
        (
            _two_versions("ducklake_table", "table", "table_id", "a.table_id"),
            _two_versions("ducklake_schema", "schema", "schema_id", "NULL"),
            _two_versions("ducklake_view", "view", "view_id", "NULL"),
            _two_versions("ducklake_column", "column", "column_id", "a.table_id", "AND b.table_id = a.table_id"),
        )
    )


def _same_version_twice(_: Context) -> str:
    parts = []
    for table, kind, key, of in _VERSIONED[:4]:
        own = "" if table != "ducklake_column" else ", x.table_id"
        table_id = {"NULL": "NULL", "x.table_id": "min(x.table_id)"}[of]
        parts.append(
            f"SELECT {table_id} AS table_id, '{kind}' AS kind, '{table}' AS of_table, x.{key} AS id, x.begin_snapshot AS first_one, "
            f"count(*) AS times, x.begin_snapshot AS since, min(x.end_snapshot) AS until FROM {table} AS x "
            f"GROUP BY x.{key}, x.begin_snapshot{own} HAVING count(*) > 1"
        )
    return " UNION ALL ".join(parts)


def _name_twice(context: Context) -> str:
    nested = "parent_schema_id" in metadata_table(context, "ducklake_schema").c
    above = "coalesce(parent_schema_id, -1)" if nested else "-1"
    entries = (
        "SELECT table_id AS id, table_id AS table_id, 'entry' AS kind, schema_id, lower(table_name) AS name, begin_snapshot, "
        "end_snapshot FROM ducklake_table UNION ALL SELECT view_id, NULL, 'entry', schema_id, lower(view_name), begin_snapshot, "
        "end_snapshot FROM ducklake_view UNION ALL SELECT macro_id, NULL, 'macro', schema_id, lower(macro_name), begin_snapshot, "
        f"end_snapshot FROM ducklake_macro UNION ALL SELECT schema_id, NULL, 'schema', {above}, lower(schema_name), "
        "begin_snapshot, end_snapshot FROM ducklake_schema"
    )
    return (
        f"SELECT a.table_id AS table_id, a.id AS id, b.id AS other, a.name AS name, "
        f"{later('a.begin_snapshot', 'b.begin_snapshot')} AS since, {sooner('a.end_snapshot', 'b.end_snapshot')} AS until "
        f"FROM ({entries}) AS a JOIN ({entries}) AS b ON b.kind = a.kind AND b.schema_id = a.schema_id "
        "AND b.name = a.name AND b.id > a.id "
        f"WHERE {overlap('a', 'b')}"
    )


def _column_name_twice(_: Context) -> str:
    return (
        "SELECT a.table_id AS table_id, a.column_id AS id, b.column_id AS other, a.column_name AS name, "
        f"{later('a.begin_snapshot', 'b.begin_snapshot')} AS since, {sooner('a.end_snapshot', 'b.end_snapshot')} AS until "
        "FROM ducklake_column AS a JOIN ducklake_column AS b ON b.table_id = a.table_id AND b.column_id > a.column_id "
        "AND lower(b.column_name) = lower(a.column_name) "
        f"WHERE a.parent_column IS NULL AND b.parent_column IS NULL AND {overlap('a', 'b')}"
    )


def _of_no_schema(_: Context) -> str:
    parts = [
        f"SELECT {of} AS table_id, '{kind}' AS kind, x.{kind}_id AS id, x.schema_id AS schema_id, x.begin_snapshot AS since, "
        f"x.end_snapshot AS until FROM ducklake_{kind} AS x WHERE NOT EXISTS (SELECT 1 FROM ducklake_schema AS s "
        f"WHERE s.schema_id = x.schema_id AND {overlap('s', 'x')})"
        for kind, of in _IN_SCHEMAS
    ]
    return " UNION ALL ".join(parts)


def _of_ended_schema(_: Context) -> str:
    parts = [
        f"SELECT {of} AS table_id, '{kind}' AS kind, x.{kind}_id AS id, x.schema_id AS schema_id, s.ended AS since, NULL AS until "
        f"FROM ducklake_{kind} AS x JOIN (SELECT schema_id, max(end_snapshot) AS ended FROM ducklake_schema GROUP BY schema_id "
        "HAVING count(*) = count(end_snapshot)) AS s ON s.schema_id = x.schema_id "
        "WHERE x.end_snapshot IS NULL AND x.begin_snapshot < s.ended"
        for kind, of in _IN_SCHEMAS
    ]
    return " UNION ALL ".join(parts)


def _of_ended_table(_: Context) -> str:
    return (
        "SELECT f.table_id AS table_id, f.data_file_id AS id, f.path AS path, x.ended AS last_one, x.ended AS since, NULL AS until "
        "FROM ducklake_data_file AS f JOIN (SELECT table_id, max(end_snapshot) AS ended FROM ducklake_table GROUP BY table_id "
        "HAVING count(*) = count(end_snapshot)) AS x ON x.table_id = f.table_id WHERE f.end_snapshot IS NULL"
    )


def _tag_twice(_: Context) -> str:
    return (
        'SELECT NULL AS table_id, t.object_id AS id, t."key" AS name, count(*) AS times, max(t.begin_snapshot) AS since, '
        'NULL AS until FROM ducklake_tag AS t WHERE t.end_snapshot IS NULL GROUP BY t.object_id, t."key" HAVING count(*) > 1 '
        'UNION ALL SELECT c.table_id, c.column_id, c."key", count(*), max(c.begin_snapshot), NULL FROM ducklake_column_tag AS c '
        'WHERE c.end_snapshot IS NULL GROUP BY c.table_id, c.column_id, c."key" HAVING count(*) > 1'
    )


def _no_columns(_: Context) -> str:
    return (
        "SELECT x.table_id AS table_id, min(x.begin_snapshot) AS since, "
        f"CASE WHEN max(coalesce(x.end_snapshot, {NEVER})) = {NEVER} THEN NULL ELSE max(x.end_snapshot) END AS until "
        "FROM ducklake_table AS x WHERE NOT EXISTS (SELECT 1 FROM ducklake_column AS c WHERE c.table_id = x.table_id) "
        "GROUP BY x.table_id"
    )


def _columns_of_no_table(_: Context) -> str:
    return (
        "SELECT c.table_id AS id, NULL AS table_id, count(*) AS columns, NULL AS since, NULL AS until FROM ducklake_column AS c "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_table AS x WHERE x.table_id = c.table_id) GROUP BY c.table_id"
    )


def _no_parent(_: Context) -> str:
    return (
        "SELECT c.table_id AS table_id, c.column_id AS id, c.column_name AS name, c.parent_column AS parent_column, "
        "c.begin_snapshot AS since, c.end_snapshot AS until FROM ducklake_column AS c WHERE c.parent_column IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM ducklake_column AS p WHERE p.table_id = c.table_id AND p.column_id = c.parent_column)"
    )


def _two_partitions(_: Context) -> str:
    return (
        "SELECT a.table_id AS table_id, a.partition_id AS id, b.partition_id AS other, "
        f"{later('a.begin_snapshot', 'b.begin_snapshot')} AS since, {sooner('a.end_snapshot', 'b.end_snapshot')} AS until "
        "FROM ducklake_partition_info AS a JOIN ducklake_partition_info AS b ON b.table_id = a.table_id "
        f"AND b.partition_id > a.partition_id WHERE {overlap('a', 'b')}"
    )


def _partition_of_no_column(_: Context) -> str:
    return (
        "SELECT k.table_id AS table_id, k.partition_id AS id, k.column_id AS column_id, i.begin_snapshot AS since, "
        "i.end_snapshot AS until FROM ducklake_partition_column AS k "
        "JOIN ducklake_partition_info AS i ON i.partition_id = k.partition_id AND i.table_id = k.table_id "
        "WHERE NOT EXISTS (SELECT 1 FROM ducklake_column AS c WHERE c.table_id = k.table_id AND c.column_id = k.column_id)"
    )


CHECKS = (
    Check(
        "interval_reversed", "entries", "error", "wrong", "{kind} {id}",
        "It ends with snapshot {last_one}, before it begins with {first_one}: no snapshot has it.",
        query=_reversed, key=("table_id", "kind", "id", "first_one"),
        reason="which of the two snapshots is wrong is not known",
    ),
    Check(
        "ends_in_the_future", "entries", "error", "later", "{kind} {id}",
        "It ends with snapshot {last_one}, which is yet to come, and would vanish then.",
        query=_ends_later, key=("table_id", "kind", "id", "first_one"),
        repair=Repair("let it go on; no snapshot there is sees the difference", catalog_mending.end_never),
    ),
    Check(
        "begins_in_the_future", "entries", "error", "later", "{kind} {id}",
        "It begins with snapshot {first_one}, which is yet to come, and would appear then.",
        query=_begins_later, key=("table_id", "kind", "id", "first_one"),
        reason="it may belong to a snapshot that is lost; restore the catalog from a backup",
    ),
    Check(
        "versions_overlap", "entries", "error", "wrong", "{kind} {id}",
        "Its versions that begin with snapshots {first_one} and {other} both hold.",
        query=_versions_overlap, key=("table_id", "kind", "id", "first_one", "other"),
        repair=Repair("end the earlier version where the later one begins", catalog_mending.end_version),
    ),
    Check(
        "version_twice", "entries", "error", "wrong", "{kind} {id}",
        "{times} rows of the catalog say what it is from snapshot {first_one} on.",
        query=_same_version_twice, key=("table_id", "kind", "id", "first_one"),
        repair=Repair("keep one of equal rows", catalog_mending.keep_one_version),
    ),
    Check(
        "name_twice", "entries", "error", "wrong", '"{name}"',
        "Entries {id} and {other} of one schema both have this name.",
        query=_name_twice, key=("table_id", "id", "other"),
        reason="both have content; RENAME one in a client that finds it, or edit its name in the catalog",
    ),
    Check(
        "column_name_twice", "entries", "error", "wrong", 'column "{name}"',
        "Columns {id} and {other} both have this name.",
        query=_column_name_twice, key=("table_id", "id", "other"),
        reason="both have values in files; edit the name of one in the catalog",
    ),
    Check(
        "entry_of_no_schema", "entries", "error", "fails", "{kind} {id}",
        "It belongs to schema {schema_id}, which the catalog lacks at its snapshots.",
        query=_of_no_schema, key=("table_id", "kind", "id"),
        reason="the schema's name and folder are not known; restore its row from a backup",
    ),
    Check(
        "entry_of_ended_schema", "entries", "error", "fails", "{kind} {id}",
        "It goes on, and its schema {schema_id} ended with snapshot {since}: nobody finds it.",
        query=_of_ended_schema, key=("table_id", "kind", "id"),
        reason="whether it was dropped with its schema is not known; end it, or let the schema go on",
    ),
    Check(
        "file_of_ended_table", "entries", "warning", "none", "data file {id}",
        "It goes on, and its table ended with snapshot {last_one}: {path} is never cleaned up.",
        query=_of_ended_table, reason="the table may have ended by mistake, and it holds rows of it",
    ),
    Check(
        "tag_twice", "entries", "warning", "later", 'tag "{name}" of {id}',
        "{times} rows of the catalog give it today: clients take any of them.",
        query=_tag_twice, key=("table_id", "id", "name"),
        reason="which value is right is not known; set it anew, as with COMMENT ON",
    ),
    Check(
        "table_without_columns", "entries", "error", "fails", "columns",
        "The catalog has no column of this table.",
        query=_no_columns, key=("table_id",),
        reason="names and types of columns are not known; restore their rows from a backup",
    ),
    Check(
        "columns_of_no_table", "entries", "warning", "none", "table {id}",
        "The catalog has {columns} columns of it, and no such table.",
        query=_columns_of_no_table, key=("id",), reason="they are needed if the table's row comes back from a backup",
    ),
    Check(
        "column_of_no_parent", "entries", "error", "fails", "column {name}",
        "It is part of column {parent_column}, which the catalog lacks.",
        query=_no_parent, reason="the type of the whole is not known; restore its row from a backup",
    ),
    Check(
        "type_unknown", "entries", "error", "fails", "column {name}",
        'Its type is "{type}", which is none of DuckLake\'s.',
        probe=probes.unknown_types, reason="restore the column's row from a backup, or use a release that knows the type",
    ),
    Check(
        "two_partitionings", "entries", "error", "later", "partitioning {id}",
        "Partitionings {id} and {other} both hold: writers divide rows by either.",
        query=_two_partitions, key=("table_id", "id", "other"),
        repair=Repair("end the earlier one where the later one begins", catalog_mending.end_partitioning),
    ),
    Check(
        "partition_key_of_no_column", "entries", "error", "later", "partitioning {id}",
        "It divides by column {column_id}, which the table never had.",
        query=_partition_of_no_column, key=("table_id", "id", "column_id"),
        reason="RESET PARTITIONED BY ends it; files that were divided by it need its row",
    ),
)  # fmt: skip

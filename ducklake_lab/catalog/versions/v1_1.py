"""Spec 1.1: schemas in schemas, comments of view columns, exact bounds, counts of row groups.

The migration also corrects rows of earlier writers, as the specification asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.backends import inlined_type
from ducklake_lab.catalog.versions.version import Changes, Version, columns_of
from ducklake_lab.errors import CatalogError
from ducklake_lab.model.types import DataType

_OWN = ("row_id", "begin_snapshot", "end_snapshot")
_PREFIX = "_ducklake_"

#: The commits that made tables of inlined rows for schema versions that `ducklake_schema_versions` lacks.
_MISSING_VERSIONS = """
SELECT DISTINCT c.snapshot_id AS begin_snapshot, i.schema_version, i.table_id FROM (
    SELECT snapshot_id, schema_version, LAG(snapshot_id) OVER (ORDER BY snapshot_id) AS snapshot_before,
        LAG(schema_version) OVER (ORDER BY snapshot_id) AS version_before FROM ducklake_snapshot
) AS c JOIN ducklake_inlined_data_tables AS i
    ON i.schema_version > c.version_before AND i.schema_version <= c.schema_version
WHERE c.snapshot_before = c.snapshot_id - 1 AND NOT EXISTS (
    SELECT 1 FROM ducklake_schema_versions AS v WHERE v.table_id = i.table_id AND v.schema_version = i.schema_version
) AND (
    SELECT COUNT(*) FROM ducklake_schema_versions AS v WHERE v.table_id = i.table_id AND v.begin_snapshot <= c.snapshot_id
) > 1
"""
#: Fields of structs that lost their defaults when they were renamed take those of the row before.
_LOST_DEFAULTS = """
UPDATE ducklake_column AS renamed SET initial_default = o.initial_default, default_value = o.default_value,
    default_value_type = o.default_value_type, default_value_dialect = o.default_value_dialect
FROM ducklake_column AS o
WHERE renamed.parent_column IS NOT NULL AND renamed.initial_default IS NULL AND o.initial_default IS NOT NULL
    AND o.table_id = renamed.table_id AND o.column_id = renamed.column_id
    AND o.begin_snapshot < renamed.begin_snapshot AND NOT EXISTS (
        SELECT 1 FROM ducklake_column AS later WHERE later.table_id = o.table_id AND later.column_id = o.column_id
            AND later.initial_default IS NOT NULL AND later.begin_snapshot > o.begin_snapshot
            AND later.begin_snapshot < renamed.begin_snapshot)
"""
#: Bounds of floats that were spelled as values of the type before; nobody knows which were.
_MISSPELLED_BOUNDS = """
UPDATE {stats} SET min_value = NULL, max_value = NULL, min_is_exact = NULL, max_is_exact = NULL
WHERE (min_value IS NOT NULL OR max_value IS NOT NULL) AND EXISTS (
    SELECT 1 FROM ducklake_column AS o JOIN ducklake_column AS n ON n.table_id = o.table_id AND n.column_id = o.column_id
    WHERE o.table_id = {stats}.table_id AND o.column_id = {stats}.column_id AND o.begin_snapshot < n.begin_snapshot AND (
        (o.column_type = 'float32' AND n.column_type = 'float64')
        OR (o.column_type LIKE 'decimal%' AND n.column_type IN ('float32', 'float64'))))
"""
#: Types that PostgreSQL's tables of inlined rows had in 0.3, by the column's type.
_EARLIER_TYPES = {
    "varchar": ("varchar", "text", "json", "jsonb"),
    "json": ("varchar", "text", "json", "jsonb"),
    "date": ("date",),
    "timestamp": ("timestamp",),
    "timestamptz": ("timestamptz",),
}
_DECLARED = """
SELECT c.column_name, c.column_type FROM ducklake_column AS c WHERE c.table_id = :table AND c.parent_column IS NULL
    AND c.begin_snapshot <= :at AND (c.end_snapshot IS NULL OR c.end_snapshot > :at)
"""
_PHYSICAL = """
SELECT a.attname, ty.typname FROM pg_attribute AS a JOIN pg_type AS ty ON ty.oid = a.atttypid
WHERE a.attrelid = to_regclass(quote_ident(:name)) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_BEGIN = f"""
SELECT COALESCE(
    (SELECT begin_snapshot FROM ducklake_schema_versions WHERE table_id = :table AND schema_version = :version),
    (SELECT MIN(begin_snapshot) FROM ({_MISSING_VERSIONS}) AS m WHERE table_id = :table AND schema_version = :version),
    (SELECT MIN(begin_snapshot) FROM ducklake_table WHERE table_id = :table))
"""


def _prepare(writes: Changes) -> None:
    """Checks all tables of inlined rows, then gives the format's own columns the prefix."""
    connection = writes.connection
    quote = connection.dialect.identifier_preparer.quote_identifier
    renames = []
    names = connection.execute(sa.select(t.inlined_data_tables.c.table_name).distinct()).scalars().all()
    for name in names:
        columns = [column.casefold() for column in columns_of(connection, name)]
        for place, own in enumerate(_OWN):
            column = columns[place] if place < len(columns) else None
            if column == _PREFIX + own:
                continue
            if column != own:
                raise CatalogError(f"The table {name} of inlined rows has other columns than it should.")
            if _PREFIX + own in columns:
                raise CatalogError(
                    f"A table has a column {_PREFIX}{own}, which 1.1 reserves, and inlined rows in {name}; rename it, "
                    "and call flush_inlined_data before the migration."
                )
            renames.append(f"ALTER TABLE {quote(name)} RENAME COLUMN {own} TO {_PREFIX}{own}")
    for rename in renames:
        writes.text(rename)


def _convert(writes: Changes) -> None:
    writes.text(f"INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id) {_MISSING_VERSIONS}")
    writes.text(_LOST_DEFAULTS)
    for stats in (t.file_column_stats, t.table_column_stats):
        writes.text(_MISSPELLED_BOUNDS.format(stats=stats.name))
    if writes.connection.dialect.name == "postgresql":
        _convert_inlined_types(writes)


def _convert_inlined_types(writes: Changes) -> None:
    """Give columns of inlined rows their present types, with their values."""
    connection = writes.connection
    i = t.inlined_data_tables
    for table, name, version in connection.execute(sa.select(i.c.table_id, i.c.table_name, i.c.schema_version)).all():
        at = connection.scalar(sa.text(_BEGIN), {"table": table, "version": version})
        declared = {
            column.casefold(): kind.casefold()
            for column, kind in connection.execute(sa.text(_DECLARED), {"table": table, "at": at})
        }
        physical = connection.execute(sa.text(_PHYSICAL), {"name": name}).all()[len(_OWN) :]
        changes = _changes(connection, declared, [(column, kind) for column, kind in physical])
        if changes:
            writes.text("SET LOCAL TimeZone = 'UTC'")
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            writes.text(f"ALTER TABLE {quoted} {', '.join(changes)}")


def _changes(connection: sa.Connection, declared: dict[str, Any], physical: Sequence[tuple[str, str]]) -> list[str]:
    """The parts of an ALTER TABLE; none where a column is none of the table's."""
    alterations = []
    for column, kind in physical:
        wanted = declared.get(column.casefold())
        if wanted is None:
            return []
        if kind not in _EARLIER_TYPES.get(wanted, ()):
            continue
        name = connection.dialect.identifier_preparer.quote_identifier(column)
        text = f"CAST({name} AS text)"
        if wanted in ("varchar", "json"):
            value = f"convert_to({text}, 'UTF8')"
        else:
            # as DuckDB writes years before Christ
            value = rf"regexp_replace({text}, '^([0-9]+-[0-9]+-[0-9]+)(.*) BC$', E'\\1 (BC)\\2')"
        alterations.append(f"ALTER COLUMN {name} TYPE {inlined_type('postgresql', DataType(wanted))} USING {value}")
    return alterations


VERSION = Version(
    "1.1",
    after=("1.0", "1.1-dev1"),
    created={"ducklake_view_column_tag": t.view_column_tag.columns.values()},
    added=[
        (t.data_file.c.row_group_count, None),
        (t.delete_file.c.row_group_count, None),
        (t.file_column_stats.c.min_is_exact, None),
        (t.file_column_stats.c.max_is_exact, None),
        (t.table_column_stats.c.min_is_exact, None),
        (t.table_column_stats.c.max_is_exact, None),
        (t.schema.c.parent_schema_id, None),
    ],
    prepare=_prepare,
    convert=_convert,
    is_repeatable=True,
    is_native=True,
    is_written=True,
    inlined_prefix=_PREFIX,
    inlines_variants=True,
    vectors_by_snapshot=True,
)

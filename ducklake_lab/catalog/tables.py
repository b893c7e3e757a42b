"""The metadata tables of all versions (spec: specification/tables/overview); `versions.tables` are those of one."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, ColumnElement, MetaData, Table, and_, or_
from sqlalchemy.dialects.postgresql import ARRAY

from ducklake_lab.catalog.backends import Flag, Text, UtcTimestamp, Uuid

metadata = MetaData()

_TYPES = {"": BigInteger, "text": Text, "flag": Flag, "uuid": Uuid, "time": UtcTimestamp}


def _table(name: str, columns: str) -> Table:
    """A table from `column[:type][!]`: BIGINT unless a type is named; `!` marks the primary key."""
    built = []
    for word in columns.split():
        column, _, type_name = word.rstrip("!").partition(":")
        built.append(Column(column, _TYPES[type_name](), primary_key=word.endswith("!"), autoincrement=False))
    return Table(f"ducklake_{name}", metadata, *built)


lake_metadata = Table(
    "ducklake_metadata",
    metadata,
    Column("key", Text(), nullable=False),
    Column("value", Text(), nullable=False),
    Column("scope", Text()),
    Column("scope_id", BigInteger),
)
snapshot = _table("snapshot", "snapshot_id! snapshot_time:time schema_version next_catalog_id next_file_id")
snapshot_changes = _table(
    "snapshot_changes", "snapshot_id! changes_made:text author:text commit_message:text commit_extra_info:text"
)
schema = _table(
    "schema",
    "schema_id! schema_uuid:uuid begin_snapshot end_snapshot schema_name:text path:text path_is_relative:flag"
    " parent_schema_id",
)
table = _table(
    "table",
    "table_id table_uuid:uuid begin_snapshot end_snapshot schema_id table_name:text path:text path_is_relative:flag",
)
view = _table(
    "view",
    "view_id view_uuid:uuid begin_snapshot end_snapshot schema_id view_name:text dialect:text sql:text"
    " column_aliases:text",
)
view_column_tag = _table("view_column_tag", "view_id column_name:text begin_snapshot end_snapshot key:text value:text")
tag = _table("tag", "object_id begin_snapshot end_snapshot key:text value:text")
column_tag = _table("column_tag", "table_id column_id begin_snapshot end_snapshot key:text value:text")
data_file = _table(
    "data_file",
    "data_file_id! table_id begin_snapshot end_snapshot file_order path:text path_is_relative:flag file_format:text"
    " record_count file_size_bytes footer_size row_id_start partition_id encryption_key:text mapping_id partial_max"
    " row_group_count",
)
file_column_stats = _table(
    "file_column_stats",
    "data_file_id table_id column_id column_size_bytes value_count null_count min_value:text max_value:text"
    " contains_nan:flag extra_stats:text min_is_exact:flag max_is_exact:flag",
)
file_variant_stats = _table(
    "file_variant_stats",
    "data_file_id table_id column_id variant_path:text shredded_type:text column_size_bytes value_count null_count"
    " min_value:text max_value:text contains_nan:flag extra_stats:text",
)
delete_file = _table(
    "delete_file",
    "delete_file_id! table_id begin_snapshot end_snapshot data_file_id path:text path_is_relative:flag format:text"
    " delete_count file_size_bytes footer_size encryption_key:text partial_max row_group_count",
)
column = _table(
    "column",
    "column_id begin_snapshot end_snapshot table_id column_order column_name:text column_type:text"
    " initial_default:text default_value:text nulls_allowed:flag parent_column default_value_type:text"
    " default_value_dialect:text",
)
table_stats = _table("table_stats", "table_id record_count next_row_id file_size_bytes")
table_column_stats = _table(
    "table_column_stats",
    "table_id column_id contains_null:flag contains_nan:flag min_value:text max_value:text extra_stats:text"
    " min_is_exact:flag max_is_exact:flag",
)
partition_info = _table("partition_info", "partition_id table_id begin_snapshot end_snapshot")
partition_column = _table("partition_column", "partition_id table_id partition_key_index column_id transform:text")
file_partition_value = _table("file_partition_value", "data_file_id table_id partition_key_index partition_value:text")
files_scheduled_for_deletion = _table(
    "files_scheduled_for_deletion", "data_file_id path:text path_is_relative:flag schedule_start:time"
)
inlined_data_tables = _table("inlined_data_tables", "table_id table_name:text schema_version")
column_mapping = _table("column_mapping", "mapping_id table_id type:text")
name_mapping = _table(
    "name_mapping", "mapping_id column_id source_name:text target_field_id parent_column is_partition:flag"
)
schema_versions = _table("schema_versions", "begin_snapshot schema_version table_id")
macro = _table("macro", "schema_id macro_id macro_name:text begin_snapshot end_snapshot")
macro_impl = _table("macro_impl", "macro_id impl_id dialect:text sql:text type:text")
macro_parameters = _table(
    "macro_parameters",
    "macro_id impl_id column_id parameter_name:text parameter_type:text default_value:text default_value_type:text",
)
sort_info = _table("sort_info", "sort_id table_id begin_snapshot end_snapshot")
sort_expression = _table(
    "sort_expression",
    "sort_id table_id sort_key_index expression:text dialect:text sort_direction:text null_order:text",
)


def visible(table: Table, snapshot_id: int) -> ColumnElement[bool]:
    """Rows of a versioned table that hold at the snapshot: begin inclusive, end exclusive."""
    end = table.c.end_snapshot
    return and_(table.c.begin_snapshot <= snapshot_id, or_(end.is_(None), end > snapshot_id))


def one_of(connection: sa.Connection, column: ColumnElement[Any], ids: Collection[int]) -> ColumnElement[bool]:
    """Rows whose column is one of some ids, however many: databases take a limited number of parameters."""
    listed = sorted(ids)
    if connection.dialect.name == "postgresql":
        return column == sa.any_(sa.bindparam(None, listed, ARRAY(BigInteger)))
    if connection.dialect.name == "sqlite":
        return column.in_(sa.select(sa.func.json_each(json.dumps(listed)).table_valued("value").c.value))
    return column.in_(sa.bindparam(None, listed, BigInteger, expanding=True, literal_execute=True))

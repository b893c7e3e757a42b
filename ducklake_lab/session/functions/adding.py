"""add_data_files: registers existing Parquet files as data files of a table (spec: metadata/adding_files)."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.errors import UnsupportedFeatureError, UsageError
from ducklake_lab.files.adding import AddOptions, describe_files
from ducklake_lab.model.live import check_not_live
from ducklake_lab.session.functions.registry import VARCHAR, Call, Columns, Function, arrow_schema

_ADDED: Columns = (("filename", VARCHAR),)


def _add_data_files(call: Call) -> pa.Table:
    name, files = call.args
    if name is None or files is None:
        raise UsageError("add_data_files takes a table's name and a path, a pattern, or a list of them; not NULL.")
    patterns = [files] if isinstance(files, str) else list(files)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError("The files of add_data_files are a path, a pattern, or a list of them.")
    options = AddOptions(
        allow_missing=bool(call.named("allow_missing", False)),
        ignore_extra_columns=bool(call.named("ignore_extra_columns", False)),
        hive_partitioning=bool(call.named("hive_partitioning", True)),
    )
    with call.transactions.writing(call.lake) as transaction:
        if transaction.options.get("encrypted") == "true":
            raise UnsupportedFeatureError(
                "Files cannot be added to an encrypted lake, which has a key for each of its files; INSERT their rows."
            )
        table = transaction.state.table_in_text(str(call.named("schema", call.schema)), str(name))
        check_not_live(table, transaction.state.qualified_name(table))
        files = describe_files(table, patterns, options, call.lake.session.time_zone())
        transaction.append_files(table, files)
    return arrow_schema(_ADDED).empty_table()


FUNCTIONS = (
    Function(
        "add_data_files",
        _ADDED,
        _add_data_files,
        arguments=(2, 2),
        named=("schema", "allow_missing", "ignore_extra_columns", "hive_partitioning"),
        effects="staged",
    ),
)

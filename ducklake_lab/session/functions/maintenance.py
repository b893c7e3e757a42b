"""flush_inlined_data, merge_adjacent_files, rewrite_data_files (spec: maintenance/introduction)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from ducklake_lab.errors import UsageError
from ducklake_lab.files.options import target_file_size
from ducklake_lab.maintenance import options
from ducklake_lab.maintenance.flush_inlined_data import flush_inlined_data
from ducklake_lab.maintenance.merge_adjacent_files import MergeOptions, merge_adjacent_files
from ducklake_lab.maintenance.rewrite_data_files import rewrite_data_files
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.session.functions.registry import BIGINT, VARCHAR, Call, Columns, Function, rows_of
from ducklake_lab.session.names.stored_definitions import with_plain_sort_keys
from ducklake_lab.transaction.transaction import Transaction

_NAMES: Columns = (("schema_name", VARCHAR), ("table_name", VARCHAR))
#: Compacts one table; yields (files read, files written) for each new file.
_Compact = Callable[[Transaction, Table], Iterable[tuple[int, int]]]
_FLUSHED: Columns = (*_NAMES, ("rows_flushed", DataType("int128")))
_COMPACTED: Columns = (*_NAMES, ("files_processed", BIGINT), ("files_created", BIGINT))


def _flush(call: Call) -> pa.Table:
    rows = []
    with call.transactions.writing(call.lake) as transaction:
        state = transaction.state
        for table in _tables(call, state, call.named("schema_name"), call.named("table_name")):
            if options.is_compacted(transaction.options, table):
                count = flush_inlined_data(transaction, table)
                if count:
                    rows.append((*_name(state, table), count))
    return rows_of(_FLUSHED, rows)


def _merge(call: Call) -> pa.Table:
    low, high, most = (_size(call, name) for name in ("min_file_size", "max_file_size", "max_compacted_files"))
    if most == 0:
        raise UsageError("The max_compacted_files option must be greater than zero.")
    if high == 0:
        raise UsageError("The max_file_size option must be greater than zero.")
    if low is not None and high is not None and low >= high:
        raise UsageError("The min_file_size must be less than max_file_size.")

    def merge(transaction: Transaction, table: Table) -> Iterable[tuple[int, int]]:
        target = target_file_size(transaction.options, table)
        chosen = MergeOptions(target, low or 0, high, most)
        return merge_adjacent_files(transaction, table, chosen, call.engine)

    return _compact(call, merge)


def _rewrite(call: Call) -> pa.Table:
    given = call.named("delete_threshold")

    def rewrite(transaction: Transaction, table: Table) -> Iterable[tuple[int, int]]:
        threshold = options.delete_threshold(transaction.options, table, float(given) if given is not None else None)
        return rewrite_data_files(transaction, table, threshold, call.engine)

    return _compact(call, rewrite)


def _compact(call: Call, compact: _Compact) -> pa.Table:
    rows = []
    with call.transactions.writing(call.lake) as transaction:
        state = transaction.state
        for table in _tables(call, state, call.named("schema"), call.argument(0, "table_name")):
            if options.is_compacted(transaction.options, table) and transaction.is_committed(table):
                rows += [(*_name(state, table), *counts) for counts in compact(transaction, table)]
    return rows_of(_COMPACTED, rows)


def _tables(call: Call, state: CatalogState, schema: str | None, name: str | None) -> list[Table]:
    """Returns the chosen tables by id; macros in their sort keys are expanded."""
    return [with_plain_sort_keys(state, table) for table in _chosen(call, state, schema, name)]


def _chosen(call: Call, state: CatalogState, schema: str | None, name: str | None) -> list[Table]:
    """Returns the tables by id: one by its name, all in a schema, or all in the lake."""
    if name is not None:
        if schema is not None:
            return [state.table_in_text(str(schema), str(name))]
        return [state.table(call.lakes.schema_in_use(call.lake), str(name))]
    if schema is None:
        return sorted(state.tables.values(), key=lambda table: table.table_id)
    return sorted(state.tables_of(state.schema_in_text(str(schema)).schema_id), key=lambda table: table.table_id)


def _name(state: CatalogState, table: Table) -> tuple[str, str]:
    return path_title(state.schema_of(table).name), table.name


def _size(call: Call, name: str) -> int | None:
    if name not in call.kwargs:
        return None
    value = call.kwargs[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"The {name} option must be a non-null integer.")
    return value


FUNCTIONS = (
    Function("flush_inlined_data", _FLUSHED, _flush, named=("schema_name", "table_name"), effects="staged"),
    Function(
        "merge_adjacent_files",
        _COMPACTED,
        _merge,
        arguments=(0, 1),
        named=("schema", "min_file_size", "max_file_size", "max_compacted_files"),
        effects="staged",
    ),
    Function(
        "rewrite_data_files",
        _COMPACTED,
        _rewrite,
        arguments=(0, 1),
        named=("schema", "delete_threshold"),
        effects="staged",
    ),
)

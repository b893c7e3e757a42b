"""Options of a lake: set_option, options, settings, table_info (spec: usage/configuration)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ducklake_lab.catalog.attach_options import PLAIN_VECTORS
from ducklake_lab.catalog.files import file_sizes
from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.options import SCOPES, VECTORS, Options, Scope, read_options
from ducklake_lab.catalog.snapshot_tags import PREFIX as TAG_PREFIX
from ducklake_lab.duckdb import canonical
from ducklake_lab.errors import BindError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.files.options import parse_bytes
from ducklake_lab.model.entries import LOCAL_ID_START, Table
from ducklake_lab.model.quoting import path_title, quote_text
from ducklake_lab.model.state import CatalogState
from ducklake_lab.model.types import DataType
from ducklake_lab.session.functions.registry import BIGINT, BOOLEAN, VARCHAR, Call, Columns, Function, arrow_schema
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.transaction.batches import KEY_PREFIX
from ducklake_lab.version import __version__

_SUCCESS: Columns = (("Success", BOOLEAN),)
_OPTIONS: Columns = tuple((name, VARCHAR) for name in ("option_name", "description", "value", "scope", "scope_entry"))
_SETTINGS: Columns = tuple((name, VARCHAR) for name in ("catalog_type", "extension_version", "data_path"))
_TABLE_INFO: Columns = (
    ("table_name", VARCHAR),
    ("schema_id", BIGINT),
    ("table_id", BIGINT),
    ("table_uuid", DataType("uuid")),
    ("file_count", BIGINT),
    ("file_size_bytes", BIGINT),
    ("delete_file_count", BIGINT),
    ("delete_file_size_bytes", BIGINT),
)
_CODECS = ("uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4", "lz4_raw")
_TRUE, _FALSE = ("true", "t", "1", "yes"), ("false", "f", "0", "no")


def _count(key: str, value: object) -> str:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdigit():
        raise UsageError(f"{key} is a whole number that is not negative, not {value!r}.")
    return text


def _positive(key: str, value: object) -> str:
    if int(_count(key, value)) == 0:
        raise UsageError(f"{key} cannot be 0.")
    return _count(key, value)


def _size(key: str, value: object) -> str:
    text = str(value)
    size = parse_bytes(text)
    if size is None or text.strip()[-1:].isdigit():
        raise UsageError(f"{key} is a size with its unit, e.g. 512MB or 1GiB, not {value!r}.")
    return str(size)


def _positive_size(key: str, value: object) -> str:
    size = _size(key, value)
    if size == "0":
        raise UsageError(f"{key} cannot be 0.")
    return size


def _flag(key: str, value: object) -> str:
    text = str(value).casefold()
    if text not in (*_TRUE, *_FALSE):
        raise UsageError(f"{key} is true or false, not {value!r}.")
    return "true" if text in _TRUE else "false"


def _vectors(key: str, value: object) -> str:
    """Returns the value; `plain` asks for vectors in encrypted lakes too."""
    return "plain" if str(value).casefold() == "plain" else _flag(key, value)


def _codec(key: str, value: object) -> str:
    text = str(value).casefold()
    if text not in _CODECS:
        raise UsageError(f"{key} is one of {', '.join(_CODECS)}, not {value!r}.{did_you_mean(text, _CODECS)}")
    return text


def _version(key: str, value: object) -> str:
    if _count(key, value) not in ("1", "2"):
        raise UsageError(f"{key} is 1 or 2, not {value!r}.")
    return f"V{value}"


def _share(key: str, value: Any) -> str:
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1
    if not 0 <= share <= 1:
        raise UsageError(f"{key} is a number from 0 to 1, not {value!r}.")
    return f"{share:.6f}"


def _age(key: str, value: object) -> str:
    text = str(value)
    if text:
        try:
            canonical.constant_text(f"CAST({quote_text(text)} AS INTERVAL)")
        except BindError:
            raise UsageError(f"{key} is an interval, e.g. 7 days, not {value!r}.") from None
    return text


#: key -> (description, function that checks a value and returns its stored text)
_KEYS: dict[str, tuple[str, Callable[[str, object], str]]] = {
    "data_inlining_row_limit": ("Rows up to which an insert is kept in the catalog", _count),
    "parquet_compression": (f"Codec of Parquet files: {', '.join(_CODECS)}", _codec),
    "parquet_version": ("Version of the Parquet format: 1 or 2", _version),
    "parquet_compression_level": ("Level of the codec of Parquet files", _count),
    "parquet_row_group_size": ("Rows of a row group of Parquet files", _positive),
    "parquet_row_group_size_bytes": ("Bytes of a row group of Parquet files", _positive_size),
    "hive_file_pattern": ("Whether files of partitioned tables are put into folders named key=value", _flag),
    "target_file_size": ("Bytes that data files shall have, when inserting and compacting", _size),
    "require_commit_message": ("Whether every snapshot needs a commit message", _flag),
    "rewrite_delete_threshold": ("Share of a file's rows, 0 to 1, that must be deleted for it to be rewritten", _share),
    "delete_older_than": ("How long files stay after they are not used any more", _age),
    "expire_older_than": ("How old snapshots are when they expire", _age),
    "auto_compact": ("Whether functions that compact a whole lake compact this table too", _flag),
    "per_thread_output": ("Whether each task of an insert writes files of its own", _flag),
    "write_deletion_vectors": ("Whether deletions are written as deletion vectors (Puffin)", _vectors),
    "sort_on_insert": ("Whether an insert sorts its rows by the table's sort keys", _flag),
}
#: Options for whole lakes only.
_OF_LAKES = ("delete_older_than", "expire_older_than")
#: Options for lakes, schemas and tables.
OF_TABLES = tuple(key for key in _KEYS if key not in _OF_LAKES)
_FIXED = {
    "version": "Version of the DuckLake format",
    "created_by": "What created the lake",
    "data_path": "Where data files are",
    "encrypted": "Whether data files are encrypted",
}


def _set_option(call: Call) -> pa.Table:
    key, value = str(call.args[0]), call.args[1]
    _checked(key, value)
    store(call.transactions, call.lake, _scope(call, call.lakes.state(call.lake)), {key: value})
    return arrow_schema(_SUCCESS).empty_table()


def store(transactions: Transactions, lake: Lake, scope: Scope, given: Mapping[str, object]) -> None:
    """Sets options in the open transaction, or immediately if there is none; makes no snapshot.

    Raises:
        UsageError: an option is unknown, refuses the value, or exists for whole lakes only.
        BindError: the option inlines rows of a table that has a column with a reserved name.
    """
    texts = dict(_checked(key, value) for key, value in given.items())
    if texts.get(VECTORS) == "true" and _is_encrypted(lake):
        raise UnsupportedFeatureError(PLAIN_VECTORS)
    if texts.get(VECTORS) == "plain":
        texts[VECTORS] = "true"
    _change(transactions, lake, scope, texts)


def _is_encrypted(lake: Lake) -> bool:
    with lake.connect() as connection:
        return (lake.options(connection).get("encrypted") or "").casefold() == "true"


def reset(transactions: Transactions, lake: Lake, scope: Scope, names: Iterable[str]) -> None:
    """Removes options, so that the next wider scope applies; ignores unset options. Raises as `store`."""
    _change(transactions, lake, scope, {_known(name): None for name in names})


def _change(transactions: Transactions, lake: Lake, scope: Scope, changes: Mapping[str, str | None]) -> None:
    wide = next((key for key in _OF_LAKES if key in changes), None)
    if wide is not None and scope[0] is not None:
        raise UsageError(f"{wide} is an option of whole lakes, not of a schema or table.")
    if "data_inlining_row_limit" in changes:
        _check_inlining(transactions.lakes, lake, scope, changes["data_inlining_row_limit"])
    with transactions.writing(lake) as transaction:
        for key, value in changes.items():
            transaction.set_option(scope, key, value)


def _known(name: str) -> str:
    key = name.casefold()
    if key not in _KEYS:
        raise UsageError(f"There is no option {key} that can be set.{did_you_mean(key, _KEYS)}")
    return key


def _checked(name: str, value: object) -> tuple[str, str]:
    """Returns the name of an option and its value as stored text."""
    key = _known(name)
    if value is None:
        raise UsageError(f"The option {key} cannot be NULL.")
    return key, _KEYS[key][1](key, value)


def _check_inlining(lakes: Lakes, lake: Lake, scope: Scope, value: str | None) -> None:
    """Raises BindError if the option inlines rows of a table with a column name that inlined data reserves."""
    with lake.connect() as connection:
        options = lake.options(connection)
    values = {**options.values, **_values(lakes, lake)}
    values.pop((*scope, "data_inlining_row_limit"), None)
    if value is not None:
        values[*scope, "data_inlining_row_limit"] = value
    now = Options(values, options.forced)
    state = lakes.state(lake)
    for table in state.tables.values():
        ids = {None: None, "schema": table.schema_id, "table": table.table_id}
        if scope[1] != ids[scope[0]] or not now.inlining_row_limit(schema_id=table.schema_id, table_id=table.table_id):
            continue
        for column in table.columns:
            if lake.version.reserves(column.name.casefold(), inlines=True):
                raise BindError(
                    f"Cannot enable data inlining: {state.qualified_name(table)} has a column {column.name}, a name that "
                    "is reserved; rename it, or set data_inlining_row_limit to 0 for the table first."
                )


def _values(lakes: Lakes, lake: Lake) -> dict[tuple[str | None, int | None, str], str]:
    """Returns the options of the lake, including those that the open transaction sets."""
    with lake.connect() as connection:
        values = {(scope, scope_id, key): value for scope, scope_id, key, value in read_options(connection)}
    transaction = lakes.transaction
    if transaction is not None and transaction.lake is lake:
        for (scope, key), value in transaction.new_options.items():
            values.pop((*scope, key), None)
            if value is not None:
                values[*scope, key] = value
    return values


def scope_of_table(table: Table) -> Scope:
    """Returns the scope for options of one table.

    Raises:
        UsageError: the open transaction created the table.
    """
    return _committed("table", table.table_id)


def _scope(call: Call, state: CatalogState) -> Scope:
    table, schema = call.named("table_name"), call.named("schema")
    if table:
        return scope_of_table(state.table_in_text(str(schema or call.schema), str(table)))
    if schema:
        return _committed("schema", state.schema_in_text(str(schema)).schema_id)
    return None, None


def _committed(kind: str, scope_id: int) -> Scope:
    if scope_id >= LOCAL_ID_START:
        raise UsageError(f"The {kind} is not committed yet; COMMIT it before setting options of it.")
    return kind, scope_id


def _options(call: Call) -> pa.Table:
    state = call.lakes.state(call.lake)
    values = _values(call.lakes, call.lake)
    names = {("schema", schema.schema_id): path_title(schema.name) for schema in state.schemas.values()}
    names |= {("table", number): name for number, name in state.table_names().items()}
    rows = [
        {
            "option_name": key,
            "description": _describe(key),
            "value": value,
            "scope": SCOPES[kind],
            "scope_entry": names.get((kind, scope_id)) if kind is not None and scope_id is not None else None,
        }
        for (kind, scope_id, key), value in values.items()
    ]
    rows.sort(key=lambda row: (str(row["option_name"]), str(row["scope"]), str(row["scope_entry"])))
    return pa.Table.from_pylist(rows, arrow_schema(_OPTIONS))


def _describe(key: str) -> str | None:
    if key in _KEYS:
        return _KEYS[key][0]
    if key.startswith(TAG_PREFIX):
        return "Id of the snapshot that has the tag"
    return "Last micro-batch that the stream committed" if key.startswith(KEY_PREFIX) else _FIXED.get(key)


def _settings(call: Call) -> pa.Table:
    row = {
        "catalog_type": call.lake.location.type,
        "extension_version": __version__,
        "data_path": call.lake.data_path,
    }
    return pa.Table.from_pylist([row], arrow_schema(_SETTINGS))


def _table_info(call: Call) -> pa.Table:
    state = call.lakes.state(call.lake)
    with call.lake.connect() as connection:
        sizes = file_sizes(connection, state.snapshot.snapshot_id)
    tables = sorted(state.tables.values(), key=lambda table: table.table_id)
    rows = [
        dict(
            zip(
                (name for name, _ in _TABLE_INFO),
                (table.name, table.schema_id, table.table_id, table.uuid, *sizes.get(table.table_id, (0, 0, 0, 0))),
                strict=True,
            )
        )
        for table in tables
        if table.table_id < LOCAL_ID_START
    ]
    return pa.Table.from_pylist(rows, arrow_schema(_TABLE_INFO))


FUNCTIONS = (
    Function("set_option", _SUCCESS, _set_option, arguments=(2, 2), named=("table_name", "schema"), effects="staged"),
    Function("options", _OPTIONS, _options),
    Function("settings", _SETTINGS, _settings),
    Function("table_info", _TABLE_INFO, _table_info),
)

"""restore: makes a new snapshot in which a table is as it was at an earlier snapshot."""

from __future__ import annotations

from datetime import date

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.placement import Engines
from ducklake_lab.errors import EntryNotFoundError, UsageError
from ducklake_lab.maintenance.restore import restore
from ducklake_lab.model.quoting import path_title
from ducklake_lab.model.snapshot_names import named_snapshot
from ducklake_lab.session.functions.registry import BIGINT, VARCHAR, Call, Columns, Function, rows_of
from ducklake_lab.session.transactions.transactions import Transactions

_RESTORED: Columns = (("schema_name", VARCHAR), ("table_name", VARCHAR), ("snapshot_id", BIGINT))


def restore_table(
    transactions: Transactions, engines: Engines, lake: Lake, schema: str, name: str, to: int | date | str
) -> tuple[str, str, int]:
    """Restores a table by its present or its former name; returns (schema, table, id of the restored snapshot).

    Args:
        to: a snapshot id or time; `named_snapshot` reads a text as an id, a time or a tag.
    """
    to = named_snapshot(to) if isinstance(to, str) else to
    with transactions.writing(lake) as transaction:
        with lake.connect() as connection:
            then = lake.state(connection, lake.snapshot(connection, to))
        named = transaction.state.find_schema_in_text(schema) or then.find_schema_in_text(schema)
        schema = named.name if named is not None else schema
        current = transaction.state.find_table(schema, name)
        old = then.tables.get(current.table_id) if current is not None else then.find_table(schema, name)
        if old is None:
            raise EntryNotFoundError(
                f"{path_title(schema)}.{name} was not there at snapshot {then.snapshot.snapshot_id}."
            )
        if (restored := restore(transaction, then, old, engines)) is not None:
            transaction.restored[old.table_id] = restored
        table = transaction.state.tables[old.table_id]
        return path_title(transaction.state.schema_of(table).name), table.name, then.snapshot.snapshot_id


def _restore(call: Call) -> pa.Table:
    name, to = str(call.args[0]), call.argument(1, "to")
    if not isinstance(to, int | date | str) or isinstance(to, bool):
        raise UsageError("restore takes a snapshot id, a point in time or a tag: restore('t', to => 7).")
    given = call.named("schema", None)
    schema, _, table = name.rpartition(".") if given is None else (str(given), "", name)
    schema = schema or call.lakes.schema_in_use(call.lake)
    return rows_of(_RESTORED, [restore_table(call.transactions, call.engine, call.lake, schema, table, to)])


FUNCTIONS = (Function("restore", _RESTORED, _restore, arguments=(1, 2), named=("to", "schema"), effects="staged"),)

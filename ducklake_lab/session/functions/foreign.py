"""add_delta_table and add_iceberg_table: make a table of a lake over the files of a table of another format."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from ducklake_lab.errors import UsageError
from ducklake_lab.foreign import delta_reading, iceberg_reading
from ducklake_lab.foreign.model import ForeignTable
from ducklake_lab.foreign.taking import take
from ducklake_lab.session.functions.registry import BIGINT, VARCHAR, Call, Columns, Function, rows_of

_ADDED: Columns = (("schema_name", VARCHAR), ("table_name", VARCHAR), ("files", BIGINT))


def _adding(read: Callable[[str, int | None], ForeignTable], version: str) -> Callable[[Call], pa.Table]:
    def add(call: Call) -> pa.Table:
        name, source, wanted = call.args[0], call.args[1], call.named(version)
        if not isinstance(name, str) or not isinstance(source, str):
            raise UsageError(f"{call.name} takes the name of a new table and the place of another one, both as texts.")
        if wanted is not None and (not isinstance(wanted, int) or isinstance(wanted, bool)):
            raise UsageError(f"{version} of {call.name} is a whole number.")
        foreign = read(source, wanted)
        with call.transactions.writing(call.lake) as transaction:
            schema = transaction.state.schema_in_text(str(call.named("schema", call.schema)))
            take(transaction, schema, name, foreign, copy=call.named("copy") is True)
        return rows_of(_ADDED, [(schema.name, name, len(foreign.files))])

    return add


def _function(name: str, read: Callable[[str, int | None], ForeignTable], version: str) -> Function:
    return Function(
        name, _ADDED, _adding(read, version), arguments=(2, 2), named=("schema", version, "copy"), effects="staged"
    )


FUNCTIONS = (
    _function("add_delta_table", delta_reading.read, "version"),
    _function("add_iceberg_table", iceberg_reading.read, "snapshot_id"),
)

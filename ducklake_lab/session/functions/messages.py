"""set_commit_message: the commit message of the open transaction (spec: ducklake_snapshot_changes)."""

from __future__ import annotations

import pyarrow as pa

from ducklake_lab.errors import UsageError
from ducklake_lab.session.functions.registry import BOOLEAN, Call, Columns, Function, arrow_schema

_SUCCESS: Columns = (("Success", BOOLEAN),)


def _set_commit_message(call: Call) -> pa.Table:
    if not call.lakes.in_transaction:
        raise UsageError("set_commit_message speaks of the open transaction; BEGIN one first.")
    author, message = call.args
    with call.transactions.writing(call.lake) as transaction:
        transaction.author, transaction.message = author, message
        transaction.extra_info = call.named("extra_info")
    return arrow_schema(_SUCCESS).empty_table()


FUNCTIONS = (
    Function(
        "set_commit_message",
        _SUCCESS,
        _set_commit_message,
        arguments=(2, 2),
        named=("extra_info",),
        effects="staged",
    ),
)

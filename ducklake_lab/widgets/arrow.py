"""Packs rows for a browser: Arrow IPC with the few types that the views read (`extensions/widgets/src/arrow`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

_TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
}


def pack(columns: Mapping[str, tuple[str, Sequence[object]]]) -> bytes:
    """Returns an IPC stream with one batch.

    Args:
        columns: by name, ("int" | "long" | "float" | "text" | "bool", values). A "long" keeps
            its digits in the browser.
    """
    arrays = [pa.array(values, _TYPES[kind]) for kind, values in columns.values()]
    batch = pa.record_batch(arrays, names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())

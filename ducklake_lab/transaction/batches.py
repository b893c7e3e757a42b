"""The micro-batches of streams that a lake has: for each query the last one, in `ducklake_metadata`.

The record is written in the database transaction that commits the batch. It belongs to no snapshot, so expiry leaves it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.writes import Writes
from ducklake_lab.errors import CatalogError, TransactionError

#: Prefix of the records' keys; the id of the query follows.
KEY_PREFIX = "ducklake_lab_stream:"


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A micro-batch of a streaming query.

    Attributes:
        query_id: the id that Spark keeps in the query's checkpoint.
        number: counts from 0.
        former_name: the query's name in earlier releases, in `commit_extra_info`.
    """

    query_id: str
    number: int
    former_name: str | None = None

    @property
    def key(self) -> str:
        return KEY_PREFIX + self.query_id

    @property
    def extra_info(self) -> str:
        """Text about the batch for the snapshot's `commit_extra_info`."""
        return _extra_info(self.query_id, self.number)


class BatchCommittedError(TransactionError):
    """The batch is in the lake already; nothing was written."""


def check_not_committed(connection: sa.Connection, batch: StreamBatch) -> None:
    """Raises BatchCommittedError where the lake has the batch, or a later one of its query."""
    last = _last(connection, batch)
    if last is not None:
        committed = last >= batch.number
    else:
        # an earlier release cannot have begun a new query, whatever its checkpoint's path
        committed = batch.number > 0 and _was_committed(connection, batch)
    if committed:
        raise BatchCommittedError(f"Batch {batch.number} of the stream {batch.query_id} is committed already.")


def record(writes: Writes, batch: StreamBatch) -> None:
    """Notes that the batch is committed."""
    m = t.lake_metadata
    if _last(writes.connection, batch) is None:
        writes.insert(m, key=batch.key, value=str(batch.number))
    else:
        earlier = sa.and_(m.c.key == batch.key, sa.cast(m.c.value, sa.BigInteger) < batch.number)
        writes.write(m.update().where(earlier).values(value=str(batch.number)))


def _last(connection: sa.Connection, batch: StreamBatch) -> int | None:
    """The last batch of the query that the lake has."""
    m = t.lake_metadata
    values = connection.execute(sa.select(m.c.value).where(m.c.key == batch.key)).scalars().all()
    for value in values:
        if not re.fullmatch("[0-9]+", value):
            raise CatalogError(
                f'{batch.key} in ducklake_metadata is "{value}", which is no number of a batch; correct or delete the row.'
            )
    return max(map(int, values), default=None)


def _was_committed(connection: sa.Connection, batch: StreamBatch) -> bool:
    """Returns whether an earlier release committed the batch."""
    if batch.former_name is None:
        return False
    noted = t.snapshot_changes.c.commit_extra_info == _extra_info(batch.former_name, batch.number)
    return connection.execute(sa.select(t.snapshot_changes.c.snapshot_id).where(noted).limit(1)).first() is not None


def _extra_info(stream: str, number: int) -> str:
    return json.dumps({"stream": stream, "batch": number})

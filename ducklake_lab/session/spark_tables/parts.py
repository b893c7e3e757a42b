"""Parts of a session that answer for a catalog, and the names in requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import DuckLakeError, SnapshotNotFoundError
from ducklake_lab.model.entries import Table
from ducklake_lab.model.quoting import schema_path
from ducklake_lab.model.state import CatalogState
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.read_states import At
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.dml import Dml
from ducklake_lab.session.statements.runner import Statements
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql.operations import TableName

Request = Mapping[str, Any]


class RefusedError(DuckLakeError):
    """An error that Spark has a class of its own for.

    Attributes:
        kind: the class, as the catalog in Java names it.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Parts:
    """The parts of a session, and the lake that a catalog shows.

    Attributes:
        staged: definitions of tables that a running statement creates, by number.
    """

    lakes: Lakes
    sources: Sources
    statements: Statements
    engine: SparkEngine
    transactions: Transactions
    alias: str
    staged: dict[int, Request] = field(default_factory=dict)

    @property
    def lake(self) -> Lake:
        return self.lakes.get(self.alias)

    @property
    def dml(self) -> Dml:
        return Dml(self.lakes, self.sources, self.engine)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Runs an answer in the block: within the statement that runs in this thread, or as one of its own."""
        with self.lakes.working():
            if self.lakes.reads.in_statement or self.transactions.is_writing:
                yield
            else:
                with self.lakes.statement():
                    yield

    def state(self, at: At = None) -> CatalogState:
        """Returns the entries at a snapshot, else in the open transaction, else the newest."""
        return self.lakes.reads.state(self.lake, at)

    @property
    def in_own_transaction(self) -> bool:
        """Whether the open transaction writes to this lake."""
        own = self.lakes.transaction
        return own is not None and own.lake is self.lake

    def name(self, request: Request) -> TableName:
        """Returns the name of a table in a request."""
        return TableName(self.alias, schema_of(request["namespace"]), str(request["name"]))


def schema_of(namespace: list[str]) -> str:
    """Returns the schema of a namespace; the empty one is `main`."""
    return schema_path(namespace) if namespace else "main"


def moment(request: Request) -> At:
    """Returns the snapshot of a VERSION AS OF or TIMESTAMP AS OF; None without one."""
    version = request.get("version")
    if version is not None:
        return int(version) if version.strip().isdecimal() else str(version)
    micros = request.get("micros")
    if micros is None:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        raise SnapshotNotFoundError(
            "TIMESTAMP AS OF is outside the years 1 to 9999; no snapshot is that old."
        ) from None


def token_of(state: CatalogState, table: Table, at: At, *, pinned: bool, number: int) -> dict[str, Any]:
    """Returns the facts by which a later request finds a table again.

    Args:
        at: the snapshot that the user names; None without one.
        pinned: the state is a committed snapshot.
        number: differs between states that are not.
    """
    return {
        "schema": state.schema_of(table).name,
        "name": table.name,
        "snapshot": state.snapshot.snapshot_id if pinned else None,
        "fixed": at is not None,
        "number": 0 if pinned else number,
        "columns": [[column.column_id, column.name, column.data_type.sql()] for column in table.columns],
    }

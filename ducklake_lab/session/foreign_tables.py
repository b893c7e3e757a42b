"""The part of a session that adds tables of other formats to a lake."""

from __future__ import annotations

from typing import Literal, get_args

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.foreign import delta_reading, iceberg_reading
from ducklake_lab.foreign.model import ForeignTable
from ducklake_lab.foreign.taking import take
from ducklake_lab.model.entries import Snapshot
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.names.explaining import works_on_lakes
from ducklake_lab.session.transactions.transactions import Transactions

Format = Literal["delta", "iceberg"]


def check_format(name: str) -> None:
    """Raises UsageError if a word names no format."""
    formats = get_args(Format)
    if name not in formats:
        raise UsageError(f'"{name}" is not a table format; use "delta" or "iceberg".{did_you_mean(name, formats)}')


def read_foreign(name: Format, source: object, version: int | None) -> ForeignTable:
    """Returns a table of another format at a version or snapshot; the newest by default."""
    check_format(name)
    if version is not None and (not isinstance(version, int) or isinstance(version, bool)):
        raise UsageError(f"{version} is neither a version of a Delta table nor a snapshot id of an Iceberg table.")
    return delta_reading.read(str(source), version) if name == "delta" else iceberg_reading.read(source, version)


@works_on_lakes
class ForeignTables:
    """Tables of other formats: Delta and Iceberg."""

    _lakes: Lakes
    _transactions: Transactions

    def add_table(
        self,
        format: Format,  # noqa: A002
        source: object,
        table: str,
        version: int | None = None,
        *,
        copy: bool = False,
    ) -> Snapshot | None:
        """Creates a table over the files of a Delta or an Iceberg table, as a new snapshot, and returns that.

        No row is copied: each file gets a second name in the lake's folder, on the same filesystem. The lake deletes its own
        names only, and the other table's maintenance takes nothing from the lake. Later changes of one are not seen by the other.

        Args:
            format: "delta" needs the package deltalake, "iceberg" the package pyiceberg.
            source: the folder of the table, the metadata file of an Iceberg table, or a table loaded by a catalog of pyiceberg.
            table: the name of the new table.
            version: the version of a Delta table, or the snapshot id of an Iceberg table; by default the newest.
            copy: write the rows of files that cannot be linked: on another filesystem, or with types that have to be cast, such as
                Spark's times in 96 bits (INT96) and types that were widened.

        Raises:
            UnsupportedFeatureError: a package is missing; or the table has types, features or equality deletes that the lake
                cannot take over, or files elsewhere than on the lake's filesystem. Nothing was added.
            EntryExistsError: there is a table or a view of that name.
            UsageError: there is no such table or version.
        """
        foreign = read_foreign(format, source, version)
        with self._lakes.statement():
            entry = self._lakes.parse(table)
            with self._transactions.writing(entry.lake) as transaction:
                take(transaction, transaction.state.schema(entry.schema), entry.name, foreign, copy=copy)
            return transaction.snapshot

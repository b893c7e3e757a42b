"""Protocol of a session, as the magics use it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ducklake_lab.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ducklake_lab.branches.branch import Branch
    from ducklake_lab.catalog.lake import Lake
    from ducklake_lab.model.entries import Snapshot
    from ducklake_lab.model.history import HistoryEntry
    from ducklake_lab.model.state import CatalogState
    from ducklake_lab.scan.counts import TableCounts
    from ducklake_lab.session.listings import Listing
    from ducklake_lab.session.names.system_tables import ViewComments
    from ducklake_lab.session.overview import TableInfo
    from ducklake_lab.session.rows.result import Result
    from ducklake_lab.spark.progress import Progress

At = int | datetime | str | None


class TableHandle(Protocol):
    def files(self) -> Any: ...
    def describe(self) -> Any: ...
    def column_stats(self) -> Any: ...
    def view(self) -> Any: ...
    def diff(self, start: At, end: int | datetime | str | None = None, **options: object) -> Any: ...
    def blame(self, where: str | None = None, columns: Sequence[str] | None = None) -> Any: ...
    def life(self, row_id: int) -> Any: ...


class LakeSession(Protocol):
    """A session, as the magics use it.

    Attributes:
        author: the default author of commits, or a function that returns it.
        record_statements: whether commits record their statements, or a function that returns where these run.
        on_progress: called from any thread while Spark works; None without a listener.
        current_schema: the schema of unqualified names.
    """

    author: object
    record_statements: object
    on_progress: Callable[[Progress | float], None] | None

    @property
    def current_lake(self) -> Lake: ...
    @property
    def current_schema(self) -> str: ...
    @property
    def lakes(self) -> Sequence[Lake]: ...
    def sql(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        engine: object = None,
        dialect: object = "duckdb",
        at: At = None,
        message: str | None = None,
        variables: Mapping[str, object] | None = None,
    ) -> Result: ...
    def preview(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        engine: object = None,
        dialect: object = "duckdb",
        message: str | None = None,
        variables: Mapping[str, object] | None = None,
    ) -> Any: ...
    def complete(
        self, text: str, cursor: int, variables: Iterable[str] = (), tables: Iterable[str] = ()
    ) -> Sequence[Any]: ...
    def compare(
        self,
        query: str,
        a: int | datetime | str,
        b: At = None,
        key: Sequence[str] | None = None,
        params: Mapping[str, object] | None = None,
    ) -> Any: ...
    def when(self, query: str, start: At = None, end: At = None, monotonic: bool = False) -> Result: ...
    def pin(self, at: At, lake: str | None = None) -> Snapshot | None: ...
    def tag(self, name: str, snapshot: int | None = None) -> int: ...
    def untag(self, name: str) -> int: ...
    def tags(self) -> Mapping[str, int]: ...
    def branch(self, name: str, at: At = None, copy: bool = False) -> Branch: ...
    def branches(self) -> Listing: ...
    def switch(self, name: str | None) -> None: ...
    def drop_branch(self, name: str, dry_run: bool = False) -> Branch: ...
    def merge(self, name: str, on_conflict: Any = None, squash: bool = True, message: str | None = None) -> Any: ...
    def merge_preview(self, name: str, on_conflict: Any = None) -> Any: ...
    def rebase(self, name: str, on_conflict: Any = None) -> Branch: ...
    def review(self, name: str) -> Any: ...
    def agents(self) -> Any: ...
    def restore(self, table: str, to: int | datetime | str) -> Snapshot | None: ...
    def revert(self, snapshot: int | datetime | str, **choice: Any) -> Snapshot | None: ...
    def revert_preview(self, snapshot: int | datetime | str, **choice: Any) -> Any: ...
    def upload(self, source: str, table: str | None = None, mode: object = "create", **options: object) -> Any: ...
    def health(self, table: str | None = None) -> Any: ...
    def options(self) -> Listing: ...
    def reading(self) -> AbstractContextManager[None]: ...
    def attach(self, uri: str, **options: object) -> Lake: ...
    def detach(self, alias: str) -> None: ...
    def use(self, name: str) -> None: ...
    def expect(self, size: int) -> None: ...
    def table(self, name: str, at: At = None) -> TableHandle: ...
    def diff(self, start: At, end: int | datetime | str | None = None) -> Any: ...
    def history(self, table: str | None = None) -> Sequence[HistoryEntry]: ...
    def tables(self, at: At = None) -> Sequence[TableInfo]: ...
    def catalog(self, at: At = None) -> tuple[CatalogState, Mapping[int, TableCounts], ViewComments]: ...
    def current_snapshot(self) -> Snapshot: ...
    @property
    def in_transaction(self) -> bool: ...


class Variables(Mapping[str, object]):
    """The notebook's variables as parameters and tables: looked up by name, never copied.

    Names with a leading underscore, and those in `hidden`, are not listed.
    """

    def __init__(self, namespace: Mapping[str, object], hidden: Container[str] = ()) -> None:
        self._namespace = namespace
        self._hidden = hidden

    def __getitem__(self, name: str) -> object:
        """Returns the value of a variable.

        Raises:
            UsageError: the variable does not exist.
        """
        if name in self._namespace:
            return self._namespace[name]
        if name.isdecimal():
            raise UsageError("A cell has no values for ?; write :name for the notebook's variable of that name.")
        raise UsageError(f'The notebook has no variable "{name}".{did_you_mean(name, self)}')

    def __contains__(self, name: object) -> bool:
        return name in self._namespace

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._namespace if not name.startswith("_") and name not in self._hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)

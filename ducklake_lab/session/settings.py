"""The part of a session that holds its settings: the engine, notes of commits, the listener to progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.placement import Engine, Placing, check_engine
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.session.transactions.transactions import Transactions

if TYPE_CHECKING:
    from ducklake_lab.spark.progress import Progress


class Settings:
    """Settings of a session; none of them reads or changes a lake."""

    _placing: Placing
    _transactions: Transactions
    _engine: SparkEngine
    _database: SessionDatabase

    @property
    def engine(self) -> Engine:
        """The default engine for rows."""
        return self._placing.asked

    @engine.setter
    def engine(self, engine: Engine) -> None:
        check_engine(engine)
        self._placing.asked = engine

    @property
    def author(self) -> str | None:
        """The default author of commits, or None. A function may be set; the first commit calls it."""
        return self._transactions.notes.author()

    @author.setter
    def author(self, author: str | Callable[[], str | None] | None) -> None:
        self._transactions.notes.author = cache(author) if callable(author) else lambda: author

    @property
    def record_statements(self) -> bool:
        """Whether commits record their statement, its kind and duration as JSON in `commit_extra_info`; off by default.

        A function may be set; its mapping, such as `notebook` and `cell`, is recorded too.
        """
        return self._transactions.notes.context is not None

    @record_statements.setter
    def record_statements(self, wanted: bool | Callable[[], Mapping[str, object]]) -> None:
        self._transactions.notes.context = wanted if callable(wanted) else dict if wanted else None

    @property
    def on_progress(self) -> Callable[[Progress | float], None] | None:
        """The callback during a statement: gets Spark's progress from another thread, or the share done in process."""
        return self._engine.on_progress

    @on_progress.setter
    def on_progress(self, listener: Callable[[Progress | float], None] | None) -> None:
        self._engine.on_progress = self._database.on_progress = listener

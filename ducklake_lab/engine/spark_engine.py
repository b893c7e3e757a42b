"""The Spark of a session: starts on demand; its jobs report progress and can be cancelled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Placing
from ducklake_lab.engine.rows import Rows
from ducklake_lab.engine.turn import Turn

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession
    from ducklake_lab.spark.progress import Progress
    from ducklake_lab.sql.plan import SparkQuery

#: Most kept DataFrames; each may hold a bit for every row of its files.
_KEPT = 8


class SparkEngine:
    """The session's access to Spark; a call returns the SparkSession that queries run in.

    Attributes:
        session: the user's SparkSession, which stays as it is; None until it is needed or passed in.
        starting: whether Spark is starting.
        time_zone: returns the session's time zone.
        placing: chooses the engine of each statement.
        turn: the turn of the session. A start of Spark does not need it; code that needs both takes the turn first.
        on_progress: called from another thread with Spark's progress; None without a listener.
    """

    def __init__(
        self,
        session: SparkSession | None,
        before_jobs: Callable[[], None],
        time_zone: Callable[[], str],
        placing: Placing | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.placing = placing or Placing()
        self.session = session
        self.time_zone = time_zone
        self.starting = False
        self.on_progress: Callable[[Progress | float], None] | None = None
        self.turn = turn or Turn()
        self._lock = threading.RLock()
        #: The session that queries run in, beside the user's.
        self._own: SparkSession | None = None
        #: Whether the statement has found Spark running; None outside of statements. A check takes milliseconds.
        self._seen_alive: bool | None = None
        self._before_jobs = before_jobs
        #: Kept DataFrames by key, with the names of their views.
        self._kept: dict[Hashable, tuple[DataFrame, str | None]] = {}
        self._kept_by: SparkSession | None = None

    def start_soon(self) -> None:
        """Starts Spark in the background, unless it runs; the next use of Spark waits for it."""

        def start() -> None:
            with suppress(Exception):  # the next use of Spark raises the error again
                self()

        if self.session is None and not self.starting:
            threading.Thread(target=start, name="ducklake-lab-spark", daemon=True).start()

    def __call__(self) -> SparkSession:
        from ducklake_lab.spark import catalog, runtime

        with self._lock:
            user = self.users_session()
            if self._own is None:
                self._own = runtime.own_session(user)
            if self._own is not user:
                catalog.share(user, self._own)
            runtime.set_time_zone(self._own, self.time_zone())
            return self._own

    def users_session(self) -> SparkSession:
        """Returns the user's session; starts Spark if necessary."""
        from ducklake_lab.spark import runtime

        with self._lock:
            if self.session is None or not (self._seen_alive or runtime.is_alive(self.session)):
                self.starting = True
                try:
                    self.session = runtime.start()
                    self._own = None
                finally:
                    self.starting = False
            self._seen_alive = None if self._seen_alive is None else True
            return self.session

    @contextmanager
    def acting(self) -> Iterator[SparkSession]:
        """Makes DataFrames in the block with the settings of the session that queries run in."""
        from ducklake_lab.spark import runtime

        spark = self()
        with runtime.acting(spark):
            yield spark

    def handed_out(self, frame: DataFrame) -> DataFrame:
        """Returns a DataFrame of the user's session with the same rows."""
        from ducklake_lab.spark.frames import of_session
        from ducklake_lab.spark.workers import packages

        user = self.users_session()
        packages.send(user)
        return of_session(user, frame)

    def close(self) -> None:
        """Gives up the session that queries run in; Spark keeps running."""
        with self._lock:
            if self._own is not None:
                from ducklake_lab.spark import runtime

                runtime.give_back(self._own)
                self._own = None

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Checks at most once in the block that Spark still runs."""
        self._seen_alive = False
        try:
            yield
        finally:
            self._seen_alive = None

    def has_workers(self) -> bool:
        """Returns whether Python workers can run DuckDB; assumed before Spark runs."""
        if self.session is None:
            return True
        from ducklake_lab.spark.workers import packages

        return packages.fault(self.session) is None

    def temporary_view(self, name: str) -> Rows | None:
        """Returns a temporary view by name; None if there is none, or Spark does not run."""
        if self.session is None and "pyspark" not in sys.modules:
            return None
        from ducklake_lab.spark import runtime

        spark = self.session or runtime.active()
        frame = runtime.temporary_view(spark, name) if spark is not None and runtime.is_alive(spark) else None
        return OnSpark(frame) if frame is not None else None

    def query(
        self,
        query: SparkQuery,
        sources: Mapping[str, Rows],
        params: Mapping[str, object] | None = None,
        as_user: bool = False,
    ) -> DataFrame:
        """Returns the lazy, checked DataFrame of a query.

        Args:
            sources: by name in the query. Recently used DataFrames are kept by `Rows.key`.
            as_user: runs it in the user's session, with its settings and functions.
        """
        from ducklake_lab.spark import querying
        from ducklake_lab.spark.runtime import acting

        with self.running() as spark:
            kept = {name: self._kept_frame(rows) for name, rows in sources.items() if rows.key is not None}
            views = {name: view for name, (_, view) in kept.items() if view is not None}
            frames = {name: kept[name][0] if name in kept else rows.frame(spark) for name, rows in sources.items()}
            if as_user:
                given = {name: self.handed_out(frame) for name, frame in frames.items()}
                with acting(self.users_session()):
                    frame = querying.run(self.users_session(), query.sql, query.evaluations, given, {}, params)
            else:
                given = {name: frame for name, frame in frames.items() if name not in views}
                frame = querying.run(spark, query.sql, query.evaluations, given, views, params)
            self._let_go(spark)  # only now: the query may use all of them
            return frame

    def _kept_frame(self, rows: Rows) -> tuple[DataFrame, str | None]:
        """Returns the kept DataFrame of rows, or a new one, with its view."""
        from ducklake_lab.spark import querying

        spark = self()
        if self._kept_by is not spark:
            self._kept.clear()
            self._kept_by = spark
        key = (rows.key, self.time_zone())
        kept = self._kept.pop(key, None)
        if kept is None:
            frame = rows.frame(spark)
            kept = frame, querying.keep(frame)
        self._kept[key] = kept
        return kept

    def _let_go(self, spark: SparkSession) -> None:
        """Drops the DataFrames that were unused for longest."""
        from ducklake_lab.spark import runtime

        while len(self._kept) > _KEPT:
            _, view = self._kept.pop(next(iter(self._kept)))
            if view is not None:
                runtime.drop_view(spark, view)

    @contextmanager
    def running(self) -> Iterator[SparkSession]:
        """Runs Spark jobs in the block: reports progress, and cancels the jobs on an interrupt.

        A task inside one compiled loop, such as a cross join, does not notice its
        cancellation. It uses its core until it ends; `session.spark.stop()` stops it, and the next statement
        starts Spark again.

        Known errors of Spark become one-line errors of this package.
        """
        from ducklake_lab.spark.errors import translate_error
        from ducklake_lab.spark.progress import running
        from ducklake_lab.spark.runtime import acting

        with self.turn.taken():
            self._before_jobs()
            try:
                spark = self()
                with acting(spark), running(spark, self.on_progress):
                    yield spark
            except Exception as error:
                if _was_interrupted(error):
                    raise KeyboardInterrupt from error
                translated = translate_error(error)
                if translated is None:
                    raise
                raise translated from error


def _was_interrupted(error: BaseException) -> bool:
    """Returns whether a KeyboardInterrupt caused the error: PySpark replaces it by the job's end when it fetches rows."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False

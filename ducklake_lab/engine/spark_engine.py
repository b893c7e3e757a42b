"""The Spark of a session: started when it is needed, watched and cancellable while it works."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ducklake_lab.engine.placement import Engine, Facts, Limits, Placement, place
from ducklake_lab.engine.turn import Turn

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession
    from ducklake_lab.spark.progress import Progress
    from ducklake_lab.sql.plan import SparkQuery

#: DataFrames that are kept; each may hold a bit for every row of its files.
_KEPT = 8


class SparkEngine:
    """Calling it gives the SparkSession.

    Attributes:
        session: the SparkSession; None until it is needed, or handed in.
        starting: Spark is being started now.
        time_zone: gives the session's time zone.
        asked: what the session, or the statement that runs, says about where rows are worked.
        limits: up to where they are worked in process.
        turn: of the session. Starting Spark does not need it; where both are, it is taken before Spark is waited for.
        on_progress: called from another thread with Spark's progress; None where nobody listens.
    """

    def __init__(
        self,
        session: SparkSession | None,
        before_jobs: Callable[[], None],
        time_zone: Callable[[], str],
        asked: Engine = "auto",
        limits: Limits | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.asked = asked
        self.limits = limits or Limits()
        self.session = session
        self.time_zone = time_zone
        self.starting = False
        self.on_progress: Callable[[Progress | float], None] | None = None
        self.turn = turn or Turn()
        self._lock = threading.RLock()
        self._configured = False
        #: None outside of statements; in one, whether Spark was seen to run. To ask it takes some milliseconds.
        self._seen_alive: bool | None = None
        self._before_jobs = before_jobs
        #: DataFrames, with the views of those that queries name, by what they depend on.
        self._kept: dict[Hashable, tuple[DataFrame, str | None]] = {}
        self._kept_by: SparkSession | None = None

    def start_soon(self) -> None:
        """Starts Spark in the background, unless it runs or is not wanted; the next statement that needs it waits for it."""

        def start() -> None:
            with suppress(Exception):  # who needs Spark meets the error again
                self()

        if self.session is None and not self.starting and self.asked != "duckdb":
            threading.Thread(target=start, name="ducklake-lab-spark", daemon=True).start()

    def __call__(self) -> SparkSession:
        with self._lock:
            return self._started()

    def _started(self) -> SparkSession:
        from ducklake_lab.spark import runtime

        if self.session is None or not (self._seen_alive or runtime.is_alive(self.session)):
            self.starting = True
            try:
                self.session = runtime.start()
            finally:
                self.starting = False
        elif not self._configured:
            runtime.configure(self.session)
        self._configured = True
        self._seen_alive = None if self._seen_alive is None else True
        runtime.set_time_zone(self.session, self.time_zone())
        return self.session

    def place(self, facts: Facts) -> Placement:
        """Where rows are worked."""
        return place(facts, self.limits, self.asked)

    @contextmanager
    def asking(self, engine: Engine | None) -> Iterator[None]:
        """Around a statement that says itself where its rows are worked; None for what the session says."""
        before = self.asked
        self.asked, self._seen_alive = engine or before, False
        try:
            yield
        finally:
            self.asked, self._seen_alive = before, None

    def temporary_view(self, name: str) -> DataFrame | None:
        """A temporary view by name; None where there is none, or Spark does not run."""
        if self.session is None and "pyspark" not in sys.modules:
            return None
        from ducklake_lab.spark import runtime

        spark = self.session or runtime.active()
        return runtime.temporary_view(spark, name) if spark is not None and runtime.is_alive(spark) else None

    def query(
        self,
        query: SparkQuery,
        sources: Mapping[str, tuple[Hashable, Callable[[], DataFrame]]],
        params: Mapping[str, object] | None = None,
    ) -> DataFrame:
        """The lazy DataFrame of a query, which is checked.

        Args:
            sources: by the names that the query has for them, what makes their DataFrames, and everything that these
                depend on: those used last are kept. None for one that is not.
        """
        from ducklake_lab.spark import querying

        with self.running() as spark:
            kept = {name: self._kept_frame(key, make) for name, (key, make) in sources.items() if key is not None}
            views = {name: view for name, (_, view) in kept.items() if view is not None}
            frames = {name: kept[name][0] if name in kept else make() for name, (_, make) in sources.items()}
            given = {name: frame for name, frame in frames.items() if name not in views}
            found = querying.run(spark, query.sql, query.evaluations, given, views, params)
            self._let_go(spark)  # not sooner: the query may name all of them
            return found

    def _kept_frame(self, key: Hashable, make: Callable[[], DataFrame]) -> tuple[DataFrame, str | None]:
        """The DataFrame that was made last for a key, or a new one, and its view."""
        from ducklake_lab.spark import querying

        spark = self()
        if self._kept_by is not spark:
            self._kept.clear()
            self._kept_by = spark
        key = (key, self.time_zone())
        found = self._kept.pop(key, None)
        if found is None:
            frame = make()
            found = frame, querying.keep(frame)
        self._kept[key] = found
        return found

    def _let_go(self, spark: SparkSession) -> None:
        """Lets go of the DataFrames that were not used for long."""
        from ducklake_lab.spark import runtime

        while len(self._kept) > _KEPT:
            _, view = self._kept.pop(next(iter(self._kept)))
            if view is not None:
                runtime.drop_view(spark, view)

    @contextmanager
    def running(self) -> Iterator[SparkSession]:
        """Around whatever starts jobs: reports their progress, and cancels them when the block is interrupted.

        A task in the middle of one compiled loop, such as a join of every row with every row, does not see that it
        is cancelled. It holds its core until it ends; `session.spark.stop()` lets go of it, and the next statement
        starts Spark again.

        Errors of Spark that we know come out as ours, in one line.
        """
        from ducklake_lab.spark.errors import translate_error
        from ducklake_lab.spark.progress import running

        with self.turn.taken():
            self._before_jobs()
            try:
                spark = self()
                with running(spark, self.on_progress):
                    yield spark
            except Exception as error:
                if _was_interrupted(error):
                    raise KeyboardInterrupt from error
                translated = translate_error(error)
                if translated is None:
                    raise
                raise translated from error


def _was_interrupted(error: BaseException) -> bool:
    """Whether a KeyboardInterrupt led to the error: fetching rows, PySpark replaces it by the end of the job."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False

"""How far streaming queries are, in words and numbers for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from ducklake_lab.redaction import hide
from ducklake_lab.spark.errors import translate_error


@dataclass(frozen=True, slots=True)
class StreamState:
    """A streaming query as it is now.

    Attributes:
        batch: the number of the last batch that is done; None before the first.
        rows: read in all batches that were seen.
        since: the first of these batches; None before the first.
        doing: what Spark says that it does, for a person.
        error: the first line of what made it fail.
    """

    state: Literal["running", "stopped", "failed"]
    batch: int | None = None
    rows: int = 0
    since: int | None = None
    doing: str = ""
    error: str = ""


class Stream:
    """A streaming query that is looked at now and then.

    Attributes:
        name: its own, or the beginning of its id.
        run_id: of this run of it.
    """

    def __init__(self, query: Any) -> None:
        self._query = query
        self._rows: dict[int, int] = {}
        self.run_id = str(query.runId)
        self.name = str(query.name or str(query.id)[:8])

    def look(self) -> StreamState:
        """The state now; a query whose Spark has ended has failed, and says so."""
        try:
            # first: a batch that ends in between is not left out
            active, status = self._query.isActive, self._query.status
            for progress in self._query.recentProgress:
                if "addBatch" not in progress["durationMs"]:
                    continue  # it had nothing to do
                # Spark Connect may send no sum, and the property makes it
                self._rows[int(progress["batchId"])] = max(int(progress.numInputRows), 0)
            error = None if active else self._query.exception()
        except Exception as failure:
            if translate_error(failure) is None:
                raise
            return self._state("failed", error=_first_line(failure))
        if error is not None:
            return self._state("failed", error=_first_line(error))
        return self._state("running", doing=str(status["message"])) if active else self._state("stopped")

    def _state(
        self, state: Literal["running", "stopped", "failed"], *, doing: str = "", error: str = ""
    ) -> StreamState:
        if not self._rows:
            return StreamState(state, doing=doing, error=error)
        return StreamState(state, max(self._rows), sum(self._rows.values()), min(self._rows), doing, error)


def active_queries(sessions: Iterable[SparkSession | None]) -> list[Any]:
    """The streaming queries that run now, of the given sessions and of this process's; none where Spark has ended."""
    queries: dict[str, Any] = {}
    try:
        for session in (*sessions, _current()):
            if session is not None:
                queries |= {str(query.runId): query for query in session.streams.active}
    except Exception as error:
        if translate_error(error) is None:
            raise
        return []
    return list(queries.values())


def _current() -> SparkSession | None:
    """Return the active session, or else the default one: threads, and one that was interrupted, have no active session."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _first_line(error: BaseException) -> str:
    translated = translate_error(error)
    lines = hide(str(translated or error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__

"""Answers the requests of a Spark catalog, and registers catalogs for attached lakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ducklake_lab.engine.turn import acting_for
from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError, UsageError
from ducklake_lab.model.quoting import quote_for_spark
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.spark_tables import (
    calls,
    describing,
    entries,
    metadata_tables,
    query_options,
    reading,
    writing,
)
from ducklake_lab.session.spark_tables.parts import Parts, RefusedError, Request

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession

_ANSWERS: dict[str, Callable[[Parts, Request], object]] = {
    "list namespaces": entries.namespaces,
    "namespace exists": entries.namespace_exists,
    "load namespace": entries.load_namespace,
    "create namespace": entries.create_namespace,
    "drop namespace": entries.drop_namespace,
    "list tables": entries.tables,
    "load table": describing.load,
    "create table": entries.create_table,
    "alter table": entries.alter_table,
    "drop table": entries.drop_table,
    "rename table": entries.rename_table,
    "truncate table": entries.truncate,
    "stage table": entries.stage,
    "commit staged": entries.commit_staged,
    "abort staged": entries.abort_staged,
    "list procedures": calls.procedures,
    "load procedure": calls.check,
    "call": calls.call,
    "aggregate": reading.aggregate,
    "keys": reading.keys,
}


def answer(parts: Parts, operation: str, request: dict[str, Any], frames: list[DataFrame]) -> object:
    """Answers one request: with rows, or with JSON."""
    with parts.answering():
        if operation == "write":
            writing.write(parts, request, frames)
            return None
        if operation in ("scan", "keyed scan"):
            query_options.check_read(request["options"])
            return reading.keyed_scan(parts, request) if operation == "keyed scan" else _rows(parts, request)
        return _ANSWERS[operation](parts, request)


def _rows(parts: Parts, request: Request) -> DataFrame:
    token = request["table"]
    if "metadata" not in token and "view" not in token:
        return reading.scan(parts, request)
    parts.lakes.reads.note_unknown()
    frame = metadata_tables.frame(parts, token) if "metadata" in token else describing.view_rows(parts, token)
    return frame.select(*map(quote_for_spark, request["columns"]))


def describe_error(error: BaseException, operation: str) -> tuple[str, str]:
    """Returns the kind of an error for Java, and its text of one line."""
    if isinstance(error, RefusedError):
        return error.kind, str(error)
    if isinstance(error, UnsupportedFeatureError):
        return "unsupported", str(error)
    if isinstance(error, DuckLakeError):
        return "other", str(error)
    if isinstance(error, KeyboardInterrupt):
        return "other", "Interrupted."
    message = getattr(error, "getMessage", None)
    text = message() if callable(message) else f"{type(error).__name__}: {error}"
    return "other", text


class Catalogs:
    """The attached lakes of a session as catalogs of its SparkSession, under their aliases.

    Args:
        parts: returns the parts that answer for a lake.
    """

    def __init__(self, lakes: Lakes, parts: Callable[[str], Parts]) -> None:
        self._lakes = lakes
        self._make = parts
        self._parts: dict[str, Parts] = {}
        self._spark: SparkSession | None = None

    def use(self, spark: SparkSession) -> None:
        """Makes the lakes catalogs of a SparkSession, and those that are attached later."""
        if self._spark is not spark:
            self._parts.clear()
        self._spark = spark
        self._lakes.on_change = self.update
        self.update()

    def update(self) -> None:
        """Adds new lakes, and lets detached ones go. A lake whose alias Spark cannot use is left out."""
        if self._spark is None:
            return
        from ducklake_lab.spark import catalog

        aliases = {lake.alias for lake in self._lakes}
        for alias in set(self._parts) - aliases:
            catalog.forget(self._spark, alias, self)
            del self._parts[alias]
        for alias in aliases - set(self._parts):
            if catalog.fault(self._spark, alias, self) is None:
                self._parts[alias] = self._make(alias)
                catalog.install(self._spark, alias, self, describe_error)

    def check(self, alias: str) -> None:
        """Raises if a lake is no catalog of the SparkSession.

        Raises:
            UnsupportedFeatureError: the session cannot have catalogs of lakes; the message says why.
            UsageError: the alias cannot name a catalog, or names another one.
        """
        if self._spark is None or alias not in self._parts:
            from ducklake_lab.spark import catalog

            error = None if self._spark is None else catalog.fault(self._spark, alias, self)
            raise error or UsageError(f"The lake {alias} is no catalog of Spark; give the session a SparkSession.")

    def answer(
        self, alias: str, operation: str, request: dict[str, Any], frames: list[DataFrame], waiting: int | None
    ) -> object:
        """Answers a request for a lake.

        Args:
            waiting: the thread that waits for the answer, if it is not this one.
        """
        if operation == "stream":
            # a query's own thread asks, and nobody waits for it
            return query_options.stream(self._parts[alias], request)
        with acting_for(waiting):
            return answer(self._parts[alias], operation, request, frames)

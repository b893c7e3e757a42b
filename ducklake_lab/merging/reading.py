"""Reads versions of a table: plans each scan once, and says where its rows are worked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ducklake_lab.duckdb.casting import has_part
from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Engines
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.merging.sides import Version
from ducklake_lab.model.entries import Column
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.scan.planner import plan_scan

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession

#: Spark's queries cut values of these types.
_NOT_ON_SPARK = ("timestamp_ns", "variant")


class Reading:
    """Scans of the versions of one table.

    Args:
        stack: frees what Spark keeps.
    """

    def __init__(self, engines: Engines, stack: ExitStack) -> None:
        self._engines = engines
        self._stack = stack
        self._plans: dict[object, tuple[Version, ScanPlan]] = {}

    def plan(self, version: Version, columns: Sequence[Column]) -> ScanPlan:
        """Plan the scan of a version, once."""
        key = id(version), tuple(columns)
        if key not in self._plans:
            with version.lake.connect() as connection:
                table = replace(version.table, columns=tuple(columns))
                plan = plan_scan(version.lake, connection, version.state, table, staged=version.staged)
            self._plans[key] = version, plan
        return self._plans[key][1]

    def is_here(self, files: Sequence[ScanFile], count: int) -> bool:
        """Return whether so many rows of files are worked in process."""
        return self._engines.placing.place(replace(facts_of(files, purpose="change"), rows=count)).is_here

    @contextmanager
    def on_spark(self, columns: Sequence[Column]) -> Iterator[SparkSession]:
        """Run Spark jobs in the block.

        Raises:
            UnsupportedFeatureError: Spark's queries do not keep the values of a column.
        """
        for column in columns:
            if has_part(column.data_type, _NOT_ON_SPARK):
                raise UnsupportedFeatureError(
                    f"Spark cuts values of {column.name}, which is {column.data_type.sql()}; work in a session with "
                    "engine='duckdb'."
                )
        with self._engines.running() as spark:
            yield spark

    def kept(self, rows: Rows) -> Rows:
        """Return the rows, computed once: here in memory, or cached by Spark."""
        if not isinstance(rows, OnSpark):
            return InMemory(rows.arrow())
        frame = rows.data.persist()
        self._stack.callback(frame.unpersist)
        return replace(rows, data=frame).run_by(self._engines)

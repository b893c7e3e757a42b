"""Sources of a query's rows: planned reads, change feeds, and tables from the program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ducklake_lab.engine.facts import facts_of
from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.placement import Facts, Purpose
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.files.relation import Relation, is_direct, relation_of
from ducklake_lab.object_access import access_to
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.session.rows.feed import Feed
from ducklake_lab.storage import is_local

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame

_numbers = count(1)
#: Most files of a scan whose DataFrame is kept for the next statement.
_KEPT_FILES = 1000


@dataclass(frozen=True)
class Scan:
    """A planned read of a lake table that has not begun."""

    plan: ScanPlan
    virtual: bool
    located: bool = False

    @cached_property
    def relation(self) -> Relation:
        """The rows as a query over tables that no other scan uses."""
        name = f"_ducklake_scan_{next(_numbers)}"
        return relation_of(self.plan, name, virtual=self.virtual, located=self.located)

    @property
    def key(self) -> Hashable:
        """The key under which its DataFrame is kept; None if the scan has inlined data or too many files.

        Data files never change, but the access to an object store does.
        """
        plan = self.plan
        if plan.inlined is not None or len(plan.files) > _KEPT_FILES:
            return None
        access = frozenset(access_to(file.path) for file in plan.files if not is_local(file.path))
        return plan.table.columns, plan.files, plan.reused_names, self.virtual, self.located, access


def frame_of(rows: Any, engine: SparkEngine) -> DataFrame:
    """Returns a loaded source as a Spark DataFrame."""
    from ducklake_lab.spark import reader
    from ducklake_lab.spark.frames import from_arrow_table, of_session

    if isinstance(rows, Scan):
        return reader.read(engine(), rows.plan, virtual=rows.virtual, located=rows.located)
    if isinstance(rows, Feed):
        return rows.frame(engine())
    if isinstance(rows, pa.Table):
        return from_arrow_table(engine(), rows)
    return of_session(engine(), rows)


def to_duckdb(rows: object) -> pa.Table | Relation:
    """Returns a loaded source for DuckDB: a query over its files if DuckDB reads them, else an Arrow table."""
    if isinstance(rows, Feed):
        return rows.here().relation
    return rows.relation if isinstance(rows, Scan) and is_direct(rows.plan.files) else to_arrow(rows)


def to_arrow(rows: Any) -> pa.Table:
    """Returns a loaded source as an Arrow table."""
    if isinstance(rows, Scan):
        return local_reader.read(rows.plan, virtual=rows.virtual, located=rows.located)
    if isinstance(rows, Feed):
        return rows.arrow()
    if isinstance(rows, pa.Table):
        return rows
    from ducklake_lab.spark.frames import to_arrow_table

    return to_arrow_table(rows)


def facts(
    loaded: Iterable[object], purpose: Purpose = "look", refusal: Callable[[], Exception | None] | None = None
) -> Facts:
    """Returns the facts about loaded sources that decide their placement."""
    files: list[ScanFile] = []
    total, on_spark = 0, False
    for rows in loaded:
        if isinstance(rows, Scan):
            files += rows.plan.files
            total += rows.plan.files_total
        elif isinstance(rows, Feed):
            files += rows.plan.files
            total += len(rows.plan.files)
        elif not isinstance(rows, pa.Table):
            on_spark = True
    return facts_of(files, total=total, purpose=purpose, on_spark=on_spark, refusal=refusal)

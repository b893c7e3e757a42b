"""The rows behind the sources of a query: planned reads, feeds of changes, and tables handed in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
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
#: Files of a scan up to which its DataFrame is kept for the next statement.
_KEPT_FILES = 1000


@dataclass(frozen=True)
class Scan:
    """A planned read of a lake table, not begun yet."""

    plan: ScanPlan
    virtual: bool
    located: bool = False

    @cached_property
    def relation(self) -> Relation:
        """The rows as a query, whose tables no other scan has."""
        name = f"_ducklake_scan_{next(_numbers)}"
        return relation_of(self.plan, name, virtual=self.virtual, located=self.located)

    @property
    def key(self) -> Hashable:
        """What its DataFrame depends on; None where that is too much to compare, or to keep.

        Files never change. How an object store is reached does.
        """
        plan = self.plan
        if plan.inlined is not None or len(plan.files) > _KEPT_FILES:
            return None
        access = frozenset(access_to(file.path) for file in plan.files if not is_local(file.path))
        return plan.table.columns, plan.files, plan.reused_names, self.virtual, self.located, access


def frame_of(rows: Any, engine: SparkEngine) -> DataFrame:
    """A loaded source as a Spark DataFrame."""
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
    """A loaded source for DuckDB in process: as a query of its files where it reads them, else as an Arrow table."""
    if isinstance(rows, Feed):
        return rows.here().relation
    return rows.relation if isinstance(rows, Scan) and is_direct(rows.plan.files) else to_arrow(rows)


def to_arrow(rows: Any) -> pa.Table:
    """A loaded source as an Arrow table."""
    if isinstance(rows, Scan):
        return local_reader.read(rows.plan, virtual=rows.virtual, located=rows.located)
    if isinstance(rows, Feed):
        return rows.arrow()
    if isinstance(rows, pa.Table):
        return rows
    from ducklake_lab.spark.frames import to_arrow_table

    return to_arrow_table(rows)


def facts(loaded: Iterable[object], purpose: Purpose = "look", refusal: Exception | None = None) -> Facts:
    """What is known of loaded sources for their placement."""
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

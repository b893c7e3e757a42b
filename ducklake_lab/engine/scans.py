"""Planned reads of lake tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.engine.in_process import reader as local_reader
from ducklake_lab.engine.rows import Columns, Here, InMemory, Query, Rows, unique_name
from ducklake_lab.file_paths import is_local
from ducklake_lab.files.duckdb_query import is_direct, query_of
from ducklake_lab.model.positions import Positions
from ducklake_lab.model.staged import LOCATION_COLUMNS, VIRTUAL_COLUMNS
from ducklake_lab.object_access import access_to
from ducklake_lab.scan.plan import ScanFile, ScanPlan

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame, SparkSession

#: Most files of a scan whose DataFrame is kept for the next statement.
_KEPT_FILES = 1000


@dataclass(frozen=True)
class Scan(Rows):
    """A planned read of a lake table that has not begun.

    Attributes:
        virtual: the virtual columns follow the table's own.
        located: the two columns for a row's file follow those.
    """

    plan: ScanPlan
    virtual: bool = False
    located: bool = False

    @property
    def files(self) -> tuple[ScanFile, ...]:
        return self.plan.files

    @property
    def files_total(self) -> int:
        return self.plan.files_total

    @cached_property
    def columns(self) -> Columns:
        own = [(column.name, column.data_type) for column in self.plan.columns]
        virtual = VIRTUAL_COLUMNS.items() if self.virtual else ()
        return [*own, *virtual, *(LOCATION_COLUMNS.items() if self.located else ())]

    @cached_property
    def _query(self) -> Here:
        return Query(query_of(self.plan, unique_name(), virtual=self.virtual, located=self.located), self.columns)

    def here(self) -> Here:
        """Returns a query over the files if DuckDB reads them, else the rows, which are read now."""
        return self._query if is_direct(self.plan.files) else InMemory(self.arrow())

    def arrow(self) -> pa.Table:
        return local_reader.read(self.plan, virtual=self.virtual, located=self.located)

    def frame(self, spark: SparkSession) -> DataFrame:
        from ducklake_lab.spark import reader

        return reader.read(spark, self.plan, virtual=self.virtual, located=self.located)

    @property
    def key(self) -> Hashable:
        """The key of its DataFrame; None if the scan has inlined data or too many files.

        Data files never change, but the access to an object store does.
        """
        plan = self.plan
        if plan.inlined is not None or len(plan.files) > _KEPT_FILES:
            return None
        access = frozenset(access_to(file.path) for file in plan.files if not is_local(file.path))
        return plan.table.columns, plan.files, plan.reused_names, self.virtual, self.located, access


def at_positions(plan: ScanPlan, positions: Mapping[int, Positions]) -> Here:
    """Returns the rows at some positions of a plan's files, deleted or not, with the virtual columns.

    Args:
        positions: those of each file, by its id.
    """
    if is_direct(plan.files):
        columns = [*((column.name, column.data_type) for column in plan.columns), *VIRTUAL_COLUMNS.items()]
        return Query(query_of(plan, unique_name(), virtual=True, only=positions), columns)
    return InMemory(local_reader.read(plan, virtual=True, only=positions))

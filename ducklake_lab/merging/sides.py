"""One table on the two sides of a merge: where both began, as each has it, what changed, and whether their ids agree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine import changes
from ducklake_lab.engine.rows import Rows
from ducklake_lab.merging.column_ids import ColumnIds
from ducklake_lab.model.entries import Table
from ducklake_lab.model.staged import StagedData
from ducklake_lab.model.state import CatalogState
from ducklake_lab.scan.plan import ChangePlan

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession


@dataclass(frozen=True, slots=True)
class Version:
    """A table in one state of a lake.

    Attributes:
        staged: the transaction's changes of its rows, on top of the state.
    """

    lake: Lake
    state: CatalogState
    table: Table
    staged: StagedData | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A table on one side of a merge.

    Attributes:
        base: where both sides began.
        tip: as the side has it.
    """

    base: Version
    tip: Version


@dataclass(frozen=True, slots=True)
class RowIds:
    """Ids of one table's rows and columns on the two sides.

    Attributes:
        columns: those of columns.
        first_new: the first row id that theirs gave out; None where both sides have the same ids.
        placed: the base of theirs is that of ours, whose rows were in the same places of the same files.
    """

    columns: ColumnIds = field(default_factory=ColumnIds)
    first_new: int | None = None
    placed: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """The rows that theirs changed.

    Attributes:
        plan: leads from the earlier of both states to the later one.
        forward: theirs is the later state.
    """

    plan: ChangePlan
    forward: bool

    @property
    def base_files(self) -> set[int]:
        """The ids of the files that hold rows of the base."""
        plan = self.plan
        files = [*plan.removed.files, *(rows.after for rows in plan.deleted)] if self.forward else plan.inserted.files
        return {file.data_file.data_file_id for file in files}

    def theirs(self, spark: SparkSession | None) -> Rows:
        return changes.added(self.plan, spark) if self.forward else changes.removed(self.plan, spark)

    def base(self, spark: SparkSession | None) -> Rows:
        return changes.removed(self.plan, spark) if self.forward else changes.added(self.plan, spark)

"""The rows behind the sources of a query: planned reads, feeds of changes, and tables handed in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ducklake_lab.files.relation import Relation, is_direct, relation_of
from ducklake_lab.local import reader as local_reader
from ducklake_lab.model.types import DataType
from ducklake_lab.scan.plan import ScanFile, ScanPlan
from ducklake_lab.session.engine import SparkEngine
from ducklake_lab.session.feed import Feed
from ducklake_lab.storage import is_local, is_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Bytes of data files that are read in process for a statement that changes rows: Spark takes longer to begin.
SMALL_BYTES = 4 << 20
#: Files of a scan up to which its DataFrame is kept for the next statement.
_KEPT_FILES = 100


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows handed in from outside under a name: a Spark DataFrame or an Arrow table."""

    columns: tuple[tuple[str, DataType], ...]
    rows: Any

    @property
    def is_arrow(self) -> bool:
        return isinstance(self.rows, pa.Table)


@dataclass(frozen=True, slots=True)
class Scan:
    """A planned read of a lake table, not begun yet."""

    plan: ScanPlan
    virtual: bool
    located: bool = False

    @property
    def key(self) -> Hashable:
        """What its DataFrame depends on; None where that is too much to compare, or to keep.

        Files never change. How an object store is reached does.
        """
        plan = self.plan
        if plan.inlined is not None or len(plan.files) > _KEPT_FILES or not all(is_local(f.path) for f in plan.files):
            return None
        return plan.table.columns, plan.files, plan.reused_names, self.virtual, self.located


def frame_of(rows: Any, engine: SparkEngine) -> DataFrame:
    """A loaded source as a Spark DataFrame."""
    from ducklake_lab.spark import reader
    from ducklake_lab.spark.frames import from_arrow_table

    if isinstance(rows, Scan):
        return reader.read(engine(), rows.plan, virtual=rows.virtual, located=rows.located)
    if isinstance(rows, Feed):
        return rows.frame(engine())
    if isinstance(rows, pa.Table):
        return from_arrow_table(engine(), rows)
    frame: DataFrame = rows
    return frame


def kept_frame_of(rows: Any, engine: SparkEngine) -> DataFrame:
    """The same, perhaps one that was used before; for queries, whose names keep apart what has the same columns."""
    key = rows.key if isinstance(rows, Scan) else None
    return frame_of(rows, engine) if key is None else engine.kept(key, lambda: frame_of(rows, engine))


def to_duckdb(rows: Any, name: str) -> pa.Table | Relation:
    """A loaded source for DuckDB in process: as a query of its files where it reads them, else as an Arrow table.

    Args:
        name: what its tables are called after.
    """
    if isinstance(rows, Scan) and is_direct(rows.plan):
        return relation_of(rows.plan, name, virtual=rows.virtual, located=rows.located)
    return to_arrow(rows)


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


def is_small(loaded: Iterable[Any]) -> bool:
    """Whether loaded sources are here, or are quickly read: some files, local or in an object store, or a feed of them."""
    size = 0
    for rows in loaded:
        files: Sequence[ScanFile] = ()
        if isinstance(rows, Scan):
            files = rows.plan.files
        elif isinstance(rows, Feed):
            plan = rows.plan
            files = (*plan.inserted.files, *plan.removed.files, *(deleted.after for deleted in plan.deleted))
        elif not in_memory(rows):
            return False
        if not all(is_local(file.path) or is_object(file.path) for file in files):
            return False
        size += sum(file.data_file.file_size_bytes for file in files)
    return size <= SMALL_BYTES


def in_memory(rows: Any) -> bool:
    """Whether a loaded source is all here: metadata, or a table whose rows are all inlined."""
    if isinstance(rows, Feed):
        return rows.in_memory
    return isinstance(rows, pa.Table) or (isinstance(rows, Scan) and not rows.plan.files)

"""Values of columns that were dropped and came back, for rows that were written in between.

A row has in such a column the value that it had last while the table had the column: in the last state before the drop, or
when it was deleted before that. Where that state has expired, rows whose places hold the column have it still; those of
others are lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from ducklake_lab.catalog.columns import column_lives
from ducklake_lab.catalog.files import has_stats_before, read_column_stats
from ducklake_lab.diff.compute import rows_to_read
from ducklake_lab.engine import changes
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.errors import SnapshotNotFoundError, UnsupportedFeatureError
from ducklake_lab.merging import versions
from ducklake_lab.merging.reading import Reading
from ducklake_lab.merging.sides import Version
from ducklake_lab.model.entries import Column, ColumnLife
from ducklake_lab.model.staged import SNAPSHOT_ID
from ducklake_lab.scan.changes import compare, plan_feed
from ducklake_lab.scan.plan import ChangePlan, InlinedRows, ScanFile, ScanPlan

if TYPE_CHECKING:
    from ducklake_lab.spark.library import SparkSession


@dataclass(frozen=True, slots=True)
class _Era:
    """One time in which the table had some columns.

    Attributes:
        change: from its last state to the version.
        gone: the rows that were deleted in it.
    """

    change: ChangePlan
    gone: ChangePlan


@dataclass(frozen=True, slots=True)
class _Lost:
    """Places that lack a column whose values have expired.

    Attributes:
        name: of the column.
        places: files and inlined rows without it.
    """

    name: str
    places: ScanPlan


@dataclass(frozen=True, slots=True)
class _Column:
    """Columns with one history.

    Attributes:
        spots: their places in the list of all that are read.
        eras: those that are left, the latest first.
        lost: by column, where earlier ones have expired.
    """

    spots: tuple[int, ...]
    eras: Sequence[_Era]
    lost: Sequence[_Lost]


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans the eras of one version."""

    reading: Reading
    version: Version
    columns: Sequence[Column]
    title: str

    def column(self, lives: Sequence[ColumnLife], spots: Sequence[int]) -> _Column:
        """Plan columns that the table had at some times, the latest first, or at unknown times that have expired."""
        columns = [self.columns[spot] for spot in spots]
        eras: list[_Era] = []
        for life in lives:
            era = self.era(life, columns[0])
            if era is None:
                break
            eras.append(era)
        expired = (
            columns if len(eras) < len(lives) else [] if lives else [one for one in columns if self._is_older(one)]
        )
        return _Column(tuple(spots), eras, [_Lost(one.name, self._without(one, lives)) for one in expired])

    def _is_older(self, column: Column) -> bool:
        """Whether files show that the table had the column before the version."""
        at = self.version.state.snapshot.snapshot_id
        with self.version.lake.connect() as connection:
            ids = [part.column_id for part in column.walk()]
            return any(has_stats_before(connection, self.version.table.table_id, number, at) for number in ids)

    def _without(self, column: Column, lives: Sequence[ColumnLife]) -> ScanPlan:
        """Plan to read the places of the version that lack a column: files without statistics of it, and inlined rows.

        Args:
            lives: of the column; none where they are unknown.
        """
        plan = self.reading.plan(self.version, self.columns)
        ids, files = [part.column_id for part in column.walk()], [file.data_file.data_file_id for file in plan.files]
        with self.version.lake.connect() as connection:
            holding = read_column_stats(connection, self.version.table.table_id, ids, None, files) if files else {}
        inlined = plan.inlined
        if inlined is not None:
            begun = inlined.rows.column(SNAPSHOT_ID)
            held = [pc.and_(pc.less_equal(life.first, begun), pc.less_equal(begun, life.last)) for life in lives]
            rows = inlined.rows.filter(pc.invert(reduce(pc.or_, held))) if held else inlined.rows
            inlined = InlinedRows(rows) if rows.num_rows else None
        left = tuple(file for file in plan.files if file.data_file.data_file_id not in holding)
        return replace(plan, files=left, inlined=inlined)

    def field(self, life: ColumnLife, column: Column) -> _Era:
        """Plan the last time in which a column had a field.

        Raises:
            UnsupportedFeatureError: it has expired.
        """
        era = self.era(life, column)
        if era is None:
            raise UnsupportedFeatureError(
                f"Column {column.name} of {self.title} last had all its fields in snapshot {life.last}, which has expired with "
                "their values; restore the table to a snapshot with the fields instead."
            )
        return era

    def era(self, life: ColumnLife, column: Column) -> _Era | None:
        """Plan one time in which the table had a column; None where it has expired."""
        lake, table_id = self.version.lake, self.version.table.table_id
        with lake.connect() as connection:
            try:
                snapshot = lake.snapshot(connection, life.last)
            except SnapshotNotFoundError:
                return None
            state = lake.state(connection, snapshot)
            table = replace(state.tables[table_id], columns=tuple(self.columns))
            gone = plan_feed(lake, connection, state, table, life.first + 1, life.last)
        gone = replace(gone, inserted=replace(gone.inserted, files=(), inlined=None))
        old = self.reading.plan(Version(lake, state, state.tables[table_id]), self.columns)
        return _Era(compare(old, self.reading.plan(self.version, self.columns)), gone)


class FormerValues:
    """Finds values of rows of one version in columns that it lacks.

    Args:
        lacking: the columns that the version lacks.
        fields: names of nested fields that the version lacks, each with the latest era.
        columns: all that are read.
        title: of the table.
    """

    def __init__(
        self,
        lacking: Sequence[_Column],
        fields: Sequence[tuple[str, _Era]],
        columns: Sequence[Column],
        title: str,
    ) -> None:
        self._lacking = lacking
        self._fields = fields
        self._columns = columns
        self._title = title

    @classmethod
    def plan(
        cls, reading: Reading, version: Version, columns: Sequence[Column], places: Iterable[int], title: str
    ) -> FormerValues:
        """Plan what is read for columns at some places, and fields in them, where the version lacks these.

        Raises:
            UnsupportedFeatureError: the last state with a field has expired.
        """
        known_ids = {part.column_id for part in version.table.all_columns()}
        lacking = [(i, part) for i in places for part in columns[i].walk() if part.column_id not in known_ids]
        if not lacking:
            return cls((), (), columns, title)
        with version.lake.connect() as connection:
            versions = version.lake.column_versions(connection, version.table.table_id)
        lives = column_lives(versions, version.state.snapshot.snapshot_id)
        planner = _Planner(reading, version, columns, title)
        groups: defaultdict[tuple[ColumnLife, ...], list[int]] = defaultdict(list)
        fields: list[tuple[str, _Era]] = []
        for place, part in lacking:
            own_lives, column = lives.get(part.column_id, []), columns[place]
            if own_lives and part is column:
                groups[tuple(reversed(own_lives))].append(place)
            elif own_lives and column.column_id in known_ids:
                fields.append((f"{column.name}.{part.name}", planner.field(own_lives[-1], column)))
            elif part is column:
                groups[()].append(place)
        planned = [planner.column(lives_of, spots) for lives_of, spots in groups.items()]
        return cls(planned, fields, columns, title)

    @property
    def files(self) -> list[ScanFile]:
        """Files that are read."""
        return [file for plan in self._plans() for file in plan.files]

    @property
    def count(self) -> int:
        """Number of the rows that are read."""
        return sum(map(rows_to_read, self._plans()))

    def _plans(self) -> Iterable[ChangePlan]:
        eras = [*(era for one in self._lacking for era in one.eras), *(era for _, era in self._fields)]
        return (plan for era in eras for plan in (era.change, era.gone))

    def filled(self, rows: Rows, spark: SparkSession | None) -> tuple[Rows, list[tuple[str, Rows]]]:
        """Return rows of the version, each with the values that it had last, and the ids of those without, by column.

        Args:
            rows: see `versions.side`.

        Raises:
            UnsupportedFeatureError: a row was written while the table lacked a field of a column.
        """
        for name, era in self._fields:
            count = self._moved(era, rows, spark).query("SELECT count(*) AS n FROM rows").arrow()
            if count.column("n")[0].as_py():
                raise UnsupportedFeatureError(
                    f"Rows of {self._title} were written while field {name} was dropped, and come back without its values; "
                    "restore the table to a snapshot with the rows instead."
                )
        lost: list[tuple[str, Rows]] = []
        for one in self._lacking:
            rest: Rows | None = None
            for era in one.eras:
                rest = self._moved(era, rows, spark) if rest is None else rest
                if spark is None and not rest.arrow().num_rows:
                    break
                known = _computed(self._known(era, rest, spark), spark)
                rows = _computed(versions.with_values(rows, known, one.spots, len(self._columns)), spark)
                left = rest.query("SELECT rid FROM rows WHERE rid NOT IN (SELECT rid FROM known)", known=known)
                rest = _computed(left, spark)
            for name, places in ((each.name, each.places) for each in one.lost):
                without = versions.side(Scan(places, virtual=True), len(self._columns))
                ids = versions.only(without, rows if rest is None else rest).query("SELECT rid FROM rows")
                lost.append((name, _computed(ids, spark)))
        return rows, lost

    def _moved(self, era: _Era, rows: Rows, spark: SparkSession | None) -> Rows:
        """The ids of rows that are in other places than in the last state of an era."""
        moved = versions.side(changes.added(era.change, spark), len(self._columns))
        return _computed(versions.only(moved, rows).query("SELECT rid FROM rows"), spark)

    def _known(self, era: _Era, rest: Rows, spark: SparkSession | None) -> Rows:
        """Find the last values of rows in an era; rows that it never had are left out."""
        count = len(self._columns)
        values = versions.only(versions.side(changes.removed(era.change, spark), count), rest)
        if not rows_to_read(era.gone):
            return values
        return versions.with_returned(_computed(values, spark), rest, changes.removed(era.gone, spark), count)


def _computed(rows: Rows, spark: SparkSession | None) -> Rows:
    """The rows in memory, unless they are Spark's: a query over a query would compute them again."""
    return rows if spark is not None else InMemory(rows.arrow())

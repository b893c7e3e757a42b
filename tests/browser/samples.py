"""Objects as a lake of flights has them, to look at views without a lake."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ducklake_lab.diff.model import (
    ColumnChange,
    ColumnDiff,
    ColumnSteps,
    DiffSummary,
    FileChange,
    FileDiff,
    Histogram,
    Pattern,
    RowChange,
    RowChoice,
)
from ducklake_lab.model.entries import Column, PartitionField, PartitionSpec, SnapshotInfo, Table
from ducklake_lab.model.files import ColumnStats, DataFile
from ducklake_lab.model.history import ChangeKind, FileEntry, HistoryEntry
from ducklake_lab.model.types import DataType
from ducklake_lab.session.listings import FileListing, History

START = datetime(2026, 3, 2, 9, 14, tzinfo=UTC)
LOADS = (27004, 24951, 28834, 28330, 28796, 28243, 29425, 29327, 27574, 28889, 27268, 28135)
MONTHS = "January February March April May June July August September October November December".split()
FLIGHTS = {
    "year": "int32", "month": "int32", "day": "int32", "dep_time": "int32", "sched_dep_time": "int32",
    "dep_delay": "float64", "arr_time": "int32", "sched_arr_time": "int32", "arr_delay": "float64",
    "carrier": "varchar", "flight": "int32", "tailnum": "varchar", "origin": "varchar", "dest": "varchar",
    "air_time": "float64", "distance": "int64", "hour": "int32", "minute": "int32", "time_hour": "timestamp",
}  # fmt: skip


def entry(
    number: int,
    kind: ChangeKind,
    message: str | None,
    changes: Sequence[str],
    added: int = 0,
    removed: int = 0,
    *,
    author: str | None = "ana",
    stored: int = 0,
    tables: Sequence[str] = ("main.flights",),
) -> HistoryEntry:
    info = SnapshotInfo(number, START + timedelta(days=number, minutes=7 * number), number, "", author, message)
    return HistoryEntry(info, kind, tuple(changes), tuple(tables), added, removed, stored)


def history() -> History:
    """Snapshots 0 to 17: twelve monthly loads, a correction, a deletion, a column added and filled."""
    small = ("airlines", "airports", "planes", "weather")
    entries = [
        entry(0, "schema", None, ["created schema main"], author=None, tables=()),
        entry(
            1,
            "insert",
            "reference tables",
            [f"created table main.{name}" for name in small] + [f"inserted into main.{name}" for name in small],
            30911,
            stored=1_400_000,
            author="setup",
            tables=[f"main.{name}" for name in small],
        ),
    ]
    for month, rows in enumerate(LOADS):
        created = ["created table main.flights"] if month == 0 else []
        changes = [*created, "inserted into main.flights"]
        message = f"load {MONTHS[month]}"
        entries.append(entry(2 + month, "insert", message, changes, rows, stored=rows * 92, author="loader"))
    entries += [
        entry(14, "update", "fix tail numbers", ["updated main.flights"], 58665, 58665, stored=5_100_000),
        entry(15, "delete", "drop cancelled", ["deleted from main.flights"], 0, 8255, stored=84_000),
        entry(16, "schema", "add column speed", ["altered main.flights"], author="ben"),
        entry(17, "update", "fill speed", ["updated main.flights"], 328521, 328521, author="ben", stored=30_000_000),
    ]
    return History("Snapshots", entries)


def column(number: int, name: str, type_name: str) -> Column:
    return Column(number, number, name, type_name)


def table(number: int, name: str, columns: Sequence[Column], **more: object) -> Table:
    return Table(number, "u", 0, name, f"{name}/", tuple(columns), **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Info:
    """Stands for a session's TableInfo."""

    lake: str
    schema: str
    table: Table
    record_count: int | None
    file_size_bytes: int | None


def tables() -> list[Info]:
    place = DataType(
        "struct",
        (
            ("lat", DataType("float64")),
            ("lon", DataType("float64")),
            ("tags", DataType("list", (("element", DataType("varchar")),))),
        ),
    )
    flights = table(
        5,
        "flights",
        [column(at + 1, name, kind) for at, (name, kind) in enumerate(FLIGHTS.items())],
        partition=PartitionSpec(1, (PartitionField(2, "identity"), PartitionField(19, "month"))),
        comment="All flights departing from New York City in 2013.",
    )
    code = Column(1, 1, "faa", "varchar", nulls_allowed=False)
    zone = Column(3, 3, "tz", "int32", default_value="-5")
    airports = table(2, "airports", [code, column(2, "name", "varchar"), zone, Column.build("location", place, 4)])
    airlines = table(1, "airlines", [column(1, "carrier", "varchar"), column(2, "name", "varchar")])
    return [
        Info("flights", "main", flights, 328521, 31_000_000),
        Info("flights", "main", airports, 1458, 120_000),
        Info("flights", "main", airlines, 16, 1_200),
    ]


def files(number: int = 12) -> FileListing:
    """One file a month: `month` and `time_hour` divide them, the other columns do not."""
    chance = random.Random(3)
    found = []
    types = dict.fromkeys(("year", "month", "day"), DataType("int32")) | {"dep_delay": DataType("float64")}
    types |= dict.fromkeys(("carrier", "tailnum"), DataType("varchar")) | {"time_hour": DataType("timestamp")}
    for month in range(number):
        rows = LOADS[month % 12]
        deleted = chance.randint(200, 1200) if month != 4 else 0
        bounds = {
            "year": (2013, 2013),
            "month": (month + 1, month + 1),
            "day": (1, 31 - month % 2),
            "dep_delay": (-43 + month, 1301 - 60 * month),
            "carrier": ("9E", "YV"),
            "tailnum": ("D942DN", f"N9{99 - month}MQ"),
            "time_hour": (f"2013-{month + 1:02d}-01 05:00:00", f"2013-{month + 1:02d}-28 23:00:00"),
        }
        stats = {
            name: ColumnStats(1, chance.randint(9000, 90000), rows, 0, str(low), str(high))
            for name, (low, high) in bounds.items()
        }
        path = f"/lake/data/main/flights/month={month + 1}/ducklake-0199a2f4-7c1e-7d0b-{chance.randint(10**11, 10**12)}.parquet"
        data = DataFile(
            40 + month, 5, month + 2, None, path, False, rows, rows * 92 + chance.randint(-9000, 9000), 8, 0
        )
        found.append(
            FileEntry(
                data,
                path,
                data.record_count,
                deleted,
                "/lake/data/deletes.parquet" if deleted else None,
                deleted * 10,
                (("month", str(month + 1)),),
                stats,
            )
        )
    return FileListing("main.flights", 17, found, types=types)


@dataclass(frozen=True)
class SampleDiff:
    """A diff whose parts are all given."""

    table: str
    start: SnapshotInfo
    end: SnapshotInfo | None
    schema: tuple[ColumnChange, ...]
    summary: DiffSummary
    columns: tuple[ColumnDiff, ...]
    files: FileDiff
    patterns: tuple[Pattern, ...]
    changed: tuple[RowChange, ...]
    history: tuple[HistoryEntry, ...] = ()
    sampled: int | None = None
    key: tuple[str, ...] = ()
    other: str | None = None
    group_steps: tuple[ColumnSteps, ...] = ()
    choice: RowChoice = field(default_factory=RowChoice)
    limit: int = 50

    def page(self, limit: int, offset: int, choice: RowChoice, *, as_shown: bool = False) -> Sequence[RowChange]:
        return self.changed[offset : offset + limit]

    def count(self, choice: RowChoice) -> int:
        return self.summary.changed

    def statement(self, choice: RowChoice, limit: int | None = None, offset: int = 0) -> str:
        return "SELECT '<b>' AS change\nFROM flights"


def flight(number: int, *, cancelled: bool) -> dict[str, object]:
    chance = random.Random(number)
    moment = datetime(2013, 1, 1, 5) + timedelta(minutes=41 * number)
    flown: dict[str, object] = {
        "dep_time": 533,
        "dep_delay": chance.choice([-4.0, 2.0, 17.0, 110.0]),
        "arr_time": 850,
        "arr_delay": 11.0,
        "air_time": 150.0,
    }
    values: dict[str, object] = {
        "year": 2013,
        "month": moment.month,
        "day": moment.day,
        "sched_dep_time": moment.hour * 100 + moment.minute,
        "sched_arr_time": 1815,
        "carrier": chance.choice(["EV", "AA", "UA", "MQ"]),
        "flight": chance.randint(1, 6000),
        "tailnum": chance.choice(["N18120", "N3EHAA", None]),
        "origin": chance.choice(["EWR", "LGA", "JFK"]),
        "dest": chance.choice(["RDU", "DFW", "MIA", "BOS"]),
        "distance": chance.choice([416, 1389, 1085]),
        "hour": moment.hour,
        "minute": moment.minute,
        "time_hour": moment.replace(minute=0),
    }
    values |= dict.fromkeys(flown) if cancelled else flown
    return {name: values[name] for name in FLIGHTS}


def deleted() -> SampleDiff:
    """8,255 cancelled flights are gone."""
    snapshots = history()
    histograms = {
        "month": Histogram(
            tuple(map(str, range(1, 13))),
            (521, 1261, 861, 668, 563, 1009, 940, 486, 452, 236, 233, 1025),
            (0,) * 12,
            numeric=True,
            smallest="1",
            largest="12",
        ),
        "origin": Histogram(("EWR", "LGA", "JFK"), (3239, 3153, 1863), (0, 0, 0), numeric=False),
    }
    columns = tuple(
        ColumnDiff(name, DataType(kind).sql(), 0, 0.0, histograms.get(name)) for name, kind in FLIGHTS.items()
    )
    return SampleDiff(
        "main.flights",
        snapshots[14].info,
        snapshots[15].info,
        (),
        DiffSummary(0, 8255, 0, 328521),
        columns,
        FileDiff(12, 0, 0, 0, 0, 12, 84_000),
        (Pattern("deleted", "dep_time IS NULL", 1.0), Pattern("deleted", "origin = 'EWR'", 0.392)),
        tuple(RowChange(838 + at * 7, "deleted", flight(at, cancelled=True), None) for at in range(50)),
    )


def updated() -> SampleDiff:
    """Tail numbers put right, a column added, one renamed, one dropped."""
    snapshots = history()
    delays = Histogram(
        tuple(str(edge) for edge in range(-30, 210, 12)),
        tuple(int(900 * 2.7 ** (-abs(at - 3) / 4)) for at in range(20)),
        tuple(int(1000 * 2.7 ** (-abs(at - 5) / 3)) for at in range(20)),
        numeric=True,
        smallest="-30",
        largest="209",
    )
    carriers = Histogram(("UA", "EV", "DL", "AA"), (4000, 2000, 900, 500), (5600, 900, 900, 0), numeric=False)
    histograms = {"dep_delay": delays, "carrier": carriers}
    counts = {"tailnum": 58665, "dep_delay": 12, "speed": 22000}
    columns = tuple(
        ColumnDiff(name, DataType(kind).sql(), counts.get(name, 0), counts.get(name, 0) / 58665, histograms.get(name))
        for name, kind in {**FLIGHTS, "speed": "float64"}.items()
    )
    rows = []
    for at in range(46):
        before = flight(at, cancelled=False) | {"speed": None if at % 3 == 0 else 166.5}
        before["tailnum"] = None if at % 5 == 0 else "n619aa"
        after = before | {"tailnum": "N619AA", "speed": 166.5}
        rows.append(
            RowChange(1000 + at, "updated", before, after, ("tailnum", "speed") if at % 3 == 0 else ("tailnum",))
        )
    changes = (
        ColumnChange("added", 20, None, ("speed", "DOUBLE")),
        ColumnChange("renamed", 9, ("arr_delay", "DOUBLE"), ("arrival_delay", "DOUBLE")),
        ColumnChange("dropped", 3, ("minute", "INTEGER"), None),
    )
    return SampleDiff(
        "main.flights",
        snapshots[13].info,
        snapshots[14].info,
        changes,
        DiffSummary(0, 0, 58665, 278111, 80_677),
        columns,
        FileDiff(
            0,
            12,
            12,
            31_400_000,
            31_000_000,
            0,
            0,
            tuple(FileChange(f"/data/main/flights/new-{at}.parquet", 28_000, 2_600_000, "data") for at in range(12)),
            tuple(FileChange(f"/data/main/flights/old-{at}.parquet", 28_000, 2_580_000, "data") for at in range(12)),
        ),
        (Pattern("updated", "carrier = 'UA'", 0.98, 57_491),),
        tuple(rows),
        history=tuple(snapshots[12:15]),
    )

"""Asks the reference and this package the same of one lake, in the time zone of this process: `zones.py FOLDER`."""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime
from typing import Any

import duckdb

import ducklake_lab as dl
from tests.reference import loaded

#: Times of the snapshots, about the hours that come twice or not at all in New York.
TIMES = (
    "2024-01-01 00:00:00+00",
    "2024-02-01 00:00:00+00",
    "2024-03-10 06:45:00+00",
    "2024-03-10 07:15:00+00",
    "2024-03-10 07:45:00+00",
    "2024-11-03 05:15:00+00",
    "2024-11-03 05:45:00+00",
    "2024-11-03 06:15:00+00",
    "2024-11-03 06:45:00+00",
    "2024-11-03 12:00:00+00",
)
#: Local times: plain, that comes twice, that does not come.
MOMENTS = ("2024-03-10 16:10:00", "2024-11-03 01:30:00", "2024-03-10 02:30:00", "2024-11-03 02:00:00")

QUERIES = [
    "SELECT current_setting('TimeZone')",
    "SELECT current_date, today()",
    "SELECT now()::TIMESTAMP::DATE, current_timestamp::DATE",
    *(
        f"SELECT count(*), max(i) FROM lake.t AT (TIMESTAMP => {kind}'{moment}')"
        for moment in MOMENTS
        for kind in ("", "TIMESTAMP ", "TIMESTAMPTZ ")
    ),
    "SELECT count(*) FROM lake.t AT (TIMESTAMP => DATE '2024-03-10')",
    "SELECT count(*) FROM lake.t AT (TIMESTAMP => CAST('2024-11-03 01:30:00' AS TIMESTAMP))",
    "SELECT count(*) FROM lake.t AT (TIMESTAMP => TIMESTAMPTZ '2024-11-03 05:30:00+00')",
    "SELECT snapshot_id, snapshot_time, snapshot_time::VARCHAR FROM lake.snapshots() ORDER BY 1",
    "SELECT snapshot_id FROM lake.snapshots() WHERE snapshot_time >= '2024-11-03 01:30:00' ORDER BY 1",
    "SELECT snapshot_id FROM lake.snapshots() WHERE snapshot_time < DATE '2024-11-03' ORDER BY 1",
    "SELECT snapshot_id, i FROM lake.table_changes('t', TIMESTAMP '2024-03-10 02:30:00', TIMESTAMP '2024-11-03 01:30:00')"
    " ORDER BY ALL",
    "SELECT i FROM lake.table_insertions('t', TIMESTAMPTZ '2024-03-10 02:30:00', TIMESTAMPTZ '2024-11-03 01:30:00')"
    " ORDER BY ALL",
    "FROM ducklake_expire_snapshots('lake', older_than => TIMESTAMP '2024-11-03 01:30:00', dry_run => true)",
    "FROM ducklake_expire_snapshots('lake', older_than => '2024-03-10 02:30:00', dry_run => true)",
    "SELECT i, z, z::VARCHAR, z::TIMESTAMP, z::DATE, hour(z), s FROM lake.t ORDER BY i",
    "SELECT i FROM lake.t WHERE z >= '2024-11-03 01:30:00' ORDER BY i",
    "SELECT i FROM lake.t WHERE z = TIMESTAMP '2024-03-10 02:30:00' OR z = n ORDER BY i",
    "SELECT i, n::TIMESTAMPTZ, d::TIMESTAMPTZ, n::TIMESTAMPTZ::VARCHAR FROM lake.t ORDER BY i",
    "SELECT date_trunc('day', z), date_trunc('hour', z), count(*) FROM lake.t GROUP BY ALL ORDER BY ALL",
    "SELECT max(z), min(z), max(z)::VARCHAR FROM lake.t",
]
SETTINGS = (
    "SELECT 1",
    "SET TimeZone = 'Asia/Kathmandu'",
    "SET GLOBAL TimeZone = 'Asia/Tokyo'",
    "SET SESSION TimeZone = 'america/new_york'",
    "RESET TimeZone",
    "SET TIME ZONE 'Europe/Berlin'",
)


OPTIONS = tuple(f"SNAPSHOT_TIME {kind}'{moment}'" for kind in ("", "TIMESTAMP ", "TIMESTAMPTZ ") for moment in MOMENTS)


def make(folder: str) -> None:
    """A lake that the reference made, with snapshots at TIMES."""
    with _reference(folder) as reference:
        reference.execute(
            "CREATE TABLE lake.t (i INT, z TIMESTAMPTZ, n TIMESTAMP, d DATE, s STRUCT(z TIMESTAMPTZ, u UUID))"
        )
        for i, moment in enumerate(TIMES[2:]):
            reference.execute(
                f"INSERT INTO lake.t SELECT {i}, '{moment}', '{MOMENTS[i % 4]}', '2024-11-03', "
                f"{{'z': '{moment}', 'u': '00000000-0000-0000-0000-00000000000{i}'}}"
            )
    with duckdb.connect(f"{folder}/m.ducklake") as catalog:
        for number, moment in enumerate(TIMES):
            catalog.execute("UPDATE ducklake_snapshot SET snapshot_time = $1 WHERE snapshot_id = $2", [moment, number])


def _reference(folder: str, option: str = "") -> duckdb.DuckDBPyConnection:
    connection = loaded()
    option = option or f"DATA_PATH '{folder}/data'"
    connection.execute(f"ATTACH 'ducklake:{folder}/m.ducklake' AS lake ({option})")
    return connection


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return [str(value.astimezone(UTC)), str(value.utcoffset())]
    if isinstance(value, date):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    # a map: pairs here, a dict there
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else str(value)


def _rows(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    found = [[_plain(dict(v) if _is_pairs(v) else v) for v in row] for row in rows]
    return [[v for v in row if not isinstance(v, dict) or "z" in v] for row in found]


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, tuple) for part in value)


def ask(folder: str) -> dict[str, list[Any]]:
    """Return the answers of the reference and of this package, by statement."""
    found: dict[str, list[Any]] = {}
    given: dict[str, list[list[Any]]] = {}
    with _reference(folder) as reference:
        for setting in SETTINGS:
            reference.execute(setting)
            for query in QUERIES:
                given.setdefault(f"{setting}; {query}", _rows(reference.execute(query).fetchall()))
    for option in OPTIONS:
        with _reference(folder, option) as reference:
            given[option] = _rows(reference.execute("SELECT count(*) FROM lake.t").fetchall())
    for moment in MOMENTS:
        with _reference(folder) as reference:
            text = f"SELECT count(*) FROM lake.t AT (TIMESTAMP => '{moment}')"
            given[moment] = _rows(reference.execute(text).fetchall())
    with dl.connect(f"ducklake:{folder}/m.ducklake", alias="lake", engine="duckdb") as session:
        for setting in SETTINGS:
            session.sql(setting)
            for query in QUERIES:
                key = f"{setting}; {query}"
                found[key] = [given[key], _rows(session.sql(query).fetchall())]
    for option in OPTIONS:
        with dl.Session(engine="duckdb") as session:
            session.sql(f"ATTACH 'ducklake:{folder}/m.ducklake' AS lake ({option})")
            found[option] = [given[option], _rows(session.sql("SELECT count(*) FROM lake.t").fetchall())]
    for moment in MOMENTS:
        naive = datetime.fromisoformat(moment)
        with dl.connect(f"ducklake:{folder}/m.ducklake", alias="lake", engine="duckdb") as session:
            found[f"table {moment}"] = [given[moment], [[str(session.table("t", at=naive).arrow().num_rows)]]]
        for at in (moment, naive):
            with dl.connect(f"ducklake:{folder}/m.ducklake", alias="lake", snapshot_time=at) as session:
                found[f"attach {at!r}"] = [given[moment], [[str(session.table("t").arrow().num_rows)]]]
    return found


if __name__ == "__main__":
    make(sys.argv[1])
    print(json.dumps(ask(sys.argv[1])))

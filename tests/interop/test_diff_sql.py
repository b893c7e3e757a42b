"""The SQL of a diff, run by the reference alone, gives the rows of the diff."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.diff.diff import Diff
from tests.interop.comparing import attach, detach, normal
from tests.type_matrix import VALUES

pytestmark = pytest.mark.sampled(4)


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(tmp_path: Path, uri: str) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def check(diff: Diff, uri: str, reference: duckdb.DuckDBPyConnection, **choice: Any) -> int:
    """Compares all that is chosen, in order; gives how many rows that is."""
    attach(reference, uri)
    try:
        found = reference.execute(diff.sql(**choice)).fetchall()
    finally:
        detach(reference)
    later = [column.name for column in diff.columns]
    expected = []
    for row in diff.rows(**{"limit": 100_000, **choice}):
        cells: list[Any] = []
        for name in diff.names:
            cells.append((row.before or {}).get(name))
            cells += [(row.after or {}).get(name)] if name in later else []
        expected.append(normal((row.kind, *(() if diff.key else (row.row_id,)), *cells)))
    assert [normal(row) for row in found] == expected
    return len(expected)


CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {"kind": "deleted"},
    {"kind": "inserted", "sort": [("v", True)]},
    {"kind": "updated", "sort": "Name", "limit": 3, "offset": 2},
    {"changed": "v"},
    {"changed": "name", "sort": [("v", True), ("k", False)], "limit": 7},
)


@pytest.mark.parametrize("key", [None, ["k"]])
def test_rows_of_a_diff(
    session: dl.Session, uri: str, reference: duckdb.DuckDBPyConnection, key: list[str] | None
) -> None:
    session.sql(
        "CREATE TABLE t AS SELECT i::INTEGER AS k, (i % 7)::INTEGER AS v, 'n' || i AS \"Name\" FROM range(100) r(i)"
    )
    start = newest(session)
    session.sql('UPDATE t SET v = v + 1 WHERE k < 20; UPDATE t SET "Name" = NULL WHERE k BETWEEN 10 AND 30')
    session.sql("UPDATE t SET v = v + 1 WHERE k = 50; UPDATE t SET v = v - 1 WHERE k = 50")  # as it was
    session.sql("DELETE FROM t WHERE k > 90; INSERT INTO t VALUES (200, NULL, 'x'), (201, -1, 'y'), (91, 0, 'n91')")
    diff = session.table("t").diff(start, key=key)
    numbers = [check(diff, uri, reference, **choice) for choice in CHOICES]
    assert numbers[0] == (43 if key is None else 42 - (91 % 7 == 0))
    session.sql("CALL lake.rewrite_data_files(delete_threshold => 0); CALL lake.merge_adjacent_files()")
    assert check(session.table("t").diff(start, key=key), uri, reference) == numbers[0]


def test_columns_that_came_went_and_changed(
    session: dl.Session, uri: str, reference: duckdb.DuckDBPyConnection
) -> None:
    session.sql(
        "CREATE TABLE t AS SELECT i::INTEGER AS k, (i % 7)::INTEGER AS v, 'n' || i AS \"Name\" FROM range(9) r(i)"
    )
    start = newest(session)
    session.sql("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 5; ALTER TABLE t ALTER v SET DATA TYPE BIGINT")
    session.sql(
        'ALTER TABLE t DROP COLUMN "Name"; ALTER TABLE t ADD COLUMN name DOUBLE; ALTER TABLE t RENAME k TO earlier'
    )
    session.sql(
        'ALTER TABLE t RENAME TO "u 2"; UPDATE "u 2" SET v = v + 1 WHERE earlier < 3; DELETE FROM "u 2" WHERE earlier > 7'
    )
    session.sql('INSERT INTO "u 2" VALUES (200, 1, 6, 7.5)')
    assert check(session.table('"u 2"').diff(start), uri, reference, sort="name (dropped)") == 5


def test_a_key_that_unchanged_rows_share(session: dl.Session, uri: str, reference: duckdb.DuckDBPyConnection) -> None:
    session.sql("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t VALUES (1, 1), (1, 2), (NULL, 3), (2, 4), (3, 5)")
    start = newest(session)
    session.sql("DELETE FROM t WHERE v IN (3, 5); INSERT INTO t VALUES (NULL, 6), (4, 7)")
    assert check(session.table("t").diff(start, key=["k"]), uri, reference) == 3


def test_two_tables(session: dl.Session, uri: str, reference: duckdb.DuckDBPyConnection) -> None:
    session.sql(
        "CREATE TABLE a (id INTEGER, x INTEGER, only_a INTEGER); INSERT INTO a VALUES (1, 1, 0), (2, 2, 0), (9, 9, 9)"
    )
    session.sql(
        "CREATE SCHEMA s; CREATE TABLE s.b (x INTEGER, id INTEGER, y DATE); INSERT INTO s.b VALUES (1, 1, NULL), (5, 2, NULL), (6, 3, '2020-01-01')"
    )
    assert check(session.table("a").diff(newest(session), other="s.b", key=["id"]), uri, reference) == 3


def test_every_type(session: dl.Session, uri: str, reference: duckdb.DuckDBPyConnection) -> None:
    """A column for each type, and a row for each of its values, in which all other columns are NULL."""
    kinds = [kind for name, kind in VALUES.items() if name not in ("variant", "geometry", "json")]
    rows, sets, last = [], [], []
    for at, (sql, values) in enumerate(kinds):
        first = len(rows)
        for value in (*values, "NULL", values[0]):
            others = ["NULL"] * len(kinds)
            others[at] = value
            rows.append(f"({len(rows)}, {', '.join(others)})")
        last.append(len(rows) - 1)
        value = f"CASE WHEN i BETWEEN {first} AND {last[-1]} THEN CAST({values[-1]} AS {sql}) ELSE v{at} END"
        sets.append(f"v{at} = {value}")
    session.sql("CALL lake.set_option('data_inlining_row_limit', 1000)")
    session.sql(f"CREATE TABLE t (i INTEGER, {', '.join(f'v{at} {sql}' for at, (sql, _) in enumerate(kinds))})")
    session.sql(f"INSERT INTO t VALUES {', '.join(rows)}")
    start = newest(session)
    deleted = f"i IN ({', '.join(map(str, last))})"
    session.sql(f"UPDATE t SET {', '.join(sets)} WHERE NOT ({deleted}); DELETE FROM t WHERE {deleted}")
    # of each type, the row that has the last value already stays as it is
    assert check(session.table("t").diff(start), uri, reference) == len(rows) - len(kinds)


def test_what_sql_cannot_say(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (k INTEGER, s STRUCT(a INTEGER)); INSERT INTO t VALUES (1, {'a': 1})")
    start = newest(session)
    with session.transaction() as tx:
        session.sql("INSERT INTO t VALUES (2, NULL)")
        with pytest.raises(dl.UsageError, match="commit them first"):
            tx.diff().sql()
    session.sql("ALTER TABLE t ADD COLUMN s.b INTEGER")
    with pytest.raises(dl.UnsupportedFeatureError, match="s has other fields"):
        session.table("t").diff(start).sql()
    again = newest(session)
    session.sql(
        "ALTER TABLE t DROP COLUMN s.b; ALTER TABLE t ADD COLUMN s.b INTEGER"
    )  # of the same type, without its values
    for make in (session.table("t").diff(again).sql, session.table("t").diff(again).patch):
        with pytest.raises(dl.UnsupportedFeatureError, match="s has other fields"):
            make()
    with pytest.raises(dl.EntryNotFoundError, match='no column "w"'):
        session.table("t").diff(start).sql(changed="w")
    session.sql("CREATE TABLE r (rowid INTEGER)")
    with pytest.raises(dl.UnsupportedFeatureError, match="r has a column rowid"):
        session.table("r").diff(newest(session)).sql()

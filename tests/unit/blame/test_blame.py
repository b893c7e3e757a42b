"""Blame of cells on real lakes: what sets a value, and what only moves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.blame.blame import blame
from ducklake_lab.blame.commits import Commits
from ducklake_lab.blame.lines import Inserted, Signing
from ducklake_lab.blame.versions import Found
from ducklake_lab.catalog.database import CatalogDatabase
from ducklake_lab.catalog.files import read_data_files

pytestmark = pytest.mark.sampled(4)


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


#: (column, value, previous, snapshot id) of each cell.
Cells = list[tuple[str, str | None, str | None, int | None]]


def cells(session: dl.Session, where: str | None = None, **more: object) -> Cells:
    return [row[1:5] for row in session.table("t").blame(where, **more).fetchall()]  # type: ignore[arg-type]


def newest(session: dl.Session) -> int:
    return session.current_snapshot().snapshot_id


def test_each_cell_has_the_commit_that_set_it(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
    session.author = "ann"
    session.record_statements = lambda: {"notebook": "load.ipynb", "cell": 3}
    session.sql("INSERT INTO t SELECT i, 'a' || i FROM range(100) r(i)", message="load")
    session.author = "bob"
    session.record_statements = False
    session.sql("UPDATE t SET s = 'x' WHERE i = 5")
    found = session.table("t").blame("i = 5")
    assert found.columns == [
        *["row_id", "column", "value", "previous", "snapshot_id", "time", "author", "message", "statement", "notebook"],
        "cell",
    ]
    times = {entry.info.snapshot_id: entry.info.snapshot_time for entry in session.snapshots()}
    statement = "INSERT INTO t SELECT i, 'a' || i FROM range(100) r(i)"
    assert found.fetchall() == [
        (5, "i", "5", None, 2, times[2], "ann", "load", statement, "load.ipynb", 3),
        (5, "s", "x", "a5", 3, times[3], "bob", None, None, None, None),
    ]
    assert found.info.snapshots == [("lake", 3)]
    assert not found.info.remarks


def test_rows_and_columns_are_chosen(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR, \"x y\" INTEGER); INSERT INTO t VALUES (1, 'a', 0), (2, 'b', 0)")
    assert [row[:2] for row in session.table("t").blame().fetchall()] == [
        (row_id, name) for row_id in (0, 1) for name in ("i", "s", "x y")
    ]
    table = session.table("t")
    assert [row[:2] for row in table.blame("t.i = 2 -- a comment", ["X Y", "i", "I"]).fetchall()] == [
        (1, "i"),
        (1, "x y"),
    ]
    assert table.blame("i IN (SELECT max(i) FROM t)", ["i"]).fetchall()[0][0] == 1
    assert table.blame("false").fetchall() == []
    assert table.blame("i > 0", []).fetchall() == []


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("i = 1) OR (true", r'Syntax error at "\)"'),
        ("(i = 1", "Syntax error at the end"),
        ("i = 1; DROP TABLE t", "A condition was expected"),
        ("", "A condition was expected"),
        ("q = 1", 'no column "q"'),
        ("i =", "yntax error"),
    ],
)
def test_a_wrong_condition_is_refused(session: dl.Session, where: str, error: str) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    with pytest.raises(dl.SqlError, match=error):
        session.table("t").blame(where)
    assert session.sql("FROM t").fetchall() == [(1,)]


def test_arguments_of_other_types_are_refused(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    with pytest.raises(dl.UsageError, match="a condition as text"):
        session.table("t").blame(5)  # type: ignore[arg-type]
    with pytest.raises(dl.UsageError, match="a name or a list of names"):
        session.table("t").blame(columns=[5])  # type: ignore[list-item]
    assert cells(session, columns="i") == [("i", "1", None, 2)]


def test_an_unknown_column_is_named(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (number INTEGER)")
    with pytest.raises(dl.EntryNotFoundError, match='t has no column "nunber"'):
        session.table("t").blame(columns=["nunber"])


def test_the_state_of_then_is_blamed(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a')")
    session.sql("UPDATE t SET s = 'b'")
    session.tag("then", 2)
    time = session.current_snapshot().snapshot_time
    session.sql("UPDATE t SET s = 'c'")
    a, b, c = [("s", "a", None, 2)], [("s", "b", "a", 3)], [("s", "c", "b", 4)]
    for at, expected in ((None, c), (2, a), (3, b), ("then", a), (time, b)):
        assert cells(session, columns=["s"], at=at) == expected
        assert [row[1:5] for row in session.table("t", at=at).blame(columns=["s"]).fetchall()] == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [4, 40], ids=["inlined", "files"])
@pytest.mark.parametrize("vectors", [False, True], ids=["parquet", "vectors"])
def test_maintenance_sets_nothing(session: dl.Session, rows: int, vectors: bool) -> None:
    session.sql(f"CALL lake.set_option('write_deletion_vectors', {str(vectors).lower()})")
    session.sql(f"CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range({rows}) r(i)")
    session.sql(f"INSERT INTO t SELECT i, 'a' FROM range(100, {100 + rows}) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i % 2 = 0")
    session.sql("UPDATE t SET s = 'c' WHERE i % 10 = 0")
    session.sql("UPDATE t SET s = s WHERE i < 20")  # nothing changes
    session.sql("DELETE FROM t WHERE i = 1")
    expected = cells(session)
    assert {(value, old, at) for _, value, old, at in expected if value in "abc"} == {  # type: ignore[operator]
        ("a", None, 2), ("a", None, 3), ("b", "a", 4), ("c", "b", 5)
    }  # fmt: skip
    for call in (
        "flush_inlined_data()",
        "rewrite_data_files(delete_threshold => 0.01)",
        "merge_adjacent_files()",
        "flush_inlined_data()",
    ):
        session.sql(f"CALL lake.{call}")
        assert cells(session) == expected, call
    session.sql("UPDATE t SET s = 'd' WHERE i = 100")
    assert cells(session, "i = 100") == [("i", "100", None, 3), ("s", "d", "c", newest(session))]


def test_names_and_types_set_nothing(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, f FLOAT); INSERT INTO t VALUES (1, 0.1)")
    session.sql("ALTER TABLE t RENAME f TO g")
    session.sql("ALTER TABLE t ALTER g SET DATA TYPE DOUBLE")
    session.sql("ALTER TABLE t ALTER i SET DATA TYPE BIGINT")
    session.sql("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t")
    (as_double,) = session.sql("SELECT g::VARCHAR FROM t").fetchall()[0]
    assert cells(session) == [("i", "1", None, 2), ("g", as_double, None, 2)]
    session.sql("UPDATE t SET i = 5_000_000_000")
    assert cells(session, columns=["i"]) == [("i", "5000000000", "1", newest(session))]


def test_a_new_column_is_set_by_the_snapshot_that_adds_it(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
    session.sql("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7")
    session.sql("INSERT INTO t VALUES (100, 'b', 7)")
    session.sql("UPDATE t SET n = 8 WHERE i = 1")
    session.sql("UPDATE t SET s = 'c' WHERE i = 2")
    found = {where: cells(session, where, columns=["n"]) for where in ("i = 0", "i = 1", "i = 2", "i = 100")}
    assert found == {
        "i = 0": [("n", "7", None, 3)],
        "i = 1": [("n", "8", "7", 5)],
        "i = 2": [("n", "7", None, 3)],
        "i = 100": [("n", "7", None, 4)],
    }
    # another column of the name has a history of its own
    session.sql("ALTER TABLE t DROP COLUMN s; ALTER TABLE t ADD COLUMN s VARCHAR")
    assert cells(session, "i = 2", columns=["s"]) == [("s", None, None, newest(session))]


def test_restore_sets_what_it_changes(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i = 1")
    session.sql("DELETE FROM t WHERE i = 2")
    session.sql("UPDATE t SET s = 'c' WHERE i = 4")
    session.restore("t", to=2)
    at = newest(session)
    assert cells(session, "i = 0") == [("i", "0", None, 2), ("s", "a", None, 2)]
    assert cells(session, "i = 1") == [("i", "1", None, 2), ("s", "a", "b", at)]
    assert cells(session, "i = 2") == [("i", "2", None, at), ("s", "a", None, at)]
    session.sql("DROP TABLE t")
    session.restore("t", to=at)
    assert cells(session, "i = 0") == [("i", "0", None, at + 2), ("s", "a", None, at + 2)]


def test_rows_of_added_files_are_set_by_the_call(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
    session.sql(f"COPY (SELECT i::INTEGER AS i, 'a' AS s FROM range(30) r(i)) TO '{tmp_path}/more.parquet'")
    session.sql(f"CALL ducklake_add_data_files('lake', 't', '{tmp_path}/more.parquet')")
    session.sql("UPDATE t SET s = 'b' WHERE i = 3")
    assert cells(session, "i = 3") == [("i", "3", None, 2), ("s", "b", "a", 3)]
    assert cells(session, "i = 4") == [("i", "4", None, 2), ("s", "a", None, 2)]


def test_expired_snapshots_are_not_blamed_nor_others_for_them(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i < 15")
    session.sql("UPDATE t SET s = 'c' WHERE i < 15")
    session.sql("UPDATE t SET s = 'd' WHERE i >= 15")
    session.sql("CALL lake.expire_snapshots(versions => [0, 1, 2, 3])")
    for call in ("", "CALL lake.cleanup_old_files(cleanup_all => true)"):
        if call:
            session.sql(call)
        found = session.table("t").blame("i IN (1, 20)")
        assert [row[1:] for row in found.fetchall() if row[4] is None] == [
            ("i", "1", *[None] * 8),
            ("s", "c", *[None] * 8),
            ("i", "20", *[None] * 8),
        ]
        assert cells(session, "i = 20", columns=["s"]) == [("s", "d", "a", 5)]
        assert found.info.remarks == ["earlier snapshots have expired: history known from snapshot 4"]
        assert not session.table("t").blame("i = 20", ["s"]).info.remarks


def test_a_change_in_the_middle_of_expired_snapshots_is_unknown(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
    for letter in "bcd":
        session.sql(f"UPDATE t SET s = '{letter}' WHERE i < 15")
    session.sql("CALL lake.expire_snapshots(versions => [3, 4])")
    # from snapshot 2 to snapshot 5 it went from a to d, by steps that nobody knows
    assert cells(session, "i = 1") == [("i", "1", None, None), ("s", "d", None, None)]
    assert cells(session, "i = 20") == [("i", "20", None, 2), ("s", "a", None, 2)]


def test_a_snapshot_that_expired_is_known_by_its_neighbours(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i = 1")
    session.sql("UPDATE t SET s = 'c' WHERE i = 2")
    session.sql("CALL lake.expire_snapshots(versions => [3])")
    (row,) = session.table("t").blame("i = 1", ["s"]).fetchall()
    assert row == (1, "s", "b", "a", 3, *[None] * 6)


def test_only_the_files_of_the_rows_are_read(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR)")
    for number in range(6):
        session.sql(f"INSERT INTO t SELECT i, 'a' FROM range({100 * number}, {100 * number + 50}) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i >= 200 AND i < 250")
    for number in (0, 1, 3, 4, 5):
        session.sql(f"UPDATE t SET s = 'z' WHERE i >= {100 * number} AND i < {100 * number + 50}")
    session.sql("UPDATE t SET s = 'c' WHERE i = 210")
    expected = [("i", "210", None, 4), ("s", "c", "b", 14)]
    assert cells(session, "i = 210") == expected
    held = {
        path for (path,) in session.sql("SELECT DISTINCT filename FROM t AT (VERSION => 4) WHERE i = 210").fetchall()
    }
    held |= {
        path for (path,) in session.sql("SELECT DISTINCT filename FROM t AT (VERSION => 8) WHERE i = 210").fetchall()
    }
    files = [path for path in (tmp_path / "data").rglob("*.parquet") if "delete" not in path.name]
    others = [path for path in files if str(path) not in held]
    assert len(others) == 10
    for path in others:
        path.unlink()
    assert cells(session, "i = 210") == expected


def test_rows_that_another_engine_found_are_blamed_alike(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(40) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i < 20")
    session.sql("ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 7; INSERT INTO t VALUES (100, 'x', 1)")
    session.sql("UPDATE t SET s = 'c' WHERE i = 3")
    lake, state = session.lakes[0], session.state()
    table = state.table_in_text("main", "t")
    text = "SELECT rowid AS row_id, _ducklake_file_id AS file_id, _ducklake_position AS position FROM t"
    places = session.sql(text).carried()
    assert set(pc.is_valid(places.column("file_id")).to_pylist()) == {True, False}
    found = blame(lake, state, table, Found(places), [0, 1, 2], "UTC")
    result = session.table("t").blame()
    expected, expected_rows = result.carried(), result.fetchall()
    assert found.rows.num_rows == 41 * 3
    assert found.rows.to_pylist() == expected.to_pylist()
    assert found.rows.schema == expected.schema
    # a query that Spark runs gives places alone
    asked: list[object] = []
    monkeypatch.setattr(session._sources.blames, "_read_here", lambda *given: asked.append(given))
    assert session.table("t").blame().carried().to_pylist() == expected.to_pylist()
    ids = [row_id for (row_id,) in session.sql("SELECT rowid FROM t WHERE i IN (3, 100)").fetchall()]
    some = [row for row in expected_rows if row[0] in ids and row[1] == "n"]
    assert session.table("t").blame("i IN (3, 100)", ["n"]).fetchall() == some
    assert len(some) == 2
    assert len(asked) == 2


def test_rows_without_earlier_versions_take_one_connection_of_the_catalog(
    session: dl.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(40) r(i)")
    session.sql("UPDATE t SET s = 'b' WHERE i = 1")
    cells(session, "i > 5")
    opened: list[bool] = []
    connect = CatalogDatabase.connect

    def counting(self: CatalogDatabase, **more: Any) -> Any:
        opened.append(True)
        return connect(self, **more)

    lake, state = session.lakes[0], session.state()
    found = session.table("t").blame("i > 5")
    table = state.table_in_text("main", "t")
    text = "SELECT rowid AS row_id, _ducklake_file_id AS file_id, _ducklake_position AS position, "
    text += "_ducklake_snapshot_id AS snapshot_id, i::VARCHAR AS t0, s::VARCHAR AS t1 FROM t WHERE i > 5"
    with lake.connect() as connection:
        files = read_data_files(connection, table.table_id, sa.true())
    rows = session.sql(text).carried()
    monkeypatch.setattr(CatalogDatabase, "connect", counting)
    blamed = blame(lake, state, table, Found(rows, files), [0, 1], "UTC")
    assert opened == [True]
    assert blamed.rows.to_pylist() == found.carried().to_pylist()


@pytest.mark.parametrize("rows", [0, 1, 99_999, 100_000, 150_000])
def test_lines_of_many_rows_are_put_together_in_parts(rows: int) -> None:
    began = pa.array(np.where(np.arange(rows) % 1000 == 0, 7, 3), pa.int64())
    texts = {f"t{place}": pa.array([f"{place}.{i}" for i in range(rows)], pa.string()) for place in (0, 2)}
    table = pa.table({"row_id": pa.array(range(10, 10 + rows), pa.int64()), "began": began, **texts})
    inserted = Inserted(table, [0, 2], [1, 5])
    infos = [(n, None, f"author {n}", None, None, None, None) for n in (2, 3, 4, 5, 6)]
    names = ["snapshot_id", "time", "author", "message", "statement", "notebook", "cell"]
    kinds = [pa.int64(), pa.timestamp("us", "UTC"), *[pa.string()] * 4, pa.int64()]
    columns = [pa.array(values, kind) for values, kind in zip(zip(*infos, strict=True), kinds, strict=True)]
    signing = Signing(["a", "b", "c"], Commits(pa.table(columns, names), {}))
    lines = [line for part in inserted.lines() for line in signing.sign(part).to_pylist()]
    assert len(lines) == 2 * rows
    # 3 and 5 follow snapshots that are kept, and so does 7, which has expired itself
    authors = {3: "author 3", 5: "author 5", 7: None}
    for at, line in enumerate(lines):
        row, place = at // 2, at % 2 * 2
        snapshot = max(7 if row % 1000 == 0 else 3, (1, 0, 5)[place])
        told = (line["row_id"], line["column"], line["value"], line["previous"], line["snapshot_id"], line["author"])
        assert told == (10 + row, "abc"[place], f"{place}.{row}", None, snapshot, authors[snapshot])
    assert signing.unknown == 0


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("DOUBLE", "'nan'", "1.5"),
        ("DOUBLE", "1.0", "'-inf'"),
        ("DECIMAL(10,2)", "1.10", "-0.01"),
        ("HUGEINT", "1", "12345678901234567890123456789"),
        ("BLOB", r"'\x00\xFF'", "''"),
        ("DATE", "'infinity'", "'0044-03-15 (BC)'"),
        ("TIMESTAMPTZ", "'2020-01-01 00:00:00+02'", "'2021-07-01 00:00:00+00'"),
        ("TIMESTAMP_NS", "'2020-01-01 00:00:00.123456789'", "'2021-01-01'"),
        ("TIMETZ", "'12:00:00+02:30'", "'13:00:00+00'"),
        ("INTERVAL", "'1 year 2 days'", "'3 hours'"),
        ("UUID", "'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
        ("JSON", """'{"a": [1, null]}'""", "'null'"),
        ('STRUCT(a INTEGER, "b c" VARCHAR)', "{'a': 1, 'b c': 'it''s'}", "{'a': NULL, 'b c': 'x'}"),
        ("INTEGER[]", "[1, NULL]", "[]"),
        ("MAP(VARCHAR, INTEGER)", "MAP {'a': 1}", "MAP {'a': 2}"),
    ],
)
@pytest.mark.parametrize("rows", [1, 30], ids=["inlined", "file"])
def test_values_are_duckdbs_texts(session: dl.Session, kind: str, first: str, second: str, rows: int) -> None:
    session.sql("SET TimeZone = 'America/New_York'")
    session.sql(f"CREATE TABLE t (i INTEGER, v {kind})")
    session.sql(f"INSERT INTO t SELECT i, CAST({first} AS {kind}) FROM range({rows}) r(i)")
    session.sql(f"UPDATE t SET v = CAST({second} AS {kind})")
    session.sql("UPDATE t SET v = v")
    # files hold some types with other values than the written ones
    new, old = (
        session.sql(f"SELECT CAST(v AS VARCHAR) FROM t AT (VERSION => {at}) WHERE i = 0").fetchall()[0] for at in (3, 2)
    )
    assert cells(session, "i = 0", columns=["v"]) == [("v", *new, *old, 3)]


def test_variants_and_geometries(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER, v VARIANT, g GEOMETRY)")
    session.sql("INSERT INTO t SELECT i, CAST({'a': i} AS VARIANT), CAST('POINT(1 2)' AS GEOMETRY) FROM range(30) r(i)")
    session.sql("UPDATE t SET v = CAST('x' AS VARIANT) WHERE i = 1")
    session.sql("UPDATE t SET g = NULL WHERE i = 1")
    session.sql("UPDATE t SET v = CAST({'a': 2} AS VARIANT) WHERE i = 2")
    assert cells(session, "i = 1") == [
        ("i", "1", None, 2), ("v", "x", "{'a': 1}", 3), ("g", None, "POINT (1 2)", 4)
    ]  # fmt: skip
    assert cells(session, "i = 2") == [
        ("i", "2", None, 2), ("v", "{'a': 2}", None, 2), ("g", "POINT (1 2)", None, 2)
    ]  # fmt: skip


def test_names_of_columns_hide_nothing(session: dl.Session) -> None:
    names = ("rowid", "snapshot_id", "began", "c0", "p0", "file_id", "value", "rows")
    session.sql(f"CREATE TABLE t ({', '.join(f'{name} INTEGER' for name in names)})")
    session.sql(f"INSERT INTO t VALUES ({', '.join(map(str, range(len(names))))})")
    session.sql("UPDATE t SET c0 = 40")
    assert cells(session, "rowid = 0 AND snapshot_id = 1") == [
        (name, *(("40", str(place), 3) if name == "c0" else (str(place), None, 2))) for place, name in enumerate(names)
    ]


def test_encrypted_files_are_read(tmp_path: Path, lake_uri: Callable[..., str]) -> None:
    uri = lake_uri()
    with dl.Session(engine="duckdb") as session:
        session.attach(uri, alias="lake", data_path=f"{tmp_path}/data", encrypted=True)
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t SELECT i, 'a' FROM range(30) r(i)")
        session.sql("UPDATE t SET s = 'b' WHERE i < 20")
        session.sql("UPDATE t SET s = 'c' WHERE i = 1")
        assert cells(session, "i = 1") == [("i", "1", None, 2), ("s", "c", "b", 4)]
        assert [row[0] for row in session.table("t").life(1).fetchall()] == [2, 3, 4]


def test_changes_that_are_not_committed_are_refused(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t (i INTEGER); CREATE TABLE u (i INTEGER); INSERT INTO t VALUES (1); INSERT INTO u VALUES (2)"
    )
    with session.transaction():
        session.sql("UPDATE t SET i = 2")
        with pytest.raises(dl.UnsupportedFeatureError, match="not committed"):
            session.table("t").blame()
        with pytest.raises(dl.UnsupportedFeatureError, match="not committed"):
            session.sql("FROM lake.life('t', 0)")
        assert session.table("u").blame().fetchall()[0][1:5] == ("i", "2", None, 4)
        assert cells(session, at=4) == [("i", "1", None, 3)]
    with session.transaction():
        session.sql("ALTER TABLE t ADD COLUMN n INTEGER")
        with pytest.raises(dl.UnsupportedFeatureError, match="not committed"):
            session.table("t").blame()


def test_sql_calls_it(session: dl.Session) -> None:
    session.sql("CREATE SCHEMA s; CREATE TABLE s.t (i INTEGER, v INTEGER); INSERT INTO s.t VALUES (1, 1), (2, 2)")
    session.sql("UPDATE s.t SET v = 3 WHERE i = 1")
    time = session.current_snapshot().snapshot_time.isoformat()
    one = [("v", "3", "1", 4)]
    for call, expected in (
        ("lake.s.blame('t', 'i = 1', columns => ['v'])", one),
        ("lake.blame('t', where => 'i = 1', columns => 'v', schema => 's')", one),
        ("ducklake_blame('lake', 't', 'i = 1', schema => 's', columns => ['v'])", one),
        ("lake.s.blame('t', 'i = 1', columns => ['v'], at => 3)", [("v", "1", None, 3)]),
        (f"lake.s.blame('t', 'i = 1', columns => ['v'], at => TIMESTAMPTZ '{time}')", one),
    ):
        assert session.sql(f'SELECT "column", value, previous, snapshot_id FROM {call}').fetchall() == expected
    assert len(session.sql("CALL lake.s.blame('t')").fetchall()) == 4
    session.sql("CREATE VIEW lake.main.who AS SELECT row_id, author FROM lake.s.blame('t')")
    assert len(session.sql("FROM who").fetchall()) == 4
    assert session.sql("DESCRIBE FROM lake.s.blame('t')").fetchall()[0][:2] == ("row_id", "BIGINT")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("blame('t', 1)", "is a condition as text"),
        ("blame('t', columns => 1)", "a name or a list of names"),
        ("blame('t', at => true)", "a snapshot id, a time or a tag"),
        ("blame('t', what => 1)", "no argument what"),
        ("blame()", "takes 1 to 2 arguments"),
        ("life('t')", "is a whole number"),
        ("life('t', 'x')", "is a whole number"),
    ],
)
def test_wrong_arguments_are_named(session: dl.Session, call: str, error: str) -> None:
    session.sql("CREATE TABLE t (i INTEGER)")
    with pytest.raises(dl.UsageError, match=error):
        session.sql(f"FROM lake.{call}")


def test_times_are_aware(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)")
    (moment,) = session.sql("SELECT time FROM lake.blame('t')").fetchall()[0]
    assert isinstance(moment, datetime) and moment.tzinfo is not None

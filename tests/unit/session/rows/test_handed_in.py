"""Rows that a program has, read by name: the same values as DuckDB gives for the same variable."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import BindError, DuckLakeError, UnsupportedFeatureError, UsageError

pytestmark = pytest.mark.sampled(3)

TIMES = ["2024-01-01", None, "2024-03-01"]
FRAMES: dict[str, Any] = {
    "pandas NaN": pd.DataFrame({"v": [1.5, float("nan"), float("inf")]}),
    "pandas Int64": pd.DataFrame({"v": pd.Series([1, None, 3], dtype="Int64")}),
    "pandas object": pd.DataFrame({"v": pd.Series(["a", None, ""], dtype="object")}),
    "pandas string": pd.DataFrame({"v": pd.Series(["a", None, ""], dtype="string")}),
    "pandas bool": pd.DataFrame({"v": pd.Series([True, None, False], dtype="object")}),
    "pandas bytes": pd.DataFrame({"v": [b"\x00a", None, b""]}),
    "pandas decimal": pd.DataFrame({"v": [Decimal("1.10"), None, Decimal("22.5")]}),
    "pandas date": pd.DataFrame({"v": [dt.date(2024, 1, 1), None, dt.date(1, 1, 1)]}),
    "pandas time": pd.DataFrame({"v": [dt.time(1, 2, 3), None, dt.time(0)]}),
    "pandas timedelta": pd.DataFrame({"v": pd.to_timedelta([1, None, 3], unit="h")}),
    "pandas datetime": pd.DataFrame({"v": pd.to_datetime(TIMES)}),
    "pandas seconds": pd.DataFrame({"v": pd.to_datetime(TIMES).astype("datetime64[s]")}),
    "pandas zone": pd.DataFrame({"v": pd.to_datetime(TIMES).as_unit("us").tz_localize("Europe/Berlin")}),
    "pandas uint64": pd.DataFrame({"v": pd.Series([1, 2**64 - 1], dtype="uint64")}),
    "pandas float32": pd.DataFrame({"v": pd.Series([0.1, 2], dtype="float32")}),
    "pandas nothing": pd.DataFrame({"v": [None, None]}),
    "pandas Arrow": pd.DataFrame({"v": pd.Series([1, None], dtype="int64[pyarrow]")}),
    "pandas index": pd.DataFrame({"v": [1, 2]}, index=["x", "y"]),
    "polars text": pl.DataFrame({"v": ["a", None, ""]}),
    "polars category": pl.DataFrame({"v": pl.Series(["b", "a", None], dtype=pl.Categorical)}),
    "polars NaN": pl.DataFrame({"v": [1.0, float("nan"), None]}),
    "polars struct": pl.DataFrame({"v": [{"a": 1}, None]}),
    "polars list": pl.DataFrame({"v": [[1], None, []]}, schema={"v": pl.List(pl.Int64)}),
    "polars array": pl.DataFrame({"v": [[1, 2], [3, 4]]}, schema={"v": pl.Array(pl.Int32, 2)}),
    "polars duration": pl.DataFrame({"v": [dt.timedelta(hours=1), None]}),
    "polars lazy": pl.LazyFrame({"v": [1, 2, 3]}).filter(pl.col("v") > 1),
    "arrow table": pa.table({"v": pa.array([1, None], pa.int16())}),
    "arrow batch": pa.record_batch({"v": pa.array(["x"], pa.large_string())}),
    "arrow view": pa.table({"v": pa.array(["x", None], pa.string_view())}),
    "arrow map": pa.table({"v": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))}),
    "arrow time": pa.table({"v": pa.array([1], pa.time32("s"))}),
    "arrow runs": pa.table({"v": pa.RunEndEncodedArray.from_arrays([2, 3], ["x", None])}),
    "arrow list view": pa.table({"v": pa.array([[1, 2], None, []], pa.list_view(pa.int8()))}).slice(1),
    "arrow bool8": pa.table({"v": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))}),
    "arrow views below": pa.table(
        {"v": pa.array([{"a": [1.5]}], pa.struct([("a", pa.large_list_view(pa.float32()))]))}
    ),
    "pandas half": pd.DataFrame({"v": pd.Series([1.5, -0.0, 65504], dtype="float16")}),
}


if int(pa.__version__.partition(".")[0]) >= 21:  # before, it makes no array of them
    FRAMES["pandas UUID"] = pd.DataFrame({"v": [uuid.UUID(int=5), uuid.UUID(int=6)]})


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("lake")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", data_path=f"{folder}/data") as session:
        session.sql("CREATE TABLE t AS SELECT i::INTEGER AS i, 'a' || i AS s FROM range(5) r(i)")
        yield session


@pytest.mark.parametrize("kind", FRAMES)
def test_values_and_types_are_those_that_duckdb_reads(kind: str, session: dl.Session) -> None:
    frame = FRAMES[kind]
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{session.sql('SHOW TimeZone').fetchall()[0][0]}'")
        expected = connection.execute("SELECT typeof(v), v FROM frame").fetchall()
    for given in ({"frame": frame}, {"variables": {"frame": frame}}):
        assert repr(session.sql("SELECT typeof(v), v FROM frame", **given).fetchall()) == repr(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("FROM df ORDER BY i", [(3, "new"), (9, "nine")]),
        ("FROM DF WHERE df.i > 3", [(9, "nine")]),
        ("SELECT t.s, u.s FROM t JOIN df AS u USING (i)", [("a3", "new")]),
        ("SELECT df.* EXCLUDE (i) FROM t RIGHT JOIN df USING (i) WHERE t.i IS NULL", [("nine",)]),
        ("WITH df AS (SELECT 1 AS one) FROM df", [(1,)]),
        ("PIVOT df ON s USING sum(i)", [(3, 9)]),
        ("SELECT count(*) FROM t WHERE i IN (SELECT i FROM df)", [(1,)]),
        ("DESCRIBE df", [("i", "BIGINT", "YES", None, None, None), ("s", "VARCHAR", "YES", None, None, None)]),
        ("SELECT column_name, min, max FROM (SUMMARIZE df)", [("i", "3", "9"), ("s", "new", "nine")]),
        ("SELECT count(*) FROM df UNION ALL SELECT count(*) FROM df", [(2,), (2,)]),
    ],
)
@pytest.mark.parametrize("how", ["table", "variable"])
def test_they_stand_wherever_a_table_does(query: str, expected: list[Any], how: str, session: dl.Session) -> None:
    df = pd.DataFrame({"i": [3, 9], "s": ["new", "nine"]})
    if how == "variable":
        query = query.replace("DF", "df")
    given = {"df": df} if how == "table" else {"variables": {"df": df, "other": 5}}
    assert session.sql(query, **given).fetchall() == expected  # type: ignore[arg-type]


def test_a_table_handed_in_hides_a_lakes_and_a_variable_does_not(session: dl.Session) -> None:
    t = pl.DataFrame({"z": [7]})
    assert session.sql("FROM t", t=t).fetchall() == [(7,)]
    assert session.sql("FROM lake.main.t LIMIT 1", t=t).columns == ["i", "s"]
    assert session.sql("FROM t", variables={"t": t}).columns == ["i", "s"]
    assert session.sql("FROM t").columns == ["i", "s"]


def test_other_databases_tables_come_before_variables(session: dl.Session) -> None:
    df = pd.DataFrame({"v": [1]})
    try:
        session.sql("USE memory")
        assert session.sql("FROM df", variables={"df": df}).fetchall() == [(1,)]
        session.sql("CREATE TABLE df AS SELECT 5 AS five")
        assert session.sql("FROM df", variables={"df": df}).fetchall() == [(5,)]
        assert session.sql("FROM df", df=df).fetchall() == [(1,)]
        session.sql("DROP TABLE df; CREATE TEMP TABLE df AS SELECT 6 AS six; USE lake")
        assert session.sql("FROM df", variables={"df": df}).fetchall() == [(6,)]
    finally:
        session.sql("USE lake; DROP TABLE IF EXISTS temp.df")


def test_results_are_tables(session: dl.Session) -> None:
    first = session.sql("SELECT i * 2 AS double FROM t")
    assert session.sql("SELECT sum(double) FROM first", first=first).fetchall() == [(20,)]
    changed = session.sql("CREATE TABLE no_rows (i INTEGER)")
    with pytest.raises(UsageError, match="no table"):
        session.sql("FROM changed", changed=changed)


def test_nothing_stays_after_the_statement(session: dl.Session) -> None:
    session.sql("FROM df", df=pd.DataFrame({"i": [1]}))
    with pytest.raises(BindError, match='no table "df"'):
        session.sql("FROM df")
    assert session._sources.names.registered == {}


def test_internals_are_out_of_reach(session: dl.Session) -> None:
    session.sql("USE memory")
    try:
        for name in ("tables", "sql", "connection", "duckdb", "plan"):
            with pytest.raises(BindError, match=f'no table "{name}"'):
                session.sql(f"FROM {name}")
    finally:
        session.sql("USE lake")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engin": "spark"}, '"engin" is no argument of sql'),
        ({"updates": [1, 2]}, '"updates" is no argument of sql.*list'),
        ({"df": pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int8())]), [])}, "read only once"),
        (
            {"df": pd.DataFrame({"v": [1, "x"]})},
            "Column \"v\" of df cannot be read as a table: Could not convert 'x'.*; cast it",
        ),
        ({"df": pd.DataFrame({"v": [2**70]})}, "df cannot be read as a table"),
        ({"df": pd.DataFrame({"v": pd.arrays.SparseArray([0, 1])})}, "df cannot be read as a table: Sparse .*column v"),
        (
            {"df": pa.table({"v": pa.array([1], pa.decimal256(50, 10))})},
            r'Column "v" of df has the Arrow type decimal256\(50, 10\), which lakes do not have; cast it',
        ),
        (
            {"df": pa.table({"v": pa.array([{}], pa.struct([]))})},
            r"has the Arrow type struct<>, which lakes do not have",
        ),
        (
            {"df": pd.DataFrame([[1, 2]], columns=["a", "A"])},
            'df has columns "a" and "A", one name for SQL; rename one.',
        ),
        ({"variables": {"df": [1, 2]}}, 'no table "df".* The variable "df" is of type list'),
    ],
)
def test_what_is_no_table_says_so(given: dict[str, Any], message: str, session: dl.Session) -> None:
    with pytest.raises((UsageError, BindError, UnsupportedFeatureError), match=message):
        session.sql("FROM df", **given)


def test_close_names_are_suggested(session: dl.Session) -> None:
    with pytest.raises(BindError, match="Did you mean updates"):
        session.sql("FROM update", updates=pa.table({"i": [1]}))
    variables = {"favourites": pa.table({"i": [1]}), "favourits": "no table"}
    with pytest.raises(BindError, match="Did you mean favourites"):
        session.sql("FROM favorites", variables=variables)


def test_what_a_lake_stores_reads_nothing_of_a_program(session: dl.Session) -> None:
    df = pd.DataFrame({"i": [1]})
    for statement in ("CREATE VIEW v AS FROM df", "CREATE MACRO m() AS TABLE FROM df"):
        for given in ({"df": df}, {"variables": {"df": df}}):
            with pytest.raises(BindError, match='no table "df"'):
                session.sql(statement, **given)  # type: ignore[arg-type]
    session.sql("CREATE TABLE gone AS SELECT 1 AS i; CREATE VIEW of_gone AS FROM gone; DROP TABLE gone")
    with pytest.raises(BindError, match="gone"):
        session.sql("FROM of_gone", gone=df)


@pytest.mark.slow
def test_changes_read_them(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE orders (id INTEGER, state VARCHAR)")
        session.sql("INSERT INTO orders SELECT id, 'new' FROM ids", ids=pl.DataFrame({"id": [1, 2, 3]}))
        updates = pd.DataFrame({"id": [2, 7], "state": ["paid", "new"]})
        merge = """MERGE INTO orders USING updates ON orders.id = updates.id
            WHEN MATCHED THEN UPDATE SET state = updates.state WHEN NOT MATCHED THEN INSERT BY NAME"""
        assert session.sql(merge, updates=updates).fetchall() == [(2,)]
        session.sql("DELETE FROM orders WHERE id IN (SELECT id FROM gone)", variables={"gone": pa.table({"id": [1]})})
        session.sql("UPDATE orders SET state = 'seen' WHERE id IN (FROM seen)", seen=pa.table({"id": [3]}))
        assert session.sql("FROM orders ORDER BY id").fetchall() == [(2, "paid"), (3, "seen"), (7, "new")]
        session.sql("CREATE TABLE made AS FROM updates", updates=updates)
        assert session.sql("FROM made ORDER BY id").fetchall() == [(2, "paid"), (7, "new")]
        session.sql(f"COPY updates TO '{tmp_path}/out.parquet'", updates=updates)
        assert session.sql(f"SELECT count(*) FROM '{tmp_path}/out.parquet'").fetchall() == [(2,)]
        before = session.current_snapshot()
        with pytest.raises(DuckLakeError):
            session.sql("INSERT INTO orders FROM wrong", wrong=pa.table({"id": ["x"], "state": ["y"]}))
        assert session.current_snapshot() == before


def test_a_preview_reads_them(session: dl.Session) -> None:
    session.sql("CREATE TABLE previewed (i INTEGER)")
    preview = session.preview("INSERT INTO previewed FROM df", df=pa.table({"i": [1, 2]}))
    preview.commit()
    assert session.sql("SELECT count(*) FROM previewed").fetchall() == [(2,)]


def test_explain_calls_them_by_name(session: dl.Session) -> None:
    (text,) = session.sql("EXPLAIN FROM df", df=pa.table({"i": range(1500)})).arrow()["explain_value"].to_pylist()
    assert text.startswith("df: 1,500 rows\n")


def test_writing_takes_all_of_them(session: dl.Session) -> None:
    session.write(pl.DataFrame({"i": [1]}), "main.written", mode="create")
    session.write(pa.record_batch({"i": [2]}), "main.written")
    session.write(session.sql("SELECT i + 1 AS i FROM written WHERE i = 2"), "main.written")
    assert session.sql("FROM written ORDER BY i").fetchall() == [(1,), (2,), (3,)]
    with pytest.raises(UsageError, match="of type dict; rows are"):
        session.write({"i": [1]}, "main.written")

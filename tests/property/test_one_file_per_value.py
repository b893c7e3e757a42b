"""A table of one file per row answers as the same rows in one file do, and as DuckDB's own table does.

For each type of lakes, values at its edges, written by this package and by the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

import ducklake_lab as dl
from ducklake_lab.engine.placement import Limits
from tests import reference
from tests.property.values import EDGES, ROUNDED, UNORDERED, conditions, literal

KINDS = dict(zip(EDGES, range(len(EDGES)), strict=True))
#: Conditions asked in one statement, each by a scan of its own.
_AT_ONCE = 40
Run = Callable[[str], list[tuple[Any, ...]]]


def statements() -> Iterator[str]:
    for kind, number in KINDS.items():
        rows = [f"({i}, {literal(kind, value)})" for i, value in enumerate((*EDGES[kind], "NULL"), 1)]
        for table, parts in (("many", rows), ("one", [", ".join(rows)])):
            yield f"CREATE TABLE {table}{number} (id INTEGER, x {kind})"
            yield from (f"INSERT INTO {table}{number} VALUES {part}" for part in parts)


@pytest.fixture(scope="module")
def plain() -> Iterator[Run]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in statements():
            connection.execute(statement)
        yield lambda sql: connection.execute(sql).fetchall()


@pytest.fixture(scope="module", params=["ours", "reference"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URI of a lake with the tables."""
    folder = tmp_path_factory.mktemp("values")
    uri = f"ducklake:{folder}/lake.ducklake"
    if request.param == "reference":
        with reference.connect() as connection:
            connection.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{folder}/data', DATA_INLINING_ROW_LIMIT 0)")
            connection.execute("USE lake")
            for statement in statements():
                connection.execute(statement)
        return uri
    with dl.connect(uri, alias="lake", data_path=f"{folder}/data", engine="duckdb") as session:
        session.sql("SET TimeZone = 'UTC'; CALL lake.set_option('data_inlining_row_limit', 0)")
        for statement in statements():
            session.sql(statement)
    return uri


@pytest.fixture(scope="module")
def session(lake: str) -> Iterator[dl.Session]:
    # the small sides of joins are read first, as those of large tables are
    with dl.connect(lake, alias="lake", engine="duckdb", limits=Limits(joined=0)) as session:
        session.sql("SET TimeZone = 'UTC'")
        yield session


def answers(run: Run, table: str, wanted: list[str]) -> dict[str, object]:
    """The ids for which each condition is true; an error counts as an answer."""
    found: dict[str, object] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        queries = [f"(SELECT list(id ORDER BY id) FROM {table} WHERE {condition})" for condition in some]
        try:
            found.update(zip(some, run(f"SELECT {', '.join(queries)}")[0], strict=True))
        except (dl.DuckLakeError, duckdb.Error):
            for condition, query in zip(some, queries, strict=True):
                try:
                    found[condition] = run(f"SELECT {query}")[0][0]
                except (dl.DuckLakeError, duckdb.Error):
                    found[condition] = "an error"
    return found


@pytest.mark.sampled(10)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_askedfind_the_same_rows(session: dl.Session, plain: Run, kind: str) -> None:
    number, wanted = KINDS[kind], list(dict.fromkeys(conditions(kind)))
    ours = lambda sql: session.sql(sql).fetchall()  # noqa: E731
    many, one = answers(ours, f"many{number}", wanted), answers(ours, f"one{number}", wanted)
    # which rows an error comes from depends on what is read
    assert many == {condition: many[condition] if found == "an error" else found for condition, found in one.items()}
    if kind not in ROUNDED:
        expected = answers(plain, f"many{number}", wanted)
        assert many == {c: many[c] if "an error" in (many[c], found) else found for c, found in expected.items()}
        assert sum(found == "an error" for found in many.values()) <= len(many) / 5


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", KINDS)
def test_aggregates_are_those_of_the_rows(session: dl.Session, plain: Run, kind: str) -> None:
    number = KINDS[kind]
    asked = ["count(*)", "count(x)", "count(*) - count(x)", "count(x), count(*)", "bool_and(x IS NULL)"]
    if kind not in (*ROUNDED, "GEOMETRY", "VARIANT"):
        asked += ["min(x)", "max(x)", "min(x), max(x), count(x)"]
    for aggregate in asked:
        for where in ("", " WHERE x IS NULL", " WHERE x IS NOT NULL"):
            columns = ", ".join(f"CAST({part} AS VARCHAR)" for part in aggregate.split(", "))
            for table in ("many", "one"):
                query = f"SELECT {columns} FROM {table}{number}{where}"
                assert session.sql(query).fetchall() == plain(query), query


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", KINDS)
def test_statements_change_the_same_rows(session: dl.Session, plain: Run, kind: str) -> None:
    table = f"many{KINDS[kind]}"
    for condition in ("x IS NULL", "x IS NOT NULL"):
        for statement in (f"UPDATE {table} SET id = -id WHERE {condition}", f"DELETE FROM {table} WHERE {condition}"):
            left = []
            for run in (lambda sql: session.sql(sql).fetchall(), plain):
                run("BEGIN")
                run(statement)
                left.append(run(f"SELECT id FROM {table} ORDER BY id"))
                run("ROLLBACK")
            assert left[0] == left[1], statement


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("GEOMETRY", "VARIANT", "TIMETZ")])
def test_a_small_side_of_a_join_leaves_the_rows_that_match(session: dl.Session, plain: Run, kind: str) -> None:
    number = KINDS[kind]
    for where in ("", " WHERE one.id < 3", " WHERE one.x IS NOT NULL AND many.id > 1"):
        query = (
            f"SELECT many.id, one.id FROM many{number} AS many JOIN one{number} AS one USING (x){where} ORDER BY ALL"
        )
        found = session.sql(query).fetchall()
        if kind not in ROUNDED:
            assert found == plain(query), query
        # a table is its own match
        assert found or where


@pytest.mark.sampled(2)
def test_files_are_skipped_at_all(session: dl.Session) -> None:
    wanted = {
        "DATE": "x = 'infinity'",
        "TIMESTAMP": "x < '0044-03-16 (BC)' AND x > '0044-03-15 (BC)'",
        "TIMESTAMPTZ": "x = '-infinity'::TIMESTAMPTZ",
        "TIMESTAMP_MS": "x = 'infinity'",
        "TIME": "x = '24:00:00'",
        "DECIMAL(4,2)": "x = 0.01",
        "VARCHAR": "x = 'ab'",
        "UUID": "x = '80000000-0000-0000-0000-000000000001'",
        "STRUCT(a INTEGER, d DATE)": "x.d = '9999-12-31'",
    }
    for kind, condition in wanted.items():
        result = session.sql(f"SELECT id FROM many{KINDS[kind]} WHERE {condition}")
        assert len(result.fetchall()) == 1
        # an empty text, and a time that DuckDB spells a millisecond late, have no bounds; NULL of fields is not counted
        assert result.info.files_read <= (3 if kind.startswith("STRUCT") else 2), kind


#: Of each type, what row groups may be skipped by wrongly.
_AT_EDGES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("DATE", "TIMESTAMP", "TIMESTAMPTZ"),
        (
            "x = 'infinity'", "x < 'infinity'", "x <> 'infinity'", "x > '-infinity'", "x = '-infinity'",
            "x < '0001-01-01'", "x = '0044-03-15 (BC)'", "x <= '9999-12-31'", "x > '9999-12-31'",
        ),
    ),
    **dict.fromkeys(
        ("FLOAT", "DOUBLE"),
        ("x = 0", "x = '-0.0'", "x >= 0", "x < 0", "isnan(x)", "x > 1e30", "x = 'nan'", "x <> 'nan'", "x <= 'inf'", "x = 0.1"),
    ),
    "BOOLEAN": ("x", "NOT x", "x IS NOT TRUE"),
    "DECIMAL(4,2)": ("x = 0.01", "x < 0", "x > 0.005"),
    "BIGINT": ("x = 9007199254740993", "x > 9007199254740992", "x < 0"),
}  # fmt: skip


_NULLS = ("x IS NULL", "x IS NOT NULL")


def found_on_spark(session: dl.Session, wanted: list[tuple[str, str]]) -> list[list[int]]:
    """The ids of a table for which a condition is true; the filters of each scan reach Spark's reader."""
    parts = [f"SELECT {number} AS c, id FROM {table} WHERE {x}" for number, (table, x) in enumerate(wanted)]
    found = session.sql(" UNION ALL ".join(parts)).fetchall()
    return [sorted(row_id for number, row_id in found if number == place) for place in range(len(wanted))]


def on_spark(kind: str) -> list[str]:
    """Conditions on a column `x` of a type that Spark's reader may filter by."""
    if kind in _AT_EDGES:
        return [*_AT_EDGES[kind], *_NULLS]
    if kind in (*UNORDERED, "TIMESTAMP_NS"):  # Spark compares no nanoseconds
        return [*_NULLS]
    values = [literal(kind, value) for value in EDGES[kind]]
    # each value by one operator, so that a lake takes less than a minute
    compared = [f"x {('=', '<', '>=', '<>')[n % 4]} {value}" for n, value in enumerate(values)]
    compared.append(f"x = {values[-1]}")
    return [*compared, f"x IN ({values[0]}, {values[-1]})", *_NULLS]


@pytest.fixture(scope="module")
def spark_session(lake: str, spark: SparkSession) -> Iterator[dl.Session]:
    with dl.connect(lake, alias="lake", engine="spark", spark=spark, limits=Limits(refused=-1)) as session:
        session.sql("SET TimeZone = 'UTC'")
        yield session


@pytest.mark.sampled(10)
@pytest.mark.parametrize("kind", KINDS)
def test_spark_finds_the_same_rows(spark_session: dl.Session, plain: Run, kind: str) -> None:
    asked = on_spark(kind)
    many, one = f"many{KINDS[kind]}", f"one{KINDS[kind]}"
    wanted = [(table, condition) for condition in asked for table in (many, one)]
    found = dict(zip(wanted, found_on_spark(spark_session, wanted), strict=True))
    for condition in asked:
        assert found[many, condition] == found[one, condition], condition
        if kind not in ROUNDED:
            expected = [row[0] for row in plain(f"SELECT id FROM {many} WHERE {condition} ORDER BY id")]
            assert found[many, condition] == expected, condition

"""DESCRIBE, SHOW and listings in any place, and views and macros that DuckDB alone can bind: equal to the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.reference import connect

pytestmark = pytest.mark.sampled(4)

_ENTRIES = (
    "CREATE TABLE a (i INTEGER NOT NULL DEFAULT 7, s VARCHAR, d DECIMAL(5,2) DEFAULT 1.5)",
    "INSERT INTO a VALUES (1, 'x', 2), (2, NULL, 3)",
    "CREATE TABLE b (k INTEGER NOT NULL, t TIMESTAMP DEFAULT now(), n STRUCT(x INTEGER[]))",
    "INSERT INTO b (k) VALUES (10), (20), (30)",
    "CREATE VIEW v AS SELECT i AS j, s FROM a",
    "CREATE VIEW named(x) AS SELECT j, s FROM v",
    "CREATE SCHEMA other",
    "CREATE TABLE other.o AS SELECT 1 AS z",
    # a schema with the name of a listing
    "CREATE SCHEMA tables",
    "CREATE TABLE tables.inside (q DATE)",
)
_PLACES = ("{}", "FROM ({})", "SELECT x.* FROM ({}) AS x", "SELECT 1 AS one, (SELECT count(*) FROM ({})) AS n")
_LISTED = (
    "DESCRIBE a",
    "DESC main.a",
    "SHOW a",
    "DESCRIBE TABLE lake.main.a",
    "DESCRIBE v",
    "DESCRIBE named",
    "DESCRIBE tables.inside",
    "DESCRIBE SELECT i AS z, s || '' AS q, i + 1, CAST(i AS BIGINT) AS b, d FROM a",
    "DESCRIBE SELECT * FROM b LEFT JOIN a ON i = k",
    "DESCRIBE SELECT i FROM a GROUP BY i",
    "DESCRIBE SELECT i FROM a UNION ALL SELECT i FROM a",
    "DESCRIBE WITH c AS (SELECT i FROM a) FROM c",
    "DESCRIBE FROM a AT (VERSION => 2) WHERE i = 1",
    "DESCRIBE SELECT a.rowid, n.x[1] FROM a, b",
    "DESCRIBE FROM a POSITIONAL JOIN b",
    "DESCRIBE (SELECT i FROM a)",
    "DESCRIBE FROM (DESCRIBE a)",
    "DESCRIBE FROM (SHOW TABLES)",
    "DESCRIBE tt",
    "DESCRIBE PIVOT a ON s USING sum(i)",
    "DESCRIBE SELECT * FROM (PIVOT a ON s USING sum(i))",
    "SUMMARIZE TABLE a",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SHOW TABLES FROM lake",
    "SHOW TABLES FROM other",
    "SHOW TABLES FROM lake.main",
    "SHOW TABLES FROM temp",
    "SHOW DATABASES",
    "SHOW SCHEMAS",
    "DESCRIBE",
    "SHOW ALL",
    'DESCRIBE "tables"',
    "DESC DATABASES",
)
_STATEMENTS = (
    "PRAGMA show_tables",
    "PRAGMA show_tables_expanded",
    "PRAGMA show_databases",
    "PRAGMA table_info('a')",
    "SELECT name, file IS NULL FROM pragma_database_list ORDER BY 1",
    "SELECT p.name, p.dflt_value FROM pragma_table_info('lake.main.a') AS p ORDER BY p.cid DESC",
    "FROM pragma_show('v')",
    "SELECT d.* FROM (SHOW TABLES) AS t(n) JOIN (DESCRIBE a) AS d ON t.n = 'a'",
)
_VIEWS = (
    "SELECT a.i, k AS i FROM a POSITIONAL JOIN b",
    "SELECT COLUMNS(c -> c LIKE 'i%') FROM a",
    "SELECT i FROM a USING SAMPLE 100%",
    "SELECT x.i FROM a AS x TABLESAMPLE 100%",
    'SELECT column_name, "null", "default" FROM (DESCRIBE a)',
    "SELECT column_name, max FROM (SUMMARIZE a)",
    "FROM (SHOW TABLES)",
    "FROM (SHOW ALL TABLES)",
    "SELECT i FROM query_table('a')",
    "SELECT twice(i), twice(i, 5) AS five FROM a USING SAMPLE 100%",
    "SELECT main.twice(i) + 1, i.twice() FROM lake.main.a USING SAMPLE 100%",
    "FROM above(1) USING SAMPLE 100%",
    "SELECT highest(1) AS h, x.i FROM above(0) AS x POSITIONAL JOIN b ORDER BY ALL",
    "FROM v POSITIONAL JOIN named",
    "SELECT twice(COLUMNS(c -> c = 'i')) FROM a",
    "SELECT i AS g, grouping(g) AS n, count(*) AS k FROM a GROUP BY ROLLUP(g) ORDER BY ALL",
    "SELECT current_schema AS s, user AS u, session_user AS v",
)
_MACROS = (
    "CREATE MACRO twice(x) AS x * 2, (x, y) AS x * y",
    "CREATE MACRO highest(n := 0) AS (SELECT max(i) + n FROM a)",
    "CREATE MACRO above(n) AS TABLE SELECT twice(i) AS i FROM a WHERE i > n",
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    """Our session and the reference, over two lakes with equal entries that the reference made."""
    folder = tmp_path_factory.mktemp("described")
    with connect() as reference:
        for name in ("ours", "theirs"):
            reference.execute(f"ATTACH 'ducklake:{folder}/{name}.ducklake' AS lake (DATA_PATH '{folder}/{name}')")
            reference.execute("USE lake")
            for text in (*_ENTRIES, *_MACROS):
                reference.execute(text)
            for number, query in enumerate(_VIEWS):
                reference.execute(f"CREATE VIEW other.w{number} AS {query}".replace(" a ", " main.a "))
                reference.execute(f"CREATE VIEW w{number} AS {query}")
            if name == "ours":
                reference.execute("USE memory; DETACH lake")
        reference.execute("CREATE TEMP TABLE tt (k INTEGER NOT NULL)")
        with dl.connect(f"ducklake:{folder}/ours.ducklake", alias="lake", engine="duckdb") as session:
            session.sql("CREATE TEMP TABLE tt (k INTEGER NOT NULL)")
            yield session, reference


def assert_equal(both: tuple[dl.Session, duckdb.DuckDBPyConnection], text: str) -> None:
    session, reference = both
    found, expected = session.sql(text), reference.execute(text)
    columns = [column[0] for column in expected.description or ()]
    assert (list(found.columns), found.fetchall()) == (columns, expected.fetchall())


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TEMP TABLE twice (x INTEGER); INSERT INTO twice(x) SELECT k FROM b; FROM twice ORDER BY x",
        "WITH q AS (SELECT 1), twice(x) AS (SELECT i FROM a) SELECT sum(x) FROM twice USING SAMPLE 100%",
        "SELECT twice.x FROM (SELECT 7) AS twice(x) USING SAMPLE 100%",
        "SELECT sum(x) FROM b twice(x) USING SAMPLE 100%",
        "SELECT x.i FROM a AS x JOIN b ON twice(x.i) * 10 = k AND k IN (twice(10), 5) USING SAMPLE 100%",
        # a temporary macro hides a macro of the lake, also from the lake's views
        "CREATE TEMP MACRO twice(x) AS x * 3; SELECT twice(i) AS t, main.twice(i) AS m FROM a ORDER BY t",
        "CREATE TEMP MACRO twice(x) AS x * 3; SELECT twice(i) AS t, lake.main.twice(i) AS m FROM a USING SAMPLE 100%",
        "CREATE TEMP MACRO twice(x) AS x * 3; CREATE OR REPLACE VIEW calls AS SELECT twice(i) AS t FROM a; FROM calls ORDER BY t",
        "CREATE TEMP MACRO above(n) AS TABLE SELECT -n AS i; FROM above(2)",
        "CREATE TEMP MACRO above(n) AS -n; FROM above(1) ORDER BY ALL",
    ],
)
def test_names_that_macros_have_too(both: tuple[dl.Session, duckdb.DuckDBPyConnection], text: str) -> None:
    try:
        assert_equal(both, text)
    finally:
        for one in (both[0].sql, both[1].execute):
            for kind in (
                "TABLE temp.main.twice",
                "MACRO temp.main.twice",
                "MACRO TABLE temp.main.above",
                "MACRO temp.main.above",
            ):
                with suppress(dl.DuckLakeError, duckdb.Error):
                    one(f"DROP {kind}")


def test_a_temporary_table_hides_that_of_main(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    session, reference = both
    for one in (session.sql, reference.execute):
        one("CREATE TEMP TABLE hidden AS SELECT 99 AS i")
        one("CREATE TABLE main.hidden AS SELECT 1 AS i")
        one(
            "UPDATE main.hidden SET i = 3; INSERT INTO main.hidden VALUES (4), (5); DELETE FROM main.hidden WHERE i = 4"
        )
    for text in ("FROM main.hidden", "FROM lake.main.hidden", "FROM hidden", "DESCRIBE main.hidden"):
        assert_equal(both, f"{text} USING SAMPLE 100%" if text.startswith("FROM") else text)
    for one in (session.sql, reference.execute):
        one("CREATE OR REPLACE TABLE main.hidden AS SELECT 2 AS i; ALTER TABLE main.hidden ADD COLUMN j INTEGER")
    for text in ("FROM main.hidden ORDER BY i", "FROM lake.main.hidden"):
        assert_equal(both, text)
    for one in (session.sql, reference.execute):
        one("DROP TABLE main.hidden")
    assert_equal(both, "FROM main.hidden")
    for one in (session.sql, reference.execute):
        one("DROP TABLE main.hidden")


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("text", _LISTED)
def test_listings_and_descriptions(both: tuple[dl.Session, duckdb.DuckDBPyConnection], text: str, place: str) -> None:
    assert_equal(both, place.format(text))


@pytest.mark.parametrize("text", _STATEMENTS)
def test_pragmas_and_joins(both: tuple[dl.Session, duckdb.DuckDBPyConnection], text: str) -> None:
    assert_equal(both, text)


@pytest.mark.parametrize("number", range(len(_VIEWS)), ids=_VIEWS)
def test_views_that_duckdb_alone_can_bind(both: tuple[dl.Session, duckdb.DuckDBPyConnection], number: int) -> None:
    for text in (f"FROM w{number}", f"SELECT w.* FROM w{number} AS w", _VIEWS[number], f"DESCRIBE w{number}"):
        assert_equal(both, text)
    session, reference = both
    if "(SHOW" not in _VIEWS[number]:  # it lists itself
        session.sql(f"CREATE OR REPLACE TEMP VIEW own AS {_VIEWS[number]}")
        expected = reference.execute(f"FROM w{number}").fetchall()
        assert session.sql("FROM own").fetchall() == expected
        session.sql("DROP VIEW own")


def test_a_view_sees_the_entries_of_its_own_schema(
    both: tuple[dl.Session, duckdb.DuckDBPyConnection],
) -> None:
    session, reference = both
    for one in (session.sql, reference.execute):
        one("CREATE OR REPLACE TABLE other.here AS SELECT 5 AS i")
        one("CREATE OR REPLACE TABLE here AS SELECT 6 AS i")
        one("CREATE OR REPLACE VIEW other.sees AS FROM other.here USING SAMPLE 100%")
        one("CREATE OR REPLACE VIEW other.describes AS SELECT column_name FROM (DESCRIBE other.here)")
    for text in ("FROM other.sees", "FROM other.describes", "FROM other.sees POSITIONAL JOIN here"):
        assert_equal(both, text)


def test_the_lake_of_another_snapshot_is_described(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/x.ducklake", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as one:
        one.sql("CREATE TABLE t (i INTEGER DEFAULT 1); CREATE VIEW seen AS FROM (DESCRIBE t)")
        then = one.sql("SELECT max(snapshot_id) FROM snapshots()").fetchall()[0][0]
        one.sql("ALTER TABLE t ADD COLUMN j BIGINT; ALTER TABLE t ALTER i SET NOT NULL")
        described = 'SELECT column_name, "null", "default" FROM {}'
        assert one.sql(described.format("seen")).fetchall() == [("i", "NO", "'1'"), ("j", "YES", "NULL")]
        assert one.sql(described.format(f"seen AT (VERSION => {then})")).fetchall() == [("i", "YES", "'1'")]
        query = f"(DESCRIBE FROM t AT (VERSION => {then}))"
        assert one.sql(described.format(query)).fetchall() == [("i", "YES", "'1'")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1) AS x; DROP TABLE t; --",
        "SELECT 1; SELECT 2",
        "FROM t USING SAMPLE 100%) AS x, (FROM t",
        "DROP TABLE t",
    ],
)
def test_a_hostile_text_runs_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.ducklake"
    with dl.connect(f"ducklake:{path}", alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i; CREATE VIEW v AS FROM t; CREATE MACRO m(x) AS x")
    with duckdb.connect(str(path)) as catalog:
        catalog.execute("UPDATE ducklake_view SET sql = ?", [text])
        catalog.execute("UPDATE ducklake_macro_impl SET sql = ?", [text])
    with dl.connect(f"ducklake:{path}", alias="lake", engine="duckdb") as session:
        for query in ("FROM v USING SAMPLE 100%", "FROM (DESCRIBE v)", "SELECT m(1) FROM t USING SAMPLE 100%"):
            with pytest.raises(dl.DuckLakeError):
                session.sql(query).fetchall()
        assert session.sql("FROM t").fetchall() == [(1,)]

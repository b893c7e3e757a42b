"""Views, macros and comments on every kind of catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
        yield session
        assert not session.spark_started


def rows(session: dl.Session, sql: str) -> list[tuple[Any, ...]]:
    return session.sql(sql).fetchall()


def test_a_view_follows_its_tables_and_their_history(session: dl.Session) -> None:
    session.sql("CREATE VIEW big AS SELECT i, s FROM t WHERE i > 1")
    created = session.current_snapshot().snapshot_id
    session.sql("INSERT INTO t VALUES (9, 'z')")
    assert rows(session, "FROM big ORDER BY i") == [(2, "b"), (3, None), (9, "z")]
    assert rows(session, f"FROM big AT (VERSION => {created}) ORDER BY i") == [(2, "b"), (3, None)]
    session.sql("DROP VIEW big")
    assert rows(session, f"SELECT count(*) FROM big AT (VERSION => {created})") == [(2,)]
    with pytest.raises(dl.BindError, match='no table "big"'):
        session.sql("FROM big")


def test_a_view_is_listed_described_renamed_and_replaced(session: dl.Session) -> None:
    session.sql('CREATE VIEW v(a, "b c") AS SELECT i, s FROM lake.t')
    assert rows(session, "SHOW TABLES") == [("t",), ("v",)]
    assert [row[:2] for row in rows(session, "DESCRIBE v")] == [("a", "INTEGER"), ("b c", "VARCHAR")]
    assert ("lake", "main", "v", ["a", "b c"], ["INTEGER", "VARCHAR"], False) in rows(session, "SHOW ALL TABLES")
    session.sql(
        "ALTER VIEW v RENAME TO w; CREATE OR REPLACE VIEW w AS SELECT 7 AS x; CREATE VIEW IF NOT EXISTS w AS SELECT 8"
    )
    assert rows(session, "FROM w") == [(7,)]


@pytest.mark.slow
def test_a_view_lives_in_its_lake_whatever_it_is_called(
    session: dl.Session, new_catalog: Callable[..., str], tmp_path: Path
) -> None:
    session.sql("CREATE SCHEMA s; CREATE TABLE s.u (k INTEGER); INSERT INTO s.u VALUES (5)")
    session.sql(
        "CREATE VIEW s.inner_view AS SELECT k FROM u; CREATE VIEW outer_view AS SELECT * FROM lake.s.inner_view"
    )
    other = new_catalog("duckdb", "other")
    session.attach(other, alias="other", data_path=f"{tmp_path}/other")
    session.use("other")
    session.sql("CREATE TABLE t (i INTEGER)")
    assert rows(session, "FROM lake.outer_view") == [(5,)]
    assert rows(session, "SELECT count(*) FROM lake.s.inner_view") == [(1,)]


def test_a_transaction_sees_its_own_views_and_macros(session: dl.Session) -> None:
    with session.transaction():
        session.sql("CREATE VIEW v AS SELECT max(i) AS m FROM t; CREATE MACRO twice(x) AS x * 2")
        session.sql("INSERT INTO t VALUES (10, 'x')")
        assert rows(session, "SELECT twice(m) FROM v") == [(20,)]
        session.sql("DROP MACRO twice; CREATE MACRO twice(x) AS x * 3; ALTER VIEW v RENAME TO w")
    assert rows(session, "SELECT twice(m) FROM w") == [(30,)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW v AS SELECT nope FROM t", 'no column "nope"'),
        ("CREATE VIEW v AS FROM missing", 'no table "missing"'),
        ("CREATE VIEW v AS SELECT nope(i) FROM t", "Scalar Function with name nope does not exist"),
        ("CREATE VIEW v AS SELECT sum(i), s FROM t", "must appear in the GROUP BY clause"),
        ("CREATE VIEW v AS SELECT i || [s] FROM t", "Cannot concatenate types"),
        ("CREATE VIEW v(a, b, c) AS SELECT 1", "names 3 columns, but its query has 1"),
        ("CREATE VIEW t AS SELECT 1", "a table main.t already"),
        ("DROP VIEW t", "is a table, not a view"),
        ("DROP VIEW IF EXISTS t", "is a table, not a view"),
        ("DROP TABLE IF EXISTS known", "is a view, not a table"),
        ("DROP VIEW nothing", 'no view "nothing"'),
        ("ALTER VIEW known RENAME TO t", "a table main.t already"),
        ("INSERT INTO known VALUES (1)", "is a view, not a table"),
        ("DROP TABLE known", "is a view, not a table"),
        ("CREATE TABLE known (i INTEGER)", "a view main.known already"),
        ("CREATE MACRO f(x) AS x", 'Macro Function with name "f" already exists'),
        ("CREATE MACRO g(x, x) AS x", "Duplicate parameter ['\"]x['\"]"),
        ("CREATE MACRO g(x := i) AS x", "cannot contain column names"),
        ("DROP MACRO g", 'macro "g" does not exist'),
        ("DROP MACRO TABLE f", 'table macro "f" does not exist'),
        ("COMMENT ON COLUMN t.nope IS 'x'", 'no column "nope"'),
        ("COMMENT ON TABLE known IS 'x'", "is a view, not a table"),
    ],
)
def test_mistakes_change_nothing(session: dl.Session, statement: str, message: str) -> None:
    session.sql("CREATE VIEW known AS SELECT 1 AS x; CREATE MACRO f(x) AS x")
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.DuckLakeError, match=message):
        session.sql(statement)
    assert session.current_snapshot().snapshot_id == before


@pytest.mark.slow
def test_macros_in_queries(session: dl.Session) -> None:
    session.sql("CREATE MACRO plus(a, b := 5) AS a + b; CREATE MACRO best(a) AS (SELECT max(i) + a FROM t)")
    session.sql(
        "CREATE MACRO m() AS 0, (a) AS a, (a, b) AS a * b; CREATE MACRO from_to(lo, hi) AS TABLE "
        "SELECT i FROM t WHERE i BETWEEN lo AND hi"
    )
    assert rows(session, "SELECT plus(1), plus(1, 3), plus(1, b := 7), lake.plus(2), plus(1) * 2") == [(6, 4, 8, 7, 12)]
    assert rows(session, "SELECT best(o.i) FROM t o ORDER BY 1") == [(4,), (5,), (6,)]
    assert rows(session, "SELECT m(), m(4), m(4, 5)") == [(0, 4, 20)]
    assert rows(session, "FROM from_to(2, 3) ORDER BY i") == [(2,), (3,)]
    assert rows(session, "SELECT count(*) FROM from_to(1, hi := 2) f, lake.from_to(2, 3) AS g WHERE f.i = g.i") == [
        (1,)
    ]
    session.sql("UPDATE t SET i = plus(i, 100) WHERE i IN (FROM from_to(1, 1))")
    assert rows(session, "SELECT max(i) FROM t") == [(101,)]


def test_a_macro_of_an_endless_recursion_is_not_run_when_it_is_created(session: dl.Session) -> None:
    session.sql(
        "CREATE MACRO powers(base, n) AS TABLE WITH RECURSIVE p AS "
        "(SELECT 0 AS i, 1::BIGINT AS v UNION ALL SELECT i + 1, v * base % 1000003 FROM p) SELECT i, v FROM p LIMIT n"
    )
    assert rows(session, "FROM powers(2, 4)") == [(0, 1), (1, 2), (2, 4), (3, 8)]
    assert [row[:2] for row in rows(session, "DESCRIBE FROM powers(2, 4)")] == [("i", "INTEGER"), ("v", "BIGINT")]


def test_a_macro_hides_a_function_until_it_is_dropped(session: dl.Session) -> None:
    session.sql("CREATE MACRO upper(x) AS 'mine'")
    assert rows(session, "SELECT upper('a')") == [("mine",)]
    session.sql("DROP MACRO upper")
    assert rows(session, "SELECT upper('a')") == [("A",)]


def test_scalar_and_table_macros_have_names_of_their_own(session: dl.Session) -> None:
    session.sql("CREATE MACRO pair(x) AS x + 1; CREATE MACRO pair(x, y) AS TABLE SELECT x AS a, y AS b")
    assert rows(session, "SELECT pair(1)") == [(2,)]
    assert rows(session, "FROM pair(1, 2)") == [(1, 2)]


def test_a_schema_with_a_view_or_macro_is_not_empty(session: dl.Session) -> None:
    session.sql("CREATE SCHEMA s; CREATE MACRO s.f(x) AS x")
    with pytest.raises(dl.DuckLakeError, match="CASCADE"):
        session.sql("DROP SCHEMA s")
    session.sql("DROP SCHEMA s CASCADE")
    with pytest.raises(dl.BindError):
        session.sql("SELECT lake.s.f(1)")


def test_comments_are_kept_per_snapshot(session: dl.Session) -> None:
    session.sql("COMMENT ON TABLE t IS 'first'; COMMENT ON COLUMN t.i IS 'a number'")
    version = session.current_snapshot().snapshot_id
    session.sql("COMMENT ON TABLE t IS NULL")
    comments = {at: tables[0].table.comment for at in (version, None) if (tables := session.tables(at=at))}
    assert comments == {version: "first", None: None}
    assert session.table("t").schema[0].comment == "a number"


GOOD = (
    "MACRO g(x, y := 2) AS x + y",
    "MACRO g(x) AS x.a",
    "MACRO g(x) AS x.upper()",
    "MACRO g(x) AS list_transform(x, lambda y: y + 1)",
    "MACRO g(x) AS date_trunc('day', x)",
    "MACRO g(x) AS (SELECT max(i) + x FROM t)",
    "MACRO g(x) AS f(x)",
    "MACRO g(t) AS t.i",
    "MACRO g() AS 0, (x) AS x, (x, y) AS x + y",
    "MACRO g(x) AS sum(x) OVER (ORDER BY x)",
    "MACRO g(x := 1 + 1) AS x",
    "MACRO g(x) AS TABLE SELECT * FROM t WHERE i = x",
    "MACRO g(x) AS TABLE SELECT * FROM read_csv(x)",
)
BAD = (
    "MACRO g(x, x) AS x",
    "MACRO g(x := 1, y) AS x + y",
    "MACRO g(x := z) AS x",
    "MACRO g(x := random()) AS x",
    "MACRO g(x) AS x, (x, y) AS x + y, (z) AS z",
    "MACRO g(x) AS y",
    "MACRO g(x) AS a.b",
    "MACRO g(x) AS nosuch(x)",
    "MACRO g(x) AS g(x)",
    "MACRO g(x) AS x::nosuchtype",
    "MACRO g(x) AS sum(x) OVER (ORDER BY q)",
    "MACRO g(x) AS (SELECT i FROM nosuch)",
    "MACRO g(x) AS (SELECT nosuch FROM t)",
    "MACRO g() AS TABLE SELECT * FROM nosuch",
    "MACRO g(x) AS TABLE SELECT nosuch FROM t",
)


@pytest.mark.slow
def test_what_the_reference_refuses_as_a_macro_is_refused(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    made = "CREATE TABLE t (i INTEGER, s VARCHAR); CREATE MACRO f(x) AS x + 1"
    reference.execute(f"ATTACH 'ducklake:{tmp_path}/theirs.ducklake' AS lake (DATA_PATH '{tmp_path}/theirs'); USE lake")
    reference.execute(made)
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake", data_path=f"{tmp_path}/ours") as session:
        session.sql(made)
        for macro in GOOD:
            reference.execute(f"CREATE OR REPLACE {macro}")
            session.sql(f"CREATE OR REPLACE {macro}")
        drop = "DROP MACRO g; DROP MACRO TABLE g"
        reference.execute(drop)
        session.sql(drop)
        for macro in BAD:
            with pytest.raises(duckdb.Error):
                reference.execute(f"CREATE {macro}")
            with pytest.raises(dl.DuckLakeError):
                session.sql(f"CREATE {macro}")
        assert not session.spark_started


def test_a_macro_is_called_by_one_two_or_three_names(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = f"ducklake:{tmp_path}/lake.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql("CREATE SCHEMA o; CREATE MACRO f(x) AS x + 1; CREATE MACRO o.up(x, y := 'z') AS x.upper() || y")
        calls = "f(3), lake.f(3), main.f(3), lake.main.f(3), LAKE.\"main\".F(x := 3), lake.o.up('a', y := 'b')"
        session.sql("CREATE VIEW v AS SELECT lake.main.f(lake.main.f(1)) AS x")
        found = session.sql(f"SELECT {calls}").fetchall(), session.sql("FROM v").fetchall()
    reference.execute(f"ATTACH '{uri}' AS lake; USE lake")
    assert found == (reference.execute(f"SELECT {calls}").fetchall(), [(3,)])


def test_defaults_are_shown_as_the_reference_shows_them(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    create = (
        "CREATE TABLE t (a INTEGER DEFAULT 5, b VARCHAR DEFAULT 'x''y', c VARCHAR, d BOOLEAN DEFAULT true, "
        "e DATE DEFAULT '2020-01-01', f VARCHAR DEFAULT upper('x'), g DECIMAL(4,2) DEFAULT 1.5, h INTEGER DEFAULT -5, "
        "i DOUBLE DEFAULT 1e10, j INTEGER DEFAULT 1 + 1, k BOOLEAN DEFAULT 'true', l INTEGER DEFAULT NULL)"
    )
    questions = (
        "SELECT column_name, column_default FROM information_schema.columns WHERE table_name = 't'",
        "SELECT sql FROM duckdb_tables() WHERE table_name = 't'",
        "DESCRIBE t",
    )
    reference.execute(f"ATTACH 'ducklake:{tmp_path}/theirs.ducklake' AS lake (DATA_PATH '{tmp_path}/theirs'); USE lake")
    reference.execute(create)
    with dl.connect(f"ducklake:{tmp_path}/ours.ducklake", alias="lake", data_path=f"{tmp_path}/ours") as session:
        session.sql(create)
        for question in questions:
            assert rows(session, question) == reference.execute(question).fetchall()


#: Views and macros that hold a PIVOT, and what they are read by.
_PIVOTED = (
    ("CREATE VIEW e AS PIVOT p ON s IN ('a', 'b') USING sum(v)", "FROM e"),
    ("CREATE VIEW e(x) AS PIVOT lake.p ON s IN ('a') ORDER BY ALL LIMIT 2", "FROM e"),
    ("CREATE VIEW e AS SELECT q.a + 1 AS r FROM p PIVOT (sum(v) FOR s IN ('a', 'b') GROUP BY k) AS q", "FROM e"),
    ("CREATE VIEW e AS WITH c AS (PIVOT p ON s IN ('a')) FROM c", "FROM e"),
    ("CREATE VIEW e AS UNPIVOT p ON k, v INTO NAME n VALUE x", "FROM e"),
    ("CREATE VIEW e AS UNPIVOT (SELECT s, k, v, k AS \"A b\", v AS \"select\" FROM p) ON (k, v), (\"A b\", \"select\") AS 'z' "
     "INTO NAME n VALUE x, y", "FROM e"),
    ("CREATE VIEW e AS SELECT * FROM (SELECT s, k AS \"K\", v AS \"a'b\" FROM p) "
     "UNPIVOT INCLUDE NULLS (x FOR n IN (\"K\" AS 'q r', \"a'b\"))", "FROM e"),
    ("CREATE MACRO e() AS TABLE PIVOT p ON s IN ('a', 'b') USING sum(v)", "FROM e()"),
    ("CREATE MACRO e(f) AS TABLE PIVOT p ON s IN ('a') USING sum(v * f) AS q, count(*)", "FROM e(2)"),
    ("CREATE MACRO e() AS TABLE UNPIVOT p ON k, v", "FROM e()"),
)  # fmt: skip


@pytest.mark.parametrize(("definition", "query"), _PIVOTED)
def test_views_and_macros_that_pivot(
    definition: str, query: str, session: dl.Session, reference: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    reference.execute(f"ATTACH 'ducklake:{tmp_path}/r.ducklake' AS lake (DATA_PATH '{tmp_path}/r'); USE lake")
    for text in (
        "CREATE TABLE p (k INTEGER, s VARCHAR, v INTEGER)",
        "INSERT INTO p VALUES (1, 'a', 10), (2, 'b', 20), (1, 'b', NULL)",
        definition,
    ):
        session.sql(text)
        reference.execute(text)
    found, expected = session.sql(query), reference.sql(query)
    assert list(found.columns) == expected.columns
    assert sorted(found.fetchall(), key=str) == sorted(expected.fetchall(), key=str)
    stored = "SELECT sql FROM __ducklake_metadata_lake.ducklake_{} ORDER BY ALL".format(
        "view" if "VIEW" in definition else "macro_impl"
    )
    assert rows(session, stored) == reference.sql(stored).fetchall()
    reference.execute("USE memory; DETACH lake")


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE VIEW e AS PIVOT t ON s",
        "CREATE MACRO e() AS TABLE FROM (PIVOT t ON s USING sum(i))",
        "CREATE VIEW e AS PIVOT t ON s IN (CASE WHEN true THEN 'a' END) USING sum(i)",
    ],
)
def test_views_and_macros_pivot_listed_values(session: dl.Session, definition: str) -> None:
    with pytest.raises(dl.UnsupportedFeatureError, match=r"^A view or macro takes no PIVOT whose values are read from"):
        session.sql(definition)


def test_a_view_that_pivots_is_checked(session: dl.Session) -> None:
    with pytest.raises(dl.BindError, match='no table "nothere"'):
        session.sql("CREATE VIEW e AS PIVOT nothere ON s IN ('a')")
    with pytest.raises(dl.BindError, match="UNPIVOT takes columns, and expressions of one column each, not 42"):
        session.sql("CREATE VIEW e AS UNPIVOT t ON 42; FROM e")
    assert rows(session, "CREATE VIEW e AS UNPIVOT t ON COLUMNS(* EXCLUDE S); FROM e") == rows(
        session, "UNPIVOT t ON COLUMNS(* EXCLUDE S)"
    )


def test_a_view_makes_a_bounded_number_of_columns(session: dl.Session) -> None:
    """DuckDB reads views that pivot into more columns than our own binder writes out, up to its own limit."""

    def wide(name: str, count: int) -> str:
        values = ", ".join(map(str, range(count)))
        fields = " ".join(f"{column} IN ({values})" for column in ("i", "s"))
        return f"CREATE VIEW {name} AS SELECT * FROM t PIVOT (count(*) FOR {fields})"

    session.sql(wide("wide", 50))
    assert len(session.sql("FROM wide").columns) == 2500
    with pytest.raises(dl.UnsupportedFeatureError, match=r"^PIVOT into more than 100,000 columns is not supported"):
        session.sql(wide("endless", 320))
    assert ("lake", "main", "wide") in [row[:3] for row in rows(session, "SHOW ALL TABLES")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT l.list_filter(lambda q: q > 1) AS z FROM n",
        "SELECT n.l.list_transform(q -> q + i).list_sum() AS z FROM n",
        "SELECT (l || [9]).list_filter(lambda q, j: j > 1).list_transform(q -> q * 2) AS z FROM n",
        "SELECT main.list_filter(l, lambda q: q > 1) AS z FROM n",
        "SELECT list_filter(l, (lambda q: (q > 1))) AS z FROM n",
        "SELECT list_transform(l, (lambda q: list_filter(l, (lambda r: (r > q))))) AS z FROM n",
        "SELECT TRY_CAST(s AS ENUM('DATE', 'UUID'))::VARCHAR AS z FROM n",
        "SELECT {'DATE of birth': i}::STRUCT(\"DATE of birth\" BIGINT) AS z FROM n",
        "UNPIVOT (SELECT i, i * 2 AS k FROM n) ON i + 1 AS p, k INTO NAME a VALUE z",
    ],
)
def test_stored_queries_mean_what_they_meant(session: dl.Session, query: str) -> None:
    session.sql("CREATE TABLE n AS SELECT [1, 2, 3] AS l, 'DATE' AS s, 4 AS i")
    expected = session.sql(query).fetchall()
    session.sql(f"CREATE VIEW o AS {query}; CREATE MACRO o() AS TABLE {query}; CREATE LIVE TABLE p AS {query}")
    assert [session.sql(f"FROM {name}").fetchall() for name in ("o", "o()", "p")] == [expected] * 3


@pytest.mark.parametrize("kind", ["INTEGER[]", "STRUCT(x INTEGER)", "MAP(INTEGER, VARCHAR)"])
def test_a_parameter_of_a_nested_type_is_refused(session: dl.Session, kind: str) -> None:
    with pytest.raises(dl.UnsupportedFeatureError, match="keeps no inner types; leave the type out"):
        session.sql(f"CREATE MACRO nested(a {kind}) AS a")

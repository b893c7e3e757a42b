"""SQL that came with DuckDB 2.0: taken with 1.5, too, or refused by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.version import SINCE_DUCKDB_2

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, l INTEGER[]); INSERT INTO t VALUES (1, [1, 2]), (2, [3]), (3, NULL)")
        yield session


def test_a_dollar_name_is_a_variable(session: dl.Session) -> None:
    assert session.sql("SET VARIABLE low = 1; SELECT i FROM t WHERE i > $low ORDER BY i").fetchall() == [(2,), (3,)]
    assert session.sql("SELECT $LOW + i FROM t ORDER BY 1 LIMIT $low").fetchall() == [(2,)]
    session.sql("""SET VARIABLE "my list" = [1, 3]; SET VARIABLE low = 2""")
    assert session.sql("""SELECT i FROM t WHERE i IN $"my list" ORDER BY i""").fetchall() == [(1,), (3,)]
    session.sql('INSERT INTO t VALUES ($low + 40, NULL); UPDATE t SET l = $"my list" WHERE i = $low')
    session.sql("DELETE FROM t WHERE i < $low")
    assert session.sql("SELECT i, l FROM t ORDER BY i").fetchall() == [(2, [1, 3]), (3, None), (42, None)]


def test_a_parameter_comes_before_a_variable(session: dl.Session) -> None:
    session.sql("SET VARIABLE n = 1")
    assert session.sql("SELECT $n, $m", {"n": 5, "m": 6}).fetchall() == [(5, 6)]
    session.sql("RESET VARIABLE n")
    with pytest.raises(dl.UsageError, match='Parameter "n" has no value'):
        session.sql("SELECT $n")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("WITH x AS (INSERT INTO t VALUES (9, NULL) RETURNING i) FROM x", "INSERT in WITH"),
        ("WITH x AS (UPDATE t SET i = 9 RETURNING i) SELECT * FROM x", "UPDATE in WITH"),
        ("WITH y AS (SELECT 1), x AS MATERIALIZED (DELETE FROM t RETURNING i) SELECT * FROM x", "DELETE in WITH"),
        ("INSERT INTO t WITH x AS (COPY t TO 'out.csv') SELECT 1, NULL", "COPY in WITH"),
        ("CONNECT 'server'", "CONNECT is"),
        ("DISCONNECT", "DISCONNECT is"),
        ("CREATE TRIGGER changed AFTER INSERT ON t FOR EACH ROW DELETE FROM t", "CREATE TRIGGER is"),
        ("DROP TRIGGER changed ON t", "DROP TRIGGER is"),
        ("CREATE SECURE VIEW v AS FROM t", "CREATE SECURE VIEW is"),
    ],
)
def test_what_is_refused(session: dl.Session, statement: str, message: str) -> None:
    with pytest.raises(dl.UnsupportedFeatureError, match=f"{message} .*not supported"):
        session.sql(f"CREATE TABLE other (i INTEGER); {statement}" if "WITH" in statement else statement)
    assert [row[0] for row in session.sql("SHOW TABLES").fetchall()] == ["t"]
    assert session.sql("SELECT sum(i) FROM t").fetchall() == [(6,)]


def test_names_like_statements_are_names(session: dl.Session) -> None:
    query = "WITH a AS (SELECT 1 AS update), b AS (FROM a) SELECT b.update FROM b"
    assert session.sql(query).fetchall() == [(1,)]
    session.sql("CREATE MACRO changed(update) AS (update + 1)")
    assert session.sql("SELECT changed(1)").fetchall() == [(2,)]


def test_fetch_first(session: dl.Session) -> None:
    assert session.sql("SELECT i FROM t ORDER BY i FETCH FIRST 2 ROWS ONLY").fetchall() == [(1,), (2,)]
    assert session.sql("SELECT i FROM t ORDER BY i OFFSET 1 ROWS FETCH NEXT ROW ONLY").fetchall() == [(2,)]
    for more in ("1 ROWS WITH TIES", "10 PERCENT ROWS ONLY"):
        with pytest.raises(dl.DuckLakeError):
            session.sql(f"SELECT i FROM t ORDER BY i FETCH FIRST {more}")


def test_show_of_a_setting(session: dl.Session) -> None:
    shown = session.sql("SET threads = 3; SHOW threads")
    assert (shown.columns, shown.fetchall()) == (["threads"], [("3",)])
    session.sql("CREATE TABLE threads (n INTEGER)")
    assert session.sql("SHOW threads").fetchall()[0][:2] == ("n", "INTEGER")
    with pytest.raises(dl.EntryNotFoundError, match='"nothing"'):
        session.sql("SHOW nothing")


def test_lambdas_of_both_kinds(session: dl.Session) -> None:
    for text in ("lambda x: x + 1", "x -> x + 1"):
        query = f"SELECT list_transform(l, {text}) FROM t ORDER BY i"
        assert session.sql(query).fetchall() == [([2, 3],), ([4],), (None,)]
    assert session.sql("SELECT COLUMNS(lambda c: c = 'i') FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]
    # there the arrow is DuckDB's own to read
    with pytest.raises(dl.BindError, match="Deprecated lambda arrow") if SINCE_DUCKDB_2 else nullcontext():
        assert session.sql("SELECT COLUMNS(c -> c = 'i') FROM t ORDER BY i").fetchall() == [(1,), (2,), (3,)]


def test_groups_by_elements(session: dl.Session) -> None:
    query = "SELECT unnest(l) AS n, count(*) FROM t GROUP BY unnest(l) ORDER BY n"
    with pytest.raises(dl.DuckLakeError) if not SINCE_DUCKDB_2 else nullcontext():
        assert session.sql(query).fetchall() == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    "expression", ["s ~ 'b'", "s !~ 'b'", "s SIMILAR TO 'b'", "s ~ '^b$'", "5 // i", "5 % i", "TRY(5 % i)", "5 / i"]
)
def test_operators_mean_what_they_mean_in_duckdb(expression: str, session: dl.Session) -> None:
    made = "CREATE TABLE s (i INTEGER, s VARCHAR); INSERT INTO s VALUES (0, 'abc'), (1, 'b'), (2, NULL)"
    session.sql(made)
    plain = duckdb.connect()
    plain.execute(made)
    query = f"SELECT {expression} AS found FROM s ORDER BY i"
    if SINCE_DUCKDB_2 and expression in ("5 // i", "5 % i"):
        for run, error in ((plain.execute, duckdb.Error), (session.sql, dl.DuckLakeError)):
            with pytest.raises(error, match="Division by zero"):
                run(query)
    else:
        assert session.sql(query).fetchall() == plain.execute(query).fetchall()


def test_columns_without_names_are_called_as_in_duckdb(session: dl.Session) -> None:
    plain = duckdb.connect()
    plain.execute("CREATE TABLE n (i INTEGER, s VARCHAR, l INTEGER[], b BOOLEAN)")
    session.sql("CREATE TABLE n (i INTEGER, s VARCHAR, l INTEGER[], b BOOLEAN)")
    expressions = (
        "-1, -i, ~i, i * 1e7, 1.50, true, i::DECIMAL(5,2), substring(s, 1, 2), trim(s), if(i > 1, 1, 2), [i, 1], "
        "{'a': i}, l[1], (i, s), s LIKE 'a!_' ESCAPE '!', s ~ 'a', coalesce(i, 1), NOT b, i NOT IN (1, 2), NOT (i = 1), "
        "count(*) OVER (), UPPER(s), extract(year FROM DATE '2020-01-01'), i::JSON"
    )
    query = f"SELECT {expressions} FROM n"
    theirs = [column[0] for column in plain.execute(query).description]
    ours = session.sql(query).columns
    # 2.0 keeps the case of names of types
    assert [name.casefold() for name in ours] == [name.casefold() for name in theirs]

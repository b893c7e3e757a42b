"""Errors of statements say what is wrong, and what mends it; DuckDB refuses each of these, and takes what is proposed."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.session.statements.syntax import check
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.version import SINCE_DUCKDB_2


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("lake")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", alias="lake", engine="duckdb") as session:
        session.sql("CREATE TABLE t (id INTEGER, name VARCHAR); INSERT INTO t VALUES (1, 'x')")
        yield session


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELECT order FROM t",
            'Syntax error at "FROM" (line 1, column 14): order is a reserved word; as a name it takes quotes, "order".',
        ),
        (
            "SELECT 1;\n  SELECT id, group FROM t",
            'Syntax error at "FROM" (line 2, column 20): group is a reserved word; as a name it takes quotes, "group".',
        ),
        ("SELECT * FROM t WHERE", "Syntax error at the end (line 1, column 22): something is missing after WHERE."),
        ("SELECT * FROM t GROUP", "Syntax error at the end (line 1, column 22): something is missing after GROUP."),
        ("SELEC * FROM t", 'Syntax error at "SELEC" (line 1, column 1); expected a statement. Did you mean SELECT?'),
        ("SELECT * FORM t", 'Syntax error at "t" (line 1, column 15). Did you mean FROM?'),
        ("SELECT id FROM t WEHRE id = 1", 'Syntax error at "id" (line 1, column 24). Did you mean WHERE?'),
        ("SELECT [1,,2]", 'Syntax error at "," (line 1, column 11).'),
        ("SELECT #0", "Positional reference node needs to be >= 1."),
        (
            "SELECT 1 FOR UPDATE",
            'Syntax error at "FOR" (line 1, column 10).'
            if SINCE_DUCKDB_2
            else "SELECT locking clause is not supported!",
        ),
        (
            "SELECT count(select) FROM t",
            'Syntax error at "select" (line 1, column 14): select is a reserved word; as a name it takes quotes, "select".',
        ),
        ("UPDATE t SET () = (SELECT 1)", 'Syntax error at ")" (line 1, column 15).'),
        ("INSERT INTO t SELECT 1, FROM FROM t", None),
    ],
)
def test_what_duckdb_refuses_is_refused(session: dl.Session, sql: str, said: str | None) -> None:
    with pytest.raises(duckdb.Error):
        duckdb.extract_statements(sql)
    with pytest.raises(dl.SqlSyntaxError) as caught:
        session.sql(sql)
    assert said is None or str(caught.value) == said
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT id AS at, "both".name FROM t AS "both" WHERE "at" > 0',
        "SELECT x.id FROM t AT (VERSION => 2) AS x",
        'SELECT count(x.at) FROM (SELECT 1 AS at) AS x WHERE "at" = 1',
        "SELECT alter + grant.force, grant.id AS rollback FROM (SELECT 1 AS alter, 2 AS force, 3 AS id) AS grant",
    ],
)
def test_reserved_words_are_names_where_they_can_be(session: dl.Session, sql: str) -> None:
    assert session.sql(sql).fetchall()


#: Positions of a name, and the words that DuckDB or the parser takes there, and the other one does not.
_POSITIONS: dict[str, set[str]] = {
    "SELECT {} FROM q": set(),
    "SELECT {}::DATE FROM q": set(),
    "SELECT {} + 1 FROM q": set(),
    "SELECT q.{} FROM q": set(),
    "SELECT 1 {} FROM q": set(),
    "SELECT 1 AS {} FROM q": set(),
    "SELECT 1 FROM q WHERE {} = 1": set(),
    "SELECT 1 FROM q ORDER BY {}": set(),
    "SELECT 1 FROM q GROUP BY {}": set(),
    "SELECT * FROM {}": set(),
    "SELECT * FROM q {}": set(),
    "SELECT * FROM q {} WHERE a": set(),
    "SELECT * FROM q AS {}": set(),
    "SELECT 1 FROM s.{}": set(),
    "WITH {} AS (SELECT 1) SELECT 1": set(),
    "SELECT * EXCLUDE ({}) FROM q": set(),
    "SELECT [{} FOR {} IN l]": set(),
    "UPDATE x SET {} = 1": set(),
    "DELETE FROM {}": set(),
    "INSERT INTO {} VALUES (1)": set(),
    "INSERT INTO {} (a) VALUES (1)": set(),
    "UPDATE {} SET a = 1": set(),
    "WITH {}(a) AS (SELECT 1) SELECT 1": set(),
    "WITH a AS (SELECT 1), {} AS (SELECT 1) SELECT 1": set(),
    "INSERT INTO x ({}) VALUES (1)": set(),
    # functions, methods, and functions of a schema
    "SELECT {}(1) FROM q": set(),
    "SELECT {}('a') FROM q": set(),
    "SELECT {}() FROM q": {"extract", "substring"},
    "SELECT {}(a, b) FROM q": set(),
    "SELECT {}(DISTINCT a) OVER () FROM q": {"map"},
    "SELECT s.{}('a') FROM q": set(),
    "SELECT a.{}() FROM q": set(),
    "SELECT 'a'.{}() FROM q": {"at"},
    "SELECT 1 FROM {}('a')": {"only"},
    "SELECT 1 FROM s.{}('a')": set(),
    # definitions
    "CREATE TABLE {} (a INTEGER)": set(),
    # any, LIKE and UNIQUE are refused by name
    "CREATE TABLE x ({} INTEGER)": {"any", "exclude", "like", "unique"},
    "ALTER TABLE x RENAME a TO {}": set(),
    "CREATE SCHEMA {}": {"exists", "if"},
    "DROP TABLE {}": set(),
    "CREATE VIEW {} AS SELECT 1": set(),
    "CREATE MACRO {}(a) AS 1": set(),
    "CREATE MACRO m({}) AS 1": set(),
    "DESCRIBE {}": {"select", "table"},
}


@pytest.mark.slow
@pytest.mark.skipif(SINCE_DUCKDB_2, reason="2.0 has other keywords")
@pytest.mark.parametrize("position", _POSITIONS)
def test_keywords_are_names_where_duckdb_takes_them(position: str) -> None:
    differing = set()
    for (word,) in duckdb.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall():
        sql = position.replace("{}", word)
        try:
            check(parse(sql), sql)
            is_taken = True
        except dl.UnsupportedFeatureError:
            is_taken = True
        except dl.SqlSyntaxError:
            is_taken = False
        if is_taken != _is_parsed(sql):
            differing.add(word)
    assert differing == _POSITIONS[position], differing


#: Positions of a name, and the words that mean something else there.
_MEANINGS: dict[str, set[str]] = {
    "SELECT {} FROM q": {"false", "null", "true"},
    "SELECT q.{}, 1 FROM q": set(),
    "SELECT NOT {} FROM q GROUP BY {}, 2": {"false", "null", "true"},
    "SELECT {} BETWEEN {} AND 2, 1 = {} FROM q": {"false", "null", "true"},
    "SELECT CASE WHEN {} THEN {} ELSE {} END FROM q": {"false", "null", "true"},
    "SELECT sum({}) FILTER ({}) OVER (PARTITION BY {} ORDER BY {}) FROM q": {"false", "null", "true"},
    "SELECT {}.a, {}.a.b, {}[1] FROM q AS {}": set(),
    "SELECT {}.* FROM {}, r AS {} ORDER BY {}": set(),
    "SELECT * FROM s.{} AS x({})": set(),
    "WITH {} AS (SELECT 1), {}(a) AS (FROM {}) FROM {} AS x": set(),
    "SELECT f(a, {} := 2) FROM g(1, {} := 2)": set(),
    "SELECT {}(1), {}('a', b), s.{}(1), a.{}() FROM q": {"map", "not"},
    "SELECT * FROM {}(1), s.{}('a')": {"operator"},
}


@pytest.mark.slow
@pytest.mark.skipif(SINCE_DUCKDB_2, reason="2.0 has other keywords")
@pytest.mark.parametrize("position", _MEANINGS)
def test_keywords_mean_what_plain_names_do(position: str) -> None:
    plain, differing = _tree(position.replace("{}", "zzq")), set()
    for (word,) in duckdb.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall():
        sql = position.replace("{}", word)
        if not _is_parsed(sql):
            continue
        try:
            tree = _tree(sql)
        except dl.SqlSyntaxError:
            tree = ""
        if tree.casefold() != plain.replace("zzq", word).casefold():
            differing.add(word)
    assert differing == _MEANINGS[position], differing


def _tree(sql: str) -> str:
    (statement,) = parse(sql)
    assert isinstance(statement.operation, op.Query)
    return repr(statement.operation.tree).replace(", quoted=False", "")


def _is_parsed(sql: str) -> bool:
    try:
        return bool(duckdb.extract_statements(sql))
    except duckdb.Error:
        return False


@pytest.mark.parametrize("sql", ["SELECT * FROM t WHERE id = {n}", "SELECT '{n}', {n}"])
def test_a_name_in_braces_hints_at_parameters(session: dl.Session, sql: str) -> None:
    with pytest.raises(dl.SqlSyntaxError, match=r"\{n\} is not filled in; write :n for the value"):
        session.sql(sql)


def test_a_text_in_double_quotes(session: dl.Session) -> None:
    with pytest.raises(dl.BindError, match=r"\(line 1, column 30\)\. A text takes single quotes: 'Ann B\.'\.$"):
        session.sql('SELECT * FROM t WHERE name = "Ann B."')
    with pytest.raises(dl.BindError, match=r'"nam".*Did you mean name\?$'):
        session.sql('SELECT "nam" FROM t')
    with pytest.raises(dl.BindError, match=r"\(line 1, column 8\)\.$"):
        session.sql("SELECT nothing FROM t")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO t VALUES ('y', 'a')", "'y' is no INTEGER (line 1, column 23)."),
        ("UPDATE t\n SET id = 'y'", "'y' is no INTEGER (line 2, column 11)."),
        ("SELECT 'y'::INTEGER || 'y'", "'y' is no INTEGER."),
        ("SELECT name::INTEGER FROM t", "Column name: 'x' is no INTEGER. TRY_CAST gives NULL instead."),
    ],
)
def test_a_value_has_a_place(session: dl.Session, sql: str, said: str) -> None:
    with pytest.raises(dl.ConstraintError) as caught:
        session.sql(sql)
    assert str(caught.value) == said


def test_a_later_statement_says_what_stays(session: dl.Session) -> None:
    newest = session.current_snapshot().snapshot_id
    insert = "INSERT INTO t VALUES (2, 'b');"
    with pytest.raises(dl.BindError) as caught:
        session.sql(f"{insert} {insert} SELECT nothing FROM t")
    assert str(caught.value).endswith(f"Statement 3 of 3; snapshots {newest + 1} and {newest + 2} stay.")
    with pytest.raises(dl.BindError, match=rf"Statement 3 of 3; snapshot {newest + 3} stays\.$"):
        session.sql(f"SELECT 1; {insert} SELECT nothing FROM t")
    with pytest.raises(dl.BindError, match=rf"; 4 snapshots, {newest + 4} to {newest + 7}, stay\.$"):
        session.sql(f"{insert * 4} SELECT nothing FROM t")
    with pytest.raises(dl.BindError, match=r"Statement 3 of 3\.$"):
        session.sql(f"BEGIN; {insert} SELECT nothing FROM t")
    session.sql("ROLLBACK")
    with pytest.raises(dl.BindError, match=r"column 8\)\.$"):
        session.sql("SELECT nothing FROM t; SELECT 1")
    assert session.current_snapshot().snapshot_id == newest + 7

"""INSERT of literals: DuckDB reads the values as they are written, and errors are those of every INSERT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.errors import BindError, ConstraintError, DuckLakeError
from ducklake_lab.session.statements import row_statements
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse
from ducklake_lab.sql.parse.literal_insert import read_literal_insert
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3)

COLUMNS = {
    "a": "INTEGER",
    "b": "VARCHAR",
    "c": "DOUBLE",
    "d": "DECIMAL(9,2) DEFAULT 1.5",
    "e": "DATE DEFAULT '2024-02-29'",
    "f": "TIMESTAMP",
    "g": "BOOLEAN",
    "h": "TIMESTAMPTZ",
    "i": "HUGEINT",
    "j": "UUID",
    "k": "INTERVAL",
    "l": "JSON",
    "m": "INTEGER[]",
    "n": "FLOAT",
}
_ANY = st.sampled_from(["NULL", "DEFAULT", "null", "default"])
_NUMBER = st.one_of(
    st.integers(-999, 999).map(str), st.sampled_from(["1.005", "-.5", "+7", "2.", "1e2", "1.5E-3", "007"])
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_QUOTED = _TEXT.map(lambda text: "'" + text.replace("'", "''") + "'")
LITERALS = {
    "a": _NUMBER | st.sampled_from(["'12'", "' 3 '", "TRUE"]),
    "b": _QUOTED | _NUMBER | st.sampled_from(["DATE '2024-01-01'", "true", "'); DROP TABLE t; --'"]),
    "c": _NUMBER | st.sampled_from(["'nan'", "'-inf'", "'1e300'"]),
    "d": _NUMBER | st.sampled_from(["'12.345'", "0.125"]),
    "e": st.sampled_from(["'2024-01-31'", "DATE '0001-01-01'", "'0044-03-15 (BC)'", "'infinity'"]),
    "f": st.sampled_from(["'2024-01-31'", "TIMESTAMP '2024-01-31 10:00:00.123456'", "DATE '2024-03-10'"]),
    "g": st.sampled_from(["true", "FALSE", "'t'", "1", "0"]),
    "h": st.sampled_from(["'2024-11-03 01:30:00'", "TIMESTAMPTZ '2024-01-01 00:00:00+05:45'", "'2024-01-01'"]),
    "i": _NUMBER | st.just("170141183460469231731687303715884105727"),
    "j": st.sampled_from(["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"]),
    "k": st.sampled_from(["'3 days'", "'1 year 2 months 01:02:03.5'"]),
    "l": st.sampled_from(["""'{"a": [1, null]}'""", "'1'", "'null'"]),
    "m": st.sampled_from(["'[1, 2, NULL]'", "'[]'"]),
    "n": _NUMBER | st.sampled_from(["'0.1'", "16777217"]),
}
DEFINITIONS = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("literals")
    with dl.connect(f"ducklake:sqlite:{folder}/m.sqlite", data_path=f"{folder}/data") as opened:
        opened.sql(f"CREATE TABLE t ({DEFINITIONS})")
        yield opened


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_values_are_those_of_duckdb(session: dl.Session, data: st.DataObject) -> None:
    zone = data.draw(st.sampled_from(["UTC", "America/New_York"]))
    given_columns = data.draw(st.none() | st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True))
    names = given_columns or list(COLUMNS)
    rows = data.draw(
        st.lists(st.tuples(*(_ANY | LITERALS[name] for name in names)).map(", ".join), min_size=1, max_size=3)
    )
    columns = "" if given_columns is None else f" ({', '.join(names)})"
    text = f"INSERT INTO t{columns} VALUES {', '.join(f'({row})' for row in rows)}"
    assert isinstance(parse(text, keep_literals=True)[0].operation, op.InsertLiterals)
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'; CREATE TABLE t ({DEFINITIONS})")
        connection.execute(text)
        expected = connection.execute("FROM t").fetchall()
    session.sql(f"SET TimeZone = '{zone}'")
    session.sql("TRUNCATE t")
    read = []
    with pytest.MonkeyPatch.context() as patch:
        literal_rows = row_statements.literal_rows
        patch.setattr(row_statements, "literal_rows", lambda *args: read.append(literal_rows(*args)) or read[-1])
        session.sql(text)
    assert read[0] is not None, "DuckDB read them"
    assert repr(session.sql("FROM t").fetchall()) == repr(expected)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("INSERT INTO t VALUES (1)", BindError, "t has 14 columns but 1 value was supplied"),
        ("INSERT INTO t (a, b) VALUES (1, 'x'), (2)", DuckLakeError, "VALUES lists must all be the same length"),
        ("INSERT INTO t (a) VALUES ('twelve')", ConstraintError, "twelve"),
        ("INSERT INTO t (a, A) VALUES (1, 2)", BindError, '"A" is given twice'),
        ("INSERT INTO t (z) VALUES (1)", BindError, 'no column "z" (line 1, column 16)'),
        ("INSERT INTO n VALUES (NULL)", ConstraintError, "n"),
        ("INSERT INTO nowhere VALUES (1)", DuckLakeError, "nowhere"),
    ],
)
def test_errors_are_those_of_every_insert(
    session: dl.Session, text: str, error: type[DuckLakeError], words: str
) -> None:
    session.sql("CREATE TABLE IF NOT EXISTS n (v INTEGER NOT NULL)")
    before = session.sql("SELECT max(snapshot_id) FROM m.snapshots()").fetchone()
    with pytest.raises(error, match=words.replace("(", r"\(").replace(")", r"\)")):
        session.sql(text)
    assert session.sql("SELECT max(snapshot_id) FROM m.snapshots()").fetchone() == before


def test_names_find_their_tables(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:sqlite:{tmp_path}/m.sqlite", data_path=str(tmp_path / "data")) as session:
        session.sql('CREATE SCHEMA "odd; name"; CREATE TABLE "odd; name"."the ""t""" (v INTEGER, "VALUES" VARCHAR)')
        session.sql('INSERT INTO m."odd; name"."the ""t""" ("VALUES", v) VALUES (\'it\'\'s; "x"\', 1)  ;  ')
        assert session.sql('FROM "odd; name"."the ""t"""').fetchall() == [(1, 'it\'s; "x"')]
        session.sql("CREATE TEMP TABLE own (v INTEGER)")
        session.sql("INSERT INTO own VALUES (5)")
        assert session.sql("FROM own").fetchall() == [(5,)]
        session.sql('CREATE TABLE s (id INTEGER, "at" TIMESTAMP DEFAULT now(), r DOUBLE DEFAULT random())')
        session.sql("INSERT INTO s (id) VALUES (1), (2)")
        assert session.sql("SELECT count(s.at), count(DISTINCT s.at), count(DISTINCT r) FROM s").fetchall() == [
            (2, 1, 2)
        ]
        session.sql("BEGIN")
        session.sql("INSERT INTO s VALUES (3, NULL, 0)")
        session.sql("ROLLBACK")
        assert session.sql("SELECT count(*) FROM s").fetchall() == [(2,)]


def test_each_statement_of_a_script(tmp_path: Path) -> None:
    script = "CREATE TABLE t (a INTEGER, b VARCHAR);\n INSERT INTO t VALUES (1, ';');\n\nINSERT INTO t (b) VALUES ('x'); FROM t"
    kinds = [type(statement.operation) for statement in parse(script, keep_literals=True)]
    assert kinds == [op.CreateTable, op.InsertLiterals, op.InsertLiterals, op.Query]
    assert [(s.text, s.line) for s in parse(script, keep_literals=True)] == [(s.text, s.line) for s in parse(script)]
    with dl.connect(f"ducklake:sqlite:{tmp_path}/m.sqlite", data_path=str(tmp_path / "data")) as session:
        assert session.sql(script).fetchall() == [(1, ";"), (None, "x")]
        with pytest.raises(BindError, match=r'no column "c" \(line 3, column 21\)'):
            session.sql("SELECT 1;\n\n  INSERT INTO t (a, c) VALUES (1, 2)")
        with pytest.raises(BindError, match=r"1 value was supplied \(line 2, column 14\)"):
            session.sql("SELECT 1;\n INSERT INTO t VALUES (1)")


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1 + 1)",
        "INSERT INTO t VALUES (a)",
        "INSERT INTO t VALUES (1); SELECT 1",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t VALUES (?)",
        "INSERT INTO t VALUES ($a)",
        "INSERT INTO t VALUES ('x'::DATE)",
        "INSERT INTO t VALUES (1) RETURNING *",
        "INSERT INTO t VALUES (1) -- ; (2)",
        "INSERT INTO t VALUES (E'\\n')",
        "INSERT INTO t VALUES ('x' 'y')",
        "INSERT INTO t VALUES (1, )",
        "INSERT INTO t VALUES ()",
        "INSERT OR REPLACE INTO t VALUES (1)",
        "INSERT INTO t BY NAME VALUES (1)",
        "WITH x AS (SELECT 1) INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (nullif)",
        "INSERT INTO t VALUES (1e)",
    ],
)
def test_other_texts_go_to_the_parser(text: str) -> None:
    assert read_literal_insert(text) is None


def test_a_long_text_is_recognised_at_once() -> None:
    rows = ", ".join(f"({i}, 'text {i}', {i}.5)" for i in range(100_000))
    assert read_literal_insert(f"INSERT INTO t VALUES {rows}") is not None
    assert read_literal_insert(f"INSERT INTO t VALUES {rows}, (x)") is None

"""Fields of structs may have any name: keywords and odd names, at every depth, sent both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.model.quoting import KEYWORDS, quote_identifier, quoted_if_needed
from ducklake_lab.model.types import DataType
from tests.interop.comparing import attach, detach

pytestmark = pytest.mark.sampled(3)

ODD = (
    "aB",
    "UPPER",
    "a b",
    "a.b",
    'a"b',
    "a'b",
    "é",
    "日本",
    " ",
    "1",
    "1x",
    "$a",
    "a$",
    ":x",
    ",",
    "(",
    "]",
    "row_id",
)
NAMES = (*sorted(KEYWORDS), *ODD)
#: Rows of a table: few are inlined, many go to a file.
ROWS = {"inlined": 2, "file": 12}


def statements(rows: int, names: Sequence[str], deep: Sequence[str]) -> list[str]:
    """A table of structs, the ones in a list with structs below them; some rows, and one of NULL."""
    quoted, below = [list(map(quote_identifier, some)) for some in (names, deep)]
    kind = ", ".join(f"{name} INTEGER" for name in quoted)
    deep_kind = ", ".join(f"{name} STRUCT({name} VARCHAR[])" for name in below)
    value = ", ".join(f"{name}: i + {n}" for n, name in enumerate(quoted))
    deep_value = ", ".join(f"{name}: {{{name}: ['{n}', i]}}" for n, name in enumerate(below))
    return [
        f'CREATE TABLE t (i INTEGER, s STRUCT({kind}), l STRUCT({deep_kind})[], m MAP(VARCHAR, STRUCT("from" DATE)))',
        f"INSERT INTO t SELECT i, {{{value}}}, [{{{deep_value}}}, NULL], "
        f"MAP {{'k': {{'from': DATE '2024-01-31' + i::INTEGER}}}} FROM range(0, {rows}) r(i)",
        "INSERT INTO t VALUES (NULL, NULL, NULL, NULL)",
    ]


def answers(run: Callable[[str], Any], names: Sequence[str], deep: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield a client's answers about the table."""
    yield run("SELECT i, s::VARCHAR, l::VARCHAR, m::VARCHAR FROM t ORDER BY i NULLS LAST").fetchall()
    yield [row[:2] for row in run("DESCRIBE t").fetchall()]
    fields = [f"s.{quote_identifier(name)}" for name in names] + [f"l[1].{quote_identifier(name)}" for name in deep]
    yield run(f"SELECT {', '.join(fields)}, m['k'].\"from\" FROM t ORDER BY i NULLS LAST").fetchall()


@pytest.mark.parametrize("place", ROWS)
def test_fields_of_any_name_go_both_ways(
    place: str, catalog: str, lake_uri: Callable[..., str], tmp_path: Path, reference: duckdb.DuckDBPyConnection
) -> None:
    # the reference cannot read its own text of a struct with a quote in a name
    texts = place == "inlined" and catalog != "duckdb"
    names = [name for name in NAMES if not (texts and "'" in name)]
    deep = [*names[::20], *(name for name in names[len(KEYWORDS) :] if name not in names[::20])]
    theirs, ours = lake_uri("theirs"), lake_uri("ours")
    attach(reference, theirs, data_path=tmp_path / "theirs")
    for statement in statements(ROWS[place], names, deep):
        reference.execute(statement)
    expected = list(answers(reference.execute, names, deep))
    detach(reference)
    with dl.connect(theirs, alias="lake") as session:
        assert list(answers(lambda sql: session.sql(sql, engine="duckdb"), names, deep)) == expected
        session.sql('UPDATE t SET i = i + 100 WHERE s."from" IS NOT NULL', engine="duckdb")
    attach(reference, theirs)
    assert reference.execute("SELECT i - 100, s::VARCHAR FROM t ORDER BY i NULLS LAST").fetchall() == [
        row[:2] for row in expected[0]
    ]
    detach(reference)
    with dl.connect(ours, alias="lake", data_path=f"{tmp_path}/ours") as session:
        for statement in statements(ROWS[place], names, deep):
            session.sql(statement)
        assert not session.spark_started
        assert list(answers(lambda sql: session.sql(sql, engine="duckdb"), names, deep)) == expected
    attach(reference, ours)
    assert list(answers(reference.execute, names, deep)) == expected
    detach(reference)


@pytest.mark.parametrize("name", NAMES)
def test_a_type_is_written_as_duckdb_writes_it(name: str) -> None:
    kind = DataType("struct", ((name, DataType("list", (("element", DataType("int32")),))),))
    assert duckdb.sql(f"SELECT typeof(NULL::{kind.sql()})").fetchall() == [(kind.sql(),)]


def test_the_keywords_are_those_of_duckdb() -> None:
    assert {name for (name,) in duckdb.sql("SELECT keyword_name FROM duckdb_keywords()").fetchall()} == KEYWORDS
    assert quoted_if_needed("FROM") == '"FROM"'


def test_an_empty_name_is_refused() -> None:
    with dl.Session(engine="duckdb") as session, pytest.raises(dl.DuckLakeError, match="a name between the quotes"):
        session.sql('SELECT NULL::STRUCT("" INTEGER)')


def test_two_fields_of_one_name_are_refused(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    statement = "CREATE TABLE t (s STRUCT(a INTEGER, A INTEGER))"
    attach(reference, f"ducklake:{tmp_path}/theirs.ducklake", data_path=tmp_path / "theirs")
    with pytest.raises(duckdb.BinderException, match="Duplicate"):
        reference.execute(statement)
    with (
        dl.connect(f"ducklake:{tmp_path}/ours.ducklake", data_path=f"{tmp_path}/ours") as session,
        pytest.raises(dl.DuckLakeError, match='has the field "A" twice'),
    ):
        session.sql(statement)


#: Fields of structs under bare keywords, as the reference takes them.
BARE_KEYWORDS = (
    "CREATE TABLE k (s STRUCT(map INT, interval INT, a STRUCT(map MAP(INT, INT), struct INT)[]))",
    "INSERT INTO k SELECT {'map': 1, 'interval': 2, a: [{'map': MAP {1: 2}, struct: 3}]}",
    "ALTER TABLE k ADD COLUMN s.select INT",
    "ALTER TABLE k ADD COLUMN s.from INT DEFAULT 7",
    "ALTER TABLE k ADD COLUMN s.between VARCHAR",
    'ALTER TABLE k RENAME s.between TO "where"',
    "ALTER TABLE k DROP COLUMN s.select",
    "INSERT INTO k SELECT {'map': 4, 'interval': 5, a: NULL, 'from': 6, 'where': 'w'}",
)


def test_fields_may_be_named_by_bare_keywords(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    found = []
    for name in ("theirs", "ours"):
        uri = f"ducklake:{tmp_path}/{name}.ducklake"
        if name == "ours":
            with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/{name}/", engine="duckdb") as session:
                for statement in BARE_KEYWORDS:
                    session.sql(statement)
        reference.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/{name}/'); USE lake")
        for statement in BARE_KEYWORDS if name == "theirs" else ():
            reference.execute(statement)
        found.append(reference.execute("SELECT s::VARCHAR, typeof(s) FROM k ORDER BY s.map").fetchall())
        reference.execute("USE memory; DETACH lake")
    assert found[0] == found[1]

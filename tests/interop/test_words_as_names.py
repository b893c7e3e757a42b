"""Words of SQL that are names: columns, indexes and functions mean what DuckDB takes them for."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(3)

#: Words that begin values or types elsewhere, and are columns here; each holds a list of another number.
_WORDS = (
    *(
        "list",
        "array",
        "map",
        "struct",
        "interval",
        "text",
        "integer",
        "numeric",
        "bigint",
        "varchar",
        "double",
        "json",
    ),
    *("date", "time", "timestamp", "blob", "uuid", "bit", "position", "row", "values", "year", "day", "key", "value"),
    *("current_date", "current_timestamp", "current_time", "localtime", "localtimestamp"),
)
#: Ways to use a column `{c}`, which is a list of integers.
_FORMS = (
    'SELECT "{c}" FROM t',
    'SELECT "{c}"[1] FROM t',
    'SELECT t."{c}"[2] FROM t',
    "SELECT t.{c} FROM t",
    "SELECT t.{c}[1] FROM t",
    "SELECT t.{c}[1:2] FROM t WHERE t.{c}[1] > 0",
    'SELECT len("{c}") + 1, max("{c}"[1]) FROM t GROUP BY ALL ORDER BY ALL',
    'SELECT x.v[1] FROM (SELECT "{c}" AS v FROM t) AS x',
    'SELECT s."{c}", s."{c}"[1] FROM (SELECT {{\'{c}\': t.{c}}} AS s FROM t)',
)
#: Words that DuckDB takes for columns without quotes, too.
_BARE = (
    *("list", "text", "json", "date", "uuid", "blob", "year", "day", "key", "value", "varchar"),
    *("current_date", "current_timestamp", "current_time", "localtime", "localtimestamp"),
)
_BARE_FORMS = ("SELECT {c} FROM t", "SELECT {c}[1] FROM t", "SELECT len({c}) FROM t WHERE {c}[1] > 0 ORDER BY {c}")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("words")
    columns = ", ".join(f'"{word}" INTEGER[]' for word in _WORDS)
    rows = ", ".join(
        "(" + ", ".join(f"[{n}, {n * 100 + i}]" for i in range(len(_WORDS))) + f", {n}, 'a{n}')" for n in (1, 2, 3)
    )
    statements = (f"CREATE TABLE t ({columns}, id INTEGER, name VARCHAR)", f"INSERT INTO t VALUES {rows}")
    plain = duckdb.connect()
    with dl.connect(f"ducklake:{folder}/x.ducklake", alias="lake", engine="duckdb") as session, plain:
        for statement in statements:
            session.sql(statement)
            plain.execute(statement)
        yield session, plain


def _check(both: tuple[dl.Session, duckdb.DuckDBPyConnection], text: str, is_named: bool = True) -> None:
    session, plain = both
    expected = plain.execute(text)
    assert expected.description is not None
    names = [column[0] for column in expected.description]
    result = session.sql(text)
    assert result.fetchall() == expected.fetchall(), text
    if is_named:
        assert list(result.columns) == names, text


@pytest.mark.parametrize("word", _WORDS)
def test_a_column_called_like_a_word_is_the_column(
    both: tuple[dl.Session, duckdb.DuckDBPyConnection], word: str
) -> None:
    for form in _FORMS:
        _check(both, form.format(c=word))
    if word in _BARE:
        for form in _BARE_FORMS:
            _check(both, form.format(c=word))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT list(id ORDER BY id)[1], list(id ORDER BY id DESC)[1:2] FROM t",
        "SELECT array_agg(id ORDER BY id)[2] FROM t",
        "SELECT ARRAY[1, 2][1], ARRAY[id, 7][2], ARRAY[[1], [2, 3]][2][1] FROM t",
        "SELECT [1, 2, 3][2], ARRAY[]::INTEGER[]",
        "SELECT MAP {'x': 1}['x'], MAP {'x': [4, 5]}['x'][2], MAP {}",
        "SELECT INTERVAL '1' DAY, INTERVAL (id) HOUR, INTERVAL 3 DAYS FROM t",
        "SELECT DATE '2024-01-02' + INTERVAL (id) DAY, TIMESTAMP '2024-01-02 03:04:05' - INTERVAL '1 hour' FROM t",
        "SELECT {'a': 1}.a, {'a': [1, 2]}.a[2], struct_pack(a := 4).a",
        "SELECT current_date = today(), current_timestamp IS NULL FROM (SELECT 1)",
        "SELECT name[1], name[1:1], 'abc'[2], ('abc' || name)[4] FROM t",
        "SELECT x.list[1] FROM (SELECT [7, 8] AS list) AS x",
    ],
)
def test_values_and_types_stay_what_they_are(both: tuple[dl.Session, duckdb.DuckDBPyConnection], text: str) -> None:
    _check(both, text, is_named=False)


def test_bits_are_the_text_that_duckdb_shows(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    text = "SELECT '101'::BIT AS b, NULL::BIT, bitstring('1', 9), get_bit('01'::BIT, 1), bit_count('111'::BIT)"
    _check(both, text, is_named=False)
    rows = both[0].sql(
        "SELECT ['101'::BIT, NULL] AS l, {'a b': '1'::BIT, 'n': 2} AS s, MAP {'k': '0110'::BIT} AS m, "
        "['1'::BIT]::BIT[1] AS a, union_value(u := '11'::BIT) AS u"
    )
    assert rows.fetchall() == [(["101", None], {"a b": "1", "n": 2}, {"k": "0110"}, ("1",), "11")]


def test_the_name_of_an_expression_is_its_own(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    _check(both, "SELECT alias(ID), alias(id + 1), alias(x) FROM (SELECT id, name AS x FROM t)", is_named=False)


def test_rows_are_inserted_into_rows(both: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    texts = [
        "CREATE TABLE rows (d INTEGER, e INTEGER DEFAULT 7)",
        "INSERT INTO rows FROM (SELECT 1, 2)",
        "INSERT INTO rows (d) FROM (SELECT 3)",
        "INSERT INTO rows BY NAME FROM (SELECT 4 AS e)",
    ]
    for text in texts:
        for one in both:
            (one.sql if isinstance(one, dl.Session) else one.execute)(text)
    _check(both, "FROM rows ORDER BY d", is_named=True)
    with pytest.raises(dl.SqlSyntaxError, match="INSERT lacks its rows"):
        both[0].sql("INSERT INTO rows")

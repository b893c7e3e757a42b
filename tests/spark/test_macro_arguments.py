"""Arguments of macros whose bodies read tables: the answers of DuckDB, or a refusal where DuckDB takes another column by accident."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ducklake_lab.errors import BindError
from tests.spark.beside import beside_duckdb, comparable

pytestmark = pytest.mark.sampled(4)

TABLES = {
    "t": {"id": "INTEGER", "k": "INTEGER", "p": "STRUCT(a INTEGER, id INTEGER)"},
    "u": {"id": "INTEGER", "v": "INTEGER"},
}
ROWS = {
    "t": "(0, 2, {'a': 3, 'id': 9}), (1, 1, {'a': 1, 'id': 8}), (2, 0, {'a': 0, 'id': 7}), (3, 1, NULL)",
    "u": "(0, 10), (1, 11), (7, 2)",
}
MACROS = [
    "CREATE MACRO above(x) AS (SELECT count(*) FROM t WHERE t.id > x)",
    "CREATE MACRO is_in(x) AS EXISTS (SELECT 1 FROM u WHERE u.id = x)",
    "CREATE MACRO up_to(id, most) AS TABLE SELECT id, v FROM u WHERE id <= most",
    "CREATE MACRO added(x) AS list_transform([1, 2], lambda y: y + x)",
    "CREATE MACRO through(x) AS above(x + 1)",
    "CREATE MACRO plus(x) AS x + 1",
]
#: Queries with the same rows everywhere.
QUERIES = [
    "SELECT id, above(id) FROM t",
    "SELECT id, above(t.id) FROM t",
    "SELECT o.id, above(o.id) FROM t o",
    "SELECT id, above(id) FROM u",
    "SELECT k, above(k) FROM t o",
    "SELECT id, above(p.a) FROM t",
    "SELECT o.id, above(p.id) FROM t o",
    "SELECT id, through(id) FROM t",
    "SELECT id, through(id) FROM u",
    "SELECT id, above(plus(id)) FROM t",
    "SELECT id FROM t WHERE is_in(t.id)",
    "SELECT k FROM t WHERE is_in(k)",
    "SELECT id, is_in(id) FROM t",
    "SELECT id FROM t GROUP BY id HAVING is_in(id)",
    "SELECT id FROM t QUALIFY is_in(id) AND row_number() OVER () > 0",
    "SELECT count(*) FILTER (is_in(id)) FROM t",
    "SELECT id, k FROM t WHERE id >= (SELECT max(id) FROM up_to(id, 3))",
    "SELECT k FROM t WHERE k <= (SELECT max(v) FROM up_to(k, 3) WHERE v < 12)",
    "SELECT t.id, f.id, v FROM t, up_to(t.id, 7) f",
    "SELECT id AS w, added(id) FROM u",
    "SELECT y, added(y) FROM (SELECT id AS y FROM u)",
    "SELECT k + 1 AS z, above(z) FROM t",
]
#: Queries whose name DuckDB takes from the body by accident, and what to write.
REFUSED = {
    "SELECT id FROM t WHERE is_in(id)": 'argument "id" for the column of a table in the body; write t.id',
    "SELECT id FROM t WHERE id IN (SELECT v FROM u x WHERE above(id) > 0)": 'argument "id" .*; write x.id',
    "SELECT is_in(id), count(*) FROM t GROUP BY is_in(id)": 'argument "id" .*; write t.id',
    "SELECT t.id FROM t JOIN (SELECT 1 AS z) ON is_in(id)": 'argument "id" .*; write t.id',
    "SELECT (SELECT is_in(id)) FROM t": 'argument "id" .*; write t.id',
    "DELETE FROM t WHERE is_in(id)": 'argument "id" .*; write t.id',
    "UPDATE t SET k = 5 WHERE is_in(id)": 'argument "id" .*; write t.id',
    "UPDATE t SET k = is_in(id)::INTEGER": 'argument "id" .*; write t.id',
    "SELECT k AS id, is_in(id) FROM (SELECT k FROM t)": 'argument "id" for a name in the body; write its expression',
    "SELECT id AS y, added(y) FROM t": 'argument "y" for a name in the body; write its expression',
    "SELECT above((SELECT max(v) FROM u WHERE u.id = t.id)) FROM t": 'column "t.id" of its own',
}


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with beside_duckdb(tmp_path_factory.mktemp("macros"), spark, TABLES, ROWS) as found:
        for statement in MACROS:
            for client in found:
                client.sql(statement)
        yield found


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_arguments_mean_what_they_mean_in_duckdb(engine: str, query: str, both: Any) -> None:
    session, plain = both
    expected = sorted(map(repr, (comparable(list(row)) for row in plain.execute(query).fetchall())))
    rows = session.sql(query, engine=engine).fetchall()
    assert sorted(map(repr, (comparable(list(row)) for row in rows))) == expected


@pytest.mark.parametrize("query", REFUSED)
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_a_name_that_the_body_takes_by_accident_is_refused(engine: str, query: str, both: Any) -> None:
    session, _ = both
    before = session.current_snapshot().snapshot_id
    with pytest.raises(BindError, match=REFUSED[query]):
        session.sql(query, engine=engine).fetchall()
    assert session.current_snapshot().snapshot_id == before


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_merge_takes_a_macro_with_a_query(engine: str, both: Any) -> None:
    session, _ = both
    session.sql("CREATE OR REPLACE TABLE m AS SELECT id, false AS b FROM t")
    merge = "MERGE INTO m USING (SELECT id AS other FROM t) s ON m.id = s.other WHEN MATCHED AND is_in(s.other) THEN UPDATE SET b = is_in(s.other)"
    session.sql(merge, engine=engine)
    assert session.sql("SELECT id, b FROM m ORDER BY id").fetchall() == [(0, True), (1, True), (2, False), (3, False)]

"""Finding names of tables by tokens."""

from __future__ import annotations

import pytest

from ducklake_lab.sql.parse.references import find_references, splice, target_of, without_qualifier
from ducklake_lab.sql.parse.tokens import split


def names(text: str) -> list[str]:
    return [str(reference.name) for reference in find_references(text, split(text)[0])]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT a, extract(year FROM b) FROM lake.t AS x, y WHERE a IS DISTINCT FROM c", ["lake.t", "y"]),
        ("WITH c AS (FROM r), d(x) AS (FROM c) FROM d, c JOIN e ON true NATURAL JOIN n", ["r", "e", "n"]),
        ("FROM a JOIN b USING (q), c SELECT q, x", ["a", "b", "c"]),
        ("PIVOT lake.t ON a USING sum(b)", ["lake.t"]),
        ("SUMMARIZE (FROM t)", ["t"]),
        ("DESCRIBE t", ["t"]),
        ("FROM range(3) r(i) SELECT i, j", ["range"]),
        ("FROM f((SELECT 'x' FROM q), 'y', a => 1), lake.g()", ["f", "q", "lake.g"]),
        ("SELECT x FROM 'x.parquet' x", []),
        ("SELECT * FROM a UNION ALL SELECT * FROM b WHERE c IN (SELECT d FROM e)", ["a", "b", "e"]),
        ('SELECT "a" FROM "T x"."y" "z"', ["T x.y"]),
        ("SELECT * FROM (a CROSS JOIN b), LATERAL (SELECT * FROM c)", ["a", "b", "c"]),
    ],
)
def test_names_in_from(text: str, found: list[str]) -> None:
    assert names(text) == found


def test_a_moment_belongs_to_the_reference() -> None:
    text = "SELECT * FROM t AT (VERSION => f(1)) AS x, t AT (TIMESTAMP => now())"
    first, second = find_references(text, split(text)[0])
    assert first.at is not None and first.at.version_sql == "f(1)" and first.implied_alias == ""
    assert second.at is not None and second.at.timestamp_sql == "now()" and second.implied_alias == "t"
    replaced = splice(text, split(text)[0], [(first.first, first.last, "a"), (second.first, second.last, "b")])
    assert replaced == "SELECT * FROM a AS x, b"


@pytest.mark.parametrize(
    ("text", "name", "kind", "temporary"),
    [
        ("CREATE OR REPLACE TEMP TABLE x AS SELECT 1", "x", "TABLE", True),
        ("CREATE VIEW IF NOT EXISTS a.b AS FROM c", "a.b", "VIEW", False),
        ("CREATE UNIQUE INDEX i ON a.t (x)", "a.t", "INDEX", False),
        ("INSERT INTO a.t (x) VALUES (1)", "a.t", "TABLE", False),
        ("WITH c AS (SELECT 1) DELETE FROM t WHERE true", "t", "TABLE", False),
        ("MERGE INTO m USING s ON true WHEN MATCHED THEN DELETE", "m", "TABLE", False),
        ("DROP SCHEMA IF EXISTS a.s", "a.s", "SCHEMA", False),
    ],
)
def test_what_a_statement_is_about(text: str, name: str, kind: str, temporary: bool) -> None:
    target = target_of(text)
    assert target is not None
    assert (str(target.reference.name), target.kind, target.temporary) == (name, kind, temporary)


def test_a_catalogs_name_is_taken_away() -> None:
    text = "UPDATE meta.t SET a = meta.t.b FROM meta.main.u WHERE x.meta = 'meta.t'"
    assert without_qualifier(text, "META") == "UPDATE t SET a = t.b FROM u WHERE x.meta = 'meta.t'"

"""Random macros over tables with columns of the same names: each call answers as in DuckDB, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "queries at random")

_TABLES = {"t": ("id", "k", "v"), "u": ("id", "w"), "y": ("k", "w", "x")}
#: Bodies of macros over a parameter {p}, tables {t} and {s}, and their columns.
_BODIES = (
    "(SELECT max({a}) FROM {t} WHERE {t}.{b} <= {p})",
    "(SELECT count(*) FROM {t} o WHERE o.{a} > {p})",
    "CAST(EXISTS (SELECT 1 FROM {t} WHERE {b} = {p}) AS INTEGER)",
    "(SELECT sum({t}.{a} + j.{c}) FROM {t} JOIN {s} j ON {t}.{b} = j.{c} WHERE j.{c} < {p} + 3)",
    "(WITH q AS (SELECT {a} AS z FROM {t}) SELECT min(z) FROM q WHERE z >= {p})",
    "CASE WHEN {p} > 2 THEN (SELECT min({a}) FROM {t} WHERE {a} <> {p}) ELSE {p} END",
    "(SELECT count(*) FROM {t} WHERE {a} IN (SELECT {c} FROM {s} WHERE {c} <= {p}))",
    "list_sum(list_transform([1, 2], lambda z: z + {p}))",
)
_TABLE_BODIES = (
    "SELECT {a} AS o, {p} AS r FROM {t} WHERE {b} <= 3",
    "SELECT {t}.{a} AS o FROM {t} WHERE {t}.{b} >= {p}",
    "SELECT count(*) AS o, sum(j.{c}) AS r FROM {t} JOIN {s} j ON {t}.{b} = j.{c} WHERE j.{c} <> {p}",
)
#: Queries of table {f}, called {n}, with its column {k}, a call {m} of a macro, and a call {g} of a table macro.
_QUERIES = (
    "SELECT {m} AS r FROM {f}",
    "SELECT {n}.{k} FROM {f} WHERE {m} > 1",
    "SELECT {n}.{k}, {m} AS r FROM {f} ORDER BY {m}, {n}.{k}",
    "SELECT {k} FROM {f} GROUP BY {k} HAVING {h}({k}) > 0",
    "SELECT * FROM {f}, {g} z",
    "SELECT {n}.{k}, (SELECT max(z.o) FROM {g} z) FROM {f}",
    "SELECT (SELECT {m} + z.x FROM y z LIMIT 1) FROM {f}",
    "SELECT sum({m}) FROM {f}",
)
_REFUSALS = ("DuckDB takes", "of its own")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    folder: Path = tmp_path_factory.mktemp("macros")
    with dl.connect(f"ducklake:{folder}/x.ducklake", engine="duckdb") as session, duckdb.connect() as plain:
        for number, (table, columns) in enumerate(_TABLES.items(), 7):
            values = ", ".join(f"(i * {number + 3 * at} % 5)::INTEGER AS {name}" for at, name in enumerate(columns))
            for run in (session.sql, plain.execute):
                run(f"CREATE TABLE {table} AS SELECT {values} FROM range(5) r(i)")
        yield session, plain


def _macros(rnd: Random, bodies: tuple[str, ...], name: str, kind: str, plain: Any) -> list[str]:
    """Return statements that create macros, which DuckDB accepts."""
    made: list[str] = []
    for number in range(6):
        table, other = rnd.choice(list(_TABLES)), rnd.choice(list(_TABLES))
        parts = {"a": rnd.choice(_TABLES[table]), "b": rnd.choice(_TABLES[table]), "c": rnd.choice(_TABLES[other])}
        body = rnd.choice(bodies).format(t=table, s=other, p="p", **parts)
        if not kind and number and rnd.random() < 0.3:
            body = f"{name}{rnd.randrange(number)}(p) + {body}"
        made.append(f"CREATE OR REPLACE MACRO {name}{number}(p) AS {kind}{body}")
        plain.execute(made[-1])
    return made


def _query(rnd: Random) -> str:
    table = rnd.choice(list(_TABLES))
    name, columns = rnd.choice([table, table, "o"]), _TABLES[table]

    def argument() -> str:
        column = rnd.choice(columns)
        return rnd.choice(
            [column, f"{name}.{column}", f"{column} + {name}.{rnd.choice(columns)}", f"m0({column})", "2"]
        )

    return rnd.choice(_QUERIES).format(
        f=table if name == table else f"{table} {name}",
        n=name,
        k=columns[0],
        m=f"m{rnd.randrange(6)}({argument()})",
        h=f"m{rnd.randrange(6)}",
        g=f"g{rnd.randrange(6)}({argument()})",
    )


def _answer(rows: Callable[[], list[Any]]) -> list[str] | str:
    try:
        return sorted(map(repr, rows()))
    except (duckdb.Error, dl.DuckLakeError) as error:
        return str(error)


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(rnd=st.randoms(use_true_random=False))
def test_calls_answer_as_in_duckdb_or_are_refused(both: Any, rnd: Random) -> None:
    session, plain = both
    created = _macros(rnd, _BODIES, "m", "", plain) + _macros(rnd, _TABLE_BODIES, "g", "TABLE ", plain)
    for statement in created:
        session.sql(statement)
    for query in [_query(rnd) for _ in range(12)]:
        expected = _answer(lambda query=query: plain.execute(query).fetchall())  # type: ignore[misc]
        found = _answer(lambda query=query: session.sql(query).fetchall())  # type: ignore[misc]
        refused = isinstance(found, str) and any(refusal in found for refusal in _REFUSALS)
        if not refused and isinstance(expected, list):
            assert found == expected, (query, created)

"""Views, macros and live tables over random joins: the rows of the query, and of the view that the reference makes of its text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.reference import connect
from tests.sampling import examples

pytestmark = pytest.mark.sampled(1)

_TABLES = ("p", "q", "u")


@st.composite
def _joined(draw: st.DrawFn, depth: int = 3) -> tuple[str, list[str]]:
    """Tables that are joined, as text, and the names that they have there."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        name = f"t{draw(st.integers(0, 10_000))}"
        return f"{draw(st.sampled_from(_TABLES))} AS {name}", [name]
    (left, of_left), (right, of_right) = draw(_joined(depth - 1)), draw(_joined(depth - 1))
    if {*of_left} & {*of_right}:
        return left, of_left
    if " " in right.replace(" AS ", "") and draw(st.booleans()):
        right = f"({right})"
    if " " in left.replace(" AS ", "") and draw(st.booleans()):
        left = f"({left})"
    kind = draw(st.sampled_from(("CROSS JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ",")))
    condition = f" ON {draw(st.sampled_from(of_left))}.g = {draw(st.sampled_from(of_right))}.g"
    return f"{left} {kind} {right}{'' if kind in ('CROSS JOIN', ',') else condition}", [*of_left, *of_right]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[tuple[dl.Session, duckdb.DuckDBPyConnection]]:
    with connect() as reference:
        uri = f"ducklake:sqlite:{tmp_path}/lake.sqlite"
        reference.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{tmp_path}/data')")
        reference.execute("USE lake")
        for number, name in enumerate(_TABLES):
            reference.execute(
                f"CREATE TABLE {name} AS SELECT r + {number} AS k, (r + {number}) % 3 AS g FROM range(3) s(r)"
            )
        with dl.connect(uri, "lake", engine="duckdb") as session:
            yield session, reference


def test_stored_joins_are_those_of_the_query(lake: tuple[dl.Session, duckdb.DuckDBPyConnection]) -> None:
    session, reference = lake
    counts = {"kept": 0, "refused": 0}

    @settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(_joined(), st.booleans())
    def check(joined: tuple[str, list[str]], nested: bool) -> None:
        text, names = joined
        query = f"SELECT {', '.join(f'{name}.k AS {name}' for name in names)} FROM {text}"
        if nested:
            query = f"WITH w AS ({query}) SELECT * FROM w WHERE EXISTS (FROM p CROSS JOIN q LEFT JOIN u ON u.g = q.g)"
        try:
            rows = sorted(map(repr, reference.execute(query).fetchall()))
        except duckdb.Error:
            return  # the text reads otherwise than meant, or names a table that it does not see
        try:
            session.sql(f"CREATE OR REPLACE VIEW v AS {query}; CREATE OR REPLACE MACRO m() AS TABLE {query}")
        except dl.UnsupportedFeatureError as error:
            if "join in parentheses" not in str(error):
                raise
            counts["refused"] += 1
            return
        counts["kept"] += 1
        session.sql(f"CREATE OR REPLACE LIVE TABLE l AS {query}")
        for source in ("v", "m()", "l"):
            assert sorted(map(repr, session.sql(f"FROM {source}").fetchall())) == rows, source
        for source in ("v", "m()", "l"):
            assert sorted(map(repr, reference.execute(f"FROM {source}").fetchall())) == rows, source

    check()
    assert counts["kept"] > counts["refused"] >= 0

"""Charts of two random answers: bars, their order and their lengths equal plain SQL over both answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ducklake_lab.diff.answers import Answer, diff_answers
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.widgets import values
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: Types, the numbers that they are given, as texts, and a type in which their differences are exact and never too large.
KINDS = {
    "UTINYINT": (st.integers(0, 255).map(str), "INTEGER"),
    "INTEGER": (st.integers(-(2**31), 2**31 - 1).map(str), "BIGINT"),
    "BIGINT": (st.integers(-(2**63), 2**63 - 1).map(str), "HUGEINT"),
    "HUGEINT": (st.integers(-(2**126), 2**126 - 1).map(str), "HUGEINT"),
    "UHUGEINT": (st.integers(0, 2**127 - 1).map(str), "HUGEINT"),
    "DECIMAL(9, 2)": (st.decimals("-9999999", "9999999", places=2).map(str), "DECIMAL(12, 2)"),
    "DECIMAL(37, 5)": (st.decimals(-(10**31), 10**31, places=5).map(lambda number: f"{number:f}"), "DECIMAL(38, 5)"),
    "DOUBLE": (st.floats(-1e300, 1e300).map(repr) | st.sampled_from(["nan", "inf", "-inf", "-0.0"]), "DOUBLE"),
}
#: Plain SQL: the groups that differ, with the exact difference; numbers that are none, and infinite ones, by hand.
EXPECTED = """
    WITH j AS (
        SELECT coalesce(o.k, n.k) AS k, o.v AS before, n.v AS after,
            CASE WHEN o.there IS NULL THEN 'inserted' WHEN n.there IS NULL THEN 'deleted' ELSE 'updated' END AS kind,
            CASE WHEN n.there IS NULL THEN 0 ELSE CAST(n.v AS {wide}) END
            - CASE WHEN o.there IS NULL THEN 0 ELSE CAST(o.v AS {wide}) END AS step
        FROM (SELECT *, 1 AS there FROM old) AS o
        FULL JOIN (SELECT *, 1 AS there FROM new) AS n ON o.k IS NOT DISTINCT FROM n.k
        WHERE o.there IS NULL OR n.there IS NULL OR o.v IS DISTINCT FROM n.v
    )
    SELECT kind, k, before::VARCHAR, after::VARCHAR, step::VARCHAR, step::DOUBLE, count(*) OVER () FROM j
    ORDER BY step IS NULL OR isnan(step::DOUBLE), CASE WHEN NOT isnan(step::DOUBLE) THEN abs(step) END DESC, k NULLS LAST
    LIMIT 20
"""


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, dict[int | None, str | None], dict[int | None, str | None]]:
    """A type, and the values of some groups in two answers, as texts; many stay the same."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    numbers = st.none() | KINDS[kind][0]
    old = draw(st.dictionaries(st.none() | st.integers(0, 30), numbers, max_size=30))
    new = {key: draw(st.just(value) | numbers) for key, value in old.items() if draw(st.integers(0, 4))}
    return kind, old, {**new, **draw(st.dictionaries(st.none() | st.integers(0, 40), numbers, max_size=12))}


def text(value: object) -> str | None:
    return None if value is None else values.text(value)


def same(found: str | None, expected: str | None, kind: str) -> bool:
    """Whether two texts mean one number; floats have several spellings."""
    if kind != "DOUBLE" or found is None or expected is None:
        return found == expected
    return repr(float(found)) == repr(float(expected))


@settings(max_examples=examples(120), deadline=None)
@given(drawn=answers())
def test_bars_are_those_of_plain_sql(drawn: tuple[str, dict[Any, str | None], dict[Any, str | None]]) -> None:
    kind, *sides = drawn
    texts = [
        pa.table({"k": pa.array([*side], pa.int32()), "v": pa.array([*side.values()], pa.string())}) for side in sides
    ]
    tables = [engine.evaluate(f"SELECT k, CAST(v AS {kind}) AS v FROM t", {"t": rows}) for rows in texts]
    moments = [SnapshotInfo(number, datetime(2020, 1, 1, tzinfo=UTC), 0, "") for number in (1, 2)]
    found = diff_answers("FROM t", *map(Answer, moments, tables), key=["k"], time_zone="UTC").group_steps
    with duckdb.connect() as plain:
        for name, rows in zip(("old", "new"), texts, strict=True):
            plain.register(f"{name}_texts", rows)
            plain.execute(f"CREATE TABLE {name} AS SELECT k, CAST(v AS {kind}) AS v FROM {name}_texts")
        expected = plain.execute(EXPECTED.format(wide=KINDS[kind][1])).fetchall()
    if len(expected) < 2 or not any(row[5] and row[5] == row[5] for row in expected):
        assert found == ()
        return
    (column,) = found
    assert (column.column, len(column.groups) + column.more) == ("v", expected[0][-1])
    largest = max((abs(row[5]) for row in expected if row[5] is not None and abs(row[5]) < float("inf")), default=1)
    assert len(column.groups) == len(expected)
    for group, (change, key, before, after, step, length, _) in zip(column.groups, expected, strict=True):
        assert (group.kind, group.key) == (change, (key,))
        for shown, plainly in ((group.before, before), (group.after, after), (group.step, step)):
            assert same(text(shown), plainly, kind), (kind, shown, plainly)
        if length is None or length != length:
            assert group.share is None
        else:
            assert group.share == pytest.approx(length if abs(length) == float("inf") else length / (largest or 1))

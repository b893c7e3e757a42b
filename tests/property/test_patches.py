"""Random histories of a table by both clients: SQL and patches of a diff give what the reference reads of both states."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.diff.diff import Diff
from tests.interop.comparing import detach, normal
from tests.interop.patching import CLIENTS, apply, attach_copy, contents, copied, opened
from tests.memory import FOLDER
from tests.property.test_numbers import MAINTENANCE
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

#: A column with NULL, NaN and an infinity, of the key `i`.
F = "CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'nan' WHEN 2 THEN '-inf' ELSE i / 4 END::DOUBLE"
S = "CASE WHEN i % 5 > 0 THEN {'a': i::INTEGER, 'b': ['it''s', NULL, '😀\n' || i]} END"


class Step(NamedTuple):
    """A statement, and which client runs it."""

    ours: bool
    sql: str


class History(NamedTuple):
    """Steps before the earlier state, and between the two."""

    before: list[Step]
    between: list[Step]
    key: list[str] | None


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A table `t` with a key `k`, changes and maintenance of it, and changes of its columns between the states."""
    number = 0

    def step(*, altering: bool) -> Step:
        nonlocal number
        number += 1
        low = draw(st.integers(0, 80))
        where = f"WHERE k BETWEEN {low} AND {low + draw(st.sampled_from([0, 2, 25]))}"
        kinds = ["insert"] * 2 + ["delete"] * 3 + ["update"] * 3 + ["maintain"] * 2 + ["alter"] * (3 if altering else 0)
        match draw(st.sampled_from(kinds)):
            case "insert":
                count = draw(st.sampled_from([1, 4, 30]))
                first = 1000 * number + low
                sql = f"INSERT INTO t (k, f, s) SELECT i, {F}, {S} FROM range({first}, {first + count}) r(i)"
            case "delete":
                sql = f"DELETE FROM t {where}"
            case "update":
                change = draw(st.sampled_from(["f = f + 1", "s = NULL", "f = NULL, s = {'a': -1, 'b': []}", "f = f"]))
                sql = f"UPDATE t SET {change} {where}"
            case "alter":
                name = f"c{number}"
                sql = draw(
                    st.sampled_from(
                        [
                            f"ALTER TABLE t ADD COLUMN {name} INTEGER DEFAULT {number}",
                            f"ALTER TABLE t ADD COLUMN {name} VARCHAR",
                            "ALTER TABLE t ALTER COLUMN k SET DATA TYPE BIGINT",
                            "ALTER TABLE t ALTER COLUMN f SET DEFAULT 7",
                            "ALTER TABLE t DROP COLUMN extra",
                            'ALTER TABLE t RENAME COLUMN extra TO "Extra 2"',
                            'ALTER TABLE t RENAME COLUMN "Extra 2" TO extra',
                        ]
                    )
                )
            case _:
                sql = draw(st.sampled_from(MAINTENANCE))
        return Step(vectors or draw(st.booleans()), sql)

    # a deletion vector of the reference forgets which snapshot deleted what
    vectors = draw(st.booleans())
    made = f"CREATE TABLE t AS SELECT i::INTEGER AS k, {F} AS f, {S} AS s, 'x' || i % 3 AS extra FROM range(60) r(i)"
    before = [Step(draw(st.booleans()), made)]
    if vectors:
        before.append(Step(draw(st.booleans()), "CALL lake.set_option('write_deletion_vectors', true)"))
    before += [step(altering=False) for _ in range(draw(st.integers(0, 3)))]
    between = [step(altering=True) for _ in range(draw(st.integers(1, 6)))]
    return History(before, between, draw(st.sampled_from([None, None, ["k"]])))


def run(steps: list[Step], folder: Path, reference: duckdb.DuckDBPyConnection) -> None:
    """Runs the statements; those that name a column which is not there change nothing."""
    for step in steps:
        try:
            apply("ours" if step.ours else "reference", reference, folder, step.sql)
        except (dl.DuckLakeError, duckdb.Error):
            if not step.sql.startswith("ALTER TABLE t"):
                raise


def rows_of(diff: Diff) -> list[Any]:
    later = {column.name for column in diff.columns}
    found = []
    for row in diff.rows(100_000):
        cells: list[object] = []
        for name in diff.names:
            cells.append((row.before or {}).get(name))
            cells += [(row.after or {}).get(name)] if name in later else []
        found.append(normal((row.kind, *(() if diff.key else (row.row_id,)), *cells)))
    return found


def check_sql(diff: Diff, reference: duckdb.DuckDBPyConnection, folder: Path) -> None:
    attach_copy(reference, folder)
    try:
        found = [normal(row) for row in reference.execute(diff.sql()).fetchall()]
    finally:
        detach(reference)
    assert found == rows_of(diff)
    assert Counter(row[0] for row in found) == Counter(
        {kind: count for kind in ("inserted", "deleted", "updated") if (count := getattr(diff.summary, kind))}
    )


def check_history(history: History, root: Path, reference: duckdb.DuckDBPyConnection) -> None:
    lake = root / "lake"
    lake.mkdir()
    run(history.before, lake, reference)
    with opened(lake) as session:
        start = session.current_snapshot().snapshot_id
    early = copied(lake, "early")
    run(history.between, lake, reference)
    states = contents(reference, early, "t"), contents(reference, lake, "t")
    with opened(lake) as session:
        diff = session.table("t").diff(start, key=history.key)
        check_sql(diff, reference, lake)
        ways = [(diff.patch(), early, states[1])]
        try:
            ways.append((diff.patch(revert=True), lake, states[0]))
        except dl.UnsupportedFeatureError:
            assert any(change.kind in ("dropped", "retyped") for change in diff.schema)
    for patch, origin, state in ways:
        for by in CLIENTS:
            patched = copied(origin, "patched")
            apply(by, reference, patched, patch)
            assert contents(reference, patched, "t") == state, (by, patch)
            with opened(patched) as ours:
                (rows,) = ours.sql("SELECT count(*), count(k), sum(k) FROM t").fetchall()
            position = [name for name, _ in state[0]].index("k")
            keys = [int(row[position]) for row in state[1] if row[position] is not None]
            assert rows == (len(state[1]), len(keys), sum(keys) if keys else None)


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(histories())
def test_a_patch_makes_one_state_of_the_other(reference: duckdb.DuckDBPyConnection, history: History) -> None:
    root = Path(tempfile.mkdtemp(dir=FOLDER))
    try:
        check_history(history, root, reference)
    finally:
        shutil.rmtree(root)

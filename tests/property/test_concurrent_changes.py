"""Two transactions that both commit leave what one of the two serial orders leaves, and disjoint partitions never conflict."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.sampling import examples

pytestmark = pytest.mark.sampled(2, "concurrent changes at random")

#: Of p (the partition), k and v.
Row = tuple[int | None, int, int]
Pair = tuple[dl.Session, dl.Session]
_numbers = itertools.count()
_LAYOUTS = ("", "SET PARTITIONED BY (p)", "SET PARTITIONED BY (bucket(4, k))")
_rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 7), st.integers(0, 20)), min_size=1, max_size=6
)


@pytest.fixture
def pair(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[Pair]:
    uri = lake_uri()
    with (
        dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as one,
        dl.connect(uri, alias="lake", engine="duckdb") as two,
    ):
        one.sql("CALL lake.set_option('data_inlining_row_limit', 3)")
        yield one, two


def _values(rows: Sequence[Row]) -> str:
    return ", ".join(f"({'NULL' if p is None else p}, {k}, {v})" for p, k, v in rows)


@st.composite
def conditions(draw: st.DrawFn, partitions: Sequence[int] = (0, 1, 2, 3), name: str = "t") -> str:
    """A condition on rows; within partitions if these are not all."""
    terms = []
    if len(partitions) < 4 or draw(st.integers(0, 3)):
        chosen = draw(st.lists(st.sampled_from(partitions), min_size=1, max_size=2))
        terms.append(f"{name}.p IN ({', '.join(map(str, chosen))})" if len(chosen) > 1 else f"{name}.p = {chosen[0]}")
    elif draw(st.booleans()):
        terms.append(f"{name}.p IS NULL")
    if draw(st.booleans()):
        terms.append(f"{name}.k {draw(st.sampled_from(('=', '<', '>=', '<>')))} {draw(st.integers(0, 7))}")
    if draw(st.integers(0, 3)) == 0:
        terms.append(f"{name}.v % 2 = {draw(st.integers(0, 1))}")
    return draw(st.sampled_from((" AND ", " OR ") if len(partitions) == 4 else (" AND ",))).join(terms) or "true"


@st.composite
def statements(draw: st.DrawFn, partitions: Sequence[int] = (0, 1, 2, 3)) -> str:
    """A statement that changes rows of `t`."""
    where, inner = draw(conditions(partitions)), draw(conditions(partitions, "u"))
    rows = [(p, k, v) for p, k, v in draw(_rows) if p in partitions or (p is None and len(partitions) == 4)]
    kind = draw(st.integers(0, 8))
    by, to = draw(st.integers(1, 9)), draw(st.sampled_from(partitions))
    match kind:
        case 0 | 1 if rows:
            return f"INSERT INTO t VALUES {_values(rows)}"
        case 2 | 3:
            return f"DELETE FROM t WHERE {where}"
        case 4:
            return f"UPDATE t SET p = {to}, v = v + {by} WHERE {where}"
        case 5:
            return f"INSERT INTO t SELECT {to}, count(*), coalesce(sum(u.v), 0) % 100 FROM t AS u WHERE {inner}"
        case 6:
            return f"UPDATE t SET v = (SELECT count(*) + {by} FROM t AS u WHERE {inner}) WHERE {where}"
        case 7:
            return f"DELETE FROM t WHERE {where} AND t.v >= (SELECT coalesce(max(u.v), 0) FROM t AS u WHERE {inner})"
        case 8 if rows:
            source = {(p, k): v for p, k, v in rows}
            merged = _values([(p, k, v) for (p, k), v in source.items()])
            change = draw(st.sampled_from(("UPDATE SET v = s.v", "DELETE")))
            within = f" AND t.p = {to}" if len(partitions) < 4 or draw(st.booleans()) else ""
            return (
                f"MERGE INTO t USING (VALUES {merged}) AS s(p, k, v) ON t.p = s.p AND t.k = s.k{within} "
                f"WHEN MATCHED THEN {change} WHEN NOT MATCHED THEN INSERT VALUES (s.p, s.k, s.v)"
            )
    return f"UPDATE t SET v = v + {by} WHERE {where}"


def serial(rows: Sequence[Row], order: Sequence[str]) -> list[Row]:
    """Rows after some statements, by DuckDB alone."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (p INTEGER, k INTEGER, v BIGINT)")
        connection.execute(f"INSERT INTO t VALUES {_values(rows)}")
        for statement in order:
            connection.execute(statement)
        return _sorted(connection.execute("FROM t").fetchall())


def _sorted(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[0] is None, row[0] or 0, *row[1:]))


class Race:
    """A table with rows in files and in the catalog, and two transactions that begin at one snapshot.

    Args:
        loads: rows that are inserted together; few are inlined.
    """

    def __init__(self, pair: Pair, layout: str, loads: Sequence[Sequence[Row]]) -> None:
        self.pair, self.name = pair, f"t{next(_numbers)}"
        pair[0].sql(f"CREATE TABLE {self.name} (p INTEGER, k INTEGER, v BIGINT)")
        if layout:
            pair[0].sql(f"ALTER TABLE {self.name} {layout}")
        for rows in loads:
            pair[0].sql(f"INSERT INTO {self.name} VALUES {_values(rows)}")

    def run(self, first: Sequence[str], second: Sequence[str]) -> bool:
        """Runs both transactions; returns whether both commit. The first one commits first."""
        for session, changes in zip(self.pair, (first, second), strict=True):
            session.sql("BEGIN")
            for change in changes:
                session.sql(re.sub(r"\bt( AS u)?\b(?!\.)", self._named, change))
        self.pair[0].sql("COMMIT")
        try:
            self.pair[1].sql("COMMIT")
        except dl.TransactionConflictError:
            return False
        return True

    def _named(self, found: re.Match[str]) -> str:
        return f"{self.name} AS u" if found[1] else f"{self.name} AS t"

    def rows(self) -> list[Row]:
        """The rows of the table; each has a row id of its own."""
        found = self.pair[0].sql(f"SELECT rowid, * FROM {self.name}").fetchall()
        assert len({row[0] for row in found}) == len(found)
        return _sorted([row[1:] for row in found])


@pytest.mark.parametrize("layout", _LAYOUTS)
def test_two_that_commit_are_serial(layout: str, pair: Pair) -> None:
    committed = {True: 0, False: 0}

    @settings(max_examples=examples(120), suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        st.lists(_rows, min_size=1, max_size=4),
        st.lists(statements(), min_size=1, max_size=3),
        st.lists(statements(), min_size=1, max_size=3),
    )
    def both(loads: list[list[Row]], first: list[str], second: list[str]) -> None:
        race = Race(pair, layout, loads)
        done = race.run(first, second)
        committed[done] += 1
        rows = [row for load in loads for row in load]
        orders = [[*first, *second], [*second, *first]] if done else [first]
        assert race.rows() in [serial(rows, order) for order in orders]

    both()
    assert committed[True] > 0


def test_disjoint_partitions_never_conflict(pair: Pair) -> None:
    @settings(max_examples=examples(80), suppress_health_check=list(HealthCheck), deadline=None)
    @given(
        st.lists(_rows, min_size=1, max_size=4),
        st.lists(statements((0, 1)), min_size=1, max_size=3),
        st.lists(statements((2, 3)), min_size=1, max_size=3),
    )
    def both(loads: list[list[Row]], first: list[str], second: list[str]) -> None:
        race = Race(pair, _LAYOUTS[1], loads)
        assert race.run(first, second)
        rows = [row for load in loads for row in load]
        assert race.rows() == serial(rows, [*first, *second]) == serial(rows, [*second, *first])

    both()

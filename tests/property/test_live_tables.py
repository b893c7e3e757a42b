"""Random sources, queries and histories by both clients: after each refresh a live table has the rows of its query then."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.interop.patching import apply, opened
from tests.live import differing
from tests.memory import FOLDER
from tests.property.test_numbers import MAINTENANCE
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

_COLUMNS = "k, g, v, s, f"
_SOURCES = (
    "CREATE TABLE t (k INTEGER, g INTEGER, v DECIMAL(8, 2), s VARCHAR, f DOUBLE, spare INTEGER)",
    "CREATE TABLE u (k INTEGER, name VARCHAR, w BIGINT)",
    "CREATE VIEW few AS SELECT * FROM t WHERE g < 3",
)


class Step(NamedTuple):
    """Statements of one client; None refreshes all live tables."""

    ours: bool
    sql: str | None


def rows_of_t(draw: st.DrawFn, count: int) -> str:
    def one() -> str:
        k, g = (
            draw(st.sampled_from(["NULL", *map(str, range(12))])),
            draw(st.sampled_from(["NULL", "0", "1", "2", "3"])),
        )
        v, s = draw(st.sampled_from(["NULL", "0", "1.25", "-7.5"])), draw(st.sampled_from(["NULL", "''", "'a'", "'B'"]))
        f = draw(st.sampled_from(["NULL", "0.5", "'nan'", "-2"]))
        return f"({k}, {g}, {v}, {s}, {f}, 0)"

    return ", ".join(one() for _ in range(count))


def rows_of_u(draw: st.DrawFn, count: int) -> str:
    def one() -> str:
        k, w = draw(st.sampled_from(["NULL", *map(str, range(8))])), draw(st.sampled_from(["NULL", "1", "5"]))
        return f"({k}, {draw(st.sampled_from(['NULL', repr('x'), repr('y')]))}, {w})"

    return ", ".join(one() for _ in range(count))


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query over t and u, with sums that are exact in any order, and windows in the order of all columns."""
    kinds = [
        "rows",
        "join",
        "group",
        "group of a join",
        "set",
        "distinct",
        "window",
        "top",
        "nested",
        "nested",
        "chosen",
    ]
    kind = draw(st.sampled_from(kinds))
    table = draw(st.sampled_from(["t", "t", "few"]))
    where = draw(st.sampled_from(["", " WHERE g <> 1", " WHERE v > 0 OR s IS NULL", " WHERE k % 3 = 0"]))
    join = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]))
    on = draw(st.sampled_from(["a.k = u.k", "a.g = u.k", "a.k = u.k AND u.w < 3", "a.g IS NOT DISTINCT FROM u.k"]))
    items = draw(
        st.lists(
            st.sampled_from(
                ["count(*) AS n", "sum(v) AS v", "count(v) AS nv", "min(s) AS s0", "sum(f) AS f", "avg(v) AS av",
                 "count(DISTINCT s) AS ds", "list(k ORDER BY k) AS ks", "max(k) AS k0", "bool_or(v > 0) AS b"]
            ),
            min_size=1, max_size=4, unique=True,
        )
    )  # fmt: skip
    keys = draw(st.sampled_from(["g", "s", "g, s", "k % 2", "f"]))
    match kind:
        case "rows":
            shown = draw(st.sampled_from([_COLUMNS, "k, s || '!' AS s", "v * 2 AS v, g"]))
            return f"SELECT {shown} FROM {table}{where}"
        case "join":
            shown = draw(st.sampled_from(["a.k, u.name", "a.s, u.k AS uk, u.w", "u.name", "a.*"]))
            more = draw(st.sampled_from(["", "", " LEFT JOIN u b ON b.k = u.w", " ANTI JOIN u c ON a.g = c.w"]))
            return f"SELECT {shown} FROM {table} a {join} u ON {on}{more}"
        case "group":
            having = draw(st.sampled_from(["", "", " HAVING count(*) > 1"]))
            named = f"{keys} AS key" if "," not in keys and keys != "f" else keys
            return f"SELECT {named}, {', '.join(items)} FROM {table}{where} GROUP BY {keys}{having}"
        case "group of a join":
            key = draw(st.sampled_from(["u.name", "a.g", "a.g, u.name"]))
            parts = [item for item in items if "DISTINCT" not in item and "(k" not in item] or ["count(*) AS n"]
            return f"SELECT {key}, {', '.join(parts)} FROM {table} a {join} u ON {on} GROUP BY {key}"
        case "set":
            verb = draw(st.sampled_from(["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"]))
            return f"SELECT k, s FROM {table}{where} {verb} SELECT k, name FROM u"
        case "distinct":
            return f"SELECT DISTINCT {draw(st.sampled_from(['g', 'g, s', 'f, g', 'v + 1 AS v']))} FROM {table}{where}"
        case "window":
            part = draw(st.sampled_from(["g", "s", "g, s"]))
            return (
                f"SELECT k, g, s, row_number() OVER (PARTITION BY {part} ORDER BY {_COLUMNS}) AS n, "
                f"sum(v) OVER (PARTITION BY {part}) AS total FROM {table}{where}"
            )
        case "top":
            window = f"row_number() OVER (PARTITION BY g ORDER BY v DESC, {_COLUMNS})"
            return f"SELECT g, k, s FROM {table}{where} QUALIFY {window} <= {draw(st.integers(1, 3))}"
        case "chosen":
            order = draw(st.sampled_from([f"g, v DESC, {_COLUMNS}", "ALL", "ALL DESC"]))
            inner = f"SELECT DISTINCT ON (g) g, v, k, s, f FROM {table}{where} ORDER BY {order}"
            rows = f"SELECT k FROM {table} ORDER BY k"
            return draw(
                st.sampled_from(
                    [
                        f"SELECT k FROM ({inner}) AS x",
                        f"SELECT s, count(*) AS c FROM ({inner}) AS x GROUP BY s",
                        f"WITH x AS ({inner}), y AS (SELECT k, s FROM x ORDER BY s) SELECT u.name, y.s FROM y {join} u ON y.k = u.k",
                        f"SELECT k FROM ({inner}) AS x {draw(st.sampled_from(['UNION ALL', 'UNION', 'EXCEPT']))} ({rows})",
                        f"SELECT k FROM ((SELECT k, v FROM ({inner}) AS x ORDER BY v) UNION ALL (SELECT k, v FROM t ORDER BY k)) AS y",
                        f"SELECT k, s FROM ({inner} LIMIT {draw(st.integers(0, 3))}) AS x",
                        f"SELECT k FROM ({rows}, g, v, s, f LIMIT 5 OFFSET 1) AS x JOIN u USING (k)",
                    ]
                )
            )
        case _:
            inner = f"SELECT g, s, count(*) AS n, sum(v) AS v FROM {table}{where} GROUP BY g, s"
            return draw(
                st.sampled_from(
                    [
                        f"SELECT n, count(*) AS times FROM ({inner}) GROUP BY n",
                        f"WITH x AS ({inner}) SELECT u.k, u.name, x.n, x.v FROM u LEFT JOIN x ON x.g = u.k",
                        f"SELECT g, max(n) AS n, count(*) AS c FROM ({inner}) GROUP BY g",
                        f"SELECT DISTINCT n FROM ({inner})",
                        f"SELECT g, n, rank() OVER (PARTITION BY g ORDER BY n) AS r FROM ({inner})",
                        f"SELECT g, count(*) AS c FROM (SELECT DISTINCT g, s FROM {table}) GROUP BY g",
                        f"SELECT x.s, count(*) AS c FROM ({inner}) x FULL JOIN u ON x.g = u.k GROUP BY x.s",
                    ]
                )
            )


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    steps = []

    def change() -> str:
        where = draw(
            st.sampled_from(["WHERE k = 3", "WHERE g = 1", "WHERE k > 6", "WHERE s IS NULL", "WHERE g IS NULL"])
        )
        return draw(
            st.sampled_from(
                [
                    f"INSERT INTO t (k, g, v, s, f, spare) VALUES {rows_of_t(draw, draw(st.integers(1, 4)))}",
                    f"INSERT INTO u VALUES {rows_of_u(draw, draw(st.integers(1, 3)))}",
                    f"DELETE FROM t {where}",
                    f"UPDATE t SET g = {draw(st.sampled_from(['NULL', '0', 'g + 1']))} {where}",
                    f"UPDATE t SET v = v + 1, s = 'a' {where}",
                    f"UPDATE t SET spare = spare + 1 {where}",
                    f"DELETE FROM u WHERE k = {draw(st.integers(0, 7))}",
                    "UPDATE u SET k = k + 1, name = 'y' WHERE w = 1",
                ]
            )
        )

    for _ in range(draw(st.integers(2, 6))):
        match draw(st.sampled_from(["one"] * 5 + ["many", "maintain", "alter", "odd"])):
            case "one":
                steps.append(Step(draw(st.booleans()), change()))
            case "many":
                steps.append(Step(True, f"BEGIN; {change()}; {change()}; COMMIT"))
            case "maintain":
                steps.append(Step(draw(st.booleans()), draw(st.sampled_from(MAINTENANCE))))
            case "alter":
                name = draw(st.sampled_from(["more", "other"]))
                steps.append(
                    Step(True, draw(st.sampled_from([f"ALTER TABLE u ADD COLUMN {name} INTEGER DEFAULT 4", "ALTER TABLE t ALTER k TYPE BIGINT"])))
                )  # fmt: skip
            case _:
                steps.append(Step(True, draw(st.sampled_from([
                    "CALL lake.expire_snapshots(older_than => now())", "CREATE OR REPLACE TABLE u AS FROM u WHERE k < 5",
                    "CREATE OR REPLACE VIEW few AS SELECT * FROM t WHERE g > 0",
                ]))))  # fmt: skip
        if draw(st.booleans()):
            steps.append(Step(True, None))
    return [*steps, Step(True, None)]


@given(data=st.data())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_a_live_table_is_its_query_at_that_snapshot(data: st.DataObject, reference: duckdb.DuckDBPyConnection) -> None:
    given_queries = [data.draw(queries()) for _ in range(3)]
    history = data.draw(histories())
    initial = [
        f"INSERT INTO t VALUES {data.draw(st.composite(rows_of_t)(count=20))}",
        f"INSERT INTO u VALUES {data.draw(st.composite(rows_of_u)(count=6))}",
    ]
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        place = Path(folder) / "made"
        place.mkdir()
        with opened(place) as session:
            for statement in (*_SOURCES, *initial):
                session.sql(statement)
            for number, query in enumerate(given_queries):
                session.sql(f"CREATE LIVE TABLE live_{number} AS {query}")
        for step in history:
            if step.sql is None:
                _refresh(place, given_queries)
                continue
            try:
                apply("ours" if step.ours else "reference", reference, place, step.sql)
            except (dl.SqlError, dl.EntryExistsError, dl.UnsupportedFeatureError, duckdb.Error):
                continue


def _refresh(place: Path, given_queries: list[str]) -> None:
    with opened(place) as session:
        for number, query in enumerate(given_queries):
            done = session.refresh(f"live_{number}")
            found = differing(session, f"live_{number}", query, done.snapshot)
            assert found == [], (query, done)
            assert session.refresh(f"live_{number}").mode == "nothing"

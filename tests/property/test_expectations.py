"""Random expectations and histories: what is committed fulfils them, and what is refused would not, by plain SQL in DuckDB."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter

import duckdb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.sampling import examples

_CONDITIONS = ("v > 0", "v % 2 = 0", "length(s) < 3", "v IS NOT NULL OR k > 2", "s <> 'x' AND k >= 0", "k + v < 8")
_VALUE = st.one_of(st.none(), st.integers(-3, 6))
_ROW = st.tuples(_VALUE, _VALUE, st.sampled_from([None, "x", "ab", "abc"]))
_CHANGE = st.one_of(
    st.tuples(st.just("insert"), st.lists(_ROW, min_size=1, max_size=14)),
    st.tuples(
        st.just("update"), st.sampled_from(["v = v + 1", "v = -v", "k = k + 1", "s = 'x'", "k = 2"]), st.integers(-3, 6)
    ),
    st.tuples(st.just("delete"), st.integers(-3, 6)),
    st.tuples(st.just("parents"), st.integers(-3, 6)),
)
_EXPECTED = st.one_of(
    st.tuples(st.just("check"), st.sampled_from(_CONDITIONS)),
    st.tuples(st.just("not null"), st.sampled_from(["k", "v", "s"])),
    st.tuples(st.just("unique"), st.sampled_from(["k", "k, v", "s, k"])),
    st.just(("references", "k")),
)


def _literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _statement(change: tuple[object, ...]) -> str:
    match change:
        case ("insert", rows):
            listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)  # type: ignore[attr-defined]
            return f"INSERT INTO t VALUES {listed}"
        case ("update", assignment, key):
            return f"UPDATE t SET {assignment} WHERE k <= {key}"
        case ("delete", key):
            return f"DELETE FROM t WHERE k = {key}"
    return f"DELETE FROM p WHERE k = {change[1]}"


def _bad_rows(kind: str, text: str) -> str:
    """The query of the rows of t that violate an expectation."""
    match kind:
        case "check":
            return f"SELECT * FROM t WHERE NOT ({text})"
        case "not null":
            return f"SELECT * FROM t WHERE {text} IS NULL"
        case "unique":
            present = " AND ".join(f"{name} IS NOT NULL" for name in text.split(", "))
            return f"SELECT {text} FROM t WHERE {present} GROUP BY {text} HAVING count(*) > 1"
    return "SELECT * FROM t WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM p)"


def _definition(kind: str, text: str) -> str:
    match kind:
        case "check":
            return f"CHECK ({text})"
        case "not null":
            return f"NOT NULL ({text})"
        case "unique":
            return f"UNIQUE ({text})"
    return f"({text}) REFERENCES p(k)"


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(_EXPECTED, min_size=1, max_size=3),
    st.lists(_CHANGE, min_size=1, max_size=6),
    st.sampled_from(["fail", "drop", "quarantine"]),
    st.sampled_from([0, 10]),
)
def test_what_is_committed_fulfils_the_expectations(
    expected: list[tuple[str, str]], changes: list[tuple[object, ...]], on: str, inlined: int
):
    plain = duckdb.connect()
    with (
        tempfile.TemporaryDirectory() as folder,
        dl.connect(f"ducklake:{folder}/l.ducklake", data_path=f"{folder}/d", engine="duckdb") as session,
    ):
        session.sql(f"CALL set_option('data_inlining_row_limit', {inlined})")
        for statement in (
            "CREATE TABLE p (k INTEGER)",
            "INSERT INTO p VALUES (-1), (0), (1), (2), (3)",
            "CREATE TABLE t (k INTEGER, v INTEGER, s VARCHAR)",
        ):
            plain.execute(statement)
            session.sql(statement)
        for number, (kind, text) in enumerate(expected):
            session.sql(f"ALTER TABLE t EXPECT e{number} {_definition(kind, text)} ON VIOLATION {on}")
        for change in changes:
            statement = _statement(change)
            plain.execute("BEGIN")
            plain.execute(statement)
            violated = any(plain.execute(_bad_rows(kind, text)).fetchall() for kind, text in expected)
            before = session.current_snapshot().snapshot_id
            refused = False
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dl.ExpectationWarning)
                try:
                    session.sql(statement)
                except dl.ExpectationError:
                    refused = True
            if refused:
                assert violated and session.current_snapshot().snapshot_id == before
                plain.execute("ROLLBACK")
            elif on == "fail":
                assert not violated
                plain.execute("COMMIT")
            else:
                if violated and change[0] == "insert" and all(kind in ("check", "not null") for kind, _ in expected):
                    # the rows that were there fulfil all, so that all others are new
                    for kind, text in expected:
                        plain.execute(_bad_rows(kind, text).replace("SELECT *", "DELETE", 1))
                    violated = False
                if not violated:
                    mine = Counter(session.sql("SELECT k, v, s FROM t").fetchall())
                    assert mine == Counter(plain.execute("SELECT k, v, s FROM t").fetchall())
                plain.execute("ROLLBACK")
                rows = session.sql("SELECT k, v, s FROM t").fetchall()
                parents = session.sql("SELECT k FROM p").fetchall()
                plain.execute("DELETE FROM t; DELETE FROM p")
                for table, found in (("t", rows), ("p", parents)):
                    if found:
                        plain.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(found[0]))})", found)
                for kind, text in expected:
                    assert not plain.execute(_bad_rows(kind, text)).fetchall(), (kind, text)
            mine = Counter(session.sql("SELECT k, v, s FROM t").fetchall())
            assert mine == Counter(plain.execute("SELECT k, v, s FROM t").fetchall())
            assert all(row[5] == 0 for row in session.check("t").fetchall())

"""Random expectations, rows and maintenance on a branch: its review counts what plain SQL counts in the rows that came."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.property.test_expectations import _CHANGE, _EXPECTED, _definition, _statement
from tests.sampling import examples

_MAINTENANCE = st.sampled_from(
    [
        "CALL lake.merge_adjacent_files()",
        "CALL lake.rewrite_data_files(delete_threshold => 0)",
        "CALL lake.flush_inlined_data()",
    ]
)
_STEP = st.one_of(_CHANGE, _CHANGE, st.tuples(st.just("call"), _MAINTENANCE))


def _run(session: dl.Session, step: tuple[object, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.ExpectationWarning)
        session.sql(str(step[1]) if step[0] == "call" else _statement(step))


def _bad(kind: str, text: str) -> str:
    """The query of the rows of `came`, rows of t with row ids, that violate an expectation."""
    match kind:
        case "check":
            return f"SELECT * FROM came WHERE NOT ({text})"
        case "not null":
            return f"SELECT * FROM came WHERE {text} IS NULL"
        case "unique":
            names = text.split(", ")
            present = " AND ".join(f"{name} IS NOT NULL" for name in names)
            same = " AND ".join(f"o.{name} = c.{name}" for name in names)
            # of rows with one key, that which was there first fulfils it
            return (
                f"SELECT c.* FROM came AS c WHERE {present} AND EXISTS (SELECT 1 FROM t AS o WHERE {same} "
                "AND (o.snapshot_id <= $since OR o.rowid < c.rowid))"
            )
    return "SELECT * FROM came WHERE k IS NOT NULL AND k NOT IN (FROM p)"


_ORPHANED = "SELECT * FROM t WHERE k IN (FROM parents_before) AND k NOT IN (FROM p)"


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(_EXPECTED, min_size=1, max_size=3),
    st.lists(_CHANGE, max_size=4),
    st.lists(_STEP, min_size=1, max_size=5),
    st.sampled_from([0, 10]),
)
def test_a_review_counts_violations_as_plain_sql(
    expected: Sequence[tuple[str, str]],
    before: Sequence[tuple[object, ...]],
    steps: Sequence[tuple[object, ...]],
    inlined: int,
):
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect() as plain,
        dl.connect(f"ducklake:{folder}/lake.ducklake", data_path=f"{folder}/d", engine="duckdb") as session,
    ):
        session.sql(f"CALL lake.set_option('data_inlining_row_limit', {inlined})")
        session.sql("CREATE TABLE p AS SELECT i::INTEGER AS k FROM range(-1, 4) r(i)")
        session.sql("CREATE TABLE t (k INTEGER, v INTEGER, s VARCHAR)")
        session.sql("INSERT INTO t VALUES (1, 1, 'x'), (2, -1, 'ab'), (2, 4, NULL)")
        for step in before:
            _run(session, step)
        for number, (kind, text) in enumerate(expected):
            session.sql(f"ALTER TABLE t EXPECT e{number} {_definition(kind, text)} ON VIOLATION warn")
        since = session.current_snapshot().snapshot_id
        plain.register("parents_before", session.sql("SELECT k FROM p").arrow())
        session.branch("fix")
        session.switch("fix")
        for step in steps:
            _run(session, step)
        rows: pa.Table = session.sql("SELECT rowid, snapshot_id, k, v, s FROM t").arrow()
        plain.register("t", rows)
        plain.register("p", session.sql("SELECT k FROM p").arrow())
        plain.execute(f"CREATE VIEW came AS SELECT * FROM t WHERE snapshot_id > {since}")
        session.switch(None)
        review = session.review("fix")
        changed = {one.name for one in review.tables}
        found = {(one.expectation.name, bool(one.why)): one for one in review.checks}
        assert len(found) == len(review.checks)
        wanted: dict[tuple[str, bool], list[tuple[object, ...]]] = {}
        for number, (kind, text) in enumerate(expected):
            if "main.t" in changed:
                given_ = {"since": since} if kind == "unique" else {}
                wanted[f"e{number}", False] = plain.execute(_bad(kind, text), given_).fetchall()
            orphaned = plain.execute(_ORPHANED).fetchall() if kind == "references" else []
            if orphaned:
                wanted[f"e{number}", True] = orphaned
        assert {key: one.count for key, one in found.items()} == {key: len(bad) for key, bad in wanted.items()}
        for key, bad in wanted.items():
            first = found[key].rows
            shown = [tuple(row.values()) for row in first.to_pylist()] if first is not None else []
            assert len(shown) == min(5, len(bad)) and not set(shown) - {row[2:] for row in bad}
        failed = [one for one in review.checks if not one.passed]
        for text_ in (review.to_html(), review.to_markdown()):
            for one in failed:
                assert one.expectation.name in text_
        assert [one["violations"] for one in review.to_dict()["checks"]] == [one.count for one in review.checks]

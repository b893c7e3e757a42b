"""The largest changes of a number by group, in a diff of two answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.diff.answers import Answer, diff_answers
from ducklake_lab.diff.model import GroupStep
from ducklake_lab.engine.in_process import engine
from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.widgets import values

pytestmark = pytest.mark.sampled(3)

Told = tuple[str, str, str, str, str]
MOST, LEAST = str(2**127 - 1), str(-(2**127))
NINES = "9" * 38


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT range % 6 AS g, range % 2 AS h, range AS v FROM range(60)")
        session.sql("DELETE FROM t WHERE g = 1; INSERT INTO t SELECT 9, 1, range FROM range(3)")
        session.sql("UPDATE t SET v = v + 1 WHERE g = 2; UPDATE t SET v = v - 5 WHERE g = 3 AND v > 30")
        yield session


def told(group: GroupStep) -> Told:
    """The kind of a group, and the texts of its key, its values and its step."""
    before, after, step = (values.text(value) for value in (group.before, group.after, group.step))
    return group.kind, " ".join(map(values.text, group.key)), before, after, step


def changed(kind: str, pairs: Mapping[str, tuple[str | None, str | None]]) -> dl.AnswerDiff:
    """The diff of two answers with a value of a type for each name, given by texts; without the row for "-"."""
    answers = []
    for side in (0, 1):
        rows = [(name, pair[side]) for name, pair in pairs.items() if pair[side] != "-"]
        listed = ", ".join(f"('{name}', {'NULL' if text is None else repr(text)})" for name, text in rows)
        found = engine.evaluate(f"SELECT k, CAST(v AS {kind}) AS v FROM (VALUES {listed}) AS s(k, v)", {})
        answers.append(Answer(SnapshotInfo(side, datetime(2020, 1, 1, tzinfo=UTC), 0, ""), found))
    return diff_answers("FROM t", *answers, key=["k"], time_zone="UTC")


def test_groups_come_go_and_change(session: dl.Session) -> None:
    diff = session.compare("SELECT g, count(*)::INTEGER AS n, sum(v)::BIGINT AS total FROM t GROUP BY g", 1)
    total, n = diff.group_steps
    assert (total.column, total.more, n.column, n.more) == ("total", 0, "n", 0)
    assert [told(group) for group in total.groups] == [
        ("deleted", "1", "280", "NULL", "-280"),
        ("updated", "3", "300", "275", "-25"),
        ("updated", "2", "290", "300", "10"),
        ("inserted", "9", "NULL", "3", "3"),
    ]
    assert [group.share for group in total.groups] == [-1, -25 / 280, 10 / 280, 3 / 280]
    # groups whose number stays are no part of its chart
    assert [told(group) for group in n.groups] == [
        ("deleted", "1", "10", "NULL", "-10"),
        ("inserted", "9", "NULL", "3", "3"),
    ]
    assert {row.row_id for row in diff.rows()} == {group.row_id for group in total.groups}


@pytest.mark.parametrize(
    ("kind", "before", "after", "step"),
    [
        ("TINYINT", "-128", "127", "255"),
        ("UTINYINT", "255", "0", "-255"),
        ("INTEGER", "2147483647", "-2147483648", "-4294967295"),
        ("BIGINT", "-9223372036854775808", "9223372036854775807", str(2**64 - 1)),
        ("UBIGINT", "0", str(2**64 - 1), str(2**64 - 1)),
        ("HUGEINT", LEAST, MOST, str(2**128 - 1)),
        ("HUGEINT", MOST, LEAST, str(1 - 2**128)),
        ("HUGEINT", MOST, "-1", LEAST),
        ("HUGEINT", LEAST, "0", str(2**127)),
        ("HUGEINT", LEAST, "-1", MOST),
        ("UHUGEINT", "1", str(2**128 - 1), str(2**128 - 2)),
        ("UHUGEINT", str(2**128 - 1), "0", str(1 - 2**128)),
        ("DECIMAL(38, 0)", f"-{NINES}", NINES, "1" + "9" * 37 + "8"),
        ("DECIMAL(38, 2)", f"{NINES[2:]}.99", f"-{NINES[2:]}.99", f"-1{'9' * 36}.98"),
        ("DECIMAL(38, 38)", f"-0.{NINES}", f"0.{NINES}", f"1.{'9' * 37}8"),
        ("DECIMAL(4, 2)", "0.03", "-0.02", "-0.05"),
        ("DECIMAL(3, 3)", "-0.001", "0.001", "0.002"),
        ("DOUBLE", "1e16", "10000000000000002", "2.0"),
        ("DOUBLE", "0", "5e-324", "5e-324"),
        ("DOUBLE", "-1e308", "1e308", None),
        ("DOUBLE", "inf", "1", "-inf"),
        ("DOUBLE", "-inf", "inf", "inf"),
        ("DOUBLE", "nan", "1", "NaN"),
        ("DOUBLE", "1", "nan", "NaN"),
        ("FLOAT", "-3e38", "3e38", None),
        ("FLOAT", "16777216", "1", "-16777215.0"),
        ("FLOAT", "inf", "nan", "nan"),
        ("BIGINT", None, "5", None),
        ("DECIMAL(9, 2)", "5", None, None),
        ("DOUBLE", None, "nan", None),
    ],
)
def test_steps_have_all_digits(kind: str, before: str | None, after: str | None, step: str | None) -> None:
    one = "0.1" if kind in ("DECIMAL(38, 38)", "DECIMAL(3, 3)") else "1"
    diff = changed(kind, {"edge": (before, after), "none": (None, None), "other": ("0", one)})
    (found,) = diff.group_steps
    edge = next(group for group in found.groups if group.key == ("edge",))
    assert (None if edge.step is None else values.text(edge.step)) == step
    # a row says the same where a value of the type does
    row = next(row for row in diff.rows(as_shown=True) if row.row_id == edge.row_id)
    assert "v" not in row.steps or values.text(row.steps["v"]) == step
    assert repr((row.before, row.after)) == repr(({"k": "edge", "v": edge.before}, {"k": "edge", "v": edge.after}))
    has_length = not {before, after} & {None, "nan"}
    assert (edge.share is not None) == has_length
    assert len(found.groups) == 2
    if has_length:
        infinite = {before, after} & {"inf", "-inf"}
        sign = -1 if (step or "").startswith("-") else 1
        assert edge.share in (sign * math.inf,) if infinite else 0 < sign * (edge.share or 0) <= 1


def test_the_order_is_exact_and_no_length_comes_last() -> None:
    far = str(10**37)
    pairs = {
        "null": (None, "1"),
        "less": ("0", far),
        "more": ("1", f"-{far}"),
        "came": ("-", far),
        "came with null": ("-", None),
        "went": (f"-{far}", "-"),
        "most": ("-3", far),
    }
    (found,) = changed("HUGEINT", pairs).group_steps
    assert [group.key[0] for group in found.groups] == [
        "most",
        "more",
        "came",
        "less",
        "went",
        "came with null",
        "null",
    ]
    assert [group.share for group in found.groups[-2:]] == [None, None]
    floats = {
        "nan": ("1", "nan"),
        "inf": ("inf", "-"),
        "far": ("-1e308", "1e308"),
        "near": ("1", "2e307"),
        "null": ("3", None),
    }
    (found,) = changed("DOUBLE", floats).group_steps
    assert [(group.key[0], group.share and round(group.share, 2)) for group in found.groups] == [
        ("inf", -math.inf),
        ("far", 1),
        ("near", 0.11),
        ("nan", None),
        ("null", None),
    ]


def test_the_largest_are_listed_and_the_others_counted(session: dl.Session) -> None:
    session.sql("CREATE TABLE many AS SELECT range AS k, 0 AS v, range AS w FROM range(50)")
    before = session.current_snapshot().snapshot_id
    session.sql(
        "UPDATE many SET v = CASE WHEN k % 2 = 0 THEN k ELSE -k END WHERE k > 5; UPDATE many SET w = 0 WHERE k < 3"
    )
    v, w = session.compare("FROM many", before, key=["k"]).group_steps
    assert ([group.key for group in v.groups], v.more) == ([(k,) for k in range(49, 29, -1)], 24)
    assert ([told(group)[4] for group in w.groups], w.more) == (["-2", "-1"], 0)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS n, sum(v) AS total FROM t",  # one row
        "SELECT v FROM t",  # no key
        "SELECT g, h, v // 100 AS w FROM t",
        "SELECT g, min('n' || v) AS name, min(v > 3) AS b, DATE '2020-01-01' + min(v)::INTEGER AS d FROM t GROUP BY g",
        "SELECT g FROM t GROUP BY g",  # no other column
        "SELECT g, sum(v) AS total FROM t WHERE g IN (0, 2) GROUP BY g",  # one group
        "SELECT g, 0 AS zero FROM t GROUP BY g",  # steps of zero
        "SELECT g, sum(v) AS total FROM t WHERE g = 0 GROUP BY g",  # nothing
        "SELECT g, NULL::INTEGER AS nothing FROM t GROUP BY g",
    ],
)
def test_no_chart_without_bars(session: dl.Session, query: str) -> None:
    assert session.compare(query, 1).group_steps == ()


def test_diffs_of_tables_and_rows_behind_a_group_have_no_chart(session: dl.Session) -> None:
    assert session.table("t").diff(1, key=["v", "g"]).group_steps == ()
    diff = session.compare("SELECT g, sum(v) AS total FROM t GROUP BY g", 1)
    (found,) = diff.group_steps
    for group in found.groups:
        behind = diff.sources(group)
        assert behind.summary.changed and behind.group_steps == () and 'dlk-gs"' not in behind._repr_html_()
        assert {(row.after or row.before or {})["g"] for row in behind.rows(100)} == {*group.key}


def test_columns_that_one_answer_lacks_have_no_chart(session: dl.Session) -> None:
    before = session.current_snapshot().snapshot_id
    session.sql("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 4; ALTER TABLE t DROP COLUMN v; DELETE FROM t WHERE g > 4")
    diff = session.compare("SELECT * EXCLUDE (h) FROM t WHERE h = 0", before)
    assert diff.group_steps == ()
    session.sql("CREATE OR REPLACE TABLE r AS SELECT range::INTEGER AS k, range::INTEGER AS v FROM range(3)")
    narrow = session.current_snapshot().snapshot_id
    session.sql("CREATE OR REPLACE TABLE r AS SELECT range::BIGINT AS k, 1 + range::BIGINT AS v FROM range(4)")
    (found,) = session.compare("FROM r", narrow, key=["k"]).group_steps
    assert [told(group)[4] for group in found.groups] == ["4", "1", "1", "1"]


def test_keys_of_all_kinds(session: dl.Session) -> None:
    for key, shown in (
        ("[g, NULL]", ["[9, NULL]", "[1, NULL]"]),
        ("CASE g WHEN 1 THEN 'NULL' END", ["NULL", None]),
        ("'2020-01-01 00:00:00+00'::TIMESTAMPTZ + INTERVAL 1 DAY * g", None),
        ("'a'::BLOB || g::VARCHAR::BLOB", [b"a1", b"a9"]),
        ("g::DOUBLE / 0", None),
    ):
        diff = session.compare(f"SELECT {key} AS k, sum(v) AS total FROM t WHERE g IN (1, 9) GROUP BY k", 1)
        found = [group for column in diff.group_steps for group in column.groups]
        rows = {row.row_id: (row.after or row.before or {})["k"] for row in diff.rows(as_shown=True)}
        assert {group.row_id: group.key[0] for group in found} == (rows if found else {})
        assert shown is None or {repr(group.key[0]) for group in found} == {*map(repr, shown)}, key

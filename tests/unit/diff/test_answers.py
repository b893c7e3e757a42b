"""The diff of a query's answers at two snapshots."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.diff_browser import DiffBrowser
from ducklake_lab.widgets.diff_text import text

pytestmark = pytest.mark.sampled(3)

GROUPED = "SELECT g, count(*) AS n, sum(x) AS total, max(note) AS note FROM t GROUP BY ALL"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data") as session:
        session.sql(
            """
            CREATE TABLE t AS SELECT range AS i, (range % 4)::INTEGER AS g, (range * 1.5)::DECIMAL(9, 2) AS x, 'n' || range AS note
            FROM range(40);
            DELETE FROM t WHERE g = 3;
            INSERT INTO t SELECT range, 9, 1, '<b>' FROM range(100, 130);
            UPDATE t SET x = x + 10 WHERE i IN (0, 4);
            ALTER TABLE t ALTER g SET TYPE BIGINT;
            ALTER TABLE t ADD COLUMN more INTEGER;
            ALTER TABLE t DROP COLUMN note;
            """
        )
        yield session


def test_groups_come_go_and_change(session: dl.Session) -> None:
    found = session.compare(GROUPED, 1, 4)
    assert found.key == ("g",)
    assert (found.summary.deleted, found.summary.inserted, found.summary.updated, found.summary.unchanged) == (
        1,
        1,
        1,
        2,
    )
    (row,) = found.rows(kind="updated")
    assert row.before is not None and row.before["g"] == 0
    assert row.changed == ("total",)
    assert row.steps == {"total": Decimal("20.00")}
    assert [r.before["g"] for r in found.rows(kind="deleted") if r.before] == [3]
    assert [r.after["g"] for r in found.rows(kind="inserted") if r.after] == [9]
    assert not found.is_empty and session.compare(GROUPED, 4, 4).is_empty


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT g % 2, count(*) FROM t GROUP BY 1", ("(g % 2)",)),
        ("SELECT count(*) AS n, g FROM t GROUP BY g", ("g",)),
        ("SELECT count(*) AS n FROM t GROUP BY g", ()),  # an aggregate is unique by chance only
        ("SELECT g, x % 2 AS y, count(*) FROM t GROUP BY ALL", ("g", "y")),
        ("SELECT g, i FROM t", ("i",)),
        ("SELECT g, g + 1 AS h FROM t", ()),
        ("SELECT i % 8 AS a, i // 8 AS b, x FROM t WHERE i < 40", ("a", "b")),
        ("SELECT x::DOUBLE AS d, note FROM t WHERE i < 40", ("note",)),
        ("SELECT {'a': i} AS s, g FROM t", ()),
        ("SELECT count(*) FROM t", ()),
        ("FROM t", ("i",)),
    ],
)
def test_keys_are_found_and_checked(session: dl.Session, query: str, key: tuple[str, ...]) -> None:
    assert session.compare(query, 1, 4).key == key


def test_rows_without_a_key_are_a_multiset(session: dl.Session) -> None:
    found = session.compare("SELECT g FROM t", 1, 4)
    assert (found.summary.deleted, found.summary.inserted, found.summary.updated) == (10, 30, 0)
    assert found.summary.unchanged == 30
    assert {row.before["g"] for row in found.rows(kind="deleted") if row.before} == {3}
    assert session.compare("SELECT i % 2 AS odd FROM t WHERE i < 40", 1, 2).summary.deleted == 10


def test_a_month_is_not_thirty_days(session: dl.Session) -> None:
    session.sql("CREATE TABLE spans AS SELECT INTERVAL '1 month' AS x, [INTERVAL '1 day'] AS y FROM range(2)")
    before = session.current_snapshot().snapshot_id
    session.sql("UPDATE spans SET x = INTERVAL '30 days'")
    session.sql("UPDATE spans SET y = [INTERVAL '24 hours']")
    found = session.compare("SELECT x FROM spans", before, before + 1).summary
    assert (found.deleted, found.inserted, found.unchanged) == (2, 2, 0)
    assert [row[0] for row in session.when("SELECT y FROM spans").fetchall()] == [before, before + 2]
    assert session.compare("SELECT x, y FROM spans", before + 2, before + 2).is_empty


def test_zeros_of_two_signs_are_two_answers(session: dl.Session) -> None:
    session.sql("CALL set_option('data_inlining_row_limit', 0)")  # DuckDB's storage takes both zeros for one
    session.sql("CREATE TABLE zeros AS SELECT '0.0'::DOUBLE AS x, ['0.0'::FLOAT] AS y UNION ALL SELECT 1, [1]")
    before = session.current_snapshot().snapshot_id
    session.sql("UPDATE zeros SET x = '-0.0' WHERE x = 0")
    session.sql("UPDATE zeros SET y = ['-0.0'::FLOAT] WHERE x = 0")
    for column, at in (("x", before + 1), ("y", before + 2)):
        found = session.compare(f"SELECT {column} FROM zeros", before, before + 2).summary
        assert (found.deleted, found.inserted, found.unchanged) == (1, 1, 1)
        assert [row[0] for row in session.when(f"SELECT {column} FROM zeros").fetchall()] == [before, at]


def test_one_row_is_that_row(session: dl.Session) -> None:
    (row,) = session.compare("SELECT count(*) AS n, sum(i) AS s, min(g) AS g FROM t", 1, 4).rows()
    assert (row.kind, row.changed, row.steps) == ("updated", ("n", "s"), {"n": 20, "s": 3225})
    gone = session.compare("SELECT i FROM t WHERE i = 3", 1, 4).summary
    assert (gone.deleted, gone.inserted, gone.updated) == (1, 0, 0)


def test_one_group_may_go_and_another_come(session: dl.Session) -> None:
    query = "SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 1"
    found = session.compare(query, 1, 4).summary
    assert (found.deleted, found.inserted, found.updated) == (1, 1, 0)


def test_columns_that_differ(session: dl.Session) -> None:
    found = session.compare("FROM t", 4, 7, key=["I"])
    assert found.key == ("i",)
    assert [(change.kind, (change.after or change.before or ("",))[0]) for change in found.schema] == [
        ("retyped", "g"),
        ("added", "more"),
        ("dropped", "note"),
    ]
    assert found.summary.updated == 0 and found.summary.unchanged == 60
    assert not found.is_empty
    retyped = session.compare("SELECT i, CASE WHEN i < 7 THEN g END AS g FROM t", 4, 5)
    assert [change.kind for change in retyped.schema] == ["retyped"]
    assert retyped.summary.changed == 0 and not retyped.is_empty


def test_values_of_other_types_are_compared_as_texts(session: dl.Session) -> None:
    session.sql("CREATE TABLE r AS SELECT range::INTEGER AS i, range::INTEGER AS v FROM range(3)")
    before = session.current_snapshot().snapshot_id
    session.sql(
        "CREATE OR REPLACE TABLE r AS SELECT range::BIGINT AS i, range || CASE range WHEN 2 THEN '.0' ELSE '' END AS v FROM range(3)"
    )
    found = session.compare("FROM r", before)
    assert [(change.kind, change.after) for change in found.schema] == [
        ("retyped", ("i", "BIGINT")),
        ("retyped", ("v", "VARCHAR")),
    ]
    (row,) = found.rows()
    assert (row.before, row.after) == ({"i": 2, "v": "2"}, {"i": 2, "v": "2.0"})


def test_nulls_nan_and_repeated_names(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE f AS SELECT * FROM (VALUES (1, NULL, 'nan'::DOUBLE), (2, 5, 'inf'::DOUBLE)) AS v(i, n, d)"
    )
    before = session.current_snapshot().snapshot_id
    session.sql("UPDATE f SET n = 6 WHERE i = 1; UPDATE f SET d = 0 WHERE i = 2")
    found = session.compare("SELECT i, n, n, d FROM f", before)
    rows = {row.after["i"]: row for row in found.rows() if row.after}
    assert rows[1].changed == ("n", "n (2)") and not rows[1].steps  # no number says how far NULL is from 6
    assert rows[2].changed == ("d",)


def test_a_snapshot_in_the_query_and_parameters(session: dl.Session) -> None:
    assert session.compare("SELECT count(*) FROM t AT (VERSION => 1)", 1, 4).is_empty
    assert session.compare("SELECT count(*) FROM t WHERE g = :g", 1, 4, params={"g": 9}).summary.updated == 1
    session.tag("start", 1)
    assert session.compare(GROUPED, "start", 4).start.snapshot_id == 1
    session.pin(2)
    assert session.compare("SELECT count(*) FROM t", 1).end.snapshot_id == 2


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("DELETE FROM t", {}, "Only the answers of one query"),
        ("SELECT 1; SELECT 2", {}, "Only the answers of one query"),
        ("FROM t", {"key": ["no"]}, 'no column "no" to pair rows by'),
        ("FROM t", {"key": ["g"]}, "g is no key"),
        ("SELECT dep FROM t", {}, 'no column "dep"'),
        ("FROM t", {"a": 99}, "There is no snapshot 99"),
    ],
)
def test_misuse_is_one_line(session: dl.Session, query: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(dl.DuckLakeError, match=message) as error:
        session.compare(query, **{"a": 1, "b": 4, **options})  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_it_is_shown_as_a_diff_is(session: dl.Session, tmp_path: Path) -> None:
    found = session.compare(GROUPED, 1, 4)
    page = found.to_html(tmp_path / "answers.html")
    assert "&lt;b&gt;" in page and "<b>'" not in page
    assert "(+20.00)" in page and "paired by g" in page and "row id" not in page and "as SQL" not in page
    assert "total=270.00→290.00 (+20.00)" in text(found).replace(",", "")
    assert json.loads(found.to_json())["summary"]["updated"] == 1
    assert found.plot() is not None and "updated" in repr(found)
    assert found._repr_mimebundle_() is not None


def test_columns_of_the_key_come_first(session: dl.Session) -> None:
    query = "SELECT sum(x) AS total, count(*) AS n, g FROM t GROUP BY ALL"
    found = session.compare(query, 1, 4)
    assert found.key == ("g",)
    view = DiffBrowser(found)
    assert [name for name, *_ in view.columns] == ["g", "total", "n"] and not view.has_row_ids
    view.every = True
    assert [name for name, *_ in view.columns] == ["g", "total", "n"]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]*)', found._repr_html_().partition('class="dlk-rows"')[2])
    assert heads[:4] == ["", "g", "total", "n"]
    lines = [line.split()[1] for line in text(found).split("\n") if line[:3] in ("\u2212  ", "+  ", "\u2192  ")]
    assert sorted(lines) == ["g=0", "g=3", "g=9"]


def test_rows_paired_by_a_key_show_no_numbers_for_row_ids(session: dl.Session) -> None:
    found = session.table("t").diff(1, 4, key=["I"])
    assert found.key == ("i",)
    view = DiffBrowser(found)
    assert not view.has_row_ids and view.columns[0][0] == "i"
    assert "row id" not in found._repr_html_() and "\u2192  i=0  g=0" not in text(found)
    assert any(line.startswith("\u2192  i=0  ") for line in text(found).split("\n"))
    assert DiffBrowser(session.table("t").diff(1, 4)).has_row_ids


def test_secrets_of_a_query_are_not_shown(session: dl.Session) -> None:
    query = "SELECT 'postgres://me:{}@host/db' AS u, count(*) FROM t"
    found = session.compare(query.format("hunter22"), 1, 4)
    assert "hunter22" not in found.table and "hunter22" not in repr(found)
    for ask in (session.compare, session.when):
        with pytest.raises(dl.DuckLakeError) as error:
            ask(query.format("hunter22") + " WHER x = 1 1", 1, 4)
        assert "hunter22" not in str(error.value) and error.value.__cause__ is None


def test_snapshots_are_those_of_the_lake_in_use(session: dl.Session, tmp_path: Path) -> None:
    session.attach(f"ducklake:{tmp_path}/other.ducklake", alias="other")
    session.sql("CREATE TABLE other.o AS SELECT 1 AS i")
    for ask in (session.compare, session.when):
        with pytest.raises(dl.UsageError, match="the snapshots are those of the lake in use, lake; USE other first"):
            ask("SELECT sum(i) FROM other.o", 1, 2)
    joined = "SELECT count(*) AS n FROM t JOIN other.o AS o ON t.i >= o.i"
    assert session.compare(joined, 1, 2).rows()[0].steps == {"n": -10}
    assert [row[0] for row in session.when(joined, 1, 3).fetchall()] == [1, 2, 3]
    session.use("other")
    assert session.compare("FROM o", 1).is_empty


#: A value of each kind that an answer may have, and another one.
VALUES = {
    "INTERVAL": ("INTERVAL 1 DAY", "INTERVAL 2 MONTH"),
    "TIME": ("TIME '10:00:00'", "TIME '10:00:00.000001'"),
    "TIMETZ": ("'10:00:00+01'::TIMETZ", "'10:00:00+02'::TIMETZ"),
    "TIMESTAMPTZ": ("'2020-01-01 00:00:00+00'::TIMESTAMPTZ", "'2020-01-01 00:00:00.1+00'::TIMESTAMPTZ"),
    "TIMESTAMP_NS": ("'2020-01-01'::TIMESTAMP_NS", "'2020-01-01 00:00:00.000000001'::TIMESTAMP_NS"),
    "UUID": ("'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'::UUID", "'eeccb8c5-9943-b2bb-bb5e-222f4e14b688'::UUID"),
    "JSON": ("""'{"a": 1}'::JSON""", """'{"a": 2}'::JSON"""),
    "BLOB": ("'a'::BLOB", "'b'::BLOB"),
    "HUGEINT": ("170141183460469231731687303715884105727::HUGEINT", "-1::HUGEINT"),
    "UBIGINT": ("0::UBIGINT", "18446744073709551615::UBIGINT"),
    "DECIMAL": (
        "99999999999999999999999999999999999999::DECIMAL(38)",
        "-99999999999999999999999999999999999999::DECIMAL(38)",
    ),
    "DOUBLE": ("'nan'::DOUBLE", "'-inf'::DOUBLE"),
    "STRUCT": ("{'a': [1, NULL]}", "{'a': [1, 2]}"),
    "MAP": ("MAP {'a': 1}", "MAP {'a': 2}"),
    "ENUM": ("'a'::ENUM('a', 'b')", "'b'::ENUM('a', 'b')"),
    "VARIANT": ("1::VARIANT", "2::VARIANT"),
    "BIT": ("'101'::BIT", "'100'::BIT"),
    "BOOLEAN": ("true", "NULL::BOOLEAN"),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_all_kinds(session: dl.Session, kind: str) -> None:
    one, other = VALUES[kind]
    query = f"SELECT i, CASE WHEN (SELECT count(*) FROM t) = 40 THEN {one} ELSE {other} END AS v FROM t WHERE i < 2"
    found = session.compare(query, 1, 2)
    assert (found.key, found.summary.updated, found.summary.unchanged) == (("i",), 2, 0)
    assert found.to_html() and found.to_json()
    assert session.compare(query, 2, 3).summary.updated == 0
    assert [row[0] for row in session.when(query, 1, 3).fetchall()] == [1, 2]
    alone = f"SELECT CASE WHEN count(*) = 40 THEN {one} ELSE {other} END AS v FROM t"
    assert len(session.when(alone, 1, 3)) == 2 and len(session.compare(alone, 1, 2).rows()) == 1


def shown(rows: list[object]) -> list[tuple[object, ...]]:
    return sorted(
        (row.kind, (row.after or row.before)["i"], row.changed)  # type: ignore[attr-defined]
        for row in rows
    )


#: Query, group, and the rows behind it that differ between snapshots 1 and 4.
BEHIND: list[tuple[str, object, list[object]]] = [
    (GROUPED, 0, [("updated", 0, ("x",)), ("updated", 4, ("x",))]),
    (GROUPED, 3, [("deleted", i, ()) for i in range(3, 40, 4)]),
    (GROUPED, 9, [("inserted", i, ()) for i in range(100, 130)]),
    # what HAVING and LIMIT take away are groups, not rows; WHERE takes rows
    (
        "SELECT count(*) AS n, g FROM t WHERE i > 110 OR i < 7 GROUP BY 2 HAVING n > 0 ORDER BY n LIMIT 9",
        3,
        [("deleted", 3, ())],
    ),
    ("SELECT g, sum(x) AS s FROM t AS u WHERE u.i <> 4 GROUP BY u.g", 0, [("updated", 0, ("x",))]),
    ("SELECT 'g' || g AS g, sum(x) FROM (SELECT * FROM t WHERE i < 3) GROUP BY ALL", "g0", [("updated", 0, ("x",))]),
    ("WITH few AS (FROM t WHERE i < 3) SELECT g, sum(x) FROM few GROUP BY g", 0, [("updated", 0, ("x",))]),
    (
        "SELECT t.g, sum(x) FROM t JOIN (SELECT 4 AS j) AS k ON i <= j GROUP BY ALL",
        0,
        [("updated", 0, ("x",)), ("updated", 4, ("x",))],
    ),
]


def test_the_rows_behind_a_group(session: dl.Session) -> None:
    for query, group, expected in BEHIND:
        found = session.compare(query, 1, 4)
        (row,) = (row for row in found.rows() if (row.after or row.before or {})["g"] == group)
        assert found.has_sources, query
        behind = found.sources(row)
        assert (behind.start.snapshot_id, behind.end.snapshot_id if behind.end else 0) == (1, 4)
        assert shown(list(behind.rows(1000))) == expected, query


def test_the_rows_behind_one_row(session: dl.Session) -> None:
    found = session.compare("SELECT count(*) AS n, max(x) AS most FROM t WHERE i >= 36", 1, 4)
    (row,) = found.rows()
    behind = found.sources(row)
    assert behind.key == ("rowid",) and behind.summary.unchanged == 3
    assert (behind.summary.deleted, behind.summary.inserted, behind.summary.updated) == (1, 30, 0)


def test_a_row_that_went_to_another_group(session: dl.Session) -> None:
    before = session.current_snapshot().snapshot_id
    session.sql("UPDATE t SET g = 2 WHERE i = 1; UPDATE t SET g = NULL WHERE i = 5")
    found = session.compare("SELECT g, count(*) AS n FROM t GROUP BY g", before)
    kinds = {(row.after or {})["g"]: shown(list(found.sources(row).rows())) for row in found.rows()}
    assert kinds == {1: [("deleted", 1, ()), ("deleted", 5, ())], 2: [("inserted", 1, ())], None: [("inserted", 5, ())]}


GROUPLESS = [
    "SELECT i, x FROM t",
    "SELECT count(*), g FROM t GROUP BY i, g",
    "SELECT g, count(*) FROM t GROUP BY ROLLUP (g)",
    "SELECT DISTINCT g, count(*) FROM t GROUP BY g",
    "SELECT g, sum(count(*)) OVER () FROM t GROUP BY g",
    "SELECT g, count(*) FROM t GROUP BY g UNION ALL SELECT 7, 8",
    "SELECT count(*), 1 + 1 FROM t",
    "SELECT 1",
]


def test_rows_of_no_group_have_none_behind(session: dl.Session) -> None:
    for query in GROUPLESS:
        found = session.compare(query, 1, 4)
        assert not found.has_sources and not DiffBrowser(found).has_sources, query
        for row in found.rows(1):
            with pytest.raises(dl.UnsupportedFeatureError, match="are those of a group"):
                found.sources(row)


def test_keys_of_all_kinds(session: dl.Session) -> None:
    for value in (
        "'it''s <b>' || chr(13)",
        "'nan'::DOUBLE",
        "DATE '0044-03-15 (BC)'",
        "'2020-01-01 00:00:00.000001+05'::TIMESTAMPTZ",
        "[1, NULL]",
        "'\\x00a'::BLOB",
        "'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'::UUID",
        "true",
        "'-170141183460469231731687303715884105728'::HUGEINT",
    ):
        found = session.compare(f"SELECT CASE WHEN i < 5 THEN {value} END AS k, sum(x) FROM t GROUP BY k", 3, 4)
        (row,) = found.rows()
        assert shown(list(found.sources(row).rows())) == [("updated", 0, ("x",)), ("updated", 4, ("x",))], value


def test_a_click_shows_the_rows_behind(session: dl.Session) -> None:
    view = DiffBrowser(session.compare(GROUPED, 1, 4))
    assert view.has_sources and not view.has_lives
    view.sort = [["g", True]]
    found = view.answer_sources({"row": 0})
    assert found["sentence"] == "Rows behind it that differ at snapshots 1 and 4:"
    assert "&lt;b&gt;" in found["html"] and "<b>'" not in found["html"] and "30" in found["html"]
    limited = session.compare("SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 1", 1, 3)
    assert [row.kind for row in limited.rows()] == ["deleted", "inserted"]
    assert "10 rows, are the same" in DiffBrowser(limited).answer_sources({"row": 0})["sentence"]


def test_the_rows_behind_are_those_of_the_lake_in_use(session: dl.Session, tmp_path: Path) -> None:
    found = session.compare(GROUPED, 1, 4)
    session.attach(f"ducklake:{tmp_path}/other.ducklake", alias="other")
    session.use("other")
    with pytest.raises(dl.UsageError, match="USE lake first"):
        found.sources(found.rows(1)[0])

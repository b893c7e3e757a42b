"""Descriptions of tables, and their text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.ranges import intervals


@pytest.fixture
def session(tmp_path: Path, lake_uri: Callable[..., str]) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        yield session


def test_nested_fields_are_no_columns(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t (a INTEGER, s STRUCT(x INTEGER, y STRUCT(z VARCHAR)), l INTEGER[], m MAP(VARCHAR, INTEGER))"
    )
    described = session.table("t").describe()
    assert len(described) > 4
    assert "4 columns · 0 rows" in described._repr_html_()
    assert "4 columns · of 0 data files" in session.table("t").column_stats()._repr_html_()


def test_statistics_say_which_rows_they_leave_out(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS a, i > 5 AS b FROM range(30000) r(i)")
    session.sql("INSERT INTO t VALUES (-7, NULL)")
    found = session.table("t").column_stats()
    assert [(row["min"], row["max"]) for row in found] == [("0", "29999"), ("false", "true")]
    assert found.note == "of 1 data file, rows deleted since included, 1 row in the catalog left out · snapshot 2"
    # a terminal shows the note as well
    assert repr(found).endswith(found.note)


_KINDS = {
    "DOUBLE": ("1.5", "inf", "-inf", "nan", "-2e300"),
    "FLOAT": ("1.5", "inf", "-inf", "nan", "3.25"),
    "DATE": ("0044-03-15 (BC)", "0100-03-15 (BC)", "infinity", "-infinity", "99999-03-15", "2024-01-01"),
    "TIMESTAMP": (
        "0044-03-15 (BC) 00:00:00",
        "infinity",
        "-infinity",
        "99999-03-15 00:00:00",
        "2024-01-01 00:00:00.1234",
    ),
}


@pytest.mark.parametrize("kind", _KINDS)
def test_extremes_are_those_of_sql(session: dl.Session, kind: str) -> None:
    session.sql(f"CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t (k INTEGER, v {kind})")
    cases = (*itertools.combinations(_KINDS[kind], 2), *itertools.combinations(_KINDS[kind], 3), _KINDS[kind])
    for at, values in enumerate(cases):
        session.sql("DELETE FROM t" if at == 0 else f"DROP TABLE t; CREATE TABLE t (k INTEGER, v {kind})")
        # two files: one of the first value and of NULL, one of all others
        session.sql(f"INSERT INTO t VALUES (1, '{values[0]}'), (2, NULL)")
        session.sql("INSERT INTO t VALUES " + ", ".join(f"(3, '{value}')" for value in values[1:]))
        _, row = session.table("t").column_stats()
        ((low, high),) = session.sql("SELECT min(v)::VARCHAR, max(v)::VARCHAR FROM t").fetchall()
        assert row["max"] == high, values
        # a file that holds NaN alone has no smallest number
        assert row["min"] == low or (row["min"] is None and "nan" in values), (values, row["min"], low)


def test_ranges_show_infinite_numbers(session: dl.Session) -> None:
    session.sql("CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t (f DOUBLE)")
    for values in ("(1.5), (2)", "(3), ('inf')", "('-inf'), (7)", "(8), (9)"):
        session.sql(f"INSERT INTO t VALUES {values}")
    (column,) = intervals(session.table("t").files())
    assert (column.low, column.high) == ("-inf", "inf")
    assert sorted(column.spans) == sorted(((1 / 7, 2 / 7), (3 / 7, 1.0), (0.0, 4 / 7), (5 / 7, 6 / 7)))
    # 14 places of eight bounds, in four files each
    assert column.depth == 14 / 8


def test_a_share_is_neither_all_nor_nothing_where_it_is_not(session: dl.Session) -> None:
    session.sql(
        "CREATE TABLE t AS SELECT CASE WHEN i = 0 THEN i END AS nearly, CASE WHEN i > 0 THEN i END AS hardly, "
        'NULL::INTEGER AS "all", i AS no FROM range(30000) r(i)'
    )
    shares = {row["column"]: row["null share"] for row in session.table("t").column_stats()}
    assert shares == {"nearly": 0.9999, "hardly": 0.0001, "all": 1.0, "no": 0.0}
    shown = session.table("t").column_stats()._repr_html_()
    shares_shown = re.findall(r'title="[\de.-]+">([^<]*%)</td>', shown)
    assert shares_shown == ["&gt;99%", "&lt;1%", "100%", "0%"]
    session.sql("DELETE FROM t WHERE no > 4")
    html = session.table("t").files()._repr_html_()
    assert "29,995 deleted (&gt;99%)" in html
    assert "100%" not in re.sub(r"<style>.*?</style>|<svg.*?</svg>|style=\"[^\"]*\"", "", html, flags=re.S)


def test_sizes_are_written_as_sizes(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT random() AS x FROM range(200000)")
    found = session.table("t").column_stats()
    stored = found[0]["bytes"]
    assert isinstance(stored, int) and stored > 1_000_000
    html = found._repr_html_()
    assert f'title="{stored:,} bytes">{stored / 1_000_000:.1f} MB</td>' in html and f">{stored:,}<" not in html
    assert "<th" in html and ">size<" in html


def test_rows_in_the_catalog_are_told_beside_files(session: dl.Session) -> None:
    session.sql("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); DELETE FROM t WHERE a = 1")
    files = session.table("t").files()
    assert (len(files), files.inlined_rows) == (0, 1)
    assert "0 data files · 0 B · 0 rows · 1 more row in the catalog" in files._repr_html_()


def test_a_pivot_is_described_as_duckdb_does(session: dl.Session) -> None:
    session.sql("CREATE TABLE t AS SELECT i AS a, i % 2 AS b, 'x' AS s FROM range(4) r(i)")
    described = session.sql("DESCRIBE PIVOT t ON b USING sum(a)").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [("s", "VARCHAR"), ("0", "HUGEINT"), ("1", "HUGEINT")]
    session.sql('CREATE TABLE "pivot" AS SELECT 1 AS k')
    assert [row[0] for row in session.sql('DESCRIBE "pivot"').fetchall()] == ["k"]

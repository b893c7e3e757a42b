"""Saved rows are the rows that are seen, and read back as the same values."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from ducklake_lab.session.rows import result as result_module
from ducklake_lab.session.rows import saving
from ducklake_lab.widgets import downloads
from ducklake_lab.widgets.table_view import ResultBrowser
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3)

KINDS = {
    "i": ("BIGINT", "i"),
    "s": ("VARCHAR", "CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'a \"quoted\", ' || chr(10) || '🦆' END"),
    "x": ("DOUBLE", "CASE i WHEN 0 THEN 'nan' WHEN 1 THEN '-inf' ELSE i / 3 END::DOUBLE"),
    "f": ("FLOAT", "(i / 3)::FLOAT"),
    "m": ("DECIMAL(38,18)", "12345678901234567890.123456789012345678::DECIMAL(38,18) + i"),
    "h": ("HUGEINT", "99999999999999999999999999999999999990::HUGEINT + i"),
    "u": ("UHUGEINT", "12345678901234567890123::UHUGEINT + i::UHUGEINT"),
    "b": ("BOOLEAN", "i % 2 = 0"),
    "d": ("DATE", "CASE i WHEN 0 THEN 'infinity'::DATE WHEN 1 THEN '1850-01-01' ELSE DATE '2025-01-01' + i::INTEGER END"),
    "t": ("TIMESTAMP", "TIMESTAMP '2025-01-01 10:00:00.123456' + to_days(i::INTEGER)"),
    "z": ("TIMESTAMPTZ", "TIMESTAMPTZ '2025-03-30 00:00:00+00' + to_hours(i)"),
    "c": ("TIME", "TIME '10:00:00.5'"),
    "v": ("INTERVAL", "to_months(i::INTEGER) + to_microseconds(1)"),
    "w": ("TIMETZ", "'10:00:00+02'::TIMETZ"),
    "g": ("UUID", "'679f7c13-6094-4b00-80f4-f5b0ab4e0be4'::UUID"),
    "j": ("JSON", """'{"a": 1.10}'::JSON"""),
    "o": ("BLOB", "from_hex('00ff22')"),
    "n": ("STRUCT(a VARCHAR, b HUGEINT[])", "{'a': CASE WHEN i % 2 = 0 THEN 'x, ''y''' END, 'b': [i::HUGEINT, NULL]}"),
    "p": ("MAP(VARCHAR, INTEGER)", "MAP {'k' || i: i::INTEGER}"),
}  # fmt: skip
QUERY = f"SELECT {', '.join(f'{sql} AS {name}' for name, (_, sql) in KINDS.items())} FROM range(9) AS r(i)"
#: What DuckDB's reader must know of our CSV that it would guess otherwise.
READ = """FROM read_csv(?, header = true, auto_detect = false, delim = {delim!r}, quote = '"', escape = '"', columns = {columns},
    allow_quoted_nulls = false, new_line = '\\n', max_line_size = 10000000)"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path_factory.mktemp('lake')}/lake.ducklake", engine="duckdb") as session:
        session.sql("SET TimeZone = 'Europe/Berlin'")
        yield session


def texts(sql: str, parameters: list[Any] | None = None) -> list[tuple[str | None, ...]]:
    """All values of a query as plain DuckDB writes them."""
    with duckdb.connect() as plain:
        plain.execute("SET TimeZone = 'Europe/Berlin'")
        return plain.execute(
            f"SELECT {', '.join(f'{name}::VARCHAR' for name in KINDS)} FROM ({sql})", parameters
        ).fetchall()


@pytest.mark.parametrize(("ending", "delim"), [(".csv", ","), (".TSV", "\t")])
def test_texts_read_back_as_the_same_values(session: dl.Session, tmp_path: Path, ending: str, delim: str) -> None:
    view = session.sql(QUERY).view()
    view.look([("i", True)], {"i": "< 8"})
    assert view.save(tmp_path / f"rows{ending}") == 8
    columns = "{" + ", ".join(f"'{name}': '{kind}'" for name, (kind, _) in KINDS.items()) + "}"
    found = texts(READ.format(delim=delim, columns=columns), [str(tmp_path / f"rows{ending}")])
    assert found == texts(view.sql)


def test_parquet_reads_back_as_the_same_values(session: dl.Session, tmp_path: Path) -> None:
    view = session.sql(QUERY).view()
    view.look([("i", True)], {"i": "> 0"}, search="x")
    assert view.save(f"{tmp_path}/rows.parquet") == 8
    assert texts("FROM read_parquet(?)", [f"{tmp_path}/rows.parquet"]) == texts(view.sql)
    types = duckdb.execute(
        f"SELECT typeof(h), typeof(v), typeof(n), typeof(z) FROM '{tmp_path}/rows.parquet'"
    ).fetchone()
    assert types == ("DECIMAL(38,0)", "VARCHAR", "STRUCT(a VARCHAR, b DECIMAL(38,0)[])", "TIMESTAMP WITH TIME ZONE")


HOSTILE = st.one_of(
    st.none(),
    st.sampled_from(
        ["", '"', '""', ",", "\n", "\r", "\r\n", "\t", "NULL", "\\N", " ", " a ", "#", "'", "=1+1", "🦆", "\ufeff"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=8), st.sampled_from([",", "\t"]))
def test_texts_survive_csv(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, ...]], delim: str
) -> None:
    table = pa.table([pa.array(values, pa.string()) for values in zip(*rows, strict=True)], names=["a, b", 'c"d'])
    path = str(tmp_path_factory.getbasetemp() / f"hostile.{'csv' if delim == ',' else 'tsv'}")
    saving.save(table, path, "UTC")
    with duckdb.connect() as plain:
        read = READ.format(delim=delim, columns="""{'a, b': 'VARCHAR', 'c"d': 'VARCHAR'}""")
        assert plain.execute(read, [path]).fetchall() == rows
    # and every program that reads CSV; NULL is empty there
    with open(path, newline="", encoding="utf-8") as file:
        assert list(csv.reader(file, delimiter=delim)) == [
            ["a, b", 'c"d'],
            *[[text or "" for text in row] for row in rows],
        ]
    # as pasted
    assert list(csv.reader(io.StringIO(saving.tab_separated(table, "UTC"), newline=""), delimiter="\t")) == [
        [text or "" for text in row] for row in rows
    ]


def test_a_single_column_keeps_its_nulls(session: dl.Session, tmp_path: Path) -> None:
    view = session.sql("SELECT unnest(['a', NULL, '', NULL]) AS s").view()
    view.save(tmp_path / "one.csv")
    read = READ.format(delim=",", columns="{'s': 'VARCHAR'}")
    assert duckdb.execute(read, [f"{tmp_path}/one.csv"]).fetchall() == [("a",), (None,), ("",), (None,)]


def test_excel_holds_numbers_and_dates_where_it_can(session: dl.Session, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    query = """SELECT 'a' AS "=1+1", '=1+1' AS formula, 123456789012345 AS i, 1234567890123456 AS big, 1.25::DECIMAL(5,2) AS m,
        0.1::FLOAT AS f, 'nan'::DOUBLE AS nan, DATE '2025-01-02' AS d, DATE '1850-01-01' AS old, 'infinity'::TIMESTAMP AS never,
        TIMESTAMP '2025-01-02 10:00:00.5' AS t, TIMESTAMP '2025-01-02 10:00:00.123456' AS exact, true AS b, NULL::INTEGER AS e,
        [1, 2] AS l, 'a' || chr(11) || chr(13) || '_x0041_' AS c, 99999999999999999999.5::DECIMAL(38,1) AS long,
        TIMESTAMPTZ '2025-01-01 00:00:00+00' AS z, 170141183460469231731687303715884105727::HUGEINT AS h"""
    session.sql(query).view().save(tmp_path / "rows.xlsx")
    head, row = openpyxl.load_workbook(tmp_path / "rows.xlsx")["rows"].iter_rows()
    assert [cell.data_type for cell in (head[0], row[1])] == ["s", "s"]
    assert [cell.value for cell in row] == [
        "a", "=1+1", 123456789012345, "1234567890123456", 1.25, 0.1, "nan", datetime(2025, 1, 2), "1850-01-01", "infinity",
        datetime(2025, 1, 2, 10, 0, 0, 500000), "2025-01-02 10:00:00.123456", True, None, "[1, 2]", "a_x000B__x000D__x005F_x0041_",
        "99999999999999999999.5", "2025-01-01 01:00:00+01", "170141183460469231731687303715884105727",
    ]  # fmt: skip
    assert row[7].is_date and row[10].is_date and isinstance(row[7].value, date)


def test_what_excel_has_no_room_for_is_refused(
    session: dl.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = session.sql("SELECT i, repeat('x', 32760 + i * 8) AS s FROM range(2) AS r(i)").view()
    with pytest.raises(
        dl.UsageError, match="Row 2 has a text of 32,768 characters in s, and a cell of Excel holds 32,767"
    ):
        view.save(tmp_path / "rows.xlsx")
    monkeypatch.setattr(saving, "EXCEL_ROWS", 2)
    with pytest.raises(dl.UsageError, match=r"room for 1 rows .* here are 2 of 2; save them as \.csv or \.parquet"):
        view.save(tmp_path / "rows.xlsx")
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_saved_says_why_in_one_line(
    session: dl.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = session.sql("SELECT 170141183460469231731687303715884105727::HUGEINT AS h").view()
    for path, kind, reason in (
        ("rows.txt", dl.UsageError, r'rows.txt" names no kind of file; it must end in .csv, .tsv, .parquet, .xlsx'),
        ("no/rows.csv", dl.UsageError, "there is no folder"),
        ("rows.parquet", dl.ConstraintError, "DECIMAL"),
    ):
        with pytest.raises(kind, match=reason) as caught:
            view.save(f"{tmp_path}/{path}")
        assert "\n" not in str(caught.value)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(dl.UsageError, match="cannot be written"):
        view.save(tmp_path / "folder.csv")
    assert os.listdir(tmp_path) == ["folder.csv"]
    monkeypatch.setattr(result_module, "MAX_ROWS", 60)
    part = session.sql("SELECT i FROM range(1000) AS r(i)").view()
    with pytest.raises(dl.UsageError, match=r"more than the 60 rows that were read: save\(path, part=True\)"):
        part.save(tmp_path / "part.csv")
    assert part.save(tmp_path / "part.csv", part=True) == 60


def test_a_table_is_saved_over_an_older_file(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t AS SELECT i, 'x' || i AS s FROM range(3) AS r(i)")
    view = session.table("t").view()
    view.save(tmp_path / "t.csv")
    view.look([("i", True)])
    view.save(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "i,s\n2,x2\n1,x1\n0,x0\n"


def test_a_browser_is_handed_what_is_seen_and_no_more_than_it_takes(
    session: dl.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = ResultBrowser(session.sql("SELECT i FROM range(1000) AS r(i)"))
    browser.search = "99"
    about, (content,) = browser.answer_download({"kind": "csv"})
    assert about == {"name": "Result.csv", "media": "text/csv"}
    assert content.decode().split() == ["i", *[str(i) for i in range(1000) if "99" in str(i)]]
    assert [kind for kind, _ in browser.kinds] == ["csv", "parquet", "xlsx"]
    monkeypatch.setattr(downloads, "MOST_BYTES", 30)
    with pytest.raises(
        dl.UsageError,
        match=r'The CSV file has .* more than the 30 B that a browser is handed; in Python, save\("rows.csv"\)',
    ):
        browser.answer_download({"kind": "csv"})
    monkeypatch.setattr(downloads, "MOST_EXCEL_VALUES", 5)
    with pytest.raises(dl.UsageError, match=r"19 values are more than the 5 of an Excel file"):
        browser.answer_download({"kind": "xlsx"})
    monkeypatch.setattr(saving, "writes_excel", lambda: False)
    assert [kind for kind, _ in downloads.offered()] == ["csv", "parquet"]
    with pytest.raises(dl.UnsupportedFeatureError, match="pip install openpyxl"):
        session.sql("SELECT 1 AS i").view().save("rows.xlsx")


def test_of_part_of_the_rows_the_file_says_so(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_module, "MAX_ROWS", 60)
    browser = ResultBrowser(session.sql("SELECT i FROM range(1000) AS r(i)"))
    assert browser.answer_download({"kind": "csv"})[0]["name"] == "Result-first-60-rows.csv"

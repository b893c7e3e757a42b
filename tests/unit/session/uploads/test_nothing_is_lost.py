"""Every line of a file arrives or is refused, and every value keeps its digits."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import SqlError, UsageError

pytestmark = pytest.mark.sampled(4)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        yield session


def _file(tmp_path: Path, name: str, text: str | bytes) -> str:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def _read(session: dl.Session, path: str, **options: Any) -> list[tuple[Any, ...]]:
    session.upload(path, "t", "replace", **options).apply()
    return session.sql("FROM t").fetchall()


@pytest.mark.parametrize("before", [1, 2046, 2047, 5000])
def test_a_wider_line_leaves_out_none_before_it(session: dl.Session, tmp_path: Path, before: int) -> None:
    path = _file(tmp_path, "w.csv", '"a",b\n' + "1,2\n" * before + "3,4,5\n")
    with pytest.raises(SqlError, match=rf"^Line {before + 2:,} of .*w.csv has more than 2 columns\. .*$"):
        session.upload(path)


@pytest.mark.parametrize("mark", ["; ", "\t", ", "])
def test_a_delimiter_in_one_text_makes_no_columns(session: dl.Session, tmp_path: Path, mark: str) -> None:
    path = _file(tmp_path, "n.csv", f"name\nAnn\nBob{mark}Eve\n")
    assert _read(session, path) == [("Ann",), (f"Bob{mark}Eve",)]


def test_all_lines_are_counted(session: dl.Session, tmp_path: Path) -> None:
    path = _file(tmp_path, "c.csv", '\ufeff"Report, open\r\n\r\na,"b\r\nb"\r\n1,"x\r\n\r\ny"\r\n\r\n2,z')
    found = session.upload(path, skip=2)
    assert "9 lines: 2 left out by --skip, 2 of headers, 2 rows, 2 more within quoted values, 1 blank" in found.note
    assert _read(session, path, skip=2) == [(1, "x\r\n\r\ny"), (2, "z")]


def test_files_are_compared_with_the_first(session: dl.Session, tmp_path: Path) -> None:
    _file(tmp_path, "m/0.csv", "a,b\n1,2\n")
    for text, reason in (
        ("3,4\n5,6\n", r'm/1.csv differs from .*m/0.csv: it lacks "a", "b", and it has "3", "4"'),
        ("a;b\n3;4\n", r'm/1.csv differs from .*: its columns are separated by ";", and not by ","'),
        ("a,b,c\n3,4,5\n", r'm/1.csv differs from .*: it has "c"'),
        ("a,b\n3,4\n5\n", r"Line 3 of .*m/1.csv has 1 column, not 2"),
    ):
        _file(tmp_path, "m/1.csv", text)
        with pytest.raises(SqlError, match=reason):
            session.upload(f"{tmp_path}/m/*.csv", "t", "replace")
    _file(tmp_path, "m/1.csv", "b,a\n4,3\n")
    assert _read(session, f"{tmp_path}/m/*.csv") == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12345678901234567.89", "DECIMAL(19,2)", Decimal("12345678901234567.89")),
        ("18446744073709551617", "DECIMAL(20,0)", Decimal("18446744073709551617")),
        ("1e400", "VARCHAR", "1e400"),
        ("0.30000000000000004", "DOUBLE", 0.30000000000000004),
    ],
)
def test_digits_stay(session: dl.Session, tmp_path: Path, text: str, kind: str, value: object) -> None:
    for path in (_file(tmp_path, "d.csv", f"x\n{text}\n"), _file(tmp_path, "d.json", f'{{"x": {text}}}')):
        assert session.upload(path, "t", "replace")[0]["type"] == kind
        assert _read(session, path) == [(value,)]


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        ("INTEGER", "5.7", "5.0"),
        ("DECIMAL(10,2)", "1.239", "1.230"),
        ("DATE", "2024-01-31 10:00:00", "2024-01-31 00:00:00"),
        ("FLOAT", "16777217", "0.1"),
        ("TIMESTAMP_S", "2024-01-31 10:00:00.5", "2024-01-31 10:00:00.0"),
        ("TIMESTAMP", "2024-01-31 10:00:00+02:00", "2024-01-31 10:00:00Z"),
        ("DOUBLE", "12345678901234567.89", "1e300"),
        ("INTEGER[]", "[1; 5.7]", "[1; 5]"),
    ],
)
def test_what_a_type_would_lose_is_refused(
    session: dl.Session, tmp_path: Path, kind: str, wrong: str, right: str
) -> None:
    wrong, right = wrong.replace(";", ","), right.replace(";", ",")
    session.sql(f"CREATE TABLE t (n INTEGER, v {kind})")
    path = _file(tmp_path, "v.csv", f'n,v\n1,"{right}"\n\n2,"{wrong}"\n')
    for mode, types in (("append", None), ("replace", {"v": kind})):
        with pytest.raises(SqlError, match=r'^Line 4 of .*v.csv: .* would round or cut .* "v"\. Add --round'):
            session.upload(path, "t", mode, types=types)  # type: ignore[arg-type]
    assert session.upload(path, "t", "append", round=True).apply()[0]["rows"] == 2
    session.upload(_file(tmp_path, "r.csv", f'n,v\n1,"{right}"\n'), "t", "append").apply()


def test_typed_values_are_refused_alike(session: dl.Session, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": [2.0, 5.7]}), tmp_path / "n.parquet")
    _file(tmp_path, "n.json", '[{"n": 2.0}, {"n": 5.7}]')
    for ending in ("parquet", "json"):
        path = f"{tmp_path}/n.{ending}"
        with pytest.raises(SqlError, match=rf'Row 2 of .*n.{ending}: INTEGER would round or cut "5.7"'):
            session.upload(path, types={"n": "INTEGER"})
        assert _read(session, path, types={"n": "INTEGER"}, round=True) == [(2,), (6,)]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_encodings_are_named_and_read(session: dl.Session, tmp_path: Path, encoding: str) -> None:
    value = "ä" if encoding == "latin-1" else "€"
    path = _file(tmp_path, "e.csv", f"n,s\n1,{value}\n".encode(encoding))
    with pytest.raises(dl.DataFileError, match=rf"e.csv is not UTF-8; .* add --encoding {encoding}, "):
        session.upload(path)
    assert _read(session, path, encoding=encoding) == [(1, value)]
    with pytest.raises(UsageError, match='no encoding "rot13"'):
        session.upload(path, encoding="rot13")


def test_forms_of_values(session: dl.Session, tmp_path: Path) -> None:
    path = _file(tmp_path, "f.csv", "a;b\n1.234,5;'x;y'\n2,25;z\n")
    assert _read(session, path, decimal=",", thousands=".", quote="'") == [(1234.5, "x;y"), (2.25, "z")]
    mixed = _file(tmp_path, "m.csv", "d\n31/01/2024\n2024-01-31\n")
    assert session.upload(mixed)[0]["note"] == "text: dates in several formats: 2024-01-31, 31/01/2024"
    words = "name,text,value,type,year,comment,position,data,key"
    assert "quotes" not in session.upload(_file(tmp_path, "k.csv", f"{words}\n{words}\n")).note
    assert "2 names need quotes" in session.upload(_file(tmp_path, "q.csv", "order,left,id\n1,2,3\n")).note
    bare = _file(tmp_path, "h.csv", "a,b\nc,d\n")
    assert _read(session, bare, header=False) == [("a", "b"), ("c", "d")]


def _workbook(tmp_path: Path, **sheets: list[list[object]]) -> str:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(tmp_path / "b.xlsx")
    return str(tmp_path / "b.xlsx")


def test_cells_of_excel_stay(session: dl.Session, tmp_path: Path) -> None:
    rows = [["t", "n"], ["NA", 1], ["None", 2], ["nan", "x"], ["NULL", 1.5]]
    path = _workbook(tmp_path, May=rows, June=[["b"], [7]])
    found = session.upload(path)
    assert 'sheet "May" is taken, and not "June" (--sheet)' in found.note
    assert found[1]["note"] == "text: B2 a number and B4 a text"
    assert _read(session, path) == [("NA", "1"), ("None", "2"), ("nan", "x"), ("NULL", "1.5")]
    assert _read(session, path, sheet="June") == [(7,)]
    with pytest.raises(UsageError, match=r'no sheet "Jun".*Did you mean June'):
        session.upload(path, sheet="Jun")
    with pytest.raises(SqlError, match=r'Row 4 of .*b.xlsx, sheet May: "x" in the column "n" is no INTEGER'):
        session.upload(path, types={"n": "INTEGER"})
    with pytest.raises(dl.DataFileError, match="sheet S: A2 holds a formula without its value"):
        session.upload(_workbook(tmp_path, S=[["a"], ["=1+1"]]))
    with pytest.raises(dl.DataFileError, match="sheet S: B3 holds a value, but the columns end at A"):
        session.upload(_workbook(tmp_path, S=[["a"], [1], [2, 5]]))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), 'two columns "a"'),
        (pd.DataFrame([[1, 2]], columns=["a", "A"]), 'columns "a" and "A", one name for SQL'),
        (pd.DataFrame([[1, 2]], columns=["a", None]), "Column 2 of .* has no name"),
        (pd.DataFrame(), "has no columns"),
        (pa.table([[1], [2]], names=["a", "a"]), 'two columns "a"'),
        (pa.table([[1]], names=[""]), "Column 1 of .* has no name"),
    ],
)
def test_odd_frames_are_refused(session: dl.Session, frame: object, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        session.write(frame, "t", "create")
    with pytest.raises(UsageError, match=reason):
        session.sql("FROM df", df=frame)


def test_a_named_index_becomes_columns(session: dl.Session) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["p", "q"], name="k"))
    session.write(frame, "t", "create")
    assert session.sql("SELECT k, x FROM t ORDER BY k").fetchall() == [("p", 1), ("q", 2)]
    session.write(pd.DataFrame({"x": [1]}, index=["p"]), "u", "create")
    assert session.sql("FROM u").fetchall() == [(1,)]

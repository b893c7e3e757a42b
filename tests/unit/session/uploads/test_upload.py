"""Files that become tables: what is guessed, what is written, and what is refused."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ducklake_lab as dl
from ducklake_lab.errors import SqlError, UsageError

pytestmark = pytest.mark.sampled(3)

MESSY = "Order ID,Größe (cm),Total $,order id,when,\n1,0.5,<b>1</b>😀,7,2024-01-31,x\n2,,,8,2024-02-29,y\n"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", engine="duckdb") as session:
        yield session


def _file(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def _columns(found: object, *names: str) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in names) for row in found]  # type: ignore[attr-defined]


def test_what_is_guessed_is_shown_and_nothing_is_written(session: dl.Session, tmp_path: Path) -> None:
    found = session.upload(_file(tmp_path, "My orders.csv", MESSY))
    assert _columns(found, "in the file", "type", "example") == [
        ("Order ID", "BIGINT", "1"),
        ("Größe (cm)", "DOUBLE", "0.5"),
        ("Total $", "VARCHAR", "<b>1</b>😀"),
        ("order id", "BIGINT", "7"),
        ("when", "DATE", "2024-01-31"),
        ("", "VARCHAR", "x"),
    ]
    assert "nothing is written yet" in found.note and "--clean-names makes Order ID order_id" in found.note
    assert "&lt;b&gt;" in found._repr_html_() and "<b>1" not in found._repr_html_()
    assert "note" not in found.columns
    assert session.current_snapshot().snapshot_id == 0
    found.apply()
    assert [info.table.name for info in session.tables()] == ["my_orders"]
    assert session.sql('SELECT "Order ID", "Größe (cm)", "when" FROM my_orders').fetchall() == [
        (1, 0.5, date(2024, 1, 31)),
        (2, None, date(2024, 2, 29)),
    ]
    assert session.history()[-1].message == "upload My orders.csv"


@pytest.mark.slow
def test_headers_are_shown_as_they_stand_in_the_file(session: dl.Session, tmp_path: Path) -> None:
    path = _file(tmp_path, "h.csv", '# made by hand\n\nid, id ,"a ""b""",<i>x</i>,\n1,2,3,4,5\n')
    found = session.upload(path, skip=2)
    assert _columns(found, "in the file", "column") == [
        ("id", "id"),
        (" id ", "id_1"),
        ('a "b"', 'a "b"'),
        ("<i>x</i>", "<i>x</i>"),
        ("", "column4"),
    ]
    assert "<i>x" not in found._repr_html_() and "&lt;i&gt;x" in found._repr_html_()
    bare = session.upload(_file(tmp_path, "bare.csv", "1,2\n3,4\n"))
    assert _columns(bare, "in the file", "column") == [("column 1", "column0"), ("column 2", "column1")]
    assert "no header" in bare.note and "no header" not in found.note
    pd.DataFrame([["a", "a", None, 2024], [1, 2, 3, 4]]).to_excel(tmp_path / "e.xlsx", header=False, index=False)
    sheet = session.upload(str(tmp_path / "e.xlsx"))
    assert _columns(sheet, "in the file", "column") == [("a", "a"), ("a", "a_1"), ("", "column2"), ("2024", "2024")]
    sheet.apply()
    assert session.sql("FROM e").fetchall() == [(1, 2, 3, 4)]


def test_clean_names_need_no_quotes(session: dl.Session, tmp_path: Path) -> None:
    path = _file(tmp_path, "o.csv", "Order ID,Größe (cm),$,%,1st,select,名前,order-id\n1,2,3,4,5,6,7,8\n")
    found = session.upload(path, "orders", clean_names=True)
    names = ["order_id", "größe_cm", "column", "column_2", "_1st", "_select", "名前", "order_id_2"]
    assert [row["column"] for row in found] == ["order_id", "größe_cm", "_column", "_column_2", *names[4:]]
    found.apply("first load")
    assert session.sql(
        "SELECT order_id, größe_cm, _column, _1st, _select, 名前, order_id_2 FROM orders"
    ).fetchall() == [(1, 2, 3, 5, 6, 7, 8)]
    assert session.history()[-1].message == "first load"


@pytest.mark.slow
def test_no_digit_is_lost(session: dl.Session, tmp_path: Path) -> None:
    rows = "".join(f"{i:05},{i},{i}.5\n" for i in range(30_000))
    path = _file(tmp_path, "n.csv", f"zip,id,x\n{rows}1,12345678901234567890123456789012345678901,0.1\n")
    found = session.upload(path, "n")
    assert _columns(found, "column", "type") == [("zip", "VARCHAR"), ("id", "VARCHAR"), ("x", "DOUBLE")]
    reason = "DOUBLE would lose digits" if duckdb.__version__ < "2" else "a lake holds no BIGNUM"
    assert found[1]["note"] == f"text: {reason}"
    assert found.apply()[0]["rows"] == 30_001
    assert session.sql("SELECT min(zip), max(length(id)), count(x) FROM n").fetchall() == [("00000", 41, 30_001)]


@pytest.mark.slow
def test_types_and_dates_that_are_asked_for(session: dl.Session, tmp_path: Path) -> None:
    path = _file(tmp_path, "d.csv", "d,n\n01/02/2024,1\n03/04/2024,2\n")
    guessed = session.upload(path)
    assert _columns(guessed, "example", "note")[0] == ("2024-02-01", "dates as %d/%m/%Y; %m/%d/%Y fits, too")
    session.upload(path, date_format="%m/%d/%Y", types={"N": "DECIMAL(9,2)"}).apply()
    assert session.sql("SELECT d, n::VARCHAR FROM d ORDER BY ALL").fetchall() == [
        (date(2024, 1, 2), "1.00"),
        (date(2024, 3, 4), "2.00"),
    ]
    with pytest.raises(dl.BindError, match=r'no column "nn".*Did you mean n'):
        session.upload(path, "other", types={"nn": "INTEGER"})
    before = session.current_snapshot().snapshot_id
    with pytest.raises(dl.DuckLakeError, match="01/02/2024"):
        session.upload(path, "other", types={"d": "INTEGER"}).apply()
    assert session.current_snapshot().snapshot_id == before


@pytest.mark.slow
def test_a_format_of_dates_leaves_the_types_of_other_columns(session: dl.Session, tmp_path: Path) -> None:
    rows = (
        "ordered;due;shipped;paid;noted\n"
        "31.12.2025;12/31/2025;2026-01-02;2026/1/2;2026-01-02 10:00:00\n"
        "01.02.2026;02/03/2026;2026-02-13;;2026-02-13 00:00:00\n"
    )
    path = _file(tmp_path, "o.csv", rows)
    found = session.upload(path, date_format="%d.%m.%Y")
    assert _columns(found, "column", "type", "note") == [
        ("ordered", "DATE", "dates as %d.%m.%Y"),
        ("due", "DATE", "dates as %m/%d/%Y"),
        ("shipped", "DATE", "dates, the year first"),
        ("paid", "DATE", "dates, the year first"),
        ("noted", "TIMESTAMP", ""),
    ]
    found.apply()
    last = (date(2026, 2, 1), date(2026, 2, 3), date(2026, 2, 13), None, datetime(2026, 2, 13))
    assert session.sql("FROM o ORDER BY ordered").fetchall()[1] == last
    session.upload(path, "o", "append", date_format="%d.%m.%Y").apply()
    assert session.sql("FROM o ORDER BY ordered").fetchall()[2:] == [last] * 2
    asked = session.upload(path, "p", date_format="%d.%m.%Y", types={"shipped": "DATE", "paid": "TIMESTAMP"})
    assert [row["type"] for row in asked] == ["DATE", "DATE", "DATE", "TIMESTAMP", "TIMESTAMP"]
    asked.apply()
    assert session.sql("SELECT shipped, paid FROM p").fetchall()[0] == (date(2026, 1, 2), datetime(2026, 1, 2))


@pytest.mark.slow
def test_dates_that_are_guessed_stay_beside_those_of_the_asked_format(session: dl.Session, tmp_path: Path) -> None:
    path = _file(tmp_path, "o.csv", "ordered;due\n31.12.2025;12/31/2025\n01.02.2026;02/03/2026\n")
    assert _columns(session.upload(path), "type") == [("DATE",), ("DATE",)]
    assert "no column holds only dates as %Y%m%d" in session.upload(path, date_format="%Y%m%d").note
    found = session.upload(path, date_format="%m/%d/%Y")
    assert _columns(found, "type", "example", "note") == [
        ("DATE", "2025-12-31", "dates as %d.%m.%Y"),
        ("DATE", "2025-12-31", "dates as %m/%d/%Y"),
    ]
    found.apply()
    assert session.sql("FROM o").fetchall()[1] == (date(2026, 2, 1), date(2026, 2, 3))
    session.upload(path, "o", "append", date_format="%m/%d/%Y").apply()
    assert session.sql(
        "SELECT count(*) FROM o WHERE ordered = DATE '2026-02-01' AND due = DATE '2026-02-03'"
    ).fetchall() == [(2,)]


@pytest.mark.slow
def test_marks_of_null_and_separators_of_thousands(session: dl.Session, tmp_path: Path) -> None:
    file = _file(tmp_path, "prices.csv", 'price,kind,n\n"12,345.67",a,1\nNA,-,\n"1,000",b,3\n')
    types = {"price": "DECIMAL(9,2)"}
    found = session.upload(file, types=types, nulls=["NA", "-"], thousands=",")
    assert _columns(found, "type") == [("DECIMAL(9,2)",), ("VARCHAR",), ("BIGINT",)]
    found.apply()
    wanted = [(Decimal("12345.67"), "a", 1), (None, None, None), (Decimal("1000.00"), "b", 3)]
    assert session.sql("FROM prices").fetchall() == wanted
    session.upload(file, "prices", "append", nulls=["NA", "-"], thousands=",").apply()
    assert session.sql("FROM prices").fetchall() == wanted * 2
    with pytest.raises(SqlError, match=r'Line 3 of .*prices\.csv: "NA" in the column "price" is no DECIMAL'):
        session.upload(file, "others", types=types, thousands=",").apply()


@pytest.mark.slow
def test_append_and_replace(session: dl.Session, tmp_path: Path) -> None:
    session.sql("CREATE TABLE t (zip VARCHAR, price DECIMAL(9,2), \"at\" TIMESTAMP DEFAULT '2020-01-01')")
    path = _file(tmp_path, "t.csv", "PRICE,zip\n1.5,1234\n")
    with pytest.raises(dl.EntryExistsError, match=r"t exists; append to it"):
        session.upload(path)
    found = session.upload(path, mode="append")
    assert _columns(found, "column", "type") == [("PRICE", "DECIMAL(9,2)"), ("zip", "VARCHAR")]
    assert "at get their defaults" in found.note
    found.apply()
    assert session.sql("SELECT zip, price::VARCHAR, t.at::VARCHAR FROM t").fetchall() == [
        ("1234", "1.50", "2020-01-01 00:00:00")
    ]
    with pytest.raises(dl.BindError, match=r'no column "prise".*Did you mean price'):
        session.upload(_file(tmp_path, "u.csv", "prise\n1\n"), "t", "append")
    with pytest.raises(dl.BindError, match=r"no table tt to append to.*Did you mean t"):
        session.upload(path, "tt", "append")
    session.upload(path, mode="replace").apply()
    assert session.sql("FROM t").fetchall() == [(1.5, 1234)]


@pytest.mark.slow
def test_other_kinds_of_files(session: dl.Session, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        table = pa.table({"i": [number], "Some name": [f"row {number}"], **({"extra": [1.5]} if number else {})})
        pq.write_table(table, folder / f"{number}.parquet")
    (folder / "_SUCCESS").touch()
    session.upload(str(folder), clean_names=True, types={"i": "SMALLINT"}).apply()
    assert session.sql("FROM parts ORDER BY i").fetchall() == [(0, "row 0", None), (1, "row 1", 1.5), (2, "row 2", 1.5)]
    assert session.sql("DESCRIBE parts").fetchall()[0][:2] == ("i", "SMALLINT")
    session.upload(f"{folder}/[12].parquet", "some").apply()
    assert session.sql('SELECT count(*) FROM "some"').fetchall() == [(2,)]
    session.upload(_file(tmp_path, "j.jsonl", '{"a": 1, "b": {"c": "x"}}\n{"a": null}\n')).apply()
    assert session.sql("FROM j").fetchall() == [(1, {"c": "x"}), (None, None)]
    (tmp_path / "z.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1\tx\n"))
    session.upload(str(tmp_path / "z.tsv.gz")).apply()
    assert session.sql("FROM z").fetchall() == [(1, "x")]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_marks_of_patterns_in_a_name_are_no_pattern(session: dl.Session, tmp_path: Path, ending: str) -> None:
    for name, value in (("a[1]", 1), ("a1", 2), ("b*c?", 3), ("bxcd", 4)):
        _file(tmp_path, f"{name}{ending}", f"i\n{value}\n" if ending == ".csv" else f'{{"i": {value}}}')
    for name, value in (("a[1]", 1), ("b*c?", 3)):
        session.upload(f"{tmp_path}/{name}{ending}", "t", "replace").apply()
        assert session.sql("FROM t").fetchall() == [(value,)]


def test_excel(session: dl.Session, tmp_path: Path) -> None:
    pd.DataFrame({"Item": ["a", "b"], 2024: [1.5, 2.5]}).to_excel(tmp_path / "book.xlsx", index=False)
    session.upload(str(tmp_path / "book.xlsx")).apply()
    assert session.sql("FROM book").fetchall() == [("a", 1.5), ("b", 2.5)]
    _file(tmp_path, "broken.xlsx", "no")
    with pytest.raises(dl.DataFileError, match=r"broken\.xlsx cannot be read as an Excel file"):
        session.upload(str(tmp_path / "broken.xlsx"))


def test_a_url(session: dl.Session, tmp_path: Path) -> None:
    _file(tmp_path, "far away.csv", "a\n1\n")
    handler = partial(_Quiet, directory=str(tmp_path))
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        found = session.upload(f"{place}/far%20away.csv?key=secret", "far")
        with pytest.raises(dl.DataFileError, match=r"/none\.csv cannot be read: File not found") as caught:
            session.upload(f"{place}/none.csv?key=secret")
        server.shutdown()
    assert "secret" not in str(caught.value) and "secret" not in repr(found) + found.note
    found.apply()
    assert session.sql("FROM far").fetchall() == [(1,)]
    assert "secret" not in session.history()[-1].message


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Prints nothing."""


def test_what_cannot_be_uploaded(session: dl.Session, tmp_path: Path) -> None:
    _file(tmp_path, "orders.csv", "a\n1\n")
    for name in ("empty.csv", "x.doc"):
        _file(tmp_path, name, "" if name == "empty.csv" else "x")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name in ("a.csv", "b.json"):
        _file(mixed, name, "{}")
    for source, reason in (
        ("order.csv", r"no file .*order\.csv\. Did you mean orders\.csv"),
        ("empty.csv", "is empty"),
        ("x.doc", r'ends in "\.doc"'),
        ("*.parquet", "No file matches"),
        ("mixed", r"several kinds \(1 \.csv, 1 \.json\)"),
    ):
        with pytest.raises(dl.UsageError, match=reason):
            session.upload(str(tmp_path / source))
    with pytest.raises(dl.UsageError, match="create, append or replace"):
        session.upload(str(tmp_path / "orders.csv"), mode="merge")  # type: ignore[arg-type]
    assert session.current_snapshot().snapshot_id == 0


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("7,seven", r"Line 52 of .*rows\.csv has 2 columns, not 3\. Mend it, or leave such lines out: CREATE TABLE"),
        ("7,seven,8,9", r"Line 52 of .*rows\.csv has more than 3 columns\. Mend it"),
    ],
)
def test_a_broken_line_makes_no_table_of_one_column(session: dl.Session, tmp_path: Path, line: str, error: str) -> None:
    rows = [f"{at},name {at},{at / 2}" for at in range(100)]
    file = _file(tmp_path, "rows.csv", "\n".join(["id,name,half", *rows[:50], line, *rows[50:]]) + "\n")
    with pytest.raises(SqlError, match=error):
        session.upload(file)
    session.sql(f"CREATE TABLE others AS FROM read_csv('{file}', ignore_errors => true)")
    assert session.sql("SELECT count(*) FROM others").fetchall() == [(100,)]
    # commas in a text make no columns
    words = _file(tmp_path, "words.csv", "words\nhello\none, two\nthree\n")
    assert _columns(session.upload(words), "column") == [("words",)]


@pytest.mark.slow
def test_why_numbers_are_texts(session: dl.Session, tmp_path: Path) -> None:
    text = 'id,amount,zip,word\n1,"1,234.50",01234,a\n2,NA,NA,NA\n3,7,22222,b\n'
    file = _file(tmp_path, "money.csv", text)
    found = session.upload(file)
    assert _columns(found, "type", "note") == [
        ("BIGINT", ""),
        ("VARCHAR", "text: --null NA reads NA as NULL; --thousands , makes 1,234.50 a number"),
        ("VARCHAR", ""),
        ("VARCHAR", ""),
    ]
    error = r'Line 3 of .*money.csv: "NA" in the column "zip" is no INTEGER\. If this means NULL, add --null NA;'
    with pytest.raises(SqlError, match=error):
        session.upload(file, types={"zip": "INTEGER"}).apply()
    session.upload(file, types={"zip": "INTEGER"}, nulls=["NA"]).apply()
    assert session.sql("SELECT zip, word FROM money").fetchall() == [(1234, "a"), (None, None), (22222, "b")]
    with pytest.raises(UsageError, match="can be given for CSV files"):
        session.upload(_file(tmp_path, "rows.json", '{"a": 1}'), nulls=["NA"])


def test_lines_left_out_are_counted(session: dl.Session, tmp_path: Path) -> None:
    rows = "".join(f"{at},{at}\n" for at in range(50))
    path = _file(tmp_path, "titled.csv", f"Report of May\n\nid,half\n{rows}\n")
    with pytest.raises(
        SqlError, match=r"Line 3 of .*titled.csv has 2 columns .* add --skip 2; .* add --delimiter none"
    ):
        session.upload(path)
    found = session.upload(path, skip=2)
    assert "54 lines: 2 left out by --skip, 1 of the header, 50 rows, 1 blank" in found.note
    assert found.apply()[0]["rows"] == 50
    session.upload(path, "lines", delimiter="none").apply()
    assert session.sql("SELECT count(*) FROM lines").fetchall() == [(53,)]

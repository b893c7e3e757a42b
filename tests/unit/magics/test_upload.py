"""Each option of `%ducklake upload` in a notebook: what it does, and the error of a value that it does not take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab

pytestmark = pytest.mark.sampled(3)

Upload = Callable[[str], Any]
FILES = {
    "plain.csv": b"a,b\n1,x\n",
    "dates.csv": b"d\n01/02/2024\n",
    "nulls.csv": b"n\n1\nNA\n?\n",
    "money.csv": b"n;m\n1.234,5;2\n",
    "bars.csv": b"a^b\n1^x\n",
    "tabs.csv": b"a\tb\n1\tx\n",
    "one.csv": b"a,b\n1,x\n",
    "quotes.csv": b"a,b\n'1,5',x\n",
    "escapes.csv": b'a,b\n"1\\",5",x\n',
    "far.csv": "a\nä\n".encode("cp1252"),
    "title.csv": b"Report\na,b\n1,x\n",
    "fine.csv": b"n\n5.7\n",
    "odd.csv": b"Order ID,Total $\n1,2\n",
}


@pytest.fixture
def upload(shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upload:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    book = openpyxl.Workbook()
    book.active.append(["a"])
    book.create_sheet("June").append(["b"])
    book["June"].append([7])
    book.save(tmp_path / "book.xlsx")
    pq.write_table(pa.table({"x": [2**53 + 1]}), tmp_path / "p0.parquet")
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "p1.parquet")
    ducklake_lab.load_ipython_extension(shell)
    shell.run_cell(f"%ducklake connect ducklake:{tmp_path}/lake.ducklake").raise_error()
    shell.run_cell("%config DuckLakeMagics.engine = 'duckdb'").raise_error()

    def run(line: str) -> Any:
        done = shell.run_cell(f"%ducklake {line}")
        done.raise_error()
        return done.result

    return run


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("plain.csv", [(1, "x")]),
        ("plain.csv --type a=VARCHAR --type b=TEXT", [("1", "x")]),
        ("dates.csv --dates %m/%d/%Y --type d=VARCHAR", [("01/02/2024",)]),
        ("nulls.csv --null NA --null ?", [(1,), (None,), (None,)]),
        ("money.csv --decimal , --thousands .", [(1234.5, 2)]),
        ("bars.csv --delimiter ^", [(1, "x")]),
        ("tabs.csv --delimiter tab", [(1, "x")]),
        ("one.csv --delimiter none", [("1,x",)]),
        ('quotes.csv --quote "\'"', [("1,5", "x")]),
        ("plain.csv --quote ''", [(1, "x")]),
        ("escapes.csv --escape '\\'", [('1",5', "x")]),
        ("far.csv --encoding cp1252", [("ä",)]),
        ("plain.csv --no-header", [("a", "b"), ("1", "x")]),
        ("plain.csv --header", [(1, "x")]),
        ("title.csv --skip 1", [(1, "x")]),
        ("fine.csv --type n=INTEGER --round", [(6,)]),
        ("odd.csv --clean-names", [(1, 2)]),
        ("book.xlsx --sheet June", [(7,)]),
        ("p*.parquet --round", [(float(2**53),), (0.5,)]),
        ("p*.parquet --type x=VARCHAR", [(str(2**53 + 1),), ("0.5",)]),
    ],
)
def test_options(upload: Upload, line: str, rows: list[tuple[object, ...]]) -> None:
    name, _, options = line.partition(" ")
    shown = upload(f"upload {name} t {options}")
    assert "nothing is written yet" in shown.note
    assert str(upload("tables")) == "No tables."
    assert upload(f"upload {name} t {options} --apply --message monday")[0]["rows"] == len(rows)
    assert upload("FROM t").fetchall() == rows
    assert upload("SELECT commit_message FROM ducklake_snapshots('lake') ORDER BY ALL DESC LIMIT 1").fetchall()


def test_modes(upload: Upload) -> None:
    upload("upload plain.csv t --apply")
    upload("upload plain.csv t --append --apply")
    assert upload("SELECT count(*) FROM t").fetchall() == [(2,)]
    upload("upload plain.csv t --replace --apply")
    assert upload("FROM t").fetchall() == [(1, "x")]
    assert [row["column"] for row in upload("upload odd.csv --clean-names")] == ["order_id", "total"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("plan.csv", r"There is no file plan\.csv\. Did you mean plain\.csv"),
        ("plain.csv --type aa=VARCHAR", r'no column "aa"\. Did you mean a\?'),
        ("plain.csv --type a=INTEGR", r'"INTEGR", the type of a, is no type of a lake\. Did you mean INTEGER'),
        ("plain.csv --type a", r"write NAME=TYPE"),
        ("dates.csv --dates mm/dd/yyyy", r'such as %d\.%m\.%Y, not "mm/dd/yyyy"\. Did you mean %m/%d/%Y\?'),
        ("money.csv --decimal dot", r'--decimal is one character, not "dot"'),
        ("money.csv --thousands ..", r'--thousands is one character, not "\.\."'),
        ("money.csv --thousands .", r"cannot stand both between thousands and before the fraction"),
        ("tabs.csv --delimiter tabs", r'tab, space or none, not "tabs"\. Did you mean tab\?'),
        ("tabs.csv --delimiter comma", r'--delimiter is a mark such as ";", or tab, space or none, not "comma"'),
        ("quotes.csv --quote single", r'--quote is one character, not "single"'),
        ("escapes.csv --escape back", r'--escape is one character, not "back"'),
        ("far.csv --encoding cp1225", r'no encoding "cp1225"; .* Did you mean cp125'),
        ("far.csv --encoding utf8x", r'no encoding "utf8x"; .* Did you mean utf-8'),
        ("plain.csv --skip few", r"--skip: invalid int value: 'few'"),
        ("plain.csv --skip -1", r"--skip"),
        ("plain.csv --skip 9", r"plain\.csv has 2 lines; --skip 9 leaves nothing of it"),
        ("book.xlsx --sheet Juni", r'no sheet "Juni".*Did you mean June'),
        ("book.xlsx --encoding cp1252", r"--encoding can be given for CSV files; Excel files say such things themselves"),
        ("plain.csv --sheet June", r"--sheet can be given for Excel files"),
        ("plain.csv --rond", r"there is no option --rond\. Did you mean --round"),
        ("plain.csv --append --replace", r"--replace: not allowed with argument --append"),
        ("plain.csv u --append", r"There is no table u to append to"),
        ("fine.csv --type n=INTEGER", r'Line 2 of fine\.csv: INTEGER would round or cut "5\.7".* Add --round'),
        ("p*.parquet", r'Row 1 of p0\.parquet: DOUBLE would round or cut "9007199254740993".* --type'),
    ],
)  # fmt: skip
def test_wrong_values(upload: Upload, line: str, error: str) -> None:
    with pytest.raises(ducklake_lab.DuckLakeError, match=error):
        upload(f"upload {line}")
    assert str(upload("tables")) == "No tables."

"""Uploads of any CSV text: each row arrives as it stands in the file, or there is an error."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.sampling import examples

pytestmark = pytest.mark.sampled(3, "histories and files at random")

_CELL = st.text(alphabet="ab1.é;,\"\n\r\t|' ", max_size=5)
_ROWS = st.lists(st.lists(_CELL, min_size=1, max_size=4), min_size=1, max_size=6)
_RAW = st.text(alphabet='a1,;"\n\r\t ', min_size=1, max_size=30)
_OPTIONS = settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    folder = tmp_path_factory.mktemp("uploads")
    with dl.connect(f"ducklake:{folder}/lake.ducklake", engine="duckdb") as session:
        yield session


@_OPTIONS
@given(rows=_ROWS, end=st.sampled_from(["\n", "\r\n"]), quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_rows_that_are_written_arrive(
    session: dl.Session, tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], end: str, quoting: int
) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    _arrives_or_fails(session, tmp_path_factory.getbasetemp(), text.getvalue())


@_OPTIONS
@given(text=_RAW)
def test_any_text_arrives_or_is_refused(
    session: dl.Session, tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    _arrives_or_fails(session, tmp_path_factory.getbasetemp(), text)


def _arrives_or_fails(session: dl.Session, folder: Path, text: str) -> None:
    path = folder / "any.csv"
    path.write_text(text, encoding="utf-8", newline="")
    for options in ({"delimiter": ","}, {}):
        try:
            found = session.upload(str(path), "t", "replace", header=False, **options)  # type: ignore[arg-type]
            types = {str(column["column"]): "VARCHAR" for column in found}
            found = session.upload(str(path), "t", "replace", header=False, types=types, **options)  # type: ignore[arg-type]
        except dl.DuckLakeError:
            continue
        found.apply()
        rows = session.sql("FROM t").fetchall()
        delimiter = "," if options else _delimiter(found.query)
        assert rows == _expected(text, delimiter, len(found)), (text, found.note)


def _delimiter(query: str) -> str:
    return query.partition("delim => '")[2][0]


def _expected(text: str, delimiter: str, width: int) -> list[tuple[str | None, ...]]:
    """Rows as Python's own reader finds them, blank lines and empty values at the end of a line left out."""
    found = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=False, strict=False))
    if width == 1:
        # empty lines are rows there, except for those at the beginning
        while found and not found[0]:
            del found[0]
        found = [row or [""] for row in found]
    return [
        tuple(value or None for value in [*row, *[""] * width][: max(width, len("".join(row[width:])) and len(row))])
        for row in found
        if row
    ]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Dialect of a written file, and the options that read it."""

    delimiter: str
    quote: str
    end: str
    encoding: str
    nulls: tuple[str, ...]
    header: bool
    before: tuple[str, ...]
    """Lines above the table."""

    def options(self) -> dict[str, Any]:
        return {
            "delimiter": self.delimiter, "quote": self.quote, "nulls": self.nulls, "header": self.header,
            "skip": len(self.before), "encoding": self.encoding,
        }  # fmt: skip

    def text(self, rows: list[list[str]]) -> str:
        file = io.StringIO()
        csv.writer(
            file, delimiter=self.delimiter, quotechar=self.quote, lineterminator=self.end, quoting=csv.QUOTE_MINIMAL
        ).writerows(rows)
        return "".join(line + self.end for line in self.before) + file.getvalue()


_DIALECTS = st.builds(
    _Dialect,
    delimiter=st.sampled_from([",", ";", "\t", "|", "^", " "]),
    quote=st.sampled_from(['"', "'"]),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "latin-1", "cp1252", "utf-32"]),
    nulls=st.sampled_from([(), ("NA",), ("NA", "?")]),
    header=st.booleans(),
    before=st.lists(st.text("Report ,;'\"", max_size=8), max_size=3).map(tuple),
)
_VALUE = st.one_of(st.sampled_from(["NA", "?", "", "1,5", "-7", "x y"]), st.text("ab1é;,|'\"\n ", max_size=5))
_TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(_VALUE, min_size=width, max_size=width), min_size=1, max_size=6)
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(dialect=_DIALECTS, rows=_TABLES)
def test_dialects_are_read_as_duckdb_reads_them(
    session: dl.Session, tmp_path_factory: pytest.TempPathFactory, dialect: _Dialect, rows: list[list[str]]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    width = len(rows[0])
    text = dialect.text([[f"name {at}" for at in range(width)], *rows] if dialect.header else rows)
    path = folder / "dialect.csv"
    path.write_text(text, encoding=dialect.encoding, newline="")
    try:
        found = session.upload(str(path), "t", "replace", **dialect.options())
        types = {str(column["column"]): "VARCHAR" for column in found}
        found = session.upload(str(path), "t", "replace", types=types, **dialect.options())
    except dl.DuckLakeError:
        assert _oracle(folder, text, dialect, width) is None or not any(map(any, rows)), text
        return
    found.apply()
    arrived = session.sql("FROM t").fetchall()
    expected = _oracle(folder, text, dialect, width)
    if expected is None:
        # it takes no other line ends within values than those of lines, where nothing is left out
        nulls = ("", *dialect.nulls)
        expected = [tuple(None if value in nulls else value for value in row) for row in rows]
    assert arrived == expected, text
    _check_counts(found.note, text, len(arrived))


def _oracle(folder: Path, text: str, dialect: _Dialect, width: int) -> list[tuple[str | None, ...]] | None:
    """The rows as DuckDB reads them as texts; None where it fails."""
    # the lines above may hold quotes that do not end
    lines = len(dialect.before)
    path = folder / "oracle.csv"
    path.write_text("".join(re.split(r"(?<=\n)", text)[lines:]), encoding="utf-8", newline="")
    with duckdb.connect() as connection:
        try:
            return connection.execute(
                "FROM read_csv($path, all_varchar => true, auto_detect => false, delim => $delim, quote => $quote, escape => $quote, "
                "header => $header, nullstr => $nulls, strict_mode => true, comment => '', null_padding => false, "
                f"columns => {{{', '.join(f'c{at}: $kind' for at in range(width))}}})",
                {
                    "path": str(path), "delim": dialect.delimiter, "quote": dialect.quote, "header": dialect.header,
                    "nulls": ["", *dialect.nulls], "kind": "VARCHAR",
                },
            ).fetchall()  # fmt: skip
        except duckdb.Error:
            return None


def _check_counts(note: str, text: str, rows: int) -> None:
    """All lines are counted once, and rows as they arrive."""
    counted = re.search(r"([\d,]+) lines?: ([^·]*)", note)
    assert counted is not None, note
    parts = [int(part.split()[0]) for part in counted[2].split(", ")]
    lines = text.replace("\r\n", "\n").count("\n") + (not text.endswith("\n"))
    assert int(counted[1]) == sum(parts) == lines, (note, text)
    assert re.search(rf"\b{rows} rows?\b", counted[2]), note


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    numbers=st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=5),
    forms=st.sampled_from([(",", "."), (",", None), (",", "'"), (".", ","), (".", None)]),
)
def test_numbers_of_other_places_keep_their_values(
    session: dl.Session,
    tmp_path_factory: pytest.TempPathFactory,
    numbers: list[Decimal],
    forms: tuple[str, str | None],
) -> None:
    decimal, thousands = forms
    texts = [f"{number:,.2f}" if thousands else f"{number:.2f}" for number in numbers]
    swap = str.maketrans({",": thousands or "", ".": decimal})
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    path.write_text("".join(["n\n", *(f"{text.translate(swap)}\n" for text in texts)]), encoding="utf-8")
    found = session.upload(
        str(path), "t", "replace", decimal=decimal, thousands=thousands, delimiter=";", types={"n": "DECIMAL(18,2)"}
    )
    found.apply()
    assert session.sql("FROM t").fetchall() == [(number,) for number in numbers]
    _check_counts(found.note, path.read_text(encoding="utf-8"), len(numbers))

"""Uploads of any CSV text: each row arrives as it stands in the file, or there is an error."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ducklake_lab as dl
from tests.sampling import examples

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

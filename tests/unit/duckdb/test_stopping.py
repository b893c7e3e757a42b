"""Which errors of DuckDB say that the user stopped a statement."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from ducklake_lab.duckdb.stopping import is_interrupt


def _stopped() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"i": [1]})
    raise KeyboardInterrupt


def test_an_interrupt_in_a_reader_of_rows_is_one() -> None:
    rows = pa.RecordBatchReader.from_batches(pa.schema([("i", pa.int64())]), _stopped())
    with pytest.raises((duckdb.Error, KeyboardInterrupt)) as raised:
        duckdb.connect().register("rows", rows).execute("SELECT sum(i) FROM rows").fetchall()
    assert isinstance(raised.value, KeyboardInterrupt) or is_interrupt(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Query interrupted", True),
        ("KeyboardInterrupt: <EMPTY MESSAGE>\n\nAt:\n  reader.py(7): rows", True),
        ("Invalid Input Error: KeyboardInterrupt: said by a query", False),
        ("IO Error: disk", False),
    ],
)
def test_words_of_duckdb(text: str, expected: bool) -> None:
    assert is_interrupt(duckdb.Error(text)) is expected


def test_another_cause_is_none() -> None:
    error = duckdb.Error("Query interrupted")
    error.__cause__ = ValueError("other")
    assert not is_interrupt(error)

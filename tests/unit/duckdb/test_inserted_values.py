"""Values as SQL: DuckDB reads each of them as it was."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from ducklake_lab.duckdb.inserted_values import literal, table_sql, with_values

_TEXTS = [
    "", "'", "''", "$", "$$", "a$", "$$a", "$1", "$q$", "it's", '"', "?", "?$1", "\0", "a\0'b$", "\r", "\n\r'", "\\", "%s", ":x", "--", "/*",
    ";\nCOMMIT", "é\U0001f986", "NULL", "x" * 10_000 + "'", "'" * 2_000, "$" * 2_000,
]  # fmt: skip
_VALUES = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**64, -(2**127), 0.0, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), 0.1,
    b"", b"\x00\xff'$", date(1, 1, 1), time(23, 59, 59, 999999), datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0), Decimal("-1234567890.123"), ["a'", None, "$"],
]  # fmt: skip


@pytest.mark.parametrize("value", [*_TEXTS, *_VALUES], ids=lambda value: ascii(value)[:20])
def test_a_value_is_read_as_it_was(value: object) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        ((found,),) = connection.execute(with_values("SELECT ?", [value])).fetchall()
        assert found == value and str(found) == str(value)
        ((again,),) = connection.execute(f"SELECT {literal(value)}").fetchall()
        assert again == value


def test_rows_are_read_as_they_were() -> None:
    rows = pa.table({
        "t": [None, *_TEXTS],
        "l": [None, *([text, None, "'"] for text in _TEXTS)],
        "s": [None, *({"a'": text, "b": [text]} for text in _TEXTS)],
        "b": [None, *(text.encode() for text in _TEXTS)],
    })  # fmt: skip
    with duckdb.connect() as connection:
        connection.register("given", rows)
        found = connection.execute(f"WITH {table_sql(connection, 'given')} FROM given").to_arrow_table()
        assert found.to_pylist() == rows.to_pylist()


def test_a_long_text_has_few_quotes() -> None:
    assert "'" not in literal("x'y" * 1000)
    with duckdb.connect() as connection:
        connection.register("given", pa.table({"t": ["x'y"] * 1000}))
        assert table_sql(connection, "given").count("'") < 10

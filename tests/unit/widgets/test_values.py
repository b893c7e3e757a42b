from datetime import datetime
from decimal import Decimal

import pytest

from ducklake_lab.widgets import values


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, values.NULL),
        ("", ""),
        ("NULL", "NULL"),
        (True, "true"),
        (Decimal("1E+3"), "1000"),
        (float("nan"), "NaN"),
        (1e-9, "1e-09"),
        (b"\x00\xff", "0x00ff"),
        (datetime(2013, 1, 1, 5), "2013-01-01 05:00:00"),
    ],
)
def test_html(value: object, shown: str):
    assert values.html(value) == shown


def test_null_and_empty_and_the_word_null_are_told_apart():
    assert len({values.html(None), values.html(""), values.html("NULL")}) == 3


def test_long_text_is_folded_and_its_length_told():
    shown = values.html("<b>" * 100_000)
    assert shown.startswith("<details><summary>&lt;b&gt;")
    assert "300,000 characters" in shown
    assert "<b>" not in shown
    assert len(shown) < 15_000


def test_all_digits_of_a_float_are_shown():
    assert values.html(123456789.12345679) == "123456789.12345679"


@pytest.mark.parametrize(
    ("type_name", "number"),
    [
        ("BIGINT", True),
        ("UINTEGER", True),
        ("DECIMAL(8,2)", True),
        ("DECIMAL(8,2)[]", False),
        ("INTERVAL", False),
        ("VARCHAR", False),
        ("STRUCT(a INTEGER)", False),
    ],
)
def test_is_number(type_name: str, number: bool):
    assert values.is_number(type_name) is number

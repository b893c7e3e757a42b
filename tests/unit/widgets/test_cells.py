"""One value of a grid in full: nothing of it is lost, and what is cut says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import ducklake_lab as dl
from ducklake_lab.widgets import table_view
from ducklake_lab.widgets.outline import of_json
from ducklake_lab.widgets.table_view import ResultBrowser

LONG = "{'name': 'a \"quoted\" name', 'sizes': [1, NULL, 3], 'at': TIMESTAMPTZ '2025-01-01 00:00:00+00', 'big': 123456789012345678901234567890::HUGEINT}"
OUTLINE = """{
  "name": "a \\"quoted\\" name",
  "sizes": [1, null, 3],
  "at": "2025-01-01 01:00:00+01",
  "big": 123456789012345678901234567890
}"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dl.Session]:
    with dl.connect(f"ducklake:{tmp_path_factory.mktemp('lake')}/lake.ducklake", engine="duckdb") as session:
        session.sql("SET TimeZone = 'Europe/Berlin'")
        yield session


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("NULL", None),
        ("''", ""),
        ("'two' || chr(10) || 'lines'", "two\nlines"),
        ("12345678901234567890.123456789012345678::DECIMAL(38,18)", "12345678901234567890.123456789012345678"),
        ("'nan'::DOUBLE", "NaN"),
        ("from_hex('00ff')", "0x00ff"),
        ("NULL::INTEGER[]", None),
        ("[]::INTEGER[]", "[]"),
        ("[1.50::DECIMAL(4,2), NULL]", "[1.50, null]"),
        ("{'a': [true, false], 'b': 'nan'::DOUBLE}", '{"a": [true, false], "b": "nan"}'),
        ("MAP {DATE '2025-01-01': INTERVAL 1 MONTH}", '{"2025-01-01": "1 month"}'),
        ("MAP {[1, 2]: 'x'}", '{"[1, 2]": "x"}'),
        (LONG, OUTLINE),
        ("[" + ", ".join(["{'word': 'abcdefghij', 'i': 1}"] * 2) + "]",
         '[{"word": "abcdefghij", "i": 1}, {"word": "abcdefghij", "i": 1}]'),
        ("[" + ", ".join(["{'word': 'abcdefghij', 'i': 1}"] * 3) + "]",
         "[\n" + ",\n".join(['  {"word": "abcdefghij", "i": 1}'] * 3) + "\n]"),
        ("""'{"a":1.10,"a":[12345678901234567890,null]}'::JSON""", '{"a": 1.10, "a": [12345678901234567890, null]}'),
        ("'low'::ENUM('low', 'high')", "low"),
    ],
)  # fmt: skip
def test_a_value_is_whole(session: dl.Session, value: str, text: str | None) -> None:
    answer = ResultBrowser(session.sql(f"SELECT 0 AS i, {value} AS v")).answer_cell({"row": 0, "column": 1})
    assert (answer["text"], answer["length"]) == (text, len(text or ""))
    assert "shown" not in answer


def test_what_is_seen_is_what_is_shown(session: dl.Session) -> None:
    browser = ResultBrowser(session.sql("SELECT i, [i] AS v FROM range(5) AS r(i)"))
    browser.sort = [["i", True]]
    answer = browser.answer_cell({"row": 1, "column": 1})
    assert (answer["text"], answer["type"]) == ("[3]", "BIGINT[]")


def test_long_values_are_cut_and_bytes_are_not_before(session: dl.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = ResultBrowser(session.sql("SELECT repeat('ab', 3000) AS s, encode(repeat('a', 3000)) AS b"))
    assert browser.answer_cell({"row": 0, "column": 1})["text"] == "0x" + "61" * 3000
    monkeypatch.setattr(table_view, "MOST_CHARACTERS", 100)
    answer = browser.answer_cell({"row": 0, "column": 0})
    assert (answer["text"], answer["length"]) == ("ab" * 50, 6000)


def test_what_would_hide_text_is_shown_by_its_number_and_copied_as_it_is(session: dl.Session) -> None:
    browser = ResultBrowser(session.sql("SELECT 'a' || chr(8238) || 'b' || chr(10) || chr(9) || chr(13) AS s"))
    answer = browser.answer_cell({"row": 0, "column": 0})
    assert (answer["text"], answer["shown"]) == ("a\u202eb\n\t\r", "a⟨U+202E⟩b\n\t␍")


@pytest.mark.parametrize("text", ['{"a": [{"b": null}, "x"], "c": {}}', "[]", '"text"', "[[[[1.5e300]]]]"])
def test_json_stays_the_same_json(text: str) -> None:
    assert json.loads(of_json(text)) == json.loads(text)


def test_what_is_no_json_or_too_deep_stays_as_it_is() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert of_json(deep) == deep
    assert of_json("{'a': 1}") == "{'a': 1}"

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ducklake_lab.widgets import html


def test_escape_leaves_no_markup_and_no_invisible_characters():
    shown = html.escape("<script>'\"&\u202e\n\x00\ud800")
    assert shown == "&lt;script&gt;&#x27;&quot;&amp;⟨U+202E⟩⏎⟨U+0000⟩⟨U+D800⟩"
    shown.encode()


def test_text_from_right_to_left_stays_readable():
    assert html.escape("مرحبا") == "مرحبا"


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (84_000, "84 kB"), (2_600_000, "2.6 MB"), (999_600, "1.0 MB")],
)
def test_size(number: int, text: str):
    assert html.size(number) == text


@pytest.mark.parametrize(("number", "text"), [(950, "950"), (8255, "8.3k"), (336_776, "337k"), (2_000_000, "2M")])
def test_compact(number: int, text: str):
    assert html.compact(number) == text


@pytest.mark.parametrize(("share", "text"), [(0, "0%"), (0.001, "<1%"), (0.98, "98%"), (0.9999, ">99%"), (1, "100%")])
def test_percent_is_all_or_nothing_only_where_it_is(share: float, text: str):
    assert html.percent(share) == text


@pytest.mark.parametrize(("elapsed", "text"), [(0.004, "0.00 s"), (0.42, "0.4 s"), (12.3, "12 s"), (185, "3 min 5 s")])
def test_seconds(elapsed: float, text: str):
    assert html.seconds(elapsed) == text


def test_times_are_shown_in_their_own_zone():
    moment = datetime(2026, 3, 2, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert html.time(moment) == "2026-03-02 01:30"
    assert html.time(datetime(2026, 3, 1, tzinfo=UTC), precise=True) == "2026-03-01 00:00:00"


def test_numbers_agree_with_their_nouns():
    assert html.counted(1, "row") == "1 row"
    assert html.counted(336_776, "row") == "336,776 rows"


def test_page_stands_alone():
    page = html.page(html.view("<p>x</p>", label="a"), "<title>")
    assert "&lt;title&gt;" in page
    assert "http" not in page

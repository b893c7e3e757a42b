from html.parser import HTMLParser

import pyarrow as pa

from ducklake_lab.engine.placement import Facts, Limits, place
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.session.rows.result import Result, RunInfo, count_result, nothing
from ducklake_lab.widgets.result import render, summary


class Cells(HTMLParser):
    """Collects tags, and the text of each table cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.attributes.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


PLACED = place(Facts(bytes=1_300_000, files=1, files_total=12), Limits(), "auto")


def numbers(rows: int) -> Result:
    info = RunInfo([("lake", 17)], files_read=1, files_total=12, seconds=0.41, placement=PLACED)
    return Result(InMemory(pa.table({"n": pa.array(range(rows), pa.int64()), "t": ["x"] * rows})), info=info)


def test_footer_tells_rows_time_snapshot_and_files():
    assert summary(numbers(12)) == "12 rows · 0.4 s · snapshot 17 · in process · 1 of 12 files, 1.3 MB"


def test_a_longer_result_says_so_and_how_to_get_the_rest():
    result = numbers(51)
    page = Cells(render(result))
    assert page.tags.count("tr") == 51
    assert "first 50 rows; more exist" in summary(result)
    assert "--limit 500" in summary(result)
    assert summary(numbers(50)).startswith("50 rows")


def test_the_limit_of_the_result_is_kept():
    result = numbers(10)
    result.limit = 3
    assert Cells(render(result)).tags.count("tr") == 4


def test_types_are_below_names_and_numbers_to_the_right():
    page = Cells(render(numbers(1)))
    assert page.cells[:2] == ["nbigint", "tvarchar"]
    assert [attributes.get("align") for attributes in page.attributes] == ["right", None, "right", None]


def test_hostile_names_and_values_are_escaped():
    table = pa.table({"<img src=x onerror=alert(1)>": ["<script>alert(1)</script>", '"><b>', "a\nb", "\u202eexe"]})
    html = render(Result(InMemory(table)))
    page = Cells(html)
    assert not {"script", "img"} & set(page.tags)
    assert "<b>" not in html
    assert page.cells[1] == "<script>alert(1)</script>"
    assert page.cells[3] == "a⏎b"
    assert page.cells[4].startswith("⟨U+202E⟩exe")
    assert "\u202e" not in html


def test_a_wide_result_is_cut_and_says_so():
    result = Result(InMemory(pa.table({f"c{at}": [at] for at in range(500)})))
    html = render(result)
    assert Cells(html).tags.count("th") == 100
    assert "first 100 of 500 columns" in html


def test_a_large_value_stays_small():
    html = render(Result(InMemory(pa.table({"t": ["x" * 1_000_000] * 5}))))
    assert len(html) < 30_000
    assert "1,000,000 characters" in html


def test_repeated_column_names_keep_their_values():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert [text[0] for text in Cells(render(Result(InMemory(table)))).cells[2:4]] == ["1", "2"]


def test_maps_are_shown_as_duckdb_writes_them():
    table = pa.table({"m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))})
    assert Cells(render(Result(InMemory(table)))).cells[1:] == ["{k=1}", "NULL2 rows"]


def test_no_rows_keep_their_columns():
    page = Cells(render(numbers(0)))
    assert page.cells[0] == "nbigint"
    assert "0 rows" in summary(numbers(0))


def test_statements_that_change_rows_or_nothing():
    assert summary(count_result(3, RunInfo([("lake", 4)]))) == "3 rows changed · snapshot 4"
    assert summary(nothing(RunInfo([("lake", 12), ("lake", 4)]))) == "done · snapshots 4, 12"
    assert summary(nothing(RunInfo([("lake", 4), ("a\nb", 12)]))) == "done · snapshots a⏎b 12, lake 4"
    assert "<table" not in render(count_result(3, RunInfo()))
    assert summary(nothing()) == "done"

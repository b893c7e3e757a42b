"""Snapshots, schema, files and diff as static HTML."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from ducklake_lab.diff.model import ColumnChange, ColumnSteps, DiffSummary, GroupStep, Histogram, Pattern, RowChange
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.types import DataType
from ducklake_lab.session.listings import FileListing, History
from ducklake_lab.widgets import charts, diff, diff_rows, files, ranges, schema, snapshots, timeline
from ducklake_lab.widgets.summary import summarize
from ducklake_lab.widgets.tables import TableListing
from tests.browser import samples

pytestmark = pytest.mark.sampled(3)

HOSTILE = '<script>alert("1")</script>\'\n\u202e' + "x" * 5000


def plain(html: str) -> str:
    """Return the text of a page without styles, tags and pictures."""
    html = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def hostile_history() -> History:
    entry = samples.history()[3]
    info = replace(entry.info, author=HOSTILE, commit_message=HOSTILE)
    return History(HOSTILE, [replace(entry, info=info, changes=(HOSTILE,) * 60, tables=(HOSTILE,))])


def hostile_files() -> FileListing:
    entry = samples.files()[0]
    stats = {HOSTILE: replace(entry.stats["carrier"], min_value=HOSTILE, max_value="z")}
    other = {HOSTILE: replace(entry.stats["carrier"], min_value="a", max_value="b")}
    changed = replace(entry, path=HOSTILE, partition=((HOSTILE, HOSTILE),), stats=stats)
    return FileListing(HOSTILE, 1, [changed, replace(entry, stats=other)], types={HOSTILE: DataType("varchar")})


def hostile_diff() -> samples.SampleDiff:
    base = samples.updated()
    assert base.end is not None
    histogram = Histogram((HOSTILE, "b"), (1, 0), (0, 1), numeric=False)
    return replace(
        base,
        table=HOSTILE,
        end=replace(base.end, commit_message=HOSTILE, author=HOSTILE),
        schema=(ColumnChange("added", 1, None, (HOSTILE, HOSTILE)), ColumnChange("dropped", 1, (HOSTILE, "x"), None)),
        columns=(replace(base.columns[0], name=HOSTILE, updated=1, share=0.5, histogram=histogram),),
        patterns=(Pattern("updated", HOSTILE, 0.5),),
        key=(HOSTILE,),
        group_steps=(
            ColumnSteps(HOSTILE, (GroupStep(1, "updated", (HOSTILE,) * 3, HOSTILE, HOSTILE, "1", 1.0),) * 2, 3),
            ColumnSteps(HOSTILE + "b", (GroupStep(1, "deleted", (HOSTILE,), HOSTILE, None, "-1", -1.0),) * 2, 0),
        ),
        changed=(
            RowChange(1, "updated", {HOSTILE: HOSTILE}, {HOSTILE: None}, (HOSTILE,)),
            RowChange(2, "inserted", None, {HOSTILE: HOSTILE}),
        ),
    )


def hostile_tables() -> list[samples.Info]:
    info = samples.tables()[1]
    columns = tuple(replace(column, name=HOSTILE, default_value=HOSTILE) for column in info.table.columns)
    return [replace(info, schema=HOSTILE, table=replace(info.table, name=HOSTILE, comment=HOSTILE, columns=columns))]


@pytest.mark.parametrize(
    "html",
    [
        snapshots.render(hostile_history()),
        files.render(hostile_files()),
        diff.render(hostile_diff()),
        schema.render(schema.build("flights", hostile_tables())),  # type: ignore[arg-type]
        TableListing(tuple(hostile_tables()))._repr_html_(),  # type: ignore[arg-type]
    ],
    ids=["snapshots", "files", "diff", "schema", "tables"],
)
def test_hostile_names_and_values(html: str):
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\u202e" not in html
    # No attribute was broken out of: what remains between tags has no raw quote of ours left over.
    assert 'alert("1")' not in html
    assert len(html) < 100_000


@pytest.mark.parametrize(
    "html",
    [
        snapshots.render(samples.history()),
        files.render(samples.files()),
        diff.render(samples.updated()),
        diff.render(samples.deleted()),
        schema.render(schema.build("flights", samples.tables(), 17)),  # type: ignore[arg-type]
    ],
    ids=["snapshots", "files", "updated", "deleted", "schema"],
)
def test_views_are_well_formed_and_ask_for_nothing(html: str):
    body = html[html.index("</style>") + 8 :].replace("&ensp;", " ").replace("<br>", "<br/>")
    ElementTree.fromstring(re.sub(r"<details open>", '<details open="">', body))
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img", html)
    assert len(html) < 64_000


def test_snapshots_tell_all_in_text():
    text = plain(snapshots.render(samples.history()))
    assert "18 snapshots · newest 17" in text
    for part in ("drop cancelled", "deleted from main.flights", "−8,255", "84 kB", "2026-03-17 10:59", "ana", "delete"):
        assert part in text
    assert text.index("fill speed") < text.index("load January")
    # the bars are no plain scale
    assert "bar height: square root of the rows" in text
    empty = History("lake", [samples.entry(0, "schema", None, ["created schema main"])])
    assert "bar height" not in plain(snapshots.render(empty))


def test_many_snapshots_are_cut_and_say_so():
    entries = [samples.entry(number, "insert", "m", ["x"], 10) for number in range(1000)]
    html = snapshots.render(History("lake", entries))
    assert "newest 200 of 1,000 snapshots" in html
    assert "<b>999</b>" in html
    assert "<b>10</b>" not in html


def test_no_snapshots():
    assert "No snapshots" in snapshots.render(History("lake", []))
    assert timeline.svg([]) == ""


def test_timeline_has_a_mark_per_snapshot_down_for_removed_rows():
    svg = ElementTree.fromstring(timeline.svg(samples.history()))
    marks = svg.findall("g")
    assert len(marks) == 18
    base = float(svg.findall("line")[0].attrib["y1"])
    deleted = marks[15].find("line")
    assert deleted is not None
    assert float(deleted.attrib["y1"]) == base
    assert float(deleted.attrib["y2"]) > base
    assert marks[16].find("circle") is not None


def test_files_tell_all_in_text():
    text = plain(files.render(samples.files()))
    assert "12 data files" in text
    assert "336,776 rows" in text
    assert "month = 5" in text
    assert "27,004" in text
    assert "11 delete files" in text


def test_ranges_put_well_divided_columns_first():
    found = ranges.intervals(samples.files())
    assert [item.column for item in found[:2]] == ["month", "time_hour"]
    depth = {item.column: item.depth for item in found}
    assert depth["month"] == 1.0
    assert depth["carrier"] == 12.0
    assert "year" not in depth  # one value in all files divides nothing


def test_ranges_order_numbers_as_numbers():
    (item,) = [item for item in ranges.intervals(samples.files()) if item.column == "month"]
    assert (item.low, item.high) == ("1", "12")
    assert item.spans[0] == (0.0, 0.0)
    assert item.spans[-1] == (1.0, 1.0)


def bounded(*bounds: tuple[str | None, str | None]) -> list[ColumnStats]:
    return [ColumnStats(1, 10, 5, 0, low, high) for low, high in bounds]


@pytest.mark.parametrize(
    ("kind", "bounds", "depth", "ends"),
    [
        # two months, each in a file of its own and in the one of both
        ("int32", [("1", "1"), ("2", "2"), ("1", "2")], 2.0, ("1", "2")),
        ("int32", [("1", "5"), ("5", "9")], 4 / 3, ("1", "9")),  # 5 is in both
        ("int32", [("1", "5"), ("7", "9"), (None, None)], 2.0, ("1", "9")),  # the third may hold any value
        ("varchar", [("10", "3"), ("4", "9")], 1.0, ("10", "9")),  # texts, in their order
        ("date", [("2024-01-01", "2024-01-31"), ("2024-02-01", "2024-02-29")], 1.0, ("2024-01-01", "2024-02-29")),
    ],
)
def test_depth_counts_the_files_that_hold_a_value(
    kind: str, bounds: list[tuple[str | None, str | None]], depth: float, ends: tuple[str, str]
):
    found = ranges.of_column(bounded(*bounds), "c", DataType(kind))
    assert found is not None
    assert found.depth == pytest.approx(depth)
    assert (found.low, found.high) == ends
    assert all(0 <= low <= high <= 1 for low, high in found.spans)


def test_schema_shows_nested_columns_sizes_and_keys():
    text = plain(schema.render(schema.build("flights", samples.tables(), 17)))  # type: ignore[arg-type]
    assert "snapshot 17 · 1 schema · 3 tables · 329,995 rows · 31 MB" in text
    assert "partitioned by month, month(time_hour)" in text
    assert "struct(lat double, lon double, tags varchar[])" in text
    assert "└ lat" in text
    assert "not null" in text


def test_summary_is_one_line():
    line = repr(summarize("flights.ducklake", 17, "flights", samples.tables()))  # type: ignore[arg-type]
    assert line == "flights.ducklake · snapshot 17 · 1 schema · 3 tables · 329,995 rows · 31 MB"
    empty = repr(summarize("x", 0, "other", samples.tables()))  # type: ignore[arg-type]
    assert empty == "x · snapshot 0 · 1 schema · 0 tables · 0 rows · 0 B"


def test_diff_of_deleted_rows():
    html = diff.render(samples.deleted())
    text = plain(html)
    for part in ("8,255 deleted", "0 inserted", "328,521 unchanged", "first 50 of 8,255", "dep_time IS NULL"):
        assert part in text
    assert "12 unchanged · +12 delete files (84 kB)" in text
    assert html.count('class="dlk-deleted"') == 50
    assert "<ins>" not in html


def test_diff_pairs_old_and_new_cells():
    html = diff.render(samples.updated())
    assert "<del>n619aa</del> → <ins>N619AA</ins>" in html
    assert "13 more columns not shown" in html
    text = plain(html)
    for part in ("added speed double", "renamed arr_delay double to arrival_delay double", "dropped minute integer"):
        assert part in text
    # tailnum changed in every updated row, speed in a part of them
    assert re.search(r"tailnum +100% +58,665 rows", text)
    assert re.search(r"speed +38%", text)


def test_diff_of_nothing():
    base = samples.updated()
    nothing = replace(base, schema=(), summary=DiffSummary(0, 0, 0, 7), columns=(), patterns=(), changed=(), end=None)
    text = plain(diff.render(nothing))
    assert "not committed yet" in text
    assert "7 unchanged" in text
    assert "Rows" not in text


@pytest.mark.slow
def test_rows_of_a_wide_table_keep_the_changed_column():
    names = [f"c{at}" for at in range(500)]
    before = dict.fromkeys(names, 1)
    change = RowChange(1, "updated", before, before | {"c499": 2}, ("c499",))
    columns = tuple(replace(samples.updated().columns[0], name=name) for name in names)
    html = diff.render(replace(samples.updated(), columns=columns, changed=(change,)))
    assert "<del>1</del> → <ins>2</ins>" in html
    assert "494 more columns not shown" in html
    # the changed column is the first one, and the mark of the row names it
    names = re.findall(r'<th scope="col"[^>]*>([^<]*)', html[html.index('class="dlk-rows"') :])
    assert names[:4] == ["", "row id", "c499", "c0"]
    assert 'title="updated: c499"' in html


def test_columns_come_by_how_many_rows_changed_in_them():
    columns = [
        replace(samples.updated().columns[0], name=name, updated=n) for name, n in (("a", 0), ("b", 2), ("c", 9))
    ]
    names = [one.name for one in columns]
    assert diff_rows.most_changed(columns) == ["c", "b"]
    assert diff_rows.chosen_names(names, ["c", "b"], whole_rows=True) == ["c", "b", "a"]
    assert diff_rows.chosen_names(names, [], whole_rows=True) == names


def test_histogram_bars_reach_from_the_baseline():
    data = Histogram(("0", "10"), (4, 0), (2, 1), numeric=True, smallest="0", largest="17.5")
    svg = ElementTree.fromstring(charts.histogram("x", data)).find("svg")
    assert svg is not None
    bars = [(float(bar.attrib["y"]), float(bar.attrib["height"])) for bar in svg.iter("rect")]
    assert [top + height for top, height in bars] == [74.0] * 3
    assert bars[0][1] == 2 * bars[1][1]
    assert [text.text for text in svg.findall("text")] == ["0", "17.5"]


def test_nested_type_of_a_list_of_structs_shows_its_fields():
    inner = DataType("struct", (("a", DataType("int32")),))
    column = samples.Column.build("l", DataType("list", (("element", inner),)), 1)
    info = samples.Info("flights", "main", samples.table(1, "t", [column]), None, None)
    text = plain(schema.render(schema.build("flights", [info])))  # type: ignore[list-item]
    assert "struct(a integer)[]" in text
    assert "└ a" in text


def test_a_count_of_nulls_that_no_writer_keeps_is_unknown() -> None:
    entry = samples.files()[0]
    stats = {name: replace(entry.stats["carrier"], null_count=0) for name in ("s", "span")}
    types = {"s": DataType("varchar"), "span": DataType("interval")}
    shown = plain(files.statistics(replace(entry, stats=stats), types))
    assert re.search(r" s 9E YV 0 .*? span 9E YV unknown ", shown), shown
    listed = plain(files.render(FileListing("t", 1, [replace(entry, stats=stats)], types=types)))
    assert listed.count(" unknown ") == 1

from dataclasses import replace

import pyarrow as pa
import pytest

from ducklake_lab.errors import SnapshotNotFoundError, UsageError
from ducklake_lab.model.commit_notes import StatementNote, write
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.widgets.snapshot_browser import SnapshotBrowser
from tests.browser import samples


def test_output_is_static_html_only():
    browser = SnapshotBrowser(samples.history())
    data, _ = browser._repr_mimebundle_()
    assert set(data) == {"text/plain", "text/html"}
    assert f'<div id="{browser.mount}">' in data["text/html"]
    assert "drop cancelled" in data["text/html"]
    assert "drop cancelled" in data["text/plain"]


def unpack(data: bytes) -> dict[str, list[object]]:
    found: dict[str, list[object]] = pa.ipc.open_stream(data).read_all().to_pydict()
    return found


def test_numbers_of_all_and_texts_by_page():
    browser = SnapshotBrowser(samples.history())
    numbers = unpack(browser.overview)
    assert numbers["id"] == list(range(17, -1, -1))
    assert (numbers["added"][2], numbers["removed"][2]) == (0, 8255)
    _, (page,) = browser.answer_page({"start": 2, "count": 3})
    assert unpack(page)["message"] == ["drop cancelled", "fix tail numbers", "load December"]
    assert browser.answer_between({"start": 1, "end": 3}) == {"tables": ["main.flights"]}


def test_filters_by_word_table_author_kind_and_time():
    browser = SnapshotBrowser(samples.history())

    def ids(**state: object) -> list[int]:
        with browser.hold_trait_notifications():
            for name, value in {"query": "", "hidden": [], "between": [], **state}.items():
                setattr(browser, name, value)
        found = unpack(browser.overview)["id"]
        assert found == [entry.info.snapshot_id for entry in browser.shown]
        return found  # type: ignore[return-value]

    assert ids(query="load June") == [7]
    assert ids(query="table:airports") == [1]
    assert ids(query="author:ben") == [17, 16]
    assert ids(query="author:ben update") == [17]
    assert ids(hidden=["insert", "schema"]) == [17, 15, 14]
    time = browser.history[4].info.snapshot_time.timestamp() * 1000
    assert ids(between=[time, time]) == [4]
    assert len(ids()) == 18


def test_selection_is_checked():
    browser = SnapshotBrowser(samples.history())
    browser.selected = 3
    browser.compare = [15, 14]
    assert browser.compare == [14, 15]
    with pytest.raises(UsageError, match="no snapshot 99"):
        browser.selected = 99
    with pytest.raises(UsageError, match="two"):
        browser.compare = [1, 2, 3]
    assert (browser.selected, browser.compare) == (3, [14, 15])


def test_a_diff_is_answered_and_an_error_told():
    def provide(table: str, start: int, end: int) -> str:
        if table == "gone":
            raise SnapshotNotFoundError("There is no gone.")
        return f"<p>{table} {start} {end}</p>"

    browser = SnapshotBrowser(samples.history(), diff=provide)
    sent: list[dict[str, object]] = []
    browser.send = lambda content, buffers=None: sent.append(content)  # type: ignore[method-assign]
    browser._receive(browser, {"type": "diff", "request": 1, "table": "t", "start": 1, "end": 2}, [])
    browser._receive(browser, {"type": "diff", "request": 2, "table": "gone", "start": 1, "end": 2}, [])
    browser._receive(browser, {"type": "other"}, [])
    assert sent == [{"request": 1, "html": "<p>t 1 2</p>"}, {"request": 2, "error": "There is no gone."}]


def noted() -> list[HistoryEntry]:
    """The sample history; snapshot 15 has a note, 16 a text of another writer."""
    statement = StatementNote("DELETE FROM flights\nWHERE note = '<script>alert(1)</script>'", "DELETE", 0.4217)
    texts = {15: write([statement], {"notebook": "<i>a</i>.ipynb", "cell": 12}), 16: "<b>job 7</b>"}
    return [
        replace(entry, info=replace(entry.info, commit_extra_info=texts.get(entry.info.snapshot_id)))
        for entry in samples.history()
    ]


def test_what_made_a_snapshot_is_shown_and_found():
    browser = SnapshotBrowser(noted())
    _, (page,) = browser.answer_page({"start": 0, "count": 4})
    texts = unpack(page)
    assert texts["origin"] == ["", "", "DELETE · 0.4 s · <i>a</i>.ipynb [12]", ""]
    statement = "DELETE FROM flights\nWHERE note = '<script>alert(1)</script>'"
    assert texts["statement"] == ["", "<b>job 7</b>", statement, ""]
    for query, found in [
        ("notebook:a</i>.IPYNB", [15]),
        ("notebook:zzz", []),
        ("kind:delete", [15]),
        ("kind:schema", [16, 0]),
        ("alert(1)", [15]),
        ("job", [16]),
    ]:
        browser.query = query
        assert [entry.info.snapshot_id for entry in browser.shown] == found, query
    html = browser._repr_mimebundle_()[0]["text/html"]
    assert "<script>alert" not in html and "<b>job" not in html and "<i>a" not in html
    assert "&lt;script&gt;alert(1)" in html and "DELETE · 0.4 s · &lt;i&gt;a&lt;/i&gt;.ipynb [12]" in html


def test_the_diffs_of_all_tables_of_a_snapshot_are_answered():
    def diff(table: str, start: int, end: int) -> str:
        if table.endswith("planes"):
            raise SnapshotNotFoundError(f"{table} did not exist at snapshot <{start}>.")
        return f"[{table} {start} {end}]"

    browser = SnapshotBrowser(samples.history(), diff=diff)
    assert browser.answer_diffs({"snapshot": 15}) == {"html": "[main.flights 14 15]"}
    html = browser.answer_diffs({"snapshot": 1})["html"]
    assert "[main.airlines 0 1][main.airports 0 1]" in html and "[main.weather 0 1]" in html
    assert "<b>main.planes</b> main.planes did not exist at snapshot &lt;0&gt;." in html
    assert browser.answer_diffs({"snapshot": 0}) == {"html": "<p>It touched no table.</p>"}
    with pytest.raises(UsageError, match="no snapshot 99"):
        browser.answer_diffs({"snapshot": 99})
    with pytest.raises(UsageError, match="no lake to compare"):
        SnapshotBrowser(samples.history()).answer_diffs({"snapshot": 15})

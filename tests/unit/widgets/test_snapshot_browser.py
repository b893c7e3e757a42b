import pyarrow as pa
import pytest

from ducklake_lab.errors import SnapshotNotFoundError, UsageError
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

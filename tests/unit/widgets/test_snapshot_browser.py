import json

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


def test_rows_are_plain_json():
    rows = SnapshotBrowser(samples.history()).rows
    assert len(json.loads(json.dumps(rows))) == 18
    assert rows[15][2:9] == [
        "delete", "ana", "drop cancelled", ["deleted from main.flights"], ["main.flights"], 0, 8255,
    ]  # fmt: skip


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
    browser.send = sent.append  # type: ignore[method-assign]
    browser._receive(browser, {"type": "diff", "table": "t", "start": 1, "end": 2}, [])
    browser._receive(browser, {"type": "diff", "table": "gone", "start": 1, "end": 2}, [])
    browser._receive(browser, {"type": "other"}, [])
    assert sent == [
        {"type": "diff", "key": "t/1/2", "html": "<p>t 1 2</p>"},
        {"type": "diff", "key": "gone/1/2", "error": "There is no gone."},
    ]

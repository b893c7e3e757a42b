"""Labels below the timeline fit the time that its snapshots span."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from ducklake_lab.model.entries import SnapshotInfo
from ducklake_lab.model.history import HistoryEntry
from ducklake_lab.widgets import timeline

START = datetime(2026, 3, 2, 22, 14, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("step", "labels"),
    [
        (timedelta(seconds=2), ["2026-03-02", "22:14:09", "22:14:13", "22:14:17"]),
        (timedelta(seconds=0), ["2026-03-02", "22:14:05"]),
        (timedelta(hours=1), ["2026-03-02", "2026-03-03", "02:14", "04:14"]),
        (timedelta(days=20), ["2026-03-02", "2026-04-11", "2026-05-21", "2026-06-30"]),
    ],
)
def test_labels_are_times_of_the_span(step: timedelta, labels: list[str]) -> None:
    history = [
        HistoryEntry(SnapshotInfo(at, START + at * step, at, "", None, None), "insert", (), (), 5, 0, 0)
        for at in range(12)
    ]
    shown = re.findall(r">(\d[\d:-]+)</text>", timeline.svg(history))
    assert [text for text in shown if "-" in text or ":" in text][:4] == labels

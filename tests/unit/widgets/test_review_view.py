"""The view of a review: what it hands to a page, and remarks that the page sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ducklake_lab as dl
from ducklake_lab.widgets.review_view import ReviewView

pytestmark = pytest.mark.sampled(2)

EVIL = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def session(lake_uri: Callable[..., str], tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(lake_uri(), alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.author = "ann"
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v, i * 10 AS n FROM range(40) r(i)")
        session.sql("CREATE TABLE other AS SELECT 1 AS a")
        session.branch("fix")
        session.sql("UPDATE t SET v = 'lake' WHERE i IN (1, 2); INSERT INTO t VALUES (500, 'lake', 0)")
        session.sql("UPDATE other SET a = 2")
        session.switch("fix")
        session.sql(f"UPDATE t SET v = '{EVIL}' WHERE i < 3; DELETE FROM t WHERE i = 9")
        session.sql("INSERT INTO t SELECT 1000 + i, 'n', i FROM range(20) r(i)")
        session.switch(None)
        yield session


@pytest.fixture
def view(session: dl.Session) -> ReviewView:
    return ReviewView(session.review("fix"))


def table_of(answer: tuple[dict[str, Any], list[bytes]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.ipc.open_stream(answer[1][0]).read_all().to_pylist()
    return found


def test_both_sides_stand_beside_each_other(view: ReviewView) -> None:
    assert view.tables == ["main.t", "main.other"]
    t, other = view.listed
    assert (t["conflicts"], t["remarks"], other["conflicts"]) == (2, 0, 0)
    counts = [(side["deleted"], side["inserted"], side["updated"], side["cells"]) for side in (t["branch"], t["lake"])]  # type: ignore[index]
    assert counts == [(1, 20, 3, 3), (0, 1, 2, 2)]
    assert other["branch"] is None and other["lake"]["updated"] == 1  # type: ignore[index]
    assert view.facts.endswith("to merge · 2 conflicts") and view.verdict == ""
    place = {"table": 0, "side": "branch"}
    facts = view.answer_table(place)
    assert facts["kinds"] == [["deleted", 1], ["inserted", 20], ["updated", 3]] and facts["passing"] == 24
    rows = table_of(view.answer_page({**place, "kind": "updated", "start": 0, "count": 50}))
    at = [name for name, *_ in view.answer_table({**place, "kind": "updated"})["columns"]].index("v")
    assert [(row["id"], row[f"b{at}"], row[f"d{at}"]) for row in rows] == [
        ("0", "v0", True), ("1", "v1", True), ("2", "v2", True),
    ]  # fmt: skip
    assert all("\u202e" not in row[f"a{at}"] and row[f"a{at}"].startswith("<img") for row in rows)
    conflicts = table_of(view.answer_conflicts({"table": 0, "start": 0, "count": 50}))
    assert [(row["row"], row["column"], row["base"], row["lake"]) for row in conflicts] == [
        ("1", "v", "v1", "lake"), ("2", "v", "v2", "lake"),
    ]  # fmt: skip
    with pytest.raises(dl.EntryNotFoundError, match="did not change"):
        view.answer_table({"table": 1, "side": "branch"})
    for table in (-1, 2):
        with pytest.raises(dl.UsageError, match="no such table"):
            view.answer_table({"table": table, "side": "branch"})


def test_remarks_of_a_page_are_kept_and_shown(session: dl.Session, view: ReviewView) -> None:
    place = {"table": 0, "side": "branch"}
    column = [name for name, *_ in view.answer_table(place)["columns"]].index("v")
    html = view.answer_remark({**place, "said": "comment", "text": EVIL, "row": "1", "column": column})["html"]
    assert "&lt;img" in html and "<img" not in html and "\u202e" not in html
    view.answer_remark({**place, "said": "request", "text": "all of it", "row": None})
    view.answer_remark({**place, "said": "comment", "text": "why?", "conflict": 1})
    view.answer_remark({"said": "comment", "text": "whole"})
    assert [(one["about"], one["table"], one["row"], one["column"]) for one in view.remarks] == [
        ("main.t row 1 v", 0, "1", "v"), ("main.t", 0, None, None), ("main.t row 2 v", 0, "2", "v"), ("", None, None, None),
    ]  # fmt: skip
    assert view.verdict == "changes asked for" and view.listed[0]["remarks"] == 3
    # a row of the lake may have the id of another row of the branch
    view.answer_remark({"table": 0, "side": "lake", "said": "comment", "text": "there", "row": "40", "column": column})
    assert view.remarks[-1]["about"] == "main.t"
    for one in list(view.remarks):
        view.answer_remove({"id": one["id"]})
    assert view.remarks == [] and view.verdict == "" and session.review("fix").remarks == ()
    view.answer_remark({"said": "approval", "text": ""})
    assert view.verdict == session.review("fix").verdict == "approved"
    assert view.remarks[0]["is_current"] and "approved" in view.still()


def test_a_branch_that_went_meanwhile_is_said(session: dl.Session, view: ReviewView) -> None:
    sent: list[dict[str, Any]] = []
    view.send = lambda content, buffers=None: sent.append(content)  # type: ignore[method-assign]
    session.drop_branch("fix")
    view._receive(None, {"type": "remark", "request": "1", "said": "comment", "text": "x"}, [])
    assert "rebased or dropped" in sent[0]["error"] and view.remarks == []


def test_the_output_of_a_review_is_the_view(session: dl.Session) -> None:
    data, record = session.review("fix")._repr_mimebundle_()
    assert "ducklake-" in data["text/html"] and data["text/plain"].startswith("<Review of lake#fix")
    reads = record["ducklake"]["reads"]
    assert {table["name"] for read in reads for table in read["tables"]} == {"t", "other"}

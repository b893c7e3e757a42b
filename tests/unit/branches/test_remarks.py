"""Remarks on branches: comments, approvals and requests for changes, kept with the branch and with nothing else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

import ducklake_lab as dl
from ducklake_lab.branches.making import open_branch
from ducklake_lab.branches.remarks import PREFIX
from ducklake_lab.catalog.options import write_option
from ducklake_lab.cli.command import main
from tests.unit.branches.test_merging import on_branch

EVIL = "<script>alert(1)</script>|\u202e**x**"


@pytest.fixture
def uri(lake_uri: Callable[..., str]) -> str:
    return lake_uri()


@pytest.fixture
def session(uri: str, tmp_path: Path) -> Iterator[dl.Session]:
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.author = "ann"
        session.sql("CREATE TABLE t AS SELECT i, 'v' || i AS v FROM range(20) r(i); CREATE TABLE gone AS SELECT 1 AS a")
        session.branch("fix")
        on_branch(session, "UPDATE t SET v = 'x' WHERE i < 3", "INSERT INTO t VALUES (100, 'new')", "DROP TABLE gone")
        yield session


def said(session: dl.Session) -> list[tuple[str, str | None, str, str]]:
    return [(one.kind, one.author, one.about, one.text) for one in session.review("fix").remarks]


def test_remarks_stay_with_the_branch_alone(session: dl.Session) -> None:
    lake, on = session.current_snapshot(), session.sql("FROM t").fetchall()
    review = session.review("fix")
    assert review.verdict is None and not review.remarks
    review.comment("why x?", table="t", row=1, column="v")
    review.comment("all of it", table="main.T")
    review.comment("was it used?", table="gone", author="bob")
    review.ask_for_changes(f"no {EVIL}", table="t", row=20)
    expected = [
        ("comment", "ann", "main.t row 1 v", "why x?"),
        ("comment", "ann", "main.t", "all of it"),
        ("comment", "bob", "main.gone", "was it used?"),
        ("request", "ann", "main.t row 20", f"no {EVIL}"),
    ]
    assert said(session) == expected
    assert [(one.kind, one.about) for one in review.remarks_on("main.t")] == [
        ("comment", "main.t row 1 v"), ("comment", "main.t"), ("request", "main.t row 20"),
    ]  # fmt: skip
    # no snapshot of either side, and no data
    assert session.current_snapshot() == lake and session.sql("FROM t").fetchall() == on
    assert session.review("fix").tip == review.tip
    session.merge("fix")
    assert not any("remark" in str(row["option"]) for row in session.options())
    # a branch of the branch begins without them
    session.switch("fix")
    session.branch("second")
    assert session.review("second").remarks == ()


def test_a_verdict_is_the_newest_word_of_each_author(session: dl.Session) -> None:
    review = session.review("fix")
    review.comment("hm")
    assert review.verdict is None
    review.approve(author="bob")
    assert review.verdict == session.review("fix").verdict == "approved"
    review.ask_for_changes("not yet")
    review.approve("still fine", author="bob")
    assert review.verdict == "changes asked for"
    request = review.remarks[2]
    review.remove_remark(request)
    assert review.verdict == "approved" and said(session)[-1] == ("approval", "bob", "", "still fine")
    with pytest.raises(dl.EntryNotFoundError, match="has no remark"):
        review.remove_remark(request)
    # what comes later is not approved, and asking does not end
    on_branch(session, "UPDATE t SET v = 'y' WHERE i = 5")
    assert review.verdict == "approved" and session.review("fix").verdict == "approved earlier"
    review.approve(author="bob")
    assert session.review("fix").verdict == "approved earlier"
    newer = session.review("fix")
    newer.approve()
    assert session.review("fix").verdict == "approved"


def test_a_rebase_keeps_remarks_and_renews_no_approval(session: dl.Session) -> None:
    on_branch(session, "CREATE TABLE u AS SELECT 1 AS a")
    review = session.review("fix")
    review.comment("old row", table="t", row=1, column="v")
    review.comment("new row", table="t", row=20)
    review.comment("new table", table="u", column="a")
    review.approve()
    session.sql("CREATE TABLE other AS SELECT 1 AS a; INSERT INTO t VALUES (200, 'lake')")
    session.rebase("fix")
    assert said(session) == [
        ("comment", "ann", "main.t row 1 v", "old row"),
        ("comment", "ann", "main.t", "new row\n(on row 20, which has another id since a rebase)"),
        ("comment", "ann", "main.u a", "new table"),
        ("approval", "ann", "", ""),
    ]
    again = session.review("fix")
    assert again.verdict == "approved earlier"
    # the remark on the table that came on the branch follows it
    on_branch(session, "ALTER TABLE u RENAME TO w")
    assert said(session)[2][2] == "main.w a"
    with pytest.raises(dl.TransactionConflictError, match="rebased or dropped"):
        review.comment("too late")
    session.drop_branch("fix")
    with pytest.raises(dl.TransactionConflictError, match="rebased or dropped"):
        again.comment("too late")


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ({"table": "gon"}, "has no table.*Did you mean gone"),
        ({"table": "t", "column": "w"}, "no column"),
        ({"row": 1}, "needs its table"),
        ({"column": "v"}, "needs its table"),
        ({"table": "t", "row": -1}, "by its id"),
        ({"table": "t", "row": True}, "by its id"),
        ({"table": "t", "row": 2**63}, "by its id"),
    ],
)
def test_a_place_is_checked(session: dl.Session, place: dict[str, object], error: str) -> None:
    review = session.review("fix")
    with pytest.raises(dl.DuckLakeError, match=error):
        review.comment("x", **place)  # type: ignore[arg-type]
    for text, wrong in (("", "needs a text"), (" \n", "needs a text"), ("x" * 5001, "up to 5,000")):
        with pytest.raises(dl.UsageError, match=wrong):
            review.comment(text)
    assert said(session) == []


def test_all_forms_show_them_escaped(session: dl.Session, tmp_path: Path) -> None:
    session.author = EVIL
    review = session.review("fix")
    review.comment(f"{EVIL}\nsecond line", table="t", row=1, column="v")
    review.ask_for_changes(EVIL)
    html = review.to_html(tmp_path / "review.html")
    assert "&lt;script&gt;" in html and "<script" not in html and "\u202e" not in html
    assert "changes asked for" in html and "second line" in html
    text = review.to_markdown()
    assert (
        "<script" not in text.replace("\\<", "")
        and "\u202e" not in text
        and "\n- **changes asked for** by \\<script\\>" in text
    )
    assert "\\*\\*x" in text and "second line" in text
    found = json.loads(review.to_json())
    assert found["verdict"] == "changes asked for"
    assert [(one["kind"], one["row_id"], one["author"]) for one in found["remarks"]] == [
        ("comment", 1, EVIL), ("request", None, EVIL),
    ]  # fmt: skip
    assert repr(review).splitlines()[0].endswith("changes asked for>")


def test_options_of_others_are_no_remarks(session: dl.Session) -> None:
    good = {"kind": "comment", "text": "t", "time": "2026-01-01T00:00:00", "snapshot_id": 1}
    bad: list[object] = [
        "no json", [1], {**good, "kind": "merge"}, {**good, "text": 1}, {**good, "row_id": 1}, {**good, "time": "now"},
        {**good, "snapshot_id": "1"}, {**good, "table": ["t"]}, {**good, "table": "t", "table_id": {}}, {"kind": "comment"},
        {**good, "kind": {}}, {**good, "kind": ["comment"]}, {**good, "generation": True}, {**good, "column": 1, "table": "t"},
    ]  # fmt: skip
    with open_branch(session.current_lake, "fix") as (opened, _), opened.connect(fresh=True) as connection:
        for at, value in enumerate([*bad, good]):
            text = value if isinstance(value, str) else json.dumps(value)
            write_option(connection, (None, None), f"{PREFIX}{at}", text)
        write_option(connection, (None, None), f"{PREFIX}<b>", json.dumps(good))
        connection.commit()
    assert said(session) == [("comment", None, "", "t")]


def test_many_speak_at_once(session: dl.Session, uri: str) -> None:
    reviews = []
    for _ in range(4):
        other = dl.Session(engine="duckdb")
        other.attach(uri, alias="lake")
        reviews.append((other, other.review("fix")))
    errors: list[Exception] = []

    def speak(at: int) -> None:
        try:
            for number in range(3):
                reviews[at][1].comment(f"{at}-{number}")
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=speak, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other, _ in reviews:
        other.close()
    assert not errors
    assert sorted(text for *_, text in said(session)) == sorted(f"{at}-{n}" for at in range(4) for n in range(3))


def test_commands_keep_remarks_and_know_the_verdict(
    uri: str, session: dl.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.close()

    def review(*words: str) -> tuple[int, str, str]:
        code = main(["review", uri, "fix", *words])
        return code, *capsys.readouterr()

    assert review()[0] == 0 and review("--needs-approval")[0] == 4
    code, out, _ = review("--comment", "why?", "--table", "t", "--row", "1", "--column", "v", "--author", "cy")
    assert code == 0 and "comment by cy on main.t row 1 v: why?" in out
    assert review("--ask-for-changes", "no", "--author", "cy")[0] == 3
    assert review("--needs-approval", "--format", "markdown")[0] == 3
    code, out, _ = review("--approve", "--author", "cy", "--format", "json")
    assert code == 0 and json.loads(out)["verdict"] == "approved"
    assert review("--needs-approval")[0] == 0
    code, _, error = review("--approve", "--table", "t")
    assert code == 2 and "--table, --row and --column belong to" in error
    code, out, _ = review("--remove", json.loads(out)["remarks"][0]["id"])
    assert code == 0 and "why?" not in out


def test_read_only_lakes_take_none(session: dl.Session, uri: str) -> None:
    session.close()
    with dl.Session(engine="duckdb") as other:
        other.attach(uri, alias="lake", read_only=True)
        review = other.review("fix")
        with pytest.raises(dl.TransactionError, match="read-only"):
            review.comment("x")
        assert other.review("fix").remarks == ()


def test_another_client_leaves_them_alone(session: dl.Session) -> None:
    session.review("fix").comment("kept")
    on_branch(session, "CALL lake.set_option('parquet_compression', 'zstd')", "UPDATE t SET v = 'z' WHERE i = 7")
    with open_branch(session.current_lake, "fix") as (opened, _), opened.connect() as connection:
        keys = connection.scalars(sa.text("SELECT \"key\" FROM ducklake_metadata" if connection.dialect.name != "mysql"
                                          else "SELECT `key` FROM ducklake_metadata")).all()  # fmt: skip
    assert sum(str(key).startswith(PREFIX) for key in keys) == 1
    assert said(session) == [("comment", "ann", "", "kept")]
    assert [str(one) for one in session.review("fix").options] == [
        "option parquet_compression: zstd on the branch, not set in the lake"
    ]

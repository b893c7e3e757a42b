"""The command `ducklake-lab`, as CI and a terminal call it."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.cli.command import parsed

pytestmark = pytest.mark.sampled(3)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    path = f"{tmp_path}/lake.ducklake"
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        session.sql("UPDATE t SET s = 'x\x1b[31m' WHERE i = 2")
    return path


@pytest.mark.slow
def test_text(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "2", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "main.t  snapshot 2 → 3"
    assert shown[1] == "0 deleted · 0 inserted · 1 updated · 1 unchanged · 1 cells changed"
    assert shown[-1] == "→ 1  s=b→x⟨U+001B⟩[31m"  # no control of the terminal


@pytest.mark.slow
def test_exit_code(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", f"ducklake:{lake}", "t", "-1", "--exit-code"]) == 1
    assert main(["diff", lake, "t", "3", "--exit-code"]) == 0
    assert main(["diff", lake, "tt", "3", "--exit-code"]) == 2
    assert 'no table "tt"' in capsys.readouterr().err
    assert main(["diff", lake + "x", "t", "3"]) == 2
    assert not Path(lake + "x").exists()


@pytest.mark.parametrize("path", ["no/such/o.html", "."])
def test_a_page_that_cannot_be_written_is_an_error(
    lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str
):
    assert main(["diff", lake, "t", "2", "--exit-code", "--html", str(tmp_path / path)]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 1
    assert f"cannot be written to {tmp_path / path}: " in shown[0]


def test_a_crash_does_not_say_that_the_states_differ(
    lake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(dl.Diff, "to_json", lambda self, rows: 1 / 0)
    assert main(["diff", lake, "t", "2", "--exit-code", "--json"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "-999", "x", "1.5"])
def test_the_number_of_rows_is_checked(lake: str, capsys: pytest.CaptureFixture[str], number: str):
    with pytest.raises(SystemExit) as stopped:
        main(["diff", lake, "t", "2", "--rows", number])
    assert stopped.value.code == 2
    assert f'--rows: takes a number of rows, 0 or more, not "{number}"' in capsys.readouterr().err
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session, pytest.raises(dl.UsageError, match="not -1"):
        session.table("t").diff(2, 3).rows(-1)


def test_snapshots_counted_from_the_newest(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "-1"]) == 0
    assert capsys.readouterr().out.startswith("main.t  snapshot 2 → 3")
    assert main(["diff", lake, "t", "-999"]) == 2
    assert "There is no snapshot -999: the newest is 3, and -3 counts back to the first." in capsys.readouterr().err


def test_html_and_json(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["diff", lake, "t", "0002", "--html", str(tmp_path / "d.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["updated"] == 1
    assert "1</b> updated" in (tmp_path / "d.html").read_text()


def test_indexes(catalog: str, lake_uri: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    uri = lake_uri()
    with dl.connect(uri, data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
    if catalog == "duckdb":
        assert main(["indexes", uri]) == 0
        assert "none are offered" in capsys.readouterr().out
        assert main(["indexes", uri, "--create"]) == 2
        assert "quick without indexes" in capsys.readouterr().err
        return
    assert main(["indexes", uri]) == 0
    before = capsys.readouterr().out.splitlines()
    assert len(before) == 5
    assert "missing  CREATE INDEX ducklake_data_file_by_table_id ON ducklake_data_file (table_id)" in before
    assert main(["indexes", uri, "--create"]) == 0
    created = capsys.readouterr().out
    assert created.count("created ") == created.count("there ") == 5
    with dl.connect(uri, engine="duckdb") as session:
        session.sql("INSERT INTO t FROM range(20)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(20,)]
    assert main(["indexes", uri, "--create"]) == 0
    assert "created" not in capsys.readouterr().out
    assert main(["indexes", uri, "--drop"]) == 0
    assert capsys.readouterr().out.splitlines()[-5:] == before


def test_a_patch_is_printed(
    lake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["diff", lake, "t", "2", "3", "--patch", "-"]) == 0
    assert "UPDATE" in capsys.readouterr().out
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["diff", "t", "2", "3", "--json"], 0),
        (["diff", "t", "2", "3", "--json", "--exit-code"], 1),
        (["sql", "FROM range(100_000)", "--json"], 0),
        (["snapshots"], 0),
    ],
    ids=["diff", "exit-code", "sql", "snapshots"],
)
def test_a_reader_that_stops_reading_is_no_error(lake: str, command: list[str], code: int):
    name, *more = command
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "ducklake_lab.cli", name, lake, *more],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


def test_sql_prints_a_table(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", lake, "SELECT * FROM t ORDER BY i", "--at", "2"]) == 0
    *rows, footer = capsys.readouterr().out.splitlines()
    assert rows == ["      i  s", "integer  varchar", "───────  ───────", "      1  a", "      2  b"]
    assert footer.startswith("2 rows · ")
    assert footer.endswith(" · snapshot 2")


def test_sql_prints_all_rows_to_programs_and_the_first_to_people(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", lake, "FROM range(60)", "--json"]) == 0
    assert [row["range"] for row in json.loads(capsys.readouterr().out)] == list(range(60))
    assert main(["sql", lake, "FROM range(60)", "--format", "csv", "--limit", "3"]) == 0
    assert capsys.readouterr().out == "range\n0\n1\n2\n"
    assert main(["sql", lake, "FROM range(60)"]) == 0
    *rows, footer = capsys.readouterr().out.splitlines()
    assert (len(rows), rows[-1].strip()) == (53, "49")
    # it names no option that the command lacks
    assert footer.startswith("first 50 rows; more exist: --limit 500 shows more, --format csv prints all")


def test_sql_in_a_pipe_has_all_columns(lake: str, capsys: pytest.CaptureFixture[str]):
    wide = ", ".join(f"'{'x' * 30}' AS column_{number}" for number in range(20))
    assert main(["sql", lake, f"SELECT {wide}"]) == 0
    assert "column_19" in capsys.readouterr().out


def test_sql_prints_markdown_that_means_nothing_else(lake: str, capsys: pytest.CaptureFixture[str]):
    text = "SELECT 1 AS i, 'a|b' AS s UNION ALL SELECT 2, '<b>*x*</b>' || chr(10) || 'y' UNION ALL SELECT 3, NULL ORDER BY ALL"
    assert main(["sql", lake, text, "--format", "markdown"]) == 0
    *rows, blank, footer = capsys.readouterr().out.splitlines()
    assert rows == [
        "| i | s |",
        "|---:|---|",
        "| 1 | a\\|b |",
        "| 2 | &lt;b&gt;\\*x\\*&lt;/b&gt;⏎y |",
        "| 3 | NULL |",
    ]
    assert (blank, footer.partition(" ·")[0]) == ("", "3 rows")


def test_sql_from_standard_input_changes_a_lake(
    lake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "stdin", io.StringIO("-- all of them\nDELETE FROM t"))
    assert main(["sql", lake]) == 0
    assert capsys.readouterr().out.startswith("2 rows changed · ")
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT count(*) AS n FROM t"))
    assert main(["sql", lake, "-", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n0\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(" \n"))
    assert main(["sql", lake]) == 2
    assert "SQL is missing" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--read-only"], ["--at", "2"]], ids=["read-only", "at"])
def test_sql_that_only_reads_refuses_changes(lake: str, capsys: pytest.CaptureFixture[str], option: list[str]):
    assert main(["sql", lake, "DELETE FROM t", *option]) == 2
    capsys.readouterr()
    assert main(["sql", lake, "SELECT count(*) AS n FROM t", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n2\n"


@pytest.mark.parametrize(
    ("output", "encoding", "said"),
    [
        ("/dev/full", "utf-8", "The output cannot be written: No space left on device."),
        (os.devnull, "ascii", "The output's encoding, ascii, has no '\\xe9'; set PYTHONIOENCODING=utf-8."),
    ],
    ids=["full", "ascii"],
)
def test_output_that_cannot_be_written_is_an_error(lake: str, output: str, encoding: str, said: str):
    command = [sys.executable, "-m", "ducklake_lab.cli", "sql", lake, "SELECT 'é' AS a", "--json"]
    with open(output, "w") as file:
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr.decode()) == (2, f"ducklake-lab: {said}\n")


def test_sql_that_is_no_utf_8_is_an_error(lake: str):
    command = [sys.executable, "-m", "ducklake_lab.cli", "sql", lake]
    for encoding in ("utf-8", "utf-8:surrogateescape"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, input=b"SELECT '\xff'", capture_output=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (2, b"ducklake-lab: The SQL is no UTF-8; convert it first.\n")


def test_sql_that_leaves_a_transaction_open_fails(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["sql", lake, "BEGIN; DELETE FROM t"]) == 2
    assert "end the statements with COMMIT" in capsys.readouterr().err
    assert main(["sql", lake, "BEGIN; DELETE FROM t; COMMIT"]) == 0


def test_sql_at_snapshots_by_tag_and_from_the_newest(lake: str, capsys: pytest.CaptureFixture[str]):
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        session.tag("before", 2)
    for at in ("before", "-1", "2"):
        assert main(["sql", lake, "SELECT s FROM t WHERE i = 2", "--format", "csv", "--at", at]) == 0
        assert capsys.readouterr().out == "s\nb\n"
    assert main(["sql", lake, "FROM t", "--at", "-9"]) == 2
    assert main(["sql", lake, "FROM t", "--at", "after"]) == 2


@pytest.mark.parametrize(
    "words",
    [["{}", "--json", "t", "2", "3"], ["{}", "t", "--json", "2", "3"], ["--json", "{}", "t", "-1"]],
    ids=["before the table", "after it", "first"],
)
def test_options_may_stand_anywhere(lake: str, capsys: pytest.CaptureFixture[str], words: list[str]):
    assert main(["diff", *(word.format(lake) for word in words)]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["updated"] == 1


def test_a_word_too_many_is_an_error(lake: str, capsys: pytest.CaptureFixture[str]):
    for words in (["FROM t", "FROM u"], ["FROM t", "--jsno"], ["--jsno"]):
        with pytest.raises(SystemExit) as stopped:
            main(["sql", lake, *words])
        assert stopped.value.code == 2
        assert f"unrecognized arguments: {words[-1]}" in capsys.readouterr().err


def test_snapshots(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["snapshots", lake, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    kinds = [(row["snapshot_id"], row["kind"]) for row in found]
    assert kinds == [(0, "schema"), (1, "schema"), (2, "insert"), (3, "update")]
    assert found[2]["changes"] == ["inserted into main.t"]
    assert main(["snapshots", lake, "--limit", "2"]) == 0
    *rows, footer = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows[3:]] == ["2", "3"]
    assert footer == "newest 2 snapshots; older ones exist: --limit shows more"
    assert main(["snapshots", lake, "--limit", "4"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "4 snapshots"


def test_the_newest_snapshots_of_a_table_are_those_that_changed_it(lake: str, capsys: pytest.CaptureFixture[str]):
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        session.sql("CREATE TABLE other AS SELECT 1 AS x; INSERT INTO other VALUES (2); INSERT INTO other VALUES (3)")
    assert main(["snapshots", lake, "t", "--limit", "2", "--json"]) == 0
    assert [row["snapshot_id"] for row in json.loads(capsys.readouterr().out)] == [2, 3]


@pytest.mark.parametrize("command", ["sql", "snapshots", "diff", "compare", "when", "indexes", "open"])
def test_the_error_for_a_missing_lake_names_no_option_that_the_command_lacks(
    lake: str, capsys: pytest.CaptureFixture[str], command: str
):
    more = {
        "sql": ["FROM t"],
        "diff": ["t", "1"],
        "compare": ["FROM t", "1"],
        "when": ["FROM t"],
        "open": ["--no-browser"],
    }.get(command, [])
    assert main([command, lake + "x", *more]) == 2
    said = capsys.readouterr().err
    assert said == f"ducklake-lab: There is no lake at {lake}x; check the path.\n"
    assert not Path(lake + "x").exists()


@pytest.mark.parametrize("command", ["sql", "snapshots", "diff", "compare", "when", "indexes", "open"])
def test_help_has_examples_that_parse_and_exit_codes(capsys: pytest.CaptureFixture[str], command: str):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    examples = re.findall(r"^  ducklake-lab (.*)$", shown, re.MULTILINE)
    assert len(examples) >= 2
    for example in examples:
        words = shlex.split(example.partition(" < ")[0].partition(" > ")[0])
        assert parsed(words).lake.endswith(("lake", ".ducklake"))
    assert "Exit codes: 0 done" in shown


def test_looking_starts_no_spark(lake: str):
    calls = [["snapshots", lake], ["sql", lake, "FROM t"], ["sql", lake, "--engine", "auto", "SHOW TABLES"]]
    script = (
        "import sys; from ducklake_lab.cli import main\n"
        f"assert [main(call) for call in {calls}] == [0, 0, 0]\n"
        "import pyspark; assert pyspark.SparkContext._active_spark_context is None"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_a_lake_whose_data_was_moved_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = f"{tmp_path}/moved.ducklake"
    with dl.connect(f"ducklake:{path}", data_path=f"{tmp_path}/old/", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS FROM range(100)")
    (tmp_path / "old").rename(tmp_path / "new")
    call = ["sql", path, "SELECT count(*) AS n FROM t WHERE range > 1", "--format", "csv"]
    assert main([*call, "--data-path", f"{tmp_path}/new"]) == 0
    assert capsys.readouterr().out == "n\n98\n"


def test_answers_are_compared(lake: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    query = "SELECT i, s FROM t"
    assert main(["compare", lake, query, "2", "3"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [
        "SELECT i, s FROM t  snapshot 2 → 3",
        "0 deleted · 0 inserted · 1 updated · 1 unchanged · 1 cells changed",
    ]
    assert shown[-1] == "→  i=2  s=b→x⟨U+001B⟩[31m"
    assert main(["compare", lake, query, "-1", "--json", "--key", "i", "--html", f"{tmp_path}/page.html"]) == 1
    assert json.loads(capsys.readouterr().out)["summary"]["updated"] == 1
    assert (tmp_path / "page.html").exists()
    assert main(["compare", lake, "SELECT count(*) FROM t", "2"]) == 0
    assert main(["compare", lake, "SELECT dep FROM t", "2"]) == 2


def test_changes_of_an_answer_are_listed(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["when", lake, "SELECT max(s) FROM t WHERE i = 2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["snapshot_id"], row["answer"]) for row in found] == [(1, None), (2, "b"), (3, "x\x1b[31m")]
    assert main(["when", lake, "SELECT count(*) FROM t", "--start", "-1", "--monotonic"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 answer"
    assert main(["when", lake, "SELECT i FROM t", "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "first 1 of 2 answers"
    assert main(["when", lake, "SELECT random() FROM t"]) == 2
    assert main(["when", lake, "SELECT count(*) FROM t", "--start", "3", "--end", "1"]) == 2


def test_branches(lake: str, capsys: pytest.CaptureFixture[str]) -> None:
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        table = session.sql("SHOW TABLES").fetchall()[0][0]
        session.sql(f"CREATE TABLE b AS FROM {table} LIMIT 0; CREATE TABLE n AS SELECT i, 0 AS v FROM range(5) r(i)")
        session.branch("fix")
        session.sql("UPDATE n SET v = 1 WHERE i = 1")
        session.switch("fix")
        session.sql("UPDATE n SET v = 2 WHERE i IN (1, 2)")
    capsys.readouterr()
    assert main(["review", lake, "fix"]) == 1
    assert "main.n row 1 v (changed on both sides)" in capsys.readouterr().out
    assert main(["review", lake, "fix", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["conflicts_total"] == 1
    assert main(["merge", lake, "fix"]) == 1
    assert "main.n row 1 v (changed on both sides): 0 → 1 → 2" in capsys.readouterr().out
    assert main(["rebase", lake, "fix", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["conflicts"][0]["theirs"] == 2
    assert main(["merge", lake, "fix", "--preview", "--on-conflict", "theirs"]) == 0
    assert "changed main.n: 0 deleted, 0 inserted, 2 updated" in capsys.readouterr().out
    assert main(["merge", lake, "fix", "--on-conflict", "ours", "--message", "a fix"]) == 0
    assert capsys.readouterr().out.startswith("Merged as snapshot ")
    assert main(["merge", lake, "fix"]) == 0
    assert "nothing that is not merged" in capsys.readouterr().out
    assert main(["rebase", lake, "fix"]) == 0
    assert main(["review", lake, "fix", "--format", "markdown"]) == 0
    assert main(["review", lake, "nope"]) == 2


def test_revert(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["revert", lake, "3", "--preview"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "main.t  snapshot 3 → uncommitted"
    assert main(["revert", lake, "3", "--preview", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["updated"] == 1
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        session.sql("UPDATE t SET s = 'y\x1b[31m' WHERE i = 2")
    assert main(["revert", lake, "3"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("Snapshot 3 is not reverted: 1 conflict")
    assert shown[1] == "main.t row 1 s (changed since): b → x⟨U+001B⟩[31m → y⟨U+001B⟩[31m"
    assert main(["revert", lake, "3", "--json"]) == 1
    (conflict,) = json.loads(capsys.readouterr().out)["conflicts"]
    assert (conflict["row_id"], conflict["column"], conflict["base"]) == (1, "s", "b")
    assert main(["revert", lake, "3", "--on-conflict", "keep"]) == 0
    assert capsys.readouterr().out == "Nothing is left to take back, so that no snapshot was made.\n"
    assert main(["revert", lake, "3", "--on-conflict", "revert", "--json", "--message", "undo"]) == 0
    assert json.loads(capsys.readouterr().out) == {"snapshot": 5}
    assert main(["revert", lake, "99"]) == 2
    assert main(["revert", lake, "3", "--rows", "x"]) == 2
    assert "--rows takes row ids" in capsys.readouterr().err
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        assert session.sql("SELECT s FROM t WHERE i = 2").fetchall() == [("b",)]
        assert session.snapshots()[-1].message == "undo"


def test_blame_prints_who_set_the_cells(lake: str, capsys: pytest.CaptureFixture[str]):
    assert main(["blame", lake, "t", "--where", "i = 2", "--columns", "s", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["row_id"], row["column"], row["value"], row["previous"], row["snapshot_id"]) == (
        1,
        "s",
        "x\x1b[31m",
        "b",
        3,
    )
    assert main(["blame", lake, "t", "--at", "-1"]) == 0
    *rows, footer = capsys.readouterr().out.splitlines()
    assert (len(rows), footer.partition(" · ")[0]) == (7, "4 rows")
    assert footer.endswith("snapshot 2")
    assert main(["blame", lake, "t", "--where", "q = 2"]) == 2
    assert 'no column "q"' in capsys.readouterr().err


def test_check_exits_with_one_where_an_expectation_is_violated(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    lake = f"ducklake:{tmp_path}/checked.ducklake"
    with dl.connect(lake, data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t (v INTEGER); INSERT INTO t VALUES (1), (-1)")
        session.sql(
            "ALTER TABLE t EXPECT odd CHECK (v % 2 <> 0); ALTER TABLE t EXPECT big CHECK (v > 9) ON VIOLATION warn"
        )
        since = session.current_snapshot().snapshot_id
    assert main(["check", lake, "t", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["expectation"], row["outcome"], row["violations"]) for row in rows] == [
        ("big", "warned", 2),
        ("odd", "passed", 0),
    ]
    with dl.connect(lake, engine="duckdb") as session:
        session.sql("ALTER TABLE t EXPECT positive CHECK (v > 0)")
    assert main(["check", lake]) == 1
    assert "positive" in capsys.readouterr().out
    assert main(["check", lake, "t", "--since", str(since)]) == 0
    assert main(["check", lake, "nope"]) == 2
    with dl.connect(lake, engine="duckdb") as session:
        session.sql("CREATE VIEW w AS SELECT v + 1 AS more FROM t")
    capsys.readouterr()
    assert main(["lineage", lake, "t.v", "--json"]) == 0
    assert '"more"' in capsys.readouterr().out

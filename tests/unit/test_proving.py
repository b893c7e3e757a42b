"""Whole runs in parts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import proving
from tests.installed import ROOT


def test_what_passed_holds_in_one_state(tmp_path: Path) -> None:
    file = tmp_path / "proof"
    assert proving.begin(file, "first") == []
    with file.open("a") as more:
        more.write("1.50\ttests/a.py::test_a[x@y]\n0.10\ttests/a.py::test_b\n")
    assert proving.begin(file, "first") == ["tests/a.py::test_a[x@y]", "tests/a.py::test_b"]
    assert proving.seconds(file) == {"tests/a.py::test_a[x@y]": 1.5, "tests/a.py::test_b": 0.1}
    assert proving.begin(file, "second") == []
    assert proving.begin(file, "first") == []


def test_a_line_that_is_cut_is_no_test(tmp_path: Path) -> None:
    file = tmp_path / "proof"
    file.write_text("state\n1.50\ttests/a.py::test_a\n0.20\ttests/a.py::tes")
    assert proving.begin(file, "state") == ["tests/a.py::test_a"]
    assert file.read_text() == "state\n1.50\ttests/a.py::test_a\n"


def test_sources_are_the_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(proving, "ROOT", tmp_path)
    with pytest.raises(pytest.UsageError, match="checkout of git"):
        proving.state()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("ignored\n")
    states = [proving.state()]
    (tmp_path / "ignored").write_text("x")
    assert proving.state() == states[0]
    for content in ("a", "b"):
        (tmp_path / "source.py").write_text(content)
        states.append(proving.state())
    (tmp_path / "source.py").unlink()
    assert proving.state() == states[0]
    assert len(set(states)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--numprocesses", "2", "--dist", "loadgroup")], ids=["alone", "workers"])
def test_a_run_goes_on(workers: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--everything", *workers]
    command += ["--go-on", str(tmp_path / "proof"), "tests/unit/test_sampling.py", "-k"]

    def run(choice: str) -> str:
        return subprocess.run([*command, choice], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    first = "days_take_each_case or the_table_counts"
    assert "2 passed" in run(first)
    again = run(f"{first} or takes_the_same_again")
    assert "takes: everything but 2 tests that passed before" in again
    assert "1 passed" in again

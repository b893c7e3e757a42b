"""Commits of a notebook carry their author."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.magics import load
from ducklake_lab.magics.author import default_author


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell()
    load(shell)
    yield shell
    session = shell.magics_manager.registry["DuckLakeMagics"].session
    if session is not None:
        session.close()


def _authors(shell: InteractiveShell) -> list[str | None]:
    session = shell.magics_manager.registry["DuckLakeMagics"].session
    return [entry.info.author for entry in session.snapshots()][1:]


def test_the_environment_says_who(shell: InteractiveShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCKLAKE_LAB_AUTHOR", "Ann <ann@example.org>")
    shell.run_line_magic("ducklake", f"connect ducklake:{tmp_path}/lake.ducklake")
    shell.run_cell_magic("ducklake", "", "CREATE TABLE t (i INTEGER); BEGIN; INSERT INTO t VALUES (1); COMMIT")
    shell.run_cell_magic(
        "ducklake", "", "BEGIN; INSERT INTO t VALUES (2); CALL set_commit_message('Ben', 'mine'); COMMIT"
    )
    shell.run_line_magic("config", "DuckLakeMagics.author = 'Cleo'")
    shell.run_cell_magic("ducklake", "", "CALL merge_adjacent_files(); DELETE FROM t WHERE i = 1")
    shell.run_line_magic("config", "DuckLakeMagics.author = ''")
    shell.run_cell_magic("ducklake", "", "DELETE FROM t")
    shell.run_line_magic("config", "DuckLakeMagics.author = None")
    shell.run_cell_magic("ducklake", "", "DROP TABLE t")
    ann = "Ann <ann@example.org>"
    assert _authors(shell) == [ann, ann, "Ben", "Cleo", None, ann]


def test_git_says_it_else(tmp_path: Path) -> None:
    def ask(**environment: str) -> str | None:
        return default_author({"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path), **environment})

    assert ask(GIT_CONFIG_NOSYSTEM="1", GIT_DIR=str(tmp_path)) is None
    settings = tmp_path / ".gitconfig"
    subprocess.run(["git", "config", "--file", settings, "user.name", "Dora"], check=True)
    assert ask(GIT_DIR=str(tmp_path)) == "Dora"
    assert ask(GIT_AUTHOR_NAME="Eve") == "Eve"
    assert ask(GIT_AUTHOR_NAME="Eve", DUCKLAKE_LAB_AUTHOR="") is None
    assert default_author({"PATH": str(tmp_path)}) is None


def test_sessions_have_none_but_may(tmp_path: Path) -> None:
    asked = []

    def author() -> str:
        asked.append(1)
        return "Finn"

    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake") as session:
        session.sql("CREATE TABLE t (i INTEGER)")
        assert session.author is None
        session.author = author
        session.sql("FROM t")
        assert asked == []
        session.sql("INSERT INTO t VALUES (1)")
        with session.transaction(author="Gus"):
            session.sql("INSERT INTO t VALUES (2)")
        session.preview("DELETE FROM t").commit()
        session.author = "Hal"
        with session.appender("t") as appender:
            appender.append((3,))
        assert asked == [1]
        found = [entry.info.author for entry in session.snapshots()]
        assert found == [None, None, "Finn", "Gus", "Finn", "Hal"]

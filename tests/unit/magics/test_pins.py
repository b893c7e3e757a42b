"""Pins kept in a notebook's metadata: read at connect, handed to the page, and never read past in silence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import ducklake_lab as dl
from ducklake_lab.magics.ducklake import DuckLakeMagics
from ducklake_lab.magics.questions import Questions


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "report.ipynb"
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    return path


@pytest.fixture
def uri(lake_uri: Callable[..., str], tmp_path: Path) -> str:
    made = lake_uri()
    with dl.connect(made, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2)")
        session.tag("q3", 1)
    return made


@pytest.fixture
def start() -> Iterator[Callable[[], DuckLakeMagics]]:
    """Starts the magics of another kernel."""
    made: list[DuckLakeMagics] = []

    def new() -> DuckLakeMagics:
        magics = DuckLakeMagics(InteractiveShell(), engine="duckdb")
        made.append(magics)
        return magics

    yield new
    for magics in made:
        if magics.session is not None:
            magics.session.close()  # type: ignore[attr-defined]


def lake_of(magics: DuckLakeMagics) -> dict[str, Any]:
    """The lake as the page hears of it."""
    questions = Questions(lambda: {"": magics.session}, pins=magics.pins)  # type: ignore[dict-item]
    (lake,) = questions.ask("lakes", {})["lakes"]
    return dict(lake)


def save(notebook: Path, *pins: object) -> None:
    """Saves the notebook with pins, as the page does."""
    notebook.write_text(json.dumps({"cells": [], "metadata": {"ducklake": {"pins": list(pins)}}, "nbformat": 4}))


def rows(magics: DuckLakeMagics) -> int:
    return magics.ducklake("", "SELECT count(*) FROM t").fetchall()[0][0]


def test_a_pin_outlives_its_kernel(uri: str, notebook: Path, start: Callable[[], DuckLakeMagics]) -> None:
    first = start()
    first.ducklake(f"connect '{uri}' --alias lake")
    assert lake_of(first)["pin"] is None and rows(first) == 2
    first.ducklake("pin q3")
    lake = lake_of(first)
    assert lake["pin"] == {"at": "q3", "origin": "kernel"} and lake["travelling"] and rows(first) == 1
    save(notebook, {"lake": lake["id"], "alias": "lake", "at": "q3"}, "broken", {"lake": 1})
    second = start()
    second.ducklake(f"connect '{uri}' --alias lake")
    assert lake_of(second)["pin"] == {"at": "q3", "origin": "notebook"} and rows(second) == 1
    # unpinned: the page takes it away, and a further connect does not read the file's again
    second.ducklake("pin --off")
    assert lake_of(second)["pin"] == {"at": None, "origin": "kernel"} and rows(second) == 2
    second.ducklake("disconnect lake")
    second.ducklake(f"connect '{uri}' --alias lake")
    assert rows(second) == 2
    third = start()
    third.lake = uri
    assert rows(third) == 1  # the lake of the settings, attached by the first cell
    third.ducklake("disconnect")
    third.ducklake(f"connect '{uri}' --alias lake --no-pin")
    assert lake_of(third)["pin"] == {"at": None, "origin": "left out"} and rows(third) == 2


def test_a_pin_that_the_lake_lacks_connects_nothing(
    uri: str, notebook: Path, start: Callable[[], DuckLakeMagics]
) -> None:
    first = start()
    first.ducklake(f"connect '{uri}' --alias lake")
    identity = lake_of(first)["id"]
    save(notebook, {"lake": identity, "alias": "lake", "at": "gone"})
    second = start()
    with pytest.raises(dl.SnapshotNotFoundError, match=r'pins lake at "gone".*--no-pin'):
        second.ducklake(f"connect '{uri}' --alias lake")
    assert second.session is None or not list(second.session.lakes)
    # pins of other lakes, and a snapshot that is named, are other matters
    save(notebook, {"lake": "another", "alias": "lake", "at": "gone"})
    second.ducklake(f"connect '{uri}' --alias lake")
    assert rows(second) == 2
    save(notebook, {"lake": identity, "alias": "lake", "at": "gone"})
    third = start()
    third.ducklake(f"connect '{uri}' --alias lake --at 1")
    assert rows(third) == 1 and lake_of(third)["pin"] is None


def test_a_page_hands_over_a_pin_that_was_not_saved(
    uri: str, notebook: Path, start: Callable[[], DuckLakeMagics]
) -> None:
    magics = start()
    magics.ducklake(f"connect '{uri}' --alias lake")
    questions = Questions(lambda: {"": magics.session}, pins=magics.pins)  # type: ignore[dict-item]
    assert questions.ask("pin", {"alias": "lake", "at": "q3"}) == {"pinned": "q3"}
    assert rows(magics) == 1 and lake_of(magics)["pin"] == {"at": "q3", "origin": "notebook"}
    for at in ("1", "q3"):
        with pytest.raises(dl.UsageError, match="not taken over"):
            questions.ask("pin", {"alias": "lake", "at": at})
    magics.ducklake("pin --off")
    with pytest.raises(dl.SnapshotNotFoundError):
        questions.ask("pin", {"alias": "lake", "at": "gone"})
    assert rows(magics) == 2


@pytest.mark.parametrize("text", ["", "[1]", '{"metadata": 1}', '{"metadata": {"ducklake": {"pins": {}}}}'])
def test_a_notebook_that_cannot_be_read_pins_nothing(
    uri: str, notebook: Path, start: Callable[[], DuckLakeMagics], text: str
) -> None:
    notebook.write_text(text)
    magics = start()
    magics.ducklake(f"connect '{uri}' --alias lake")
    assert rows(magics) == 2

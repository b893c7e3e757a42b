"""The README's animation: it is small, it has every step, and its notebook has the cells that it shows."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Characters of a line of code that the pictures have room for.
ROOM = 120


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    try:
        specification = importlib.util.spec_from_file_location("make_animation", DOCS / "make_animation.py")
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        sys.modules[specification.name] = module  # its dataclasses look for it there
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS))
    return module


def test_every_step_is_a_cell_of_the_notebook_and_fits(script: ModuleType) -> None:
    cells = {cell["id"]: cell for cell in json.loads(script.NOTEBOOK.read_text(encoding="utf-8"))["cells"]}
    assert {*(step.cell for step in script.STEPS), *script.LEFT_OUT} <= cells.keys()
    shown = [cell for cell in script.story() if cell["cell_type"] == "code" and cell["id"] != "file"]
    lines = [line for cell in shown for line in "".join(cell["source"]).splitlines()]
    assert [line for line in lines if len(line) > ROOM] == []
    captions = [cell["source"] for cell in script.story() if cell["cell_type"] == "markdown"]
    assert captions == [f"### {number} · {step.caption}" for number, step in enumerate(script.STEPS, 1)]


def test_animation_is_small_and_has_a_picture_of_each_state(script: ModuleType) -> None:
    path = script.IMAGES / "undo.webp"
    assert path.stat().st_size < 1_500_000
    with Image.open(path) as image:
        states = sum(1 + bool(step.queries) + bool(step.queries_after) for step in script.STEPS)
        assert image.n_frames == states  # type: ignore[attr-defined]
        assert image.width >= 1_000
        image.seek(0)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"!\[[^\]]{40,}\]\(docs/images/undo\.webp\)", text)) == 1

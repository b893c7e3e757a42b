"""The page on the architecture names modules that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The cells of each row of the first table below a line that starts so."""
    _, _, rest = PAGE.partition(f"\n{heading}")
    lines = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    assert lines is not None
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines[0].splitlines()[2:]]


@pytest.mark.parametrize("row", table("## Where a change goes"), ids=lambda row: row[0])
def test_a_change_goes_where_something_is(row: list[str]) -> None:
    paths = [name for name in re.findall(r"`([\w/.]+)`", row[1]) if "/" in name]
    assert paths
    for path in paths:
        assert (ROOT / "ducklake_lab" / path).exists() or (ROOT / path).exists(), path


def test_every_layer_and_room_is_a_folder_or_module() -> None:
    names = [name for row in (*table("## Layers"), *table("Two layers have rooms")) for name in row[0].split(", ")]
    assert len(names) > 20
    for name in (name.strip("`").removesuffix("/*.py") for name in names):
        assert (ROOT / "ducklake_lab" / name).is_dir() or (ROOT / "ducklake_lab" / f"{name}.py").is_file(), name

"""Outputs of one notebook that was executed twice: which cells' differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ducklake_lab.redaction import hide

#: Forms of an output, richest first. The first that an output has is compared and shown.
FORMS = (
    "image/png",
    "image/jpeg",
    "image/svg+xml",
    "text/html",
    "text/markdown",
    "text/latex",
    "application/json",
    "text/plain",
)
#: The line below a table of this package, with times and files; its elements' names; the snapshot that it shows; addresses
#: of objects.
_FOOT = re.compile(r'<div class="dlk-foot">.*?</div>', re.DOTALL)
_NAMES = re.compile(r"\bducklake-[0-9a-f]{12}\b")
_SNAPSHOT = re.compile(r"(?<=>)snapshot \d+ · ")
_PINNED = re.compile(r"(?: · )?pinned at [^·<\n]*")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_OURS = 'class="dlk'


@dataclass(frozen=True, slots=True)
class Shown:
    """An output in one form: a MIME type, and the text, or Base64 of an image."""

    form: str
    text: str


@dataclass(frozen=True, slots=True)
class CellOutputs:
    """The outputs of a cell at both snapshots.

    Attributes:
        number: counts the code cells, from 1.
        before, after: its outputs; None where the cell did not run.
    """

    number: int
    source: str
    before: tuple[Shown, ...] | None
    after: tuple[Shown, ...] | None

    @property
    def differs(self) -> bool:
        """Whether the outputs differ in more than times, files, and the name of the snapshot."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        return [_compared(one) for one in self.before] != [_compared(one) for one in self.after]


def compare_outputs(before: Any, after: Any) -> list[CellOutputs]:
    """Returns the outputs of each code cell of a notebook that was executed twice."""
    pairs = zip(_code(before), _code(after), strict=True)
    return [
        CellOutputs(number, hide(str(one.source)), _outputs(one), _outputs(other))
        for number, (one, other) in enumerate(pairs, start=1)
    ]


def _code(document: Any) -> list[Any]:
    return [cell for cell in document.cells if cell.cell_type == "code"]


def _outputs(cell: Any) -> tuple[Shown, ...] | None:
    if cell.get("execution_count") is None and not cell.outputs and cell.source.strip():
        return None
    return tuple(_joined(_shown(output) for output in cell.outputs))


def _shown(output: Mapping[str, Any]) -> Shown | None:
    """Returns an output as it is compared; None for what says nothing about data: warnings, progress."""
    kind = output["output_type"]
    if kind == "stream":
        return Shown("text/plain", _text(output["text"])) if output["name"] == "stdout" else None
    if kind == "error":
        return Shown("text/plain", f"{output['ename']}: {output['evalue']}")
    data = output["data"]
    form = next((form for form in FORMS if form in data), None)
    if form is None:
        other = {name: value for name, value in data.items() if "widget" not in name}
        return Shown("application/json", json.dumps(other, sort_keys=True)) if other else None
    value = data[form]
    return Shown(form, _text(value) if not form.endswith("json") else json.dumps(value, sort_keys=True, indent=1))


def _text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def _joined(shown: Iterator[Shown | None]) -> Iterator[Shown]:
    """Yields outputs; printed texts in a row are one, as the kernel divides them by chance."""
    last: Shown | None = None
    for one in shown:
        if one is None:
            continue
        if last is not None and last.form == one.form == "text/plain":
            last = Shown("text/plain", last.text + one.text)
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def _compared(shown: Shown) -> Shown:
    """Returns an output without what differs from run to run."""
    if not shown.form.startswith("text/"):
        return shown
    text = shown.text
    if _OURS in text:
        for pattern in (_FOOT, _NAMES, _SNAPSHOT):
            text = pattern.sub("", text)
    return Shown(shown.form, _ADDRESS.sub("0x", _PINNED.sub("", text)))

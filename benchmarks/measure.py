"""Paired measurements: two ways of doing the same, by turns in one run, so that the machine's mood hits both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Comparison:
    """Times in seconds, one per round.

    `ratio` is the median over the rounds of ours / theirs: above 1, ours is slower.
    """

    name: str
    baseline: str
    ours: list[float]
    theirs: list[float]

    @property
    def ratios(self) -> list[float]:
        return sorted(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": self.ratio}


def compare(
    name: str, baseline: str, ours: Callable[[], object], theirs: Callable[[], object], rounds: int
) -> Comparison:
    """Runs both once to warm up, then in each round one after the other, the first one changing."""
    for run in (theirs, ours):
        run()
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    order = [("ours", ours), ("theirs", theirs)]
    for _ in range(rounds):
        for key, run in order:
            started = time.perf_counter()
            run()
            times[key].append(time.perf_counter() - started)
        order.reverse()
    return Comparison(name, baseline, times["ours"], times["theirs"])


def table(comparisons: list[Comparison]) -> str:
    """The comparisons as Markdown."""
    lines = [
        "| what | compared with | ours | theirs | ratio | lowest to highest |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for c in comparisons:
        ours, theirs = _seconds(statistics.median(c.ours)), _seconds(statistics.median(c.theirs))
        spread = f"{c.ratios[0]:.2f} to {c.ratios[-1]:.2f}"
        lines.append(f"| {c.name} | {c.baseline} | {ours} | {theirs} | **{c.ratio:.2f}** | {spread} |")
    return "\n".join(lines)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"

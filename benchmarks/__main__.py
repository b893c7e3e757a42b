"""Measures, prints a table of ratios, writes JSON and draws it: `python -m benchmarks --plot docs/images`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import ratios
from benchmarks.cases import run
from benchmarks.measure import table
from ducklake_lab import __version__


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measures ratios, by turns in one run.")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows, three rounds")
    parser.add_argument("--scale", type=float, default=None, help="TPC-H scale; default: 1, with --quick 0.05")
    parser.add_argument("--rounds", type=int, default=None, help="default: 5, with --quick 3")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/<time>.json")
    parser.add_argument("--plot", type=Path, metavar="FOLDER", help="a folder for pictures of ratios; needs Chromium")
    parser.add_argument("--results", type=Path, metavar="FILE", help="draw these results; measure nothing")
    options = parser.parse_args()
    if options.results is not None:
        if options.plot is None:
            parser.error("--results needs --plot")
        ratios.draw(ratios.load(options.results), options.plot)
        return
    scale = options.scale if options.scale is not None else 0.05 if options.quick else 1.0
    rounds = options.rounds if options.rounds is not None else 3 if options.quick else 5
    started = datetime.now(UTC)
    results = []
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        for comparison in run(Path(folder), scale, rounds):
            print(f"{comparison.name}: {comparison.ratio:.2f} x {comparison.baseline}", flush=True)
            results.append(comparison)
    print(f"\nTPC-H scale {scale:g}, median of {rounds} rounds, {os.cpu_count()} cores\n")
    print(table(results))
    output = options.output or Path("benchmarks/results") / f"{started:%Y%m%d-%H%M%S}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    packages = ("pyspark", "duckdb", "pyarrow")
    report = {
        "time": started.isoformat(timespec="seconds"),
        "scale": scale,
        "rounds": rounds,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {"ducklake-lab": __version__, **{name: version(name) for name in packages}},
        "comparisons": [comparison.to_dict() for comparison in results],
    }
    output.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\n{output}")
    if options.plot is not None:
        ratios.draw(results, options.plot)


if __name__ == "__main__":
    main()

"""Writes docs/corpus.md of what a runner of sqllogictest files reported: a table per folder, and why files fail.

    python slt.py run --suite SUITE --backend tests.corpus.backend:Lab --path . --json RESULTS.json
    python -m tests.corpus.table RESULTS.json [MORE.json ...] > docs/corpus.md

Where a file is in several of the results, the last one counts.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

_REASONS = Path(__file__).with_name("reasons.txt")
_HEAD = """# Compatibility by the reference's own tests

The `ducklake` extension comes with sqllogictest files. They run on a session as they are, on Spark, one statement after
the other; each row of each result is compared. *Unsupported* are files in which a statement is refused by name; *failed*
are those in which a result differs; *skipped* are those that need what is not there, such as an extension to download.
Files that were not run are not counted. This page is made by `python -m tests.corpus.table` of a runner's report.
"""


def main() -> None:
    """Prints the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.table", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="JSON reports of the runner")
    files: dict[str, dict[str, Any]] = {}
    for path in parser.parse_args().results:
        files.update({file["file"]: file for file in json.loads(path.read_text())["files"]})
    print(page(list(files.values()), reasons()))


def reasons() -> dict[str, str]:
    """Return the reasons of failing files, by path."""
    found = {}
    for line in _REASONS.read_text().splitlines():
        path, _, reason = line.partition(" # ")
        if path.strip():
            found[path.strip()] = reason.strip()
    return found


def page(files: list[dict[str, Any]], why: dict[str, str]) -> str:
    """The page of some files' outcomes."""
    by_folder: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for file in files:
        by_folder[_folder(file["file"])][verdict(file)] += 1
    verdicts = ("passed", "failed", "unsupported", "skipped")
    lines = [_HEAD, f"| folder | {' | '.join(verdicts)} |", "|---|---:|---:|---:|---:|"]
    for folder, counts in sorted(by_folder.items()):
        lines.append(f"| {folder} | {' | '.join(str(counts[one]) for one in verdicts)} |")
    total: Counter[str] = sum(by_folder.values(), Counter())
    lines.append(f"| **all** | {' | '.join(f'**{total[one]}**' for one in verdicts)} |")
    left = sorted((file for file in files if verdict(file) in ("failed", "unsupported")), key=lambda file: file["file"])
    lines += ["", "## Files that do not pass", "", "| file | line | |", "|---|---:|---|"]
    for file in left:
        path = file["file"].removeprefix("test/sql/")
        told = why.get(path, "not looked into yet")
        lines.append(f"| `{path}` | {file['line'] or ''} | {verdict(file)}: {told} |")
    return "\n".join(lines)


def verdict(file: dict[str, Any]) -> str:
    """Name the outcome of a file."""
    if file["outcome"] in ("pass", "skip"):
        return "passed" if file["outcome"] == "pass" else "skipped"
    return "unsupported" if str(file["message"]).startswith("Unsupported:") else "failed"


def _folder(path: str) -> str:
    parts = path.removeprefix("test/sql/").split("/")
    return parts[0] if len(parts) > 1 else "(top)"


if __name__ == "__main__":
    main()

"""Size of an installation, and CPU time of importing it: `python -m benchmarks.footprint`."""

from __future__ import annotations

import re
import resource
import statistics
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution

PACKAGE = "ducklake-lab"
RUNS = 5
#: What is timed, each in a fresh interpreter; the first is what every other includes.
STEPS = {
    "an interpreter": "pass",
    "import ducklake_lab": "import ducklake_lab",
    "%load_ext ducklake_lab": "import ducklake_lab.magics",
    "dl.connect": "from ducklake_lab.session import connect",
}


def requirements(package: str = PACKAGE) -> set[str]:
    """The names of a package and all that it requires, extras left out, as far as they are installed."""
    found: set[str] = set()
    waiting = [package]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            required = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # for another platform or Python
        found.add(name)
        names = (re.match(r"[\w.-]+", text) for text in required if "extra ==" not in text)
        waiting += [match[0] for match in names if match]
    return found


def size(package: str) -> int:
    """Bytes of a package's files; of an editable installation, those that lead to its sources."""
    paths = (path.locate() for path in distribution(package).files or [])
    return sum(path.stat().st_size for path in paths if path.is_file())  # type: ignore[attr-defined]


def seconds(code: str) -> float:
    """The median CPU time of a fresh interpreter that runs the code; it does not depend on what else the machine does."""
    taken = []
    for _ in range(RUNS):
        started = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime)
    return statistics.median(taken)


def main() -> None:
    sizes = {package: size(package) for package in requirements()}
    own = sizes.pop(PACKAGE)
    print(
        f"installed size   {PACKAGE} {own / 1e6:.1f} MB, {len(sizes)} requirements {sum(sizes.values()) / 1e6:.0f} MB"
    )
    for package, count in sorted(sizes.items(), key=lambda item: -item[1])[:8]:
        print(f"  {package:<24}{count / 1e6:8.1f} MB")
    base = seconds(STEPS["an interpreter"])
    print(f"CPU time         median of {RUNS}, {base * 1000:.0f} ms of the interpreter taken off")
    for name, code in STEPS.items():
        if code != "pass":
            print(f"  {name:<24}{(seconds(code) - base) * 1000:8.0f} ms")


if __name__ == "__main__":
    main()

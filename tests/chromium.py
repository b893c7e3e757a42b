"""Path of the system's Chromium: the one search of the tests, the benchmarks and the documentation's scripts."""

from __future__ import annotations

import shutil

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    """Its path; None where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def required() -> str:
    """Its path; ends the program where there is none."""
    found = find()
    if found is None:
        raise SystemExit("No Chromium found; install it with the system's package manager.")
    return found

"""Who the commits of a notebook are by, where nobody says it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

#: The author by name; empty for none.
VARIABLE = "DUCKLAKE_LAB_AUTHOR"


def default_author(environment: Mapping[str, str] = os.environ) -> str | None:
    """The author that the environment names, else the one that Git is configured with; None for neither."""
    for variable in (VARIABLE, "GIT_AUTHOR_NAME"):
        if variable in environment:
            return environment[variable].strip() or None
    try:
        found = subprocess.run(
            ["git", "config", "user.name"],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None  # there is no Git, or it does not answer
    return found.stdout.strip() or None

"""The default author of a notebook's commits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

#: Environment variable with the author; empty for none.
VARIABLE = "DUCKLAKE_LAB_AUTHOR"


def default_author(environment: Mapping[str, str] = os.environ) -> str | None:
    """Returns the author from the environment, else from Git's configuration; None without either."""
    for variable in (VARIABLE, "GIT_AUTHOR_NAME"):
        if variable in environment:
            return environment[variable].strip() or None
    try:
        git = subprocess.run(
            ["git", "config", "user.name"],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None  # Git is missing, or does not answer
    return git.stdout.strip() or None

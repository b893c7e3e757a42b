"""Names that `import ducklake_lab as dl` offers."""

from __future__ import annotations

import subprocess
import sys

import ducklake_lab as dl


def test_dir_lists_what_is_public_and_nothing_else() -> None:
    # in a process of its own: what was imported before must not matter
    shown = subprocess.run(
        [sys.executable, "-c", "import ducklake_lab as dl; print(*dir(dl))"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert shown == sorted(dl.__all__)
    assert {"connect", "Session", "Diff", "DuckLakeError", "__version__"} <= set(shown)
    assert not {"Any", "hooks", "did_you_mean", "annotations"} & set(shown)
    assert all(hasattr(dl, name) for name in shown)

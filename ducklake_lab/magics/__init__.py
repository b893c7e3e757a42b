"""The notebook's magics; `load` is what `%load_ext ducklake_lab` calls."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from ducklake_lab.magics.ducklake import DuckLakeMagics

__all__ = ["DuckLakeMagics", "load"]


def load(shell: InteractiveShell) -> DuckLakeMagics:
    """Registers `%ducklake` and `%%ducklake`; loading again keeps the session that is open."""
    registered = shell.magics_manager.registry.get("DuckLakeMagics")
    if isinstance(registered, DuckLakeMagics):
        return registered
    magics = DuckLakeMagics(shell)
    shell.register_magics(magics)
    return magics

"""The notebook's magics; `%load_ext ducklake_lab` calls `load`."""

from __future__ import annotations

from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from ducklake_lab.magics import sidebar
from ducklake_lab.magics.completion import register
from ducklake_lab.magics.ducklake import DuckLakeMagics
from ducklake_lab.magics.settings import project_settings
from ducklake_lab.magics.streams import StreamCells

__all__ = ["DuckLakeMagics", "load"]


def load(shell: InteractiveShell) -> DuckLakeMagics:
    """Registers `%ducklake` and `%%ducklake`; a second call keeps the open session."""
    registered = shell.magics_manager.registry.get("DuckLakeMagics")
    if isinstance(registered, DuckLakeMagics):
        return registered
    trait_names = list(DuckLakeMagics.class_trait_names(config=True))
    configured = shell.config.get("DuckLakeMagics", {})
    settings = project_settings(Path.cwd(), trait_names)
    # IPython's own configuration has priority.
    magics = DuckLakeMagics(shell, **{name: value for name, value in settings.items() if name not in configured})
    shell.register_magics(magics)
    register(shell, magics.completer)
    cells = magics.read_variables.cells
    comm = sidebar.start(shell, lambda: magics.session, magics.named_connections, magics.pins, cells)
    if hasattr(shell, "kernel"):
        StreamCells(shell, magics.spark_sessions)
    if comm is not None:
        magics.on_running = comm.show_running
    return magics

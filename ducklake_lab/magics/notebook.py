"""The origin of a cell: the notebook's name and the cell's number."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: The path of the notebook; Jupyter's server sets it for its kernels.
_JUPYTER = "JPY_SESSION_NAME"
#: The path of the notebook in VS Code, a variable of the notebook.
_VS_CODE = "__vsc_ipynb_file__"


def place_of(shell: InteractiveShell, environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Returns the notebook's file name, without folders, and the execution number, each if known."""
    path = _path(shell, environment)
    name = (PureWindowsPath if "\\" in path else PurePath)(path).name if isinstance(path, str) else None
    # newer releases of IPython count a cell before it runs, older ones afterwards
    return {"notebook": name or None, "cell": shell.displayhook.prompt_count}


def path_of(shell: InteractiveShell, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Returns the notebook's file; None where its place is not known, or is no place on this machine."""
    path = _path(shell, environment)
    absolute = Path(path) if isinstance(path, str) else None
    return absolute if absolute is not None and absolute.is_absolute() else None


def _path(shell: InteractiveShell, environment: Mapping[str, str]) -> object:
    return environment.get(_JUPYTER) or shell.user_ns.get(_VS_CODE)

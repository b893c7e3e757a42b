"""Where a cell runs: the notebook's name and the cell's number."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath, PureWindowsPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: The path of the notebook, set by Jupyter's server for the kernels that it starts.
_JUPYTER = "JPY_SESSION_NAME"
#: The same of VS Code, among the notebook's variables.
_VS_CODE = "__vsc_ipynb_file__"


def place_of(shell: InteractiveShell, environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """The name of the notebook's file, without its folders, and the number of the execution; what is known of them."""
    path = environment.get(_JUPYTER) or shell.user_ns.get(_VS_CODE)
    name = (PureWindowsPath if "\\" in path else PurePath)(path).name if isinstance(path, str) else None
    # newer releases of IPython count a cell before it runs, older ones afterwards
    return {"notebook": name or None, "cell": shell.displayhook.prompt_count}

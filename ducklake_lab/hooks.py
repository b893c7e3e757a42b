"""Names through which lower layers reach drawing functions of higher ones.

A diff knows its data and not how it is drawn, yet `diff.plot()` should work. It asks for the hook "diff.plot",
which the package maps to a function; the module that holds it is imported on first use, never before.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_targets: dict[str, str] = {}


def register(name: str, target: str) -> None:
    """Binds a name to `module:function`."""
    _targets[name] = target


def hook(name: str) -> Callable[..., Any]:
    """The function registered under the name."""
    module, _, attribute = _targets[name].partition(":")
    function: Callable[..., Any] = getattr(import_module(module), attribute)
    return function

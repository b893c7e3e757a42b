"""Errors of classes that read lakes say what is wrong with a damaged catalog."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

_Reader = TypeVar("_Reader", bound=type)


def explains_damage(reader: _Reader) -> _Reader:
    """A class whose public methods read the lakes in `self._lakes`: their errors are those of `Lakes.explaining`."""

    def explained(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self._lakes.explaining():
                return method(self, *args, **kwargs)

        return run

    for name, member in list(vars(reader).items()):
        if name.startswith("_") or hasattr(member, "__wrapped__"):
            continue  # what has a decorator of its own sees to it itself
        if isinstance(member, FunctionType):
            setattr(reader, name, explained(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(reader, name, property(explained(member.fget), member.fset))
    return reader

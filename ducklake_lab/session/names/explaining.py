"""Wraps public methods of classes that work with lakes: one thread at a time, errors of damaged catalogs explained."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from ducklake_lab.session.names.argument_types import naming_misfits

_Worker = TypeVar("_Worker", bound=type)
_Getter = TypeVar("_Getter", bound=Callable[..., Any])
_AT_ONCE = "answers_at_once"


def at_once(getter: _Getter) -> _Getter:
    """Marks a getter or method that neither reads nor changes lakes; it answers while another thread works."""
    setattr(getter, _AT_ONCE, True)
    return getter


def works_on_lakes(worker: _Worker) -> _Worker:
    """Runs the public methods of a class that has `self._lakes` within `Lakes.working`."""

    def working(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            with naming_misfits(method, self, *args, **kwargs), self._lakes.working():
                return method(self, *args, **kwargs)

        return run

    for name, member in list(vars(worker).items()):
        if name.startswith("_") or hasattr(member, "__wrapped__"):
            continue  # a member with a decorator takes the turn in its own way
        if isinstance(member, FunctionType):
            if not hasattr(member, _AT_ONCE):
                setattr(worker, name, working(member))
        elif isinstance(member, property) and member.fget is not None and member.fset is None:
            # a property with a setter concerns the session only, no lake
            if not hasattr(member.fget, _AT_ONCE):
                setattr(worker, name, property(working(member.fget)))
    return worker

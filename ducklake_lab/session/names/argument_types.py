"""Arguments of public methods whose type does not fit, found after an error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ducklake_lab.errors import DuckLakeError, UsageError

#: Errors of Python for a value of a wrong type.
_OF_PYTHON = (TypeError, AttributeError, ValueError)


@contextmanager
def naming_misfits(method: Callable[..., Any], *args: object, **kwargs: object) -> Iterator[None]:
    """Explains an error of Python in the block by the argument whose type does not fit its annotation.

    Raises:
        UsageError: an argument of this call does not fit.
    """
    try:
        yield
    except _OF_PYTHON as error:
        said = None if isinstance(error, DuckLakeError) else _misfit(method, args, kwargs)
        if said is None:
            raise
    else:
        return
    # not while the error is handled: its frames may show a secret
    raise UsageError(said)


def _misfit(method: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]) -> str | None:
    try:
        given = inspect.signature(method).bind(*args, **kwargs).arguments
    except TypeError:
        return None  # the error names the arguments
    for name, value in given.items():
        annotation = method.__annotations__.get(name)
        if annotation is None or _fits(value, evaluated := _evaluated(annotation, method)):
            continue
        return f"{method.__name__}(… {name} …) takes {_shown(annotation, evaluated)}, not {type(value).__name__}."
    return None


def _evaluated(annotation: object, method: Callable[..., Any]) -> object:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, method.__globals__)
    except (NameError, AttributeError, TypeError):
        return Any  # a name in it is there for the type checker alone


def _shown(annotation: object, evaluated: object) -> str:
    """Return an annotation as text; an alias such as `At` becomes the types that it names."""
    if not isinstance(evaluated, UnionType) or not str(annotation).removesuffix(" | None").isidentifier():
        return str(annotation)
    return " | ".join(
        "None" if part is NoneType else getattr(part, "__name__", str(part)) for part in get_args(evaluated)
    )


def _fits(value: object, annotation: object) -> bool:
    """Return whether a value may have a type; True where that cannot be seen."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is None:
        return value is None
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts if isinstance(value, str | int | NoneType) else False
    if annotation is float:
        return isinstance(value, float | int)
    kind = origin if isinstance(origin, type) else annotation
    if annotation is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if not isinstance(value, kind) or (origin is not None and isinstance(value, str | bytes)):
        return False
    if issubclass(kind, Mapping) or not parts or not isinstance(value, list | tuple | set | frozenset):
        return True
    return all(_fits(each, parts[0]) for each in value)


def texts(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Returns the texts of an argument that takes several, where one text stands for itself."""
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)

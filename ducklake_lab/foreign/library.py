"""The packages that know other formats, and the places of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from ducklake_lab.errors import DuckLakeError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_local

_PACKAGES = {"delta": ("Delta", "deltalake"), "iceberg": ("Iceberg", "pyiceberg")}


def module(extra: str, name: str) -> Any:
    """Import a module of an optional package.

    Raises:
        UnsupportedFeatureError: it is not installed; the text names the extra.
    """
    format_name, package = _PACKAGES[extra]
    try:
        return import_module(name)
    except ImportError:
        raise UnsupportedFeatureError(
            f'{format_name} tables need the package {package}; run: pip install "ducklake-lab[{extra}]".'
        ) from None


@contextmanager
def worded(say: Callable[[str], DuckLakeError]) -> Iterator[None]:
    """Raises errors of such a package anew, in one line; panics of its Rust parts are no `Exception`.

    Args:
        say: returns the error for the first line of the package's.
    """
    try:
        yield
    except (DuckLakeError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - raised anew
        raise say(_first_line(error)) from None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".")[:300] if lines else type(error).__name__


def local_path(location: str, title: str, *, quoted: bool = False) -> str:
    """Return the path of a file that a table names.

    Args:
        quoted: the location is a percent-encoded URI.

    Raises:
        UnsupportedFeatureError: it is not on this machine's disks.
    """
    text = location
    if text.startswith("file:"):
        text = text.removeprefix("file:")
        text = "/" + text.lstrip("/")
    if not is_local(text):
        raise UnsupportedFeatureError(
            f"Adding {title} is not supported: {location} is not on this machine's disks; read it with Spark and write its rows."
        )
    return unquote(text) if quoted else text

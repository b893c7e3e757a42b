"""Paths of files: which filesystem has them, where links lead, and how they look elsewhere.

Paths are absolute local paths or URLs (`s3://bucket/key`), with `/` and without percent-encoding, as the catalog
stores them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from urllib.parse import quote

from ducklake_lab.filesystems import OBJECTS, URL

#: Characters that java.net.URI leaves alone in a path, beside letters and digits.
_URI_SAFE = "_-!.~'()*:@&=+$,;/"
#: Characters that it quotes: beyond ASCII only blanks (categories Z*) and control characters.
_QUOTED = re.compile(rf"[^{re.escape(_URI_SAFE)}A-Za-z0-9\u00a0-\U0010ffff]|\s")


def is_local(path: str) -> bool:
    """Return whether a path is on this machine's filesystem, where files can be moved by renaming."""
    match = URL.fullmatch(path)
    return match is None or match[1] == "file"


def is_object(path: str) -> bool:
    """Return whether a path is in an object store, which has no folders and no renaming."""
    match = URL.fullmatch(path)
    return match is not None and match[1].lower() in OBJECTS


def is_same_store(path: str, other: str) -> bool:
    """Whether one filesystem has both paths, so that it can copy from one to the other."""
    schemes = [match[1].lower() if (match := URL.fullmatch(one)) is not None else "file" for one in (path, other)]
    return schemes[0] == schemes[1]


def real_path(path: str) -> str:
    """The path that a local path's symbolic links lead to; URLs of other filesystems as they are."""
    return os.path.realpath(path.removeprefix("file://")) if is_local(path) else path


class RealPaths:
    """The real paths of many files; the folders of a statement's files are looked at once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return the path as `real_path` does."""
        if not is_local(path):
            return path
        folder, name = os.path.split(path.removeprefix("file://"))
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        joined = os.path.join(self._folders[folder], name) if name else self._folders[folder]
        return real_path(path) if name in (".", "..") or os.path.islink(joined) else joined


def is_below(path: str, folder: str, real: Callable[[str], str] = real_path) -> bool:
    """Return whether a path is inside of a folder: by its text, without `..`, and where symbolic links on its way lead.

    Args:
        real: a function that gives real paths.
    """
    base = folder.rstrip("/") + "/"
    rest = path[len(base) :]
    if not (path.startswith(base) and rest and ".." not in rest.split("/")):
        return False
    return real(path).startswith(real(base).rstrip("/") + "/")


def join(folder: str, relative: str) -> str:
    """A path below a folder, with one `/` between them."""
    return f"{folder.rstrip('/')}/{relative.lstrip('/')}" if relative else folder


def hadoop_uri(path: str) -> str:
    """The path as Spark's `_metadata.file_path` shows it, e.g. `file:/tmp/a%20b` for `/tmp/a b`.

    java.net.URI makes the same of an unencoded path: everything is quoted but unreserved characters, some
    punctuation, and letters outside ASCII; `%` always is.
    """
    match = URL.fullmatch(path)
    if match is None or match[1] == "file":
        local = path if match is None else match[2]
        return "file:" + _quote(_collapse(local if local.startswith("/") else "/" + local))
    authority, slash, key = match[2].partition("/")
    return f"{match[1]}://{authority}{_quote(_collapse(slash + key))}"


def _collapse(path: str) -> str:
    """Without repeated or trailing slashes, as Hadoop normalises paths."""
    collapsed = re.sub(r"/{2,}", "/", path)
    return collapsed.rstrip("/") if len(collapsed) > 1 else collapsed


def _quote(path: str) -> str:
    return _QUOTED.sub(lambda match: quote(match[0], safe=""), path)

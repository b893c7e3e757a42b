"""Filesystems of paths, by pyarrow, and their errors in one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
from pyarrow import fs

from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.object_access import S3Access, access_to

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
#: Schemes of object stores; Hadoop's names for S3 mean the same objects.
S3 = ("s3", "s3a", "s3n")
OBJECTS = (*S3, "gs", "gcs")
#: Text of the AWS SDK about a request.
_AWS = re.compile(
    r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))? during (?P<operation>\w+) operation"
    r"(?: \(HTTP status (?P<later>\d+)\))?: (?P<text>.*)"
)
#: Text of Google's client about a request, with the store's own message.
_GOOGLE = re.compile(
    r"google::cloud::Status\((?P<code>\w+): (?:.*with a last message of )?(?P<text>.*?) error_info=", re.DOTALL
)
#: Text of pyarrow about a stream that is closed, as that of a file is that Google's store refuses.
_CLOSED = "I/O operation on closed file"
#: Characters of a reason that are shown.
_WIDTH = 300


def resolve(path: str) -> tuple[fs.FileSystem, str, str]:
    """(filesystem, what comes before a path of it in our paths, the path on it).

    Raises:
        UnsupportedFeatureError: pyarrow has no filesystem of that scheme.
        DataFileError: it cannot be reached.
    """
    match = URL.fullmatch(path)
    if match is None or match[1] == "file":
        inner = path if match is None else match[2]
        return _connect("file", ""), "" if match is None else "file://", inner
    scheme, rest = match[1].lower(), match[2]
    kind = "s3" if scheme in S3 else scheme
    if kind in OBJECTS:
        access = access_to(f"s3://{rest}") if kind == "s3" else None
        return _connect(kind, rest.partition("/")[0], access), f"{match[1]}://", rest
    authority, slash, inner = rest.partition("/")
    return _connect(kind, authority), f"{match[1]}://{authority}", slash + inner


@contextmanager
def saying(path: str, what: str) -> Iterator[None]:
    """Translate errors of a filesystem about a path: `what` cannot be done, e.g. `written`.

    Raises:
        DataFileError: the filesystem refused it, did not answer, or has no such file.
    """
    try:
        yield
    except FileNotFoundError:
        raise DataFileError(f"The file {path} does not exist.") from None
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataFileError(f"The file {path} cannot be {what}: {_reason(error)}.") from None
    except ValueError as error:
        if str(error) != _CLOSED:
            raise
        raise DataFileError(f"The file {path} cannot be {what}: the object store refuses it.") from None


def _reason(error: BaseException) -> str:
    errno = getattr(error, "errno", None)
    if errno:
        return os.strerror(errno)
    failure = _GOOGLE.search(str(error))
    if failure is not None:
        return (
            f"the object store fails with {failure['code']}: {' '.join(failure['text'].split())[:_WIDTH].rstrip('.')}"
        )
    failure = _AWS.search(str(error))
    if failure is None:
        return _first_line(error).rstrip(".")[:_WIDTH]
    status = failure["status"] or failure["later"]
    said = failure["text"].splitlines()[0].strip().rstrip(".")[:_WIDTH] if failure["text"] else "no reason is given"
    return f"the object store fails {failure['operation']} with {failure['code']}{f' ({status})' if status else ''}: {said}"


@lru_cache(maxsize=32)
def _connect(scheme: str, authority: str, access: S3Access | None = None) -> fs.FileSystem:
    """A filesystem, which holds connections; one of this process for each place and way to reach it."""
    if scheme == "file":
        return fs.LocalFileSystem()
    try:
        options = _one_request() if scheme in S3 else {}
        if access is not None and access.is_explicit:
            return fs.S3FileSystem(**access.arrow_options(), **options)
        query = "&".join(f"{name}={str(value).lower()}" for name, value in options.items())
        return fs.FileSystem.from_uri(f"{scheme}://{authority}/{query and '?'}{query}")[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UnsupportedFeatureError(f"Data on {scheme}:// storage is not supported.") from None
    except OSError as error:
        raise DataFileError(f"{scheme}://{authority} cannot be reached: {_reason(error)}.") from None


@lru_cache(maxsize=1)
def _one_request() -> dict[str, bool]:
    """The option by which small files go to S3 in one request, rather than begun, filled and ended; pyarrow 21 brought it.

    Nothing is sent before such a file is closed, so that whoever writes it has to look at the error of closing.
    """
    option = {"allow_delayed_open": True}
    try:
        fs.S3FileSystem(anonymous=True, region="us-east-1", **option)
    except (TypeError, ImportError):
        return {}
    return option


os.register_at_fork(after_in_child=_connect.cache_clear)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__

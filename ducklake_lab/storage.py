"""The one seam to the filesystems that hold data and delete files.

Paths are absolute local paths or URLs (`s3://bucket/key`), with `/` and without percent-encoding, as the catalog
stores them. Credentials of S3 are those that were granted for the path (object_access.py), else they come from where
pyarrow looks for them: environment variables, a profile, the machine's role.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from ducklake_lab.errors import DataFileError, UnsupportedFeatureError
from ducklake_lab.object_access import S3Access, access_to
from ducklake_lab.parallel import in_parallel

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
#: Characters that java.net.URI leaves alone in a path, beside letters and digits.
_URI_SAFE = "_-!.~'()*:@&=+$,;/"
#: What it quotes: of what is beyond ASCII only blanks (categories Z*) and control characters.
_QUOTED = re.compile(rf"[^{re.escape(_URI_SAFE)}A-Za-z0-9\u00a0-\U0010ffff]|\s")
#: Schemes of object stores; Hadoop's names for S3 mean the same objects.
_S3 = ("s3", "s3a", "s3n")
_OBJECTS = (*_S3, "gs", "gcs")
#: Small files go to S3 in one request, rather than begun, filled and ended.
_ONE_REQUEST = {"allow_delayed_open": True}


def is_local(path: str) -> bool:
    """Whether a path is on this machine's filesystem, where files can be moved by renaming."""
    match = _URL.fullmatch(path)
    return match is None or match[1] == "file"


def is_object(path: str) -> bool:
    """Whether a path is in an object store, which has no folders and no renaming."""
    match = _URL.fullmatch(path)
    return match is not None and match[1].lower() in _OBJECTS


def real_path(path: str) -> str:
    """The path that a local path's symbolic links lead to; URLs of other filesystems as they are."""
    return os.path.realpath(path.removeprefix("file://")) if is_local(path) else path


class RealPaths:
    """The real paths of many files; the folders of a statement's files are looked at once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str) -> str:
        """As `real_path`."""
        if not is_local(path):
            return path
        folder, name = os.path.split(path.removeprefix("file://"))
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        found = os.path.join(self._folders[folder], name) if name else self._folders[folder]
        return real_path(path) if name in (".", "..") or os.path.islink(found) else found


def is_below(path: str, folder: str, real: Callable[[str], str] = real_path) -> bool:
    """Whether a path is inside of a folder: by its text, without `..`, and where symbolic links on its way lead.

    Args:
        real: what gives real paths.
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

    That is what java.net.URI makes of an unencoded path: everything is quoted but unreserved characters, some
    punctuation, and letters outside ASCII; `%` always is.
    """
    match = _URL.fullmatch(path)
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


class Storage:
    """File operations on any path that pyarrow has a filesystem for."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return bool(self._info(path).type != fs.FileType.NotFound)

    def size(self, path: str) -> int:
        """Bytes of a file.

        Raises:
            DataFileError: there is no such file.
        """
        info = self._info(path)
        if info.type != fs.FileType.File:
            raise DataFileError(f"The file {path} does not exist.")
        return int(info.size)

    def list_files(self, folder: str) -> list[str]:
        """All files below a folder, sorted, as absolute paths or URLs; [] where there is no such folder.

        Symbolic links below it are neither listed nor followed.
        """
        _, prefix, _ = self._resolve(folder)
        return sorted(prefix + info.path for info in self._walk(folder))

    def list_changed(self, folder: str) -> list[tuple[str, datetime]]:
        """All files below a folder, sorted, as paths relative to it, and when they were last changed (UTC).

        Symbolic links below it are neither listed nor followed.
        """
        filesystem, _, inner = self._resolve(folder)
        base = filesystem.normalize_path(inner.rstrip("/") or "/")
        return sorted(
            (info.path[len(base) :].lstrip("/"), info.mtime or datetime.now(UTC)) for info in self._walk(folder)
        )

    def _walk(self, folder: str) -> Iterator[fs.FileInfo]:
        """The files below a folder, in no order."""
        filesystem, _, inner = self._resolve(folder)
        local = is_local(folder)
        folders = [filesystem.normalize_path(inner.rstrip("/") or "/")]
        while folders:
            selector = fs.FileSelector(folders.pop(), recursive=not local, allow_not_found=True)
            for info in filesystem.get_file_info(selector):
                if local and os.path.islink(info.path):
                    continue
                if info.type == fs.FileType.File:
                    yield info
                elif local:
                    folders.append(info.path)

    @contextmanager
    def local_copy(self, path: str) -> Iterator[str]:
        """A file as one of this machine's, for readers that know no other: itself, or a copy for a while.

        Raises:
            DataFileError: there is no such file.
        """
        if is_local(path):
            self.size(path)
        with self.local_copies([path]) as places:
            yield places[path]

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; those that are not there are no error.

        Raises:
            DataFileError: one cannot be deleted.
        """

        def remove(path: str) -> None:
            filesystem, _, inner = self._resolve(path)
            try:
                with _saying(path, "deleted"):
                    filesystem.delete_file(inner)
            except FileNotFoundError:
                return

        in_parallel(paths, remove)

    def discard(self, paths: Iterable[str]) -> None:
        """Deletes what a failed write has left, as far as that is possible: the error of the write is the one to show.

        What stays belongs to no snapshot; `delete_orphaned_files` finds it.
        """
        for path in paths:
            with suppress(DataFileError):
                self.delete([path])

    def delete_folder(self, folder: str) -> None:
        """Deletes a folder with all that is in it; one that is not there is no error."""
        filesystem, _, inner = self._resolve(folder)
        if filesystem.get_file_info(inner.rstrip("/")).type == fs.FileType.Directory:
            with _saying(folder, "deleted"):
                filesystem.delete_dir(inner.rstrip("/"))

    def discard_folder(self, folder: str) -> None:
        """Deletes the folder of a failed write, as `discard` does files."""
        with suppress(DataFileError):
            self.delete_folder(folder)

    def move(self, source: str, target: str) -> None:
        """Moves a file within one filesystem, making the folders it goes to."""
        filesystem, _, inner = self._resolve(source)
        _, _, inner_target = self._resolve(target)
        parent = inner_target.rpartition("/")[0]
        if parent and is_local(target):
            filesystem.create_dir(parent, recursive=True)
        with _saying(target, "written"):
            filesystem.move(inner, inner_target)

    def duplicate(self, source: str, target: str) -> None:
        """Gives a file a second name that lives on without the first: a link, or a copy where there are none."""
        filesystem, _, inner = self._resolve(source)
        _, _, inner_target = self._resolve(target)
        if is_local(target):
            filesystem.create_dir(inner_target.rpartition("/")[0], recursive=True)
            try:
                os.link(inner, inner_target)
                return
            except OSError:
                pass  # another filesystem, or one without links
        filesystem.copy_file(inner, inner_target)

    def make_folder(self, path: str) -> None:
        """Makes a folder and those above it; it may be there already. Object stores need none."""
        if is_object(path):
            return
        filesystem, _, inner = self._resolve(path)
        with _saying(path, "made"):
            filesystem.create_dir(inner.rstrip("/"), recursive=True)

    def open_input(self, path: str) -> pa.NativeFile:
        """Opens a file for reading at any position.

        Raises:
            DataFileError: there is no such file.
        """
        filesystem, _, inner = self._resolve(path)
        try:
            return filesystem.open_input_file(inner)
        except FileNotFoundError:
            raise DataFileError(f"The file {path} does not exist.") from None
        except OSError as error:
            raise DataFileError(f"The file {path} cannot be read: {_first_line(error)}") from None

    def open_output(self, path: str) -> pa.NativeFile:
        """Opens a new file for writing; its folder must exist."""
        filesystem, _, inner = self._resolve(path)
        with _saying(path, "written"):
            return filesystem.open_output_stream(inner)

    def upload(self, source: str, path: str) -> None:
        """Copies a file of this machine to a path or URL."""
        filesystem, _, inner = self._resolve(path)
        with _saying(path, "written"):
            fs.copy_files(source, inner, fs.LocalFileSystem(), filesystem)

    @contextmanager
    def local_copies(self, paths: Iterable[str]) -> Iterator[Mapping[str, str]]:
        """Where each file can be read on this machine while the block runs: in its place, or as a copy.

        Raises:
            DataFileError: there is no such file, or it cannot be read.
        """
        wanted = list(dict.fromkeys(paths))
        remote = [path for path in wanted if not is_local(path)]
        places = {path: path.removeprefix("file://") for path in wanted}
        if not remote:
            yield places
            return
        with TemporaryDirectory(prefix="ducklake-") as folder:
            places.update({path: f"{folder}/{number}-{path.rsplit('/', 1)[-1]}" for number, path in enumerate(remote)})

            def fetch(path: str) -> None:
                with self.open_input(path) as source, open(places[path], "wb") as target:
                    source.download(target)

            in_parallel(remote, fetch)
            yield places

    def _info(self, path: str) -> fs.FileInfo:
        filesystem, _, inner = self._resolve(path)
        return filesystem.get_file_info(inner.rstrip("/") or "/")

    def _resolve(self, path: str) -> tuple[fs.FileSystem, str, str]:
        """(filesystem, what comes before a path of it in our paths, the path on it)."""
        match = _URL.fullmatch(path)
        if match is None or match[1] == "file":
            inner = path if match is None else match[2]
            return _connect("file", ""), "" if match is None else "file://", inner
        scheme, rest = match[1].lower(), match[2]
        kind = "s3" if scheme in _S3 else scheme
        if kind in _OBJECTS:
            access = access_to(f"s3://{rest}") if kind == "s3" else None
            return _connect(kind, rest.partition("/")[0], access), f"{match[1]}://", rest
        authority, slash, inner = rest.partition("/")
        return _connect(kind, authority), f"{match[1]}://{authority}", slash + inner


@contextmanager
def _saying(path: str, what: str) -> Iterator[None]:
    """Around a change of one path; FileNotFoundError is left to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _first_line(error)
        raise DataFileError(f"{path} cannot be {what}: {reason}.") from None


@lru_cache(maxsize=32)
def _connect(scheme: str, authority: str, access: S3Access | None = None) -> fs.FileSystem:
    """A filesystem, which holds connections; one of this process for each place and way to reach it."""
    if scheme == "file":
        return fs.LocalFileSystem()
    try:
        if access is not None and access.is_explicit:
            return fs.S3FileSystem(**access.arrow_options(), **_ONE_REQUEST)
        return fs.FileSystem.from_uri(f"{scheme}://{authority}/{'?allow_delayed_open=true' if scheme in _S3 else ''}")[
            0
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UnsupportedFeatureError(f"Data on {scheme}:// storage is not supported.") from None
    except OSError as error:
        raise DataFileError(f"{scheme}://{authority} cannot be reached: {_first_line(error)}") from None


os.register_at_fork(after_in_child=_connect.cache_clear)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

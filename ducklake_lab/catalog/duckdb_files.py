"""Catalog files of DuckDB, opened by one DuckDB for the whole process.

Starting a DuckDB for a file and stopping it takes 20 ms and more; attaching the file to one that runs, and detaching
it, takes one or two. A file is attached as long as some connection uses it, and held by this process only then.

Commits are in the file's log, `<file>.wal`, which whoever opens the file next reads. Writing it back into the file
takes as long as a small commit, so it is done when reading the log has taken as long, when a lake is let go of, and
when the process ends.

Each file's content has a number, which stays the same as long as nobody writes to the file (ADR 0081).

A new file has the storage version of DuckDB 1.5, also where DuckDB 2.0 makes it, so that both read it (ADR 0050).
"""

from __future__ import annotations

import atexit
import itertools
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from duckdb_engine import ConnectionWrapper

from ducklake_lab.catalog.file_marks import FileMark, mark_of
from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.connections import UNSOUND_OPTIMIZERS, in_memory
from ducklake_lab.errors import UsageError
from ducklake_lab.model.quoting import quote_text

#: The storage version of new files: all that read spec 1.0 read it, and an older one has no VARIANT.
_STORAGE = (1, 5, 0)
_STORAGE_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)", re.ASCII)
#: Bytes of a file's header with the name of the DuckDB that wrote it.
_WRITER = slice(52, 84)
#: A log is written back when the bytes that were read of it, time after time, are more than these and a share of its
#: file: reading it once more takes longer than writing it back, which takes longer the larger the file is.
_LOG_BYTES, _LOG_SHARE = 12_288, 1 / 400


class _AttachedFile:
    """A file that is attached, and how many connections use it."""

    def __init__(self, name: str, log: int) -> None:
        self.name = name
        self.users = 0
        #: Bytes of its log when it was attached.
        self.log = log
        #: The number of its content.
        self.content = 0


class DuckDBFiles:
    """Opens connections to files; thread-safe, and made anew in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._process = 0
        self._root: duckdb.DuckDBPyConnection | None = None
        self._attached: dict[Path, _AttachedFile] = {}
        #: Bytes that were read of the log of each file since it was last written back.
        self._logged: dict[Path, int] = {}
        self._contents = itertools.count(1)
        #: How files looked when they were last detached, and the numbers of their contents.
        self._left: dict[Path, tuple[FileMark, int]] = {}

    def open(self, path: Path, storage_version: str | None = None) -> FileConnection:
        """A connection whose default database is the file, which is created where there is none.

        Args:
            storage_version: of a file that is created, `latest` or e.g. `v2.0.0`; by default that of DuckDB 1.5.

        Raises:
            duckdb.IOException: another process has the file open.
            duckdb.BinderException: another DuckDB in this process has.
        """
        with self._lock:
            root = self._running()
            file = self._attached.get(path)
            if file is None:
                file = _AttachedFile(f"catalog_{next(self._numbers)}", _size(log_of(path)))
                chosen = storage_version or "v" + ".".join(map(str, _STORAGE))
                storage = "" if path.exists() else f", STORAGE_VERSION {quote_text(chosen)}"
                # without the type, a file of rows is attached as a view, and SQLite's by an extension
                root.execute(f"ATTACH {quote_text(str(path))} AS {file.name} (TYPE duckdb{storage})")
                self._attached[path] = file
                file.content = self._content(path)
                if path in self._logged:
                    self._logged[path] += file.log
            file.users += 1
            connection = root.cursor()
        try:
            connection.execute(f"USE {file.name}")
        except duckdb.Error:
            self.closed(path)
            raise
        return FileConnection(connection, self, path)

    def closed(self, path: Path) -> None:
        """Count a closed connection to the file, and release the file after the last one."""
        with self._lock:
            file = self._attached.get(path)
            if file is None:
                return  # opened before this process was forked
            file.users -= 1
            if file.users == 0:
                del self._attached[path]
                self._detach(file, path)

    def content(self, path: Path) -> int:
        """The number of the content of a file that is attached: another one after each commit, whoever made it."""
        with self._lock:
            return self._attached[path].content

    def committed(self, path: Path) -> tuple[int, int]:
        """A connection has committed to the file: the numbers of its content before and after that."""
        with self._lock:
            file = self._attached[path]
            before, file.content = file.content, next(self._contents)
            return before, file.content

    def _content(self, path: Path) -> int:
        """The number of the content of a file that was attached just now, which keeps other processes from it.

        Others that wrote in between have changed the size or times of the file or its log. Where there is no log, they may
        have left one of the same size, within one step of the clock after the last change.
        """
        mark, (left, content) = mark_of(path), self._left.pop(path, (None, 0))
        is_told = left is not None and (left.is_settled or (mark.has_log and mark.is_fine))
        same = is_told and left is not None and left.files == mark.files
        return content if same else next(self._contents)

    def write_back(self, path: Path) -> None:
        """Write a file's log of this process into the file, unless another process holds it."""
        with self._lock:
            left = path in self._logged and self._process == os.getpid()
            self._logged.pop(path, None)
        if left and path.exists() and _size(log_of(path)):
            try:
                connection = self.open(path)
            except duckdb.Error:
                return  # a process that holds it has read the log, and writes it back
            try:
                _checkpoint(connection)
            finally:
                connection.close()

    def write_all_back(self) -> None:
        for path in list(self._logged):
            self.write_back(path)

    def _detach(self, file: _AttachedFile, path: Path) -> None:
        root, size = self._running(), _size(log_of(path))
        read = self._logged.get(path, 0) if size > file.log else 0  # a process that only reads leaves the file as it is
        if size + read > _LOG_BYTES + _size(path) * _LOG_SHARE:
            _checkpoint(root, file.name)
            self._logged.pop(path, None)
        elif size:
            self._logged.setdefault(path, 0)
        self._left[path] = mark_of(path), file.content
        root.execute(f"DETACH {file.name}")

    def _running(self) -> duckdb.DuckDBPyConnection:
        if self._root is None or self._process != os.getpid():
            self._root = in_memory()
            # catalogs are small: sharing a query out among threads takes longer than it does
            self._root.execute("PRAGMA disable_checkpoint_on_shutdown; SET threads = 1")
            # it makes a join of every ORDER BY … LIMIT, which takes longer than reading a small table
            self._root.execute(f"SET disabled_optimizers = '{','.join(('late_materialization', *UNSOUND_OPTIMIZERS))}'")
            self._process = os.getpid()
            self._attached, self._logged, self._left = {}, {}, {}
        return self._root


def checked_storage_version(name: str) -> str:
    """A storage version that catalogs can have, in DuckDB's spelling.

    Raises:
        UsageError: it is no version, or has no VARIANT.
    """
    text = name.casefold()
    match = _STORAGE_VERSION.fullmatch(text)
    if text != "latest" and (match is None or tuple(map(int, match.groups())) < _STORAGE):
        raise UsageError(
            f"{name} is no storage version that catalogs can have; use v{'.'.join(map(str, _STORAGE))}, a newer one, or latest."
        )
    return text


def reader_of(path: Path) -> str:
    """Name the DuckDB that reads a file which the installed one cannot read."""
    try:
        with path.open("rb") as file:
            header = file.read(_WRITER.stop)
    except OSError:
        header = b""
    writer = header[_WRITER].rstrip(b"\0").decode("ascii", "replace")
    match = _STORAGE_VERSION.fullmatch(writer)
    if match is None:
        return "the DuckDB that wrote it"
    return f"DuckDB {writer[1:]}, which wrote it: pip install 'duckdb=={match[1]}.{match[2]}.*'"


def log_of(path: Path) -> Path:
    """Path of DuckDB's log of a catalog file."""
    return path.with_name(f"{path.name}.wal")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _checkpoint(connection: Any, name: str = "") -> None:
    with suppress(duckdb.Error):  # nothing is lost: the log stays, and is written back some other time
        connection.execute(f"CHECKPOINT {name}")


class FileConnection(ConnectionWrapper):
    """A connection whose transaction begins with its first statement: many have none."""

    def __init__(self, connection: Any, files: DuckDBFiles, path: Path) -> None:
        self._begins = False
        super().__init__(connection)
        self._raw = connection
        self._files = files
        self._path = path
        #: The numbers of the file's content before and after this connection's last commit.
        self.changed: tuple[int, int] | None = None

    @property
    def content(self) -> int:
        return self._files.content(self._path)

    def begin(self) -> None:
        self._begins = True

    def prepare(self, statements: str) -> None:
        """Create the connection's temporary objects, such as views, all before its transaction begins."""
        self._raw.begin()
        try:
            self._raw.execute(statements)
        except BaseException:
            self._raw.rollback()
            raise
        self._raw.commit()

    def cursor(self) -> Any:
        self._begin_now()
        return super().cursor()

    def __getattr__(self, name: str) -> Any:
        self._begin_now()
        return super().__getattr__(name)

    def _begin_now(self) -> None:
        if self._begins:
            self._begins = False
            self._raw.begin()

    def rollback(self) -> None:
        if self._begins:
            self._begins = False
        else:
            self._raw.rollback()

    def commit(self) -> None:
        self.changed = None
        if self._begins:
            self._begins = False
            return
        try:
            self._raw.commit()
        finally:
            self.changed = self._files.committed(self._path)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._files.closed(self._path)


FILES = DuckDBFiles()
atexit.register(FILES.write_all_back)

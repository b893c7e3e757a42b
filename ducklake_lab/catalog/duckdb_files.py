"""Catalog files of DuckDB, opened by one DuckDB for the whole process.

Starting a DuckDB for a file and stopping it takes 20 ms and more; attaching the file to one that runs, and detaching
it, takes one or two. A file is attached as long as some connection uses it, and held by this process only then.
"""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path
from typing import Any

import duckdb
from duckdb_engine import ConnectionWrapper


class _AttachedFile:
    """A file that is attached, and how many connections use it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.users = 0


class DuckDBFiles:
    """Opens connections to files; thread-safe, and made anew in a forked process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._process = 0
        self._root: duckdb.DuckDBPyConnection | None = None
        self._attached: dict[Path, _AttachedFile] = {}

    def open(self, path: Path) -> ConnectionWrapper:
        """A connection whose default database is the file, which is created where there is none.

        Raises:
            duckdb.IOException: another process has the file open.
            duckdb.BinderException: another DuckDB in this process has.
        """
        with self._lock:
            root = self._running()
            file = self._attached.get(path)
            if file is None:
                file = _AttachedFile(f"catalog_{next(self._numbers)}")
                quoted = str(path).replace("'", "''")
                # what reads spec 1.0 reads this storage; older one, in files that are there, has no VARIANT
                storage = "" if path.exists() else " (STORAGE_VERSION 'v1.5.0')"
                root.execute(f"ATTACH '{quoted}' AS {file.name}{storage}")
                self._attached[path] = file
            file.users += 1
            connection = root.cursor()
        connection.execute(f"USE {file.name}")
        return _Connection(connection, self, path)

    def closed(self, path: Path) -> None:
        """A connection to the file was closed: lets go of the file after the last one."""
        with self._lock:
            file = self._attached.get(path)
            if file is None:
                return  # opened before this process was forked
            file.users -= 1
            if file.users == 0:
                del self._attached[path]
                self._running().execute(f"DETACH {file.name}")

    def _running(self) -> duckdb.DuckDBPyConnection:
        if self._root is None or self._process != os.getpid():
            self._root = duckdb.connect(":memory:")
            self._process = os.getpid()
            self._attached = {}
        return self._root


class _Connection(ConnectionWrapper):
    def __init__(self, connection: Any, files: DuckDBFiles, path: Path) -> None:
        super().__init__(connection)
        self._files = files
        self._path = path

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._files.closed(self._path)


FILES = DuckDBFiles()

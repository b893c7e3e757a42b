"""Cache of one catalog: rows that a process has read or written, with the proof that they still hold (ADR 0081)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ducklake_lab.catalog.file_marks import FileMark
from ducklake_lab.catalog.options import OptionRow
from ducklake_lab.catalog.table_facts import TableFacts
from ducklake_lab.model.entries import ColumnVersion, Snapshot
from ducklake_lab.model.state import CatalogState

#: Schema versions whose entries are kept.
_STATES = 32
#: Most answers that are kept.
_ANSWERS = 256


@dataclass(frozen=True, slots=True)
class CachedCatalog:
    """Rows of a catalog at its newest snapshot.

    Attributes:
        content: the number of the file's content, see `DuckDBFiles`; None of other catalogs.
        snapshot: the newest, its time in UTC.
        options: the rows of `ducklake_metadata`; None where nobody has read them.
        tables: by table id.
        columns: all versions of a table's columns, by table id.
        answers: other answers of the catalog, by what was asked.
    """

    content: int | None
    snapshot: Snapshot
    options: Sequence[OptionRow] | None = None
    tables: Mapping[int, TableFacts] = field(default_factory=dict)
    columns: Mapping[int, Sequence[ColumnVersion]] = field(default_factory=dict)
    answers: Mapping[Hashable, Any] = field(default_factory=dict)

    def after(self, content: int | None, snapshot: Snapshot, tables: Mapping[int, TableFacts]) -> CachedCatalog:
        """The rows after a commit that changed no more than some tables' rows."""
        return replace(self, content=content, snapshot=snapshot, tables={**self.tables, **tables}, answers={})

    def answered(self, asked: Hashable, answer: object) -> CachedCatalog:
        """Returns the rows with one more answer, of at most a certain number."""
        answers = self.answers if len(self.answers) < _ANSWERS else {}
        return replace(self, answers={**answers, asked: answer})


class CatalogCache:
    """Cache of one catalog. Each look-up names the proof that it accepts; without one it gives None.

    Args:
        is_off: whether look-ups give None: a session that logs queries shows each of them.

    Attributes:
        generation: rises when the cache forgets all; earlier plans are out of date.
    """

    def __init__(self, is_off: Callable[[], bool]) -> None:
        self._is_off = is_off
        self.generation = 0
        self._states: OrderedDict[int, CatalogState] = OrderedDict()
        self._states_lock = threading.Lock()
        self._marked: tuple[FileMark, Snapshot] | None = None
        self._rows: CachedCatalog | None = None

    def entries(self, snapshot: Snapshot) -> CatalogState | None:
        """The entries at a snapshot: its schema version proves them."""
        with self._states_lock:
            cached = self._states.get(snapshot.schema_version)
            if cached is None:
                return None
            self._states.move_to_end(snapshot.schema_version)
        return replace(cached, snapshot=snapshot)

    def add_entries(self, state: CatalogState) -> None:
        with self._states_lock:
            self._states[state.snapshot.schema_version] = state
            if len(self._states) > _STATES:
                self._states.popitem(last=False)

    def newest_by_files(self, path: Path) -> Snapshot | None:
        """The newest snapshot: sizes and times of the catalog's files prove it, and nothing is opened."""
        if self._marked is None or self._is_off():
            return None
        mark, snapshot = self._marked
        return snapshot if mark.still_holds(path) else None

    def mark(self, mark: FileMark, snapshot: Snapshot) -> None:
        """Notes the newest snapshot with the files it was read from."""
        self._marked = mark, snapshot

    def by_content(self, content: int | None) -> CachedCatalog | None:
        """The rows: the number of the file's content proves them."""
        rows = self._rows
        same = rows is not None and content is not None and rows.content == content
        return rows if same and not self._is_off() else None

    def by_newest(self, newest: Snapshot) -> CachedCatalog | None:
        """Return the rows without options, which need no snapshot to change: the newest snapshot proves them."""
        rows = self._rows
        return rows if rows is not None and rows.snapshot == newest and not self._is_off() else None

    def assumed(self) -> CachedCatalog | None:
        """Rows without a proof, on which a statement may begin if its commit checks them."""
        rows = self._rows
        if rows is None or rows.content is not None or rows.options is None or self._is_off():
            return None
        return rows if self.entries(rows.snapshot) is not None else None

    def store(self, rows: CachedCatalog | None) -> None:
        """Keep rows that a commit has written, or that were read; None forgets the kept rows."""
        self._rows = rows

    def store_more(self, before: CachedCatalog, rows: CachedCatalog) -> None:
        """Keeps more rows than `before`, unless another thread has committed since."""
        if self._rows is before:
            self._rows = rows

    def forget(self) -> None:
        """Forgets everything: the catalog was changed by hand, or without a snapshot."""
        with self._states_lock:
            self._states.clear()
        self._marked = self._rows = None
        self.generation += 1

"""Variables that cells of SQL read, and the cells whose values have changed since.

Digests of values are in the kernel's memory alone; another kernel knows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell

from ducklake_lab.magics.digests import Digest, digest
from ducklake_lab.magics.session import Variables

#: Most cells that are remembered; the oldest are forgotten first.
_MOST_CELLS = 2000
_SQL = re.compile(r"\s*%%ducklake(?![\w-])")


@dataclass(slots=True)
class CellRun:
    """A run of a cell.

    Attributes:
        reads: the digest of each variable that its SQL read; None where it is not known, or there were several.
        open: statements that have begun and not ended well.
        wrote: a statement may have changed something.
    """

    reads: dict[str, Digest | None] = field(default_factory=dict)
    open: int = 0
    wrote: bool = False


@dataclass(frozen=True, slots=True)
class _Value:
    """The digest of a variable, and the cell after which it was another one; None if it never changed."""

    digest: Digest | None
    by: str | None = None


class ReadVariables:
    """Follows the cells of a notebook by the ids that its page gives them; a shell without such ids is not followed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._id: str | None = None
        self._running = CellRun()
        self._cells: dict[str, CellRun] = {}
        self._followed: dict[str, None] = {}
        self._values: dict[str, _Value] = {}
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)

    def variables(self) -> Variables:
        """Returns the notebook's variables; a lookup is noted as a read by the cell that runs."""
        return _Noted(self._shell.user_ns, self._shell.user_ns_hidden, self._running)

    def note(self, names: Iterable[str]) -> None:
        """Notes variables that the running cell reads in another way."""
        for name in names:
            if name in self._shell.user_ns:
                _note(self._running, name, self._shell.user_ns[name])

    @contextmanager
    def statement(self) -> Iterator[CellRun]:
        """Counts the running cell among those that write, unless the block ends well and says otherwise."""
        running = self._running
        running.open += 1
        yield running
        running.open -= 1

    def cells(self) -> dict[str, Any]:
        """Returns `changed_cells`, see `changed`, and `followed_cells`: the ids of cells of SQL whose reads are known."""
        return {"changed_cells": self.changed(), "followed_cells": list(self._followed)}

    def changed(self) -> dict[str, Any]:
        """Returns the cells that read another value than a variable has now, by id, with the cells that changed it.

        Each has `variables`, the id of the cell after which a variable had its new value by its name, and `wrote`.
        """
        cells = {}
        for cell_id, cell in self._cells.items():
            names = {name: by for name, read in cell.reads.items() if (by := self._changed_by(name, read, cell_id))}
            if names:
                cells[cell_id] = {"variables": names, "wrote": cell.wrote or cell.open > 0}
        return cells

    def _changed_by(self, name: str, read: Digest | None, cell_id: str) -> str | None:
        value = self._values.get(name)
        if value is None or read is None or value.digest is None or value.digest == read or value.by == cell_id:
            return None
        return value.by

    def _before_cell(self, info: ExecutionInfo) -> None:
        self._id = getattr(info, "cell_id", None)
        self._running = CellRun()

    def _after_cell(self, result: ExecutionResult) -> None:
        cell_id = getattr(result.info, "cell_id", None)
        if not isinstance(cell_id, str) or cell_id != self._id:
            return
        self._cells.pop(cell_id, None)
        self._followed.pop(cell_id, None)
        if _SQL.match(getattr(result.info, "raw_cell", None) or ""):
            self._followed[cell_id] = None
            while len(self._followed) > _MOST_CELLS:
                del self._followed[next(iter(self._followed))]
        if self._running.reads:
            self._cells[cell_id] = self._running
            while len(self._cells) > _MOST_CELLS:
                del self._cells[next(iter(self._cells))]
        self._running = CellRun()
        names = {name for cell in self._cells.values() for name in cell.reads}
        self._values = {name: self._value(name, cell_id) for name in names}

    def _value(self, name: str, cell_id: str) -> _Value:
        now = digest(self._shell.user_ns[name]) if name in self._shell.user_ns else None
        known = self._values.get(name)
        if known is None:
            return _Value(now)
        return known if known.digest == now else _Value(now, cell_id)


class _Noted(Variables):
    """Variables that note lookups."""

    def __init__(self, namespace: Mapping[str, object], hidden: Any, cell: CellRun) -> None:
        super().__init__(namespace, hidden)
        self._cell = cell

    def __getitem__(self, name: str) -> object:
        value = super().__getitem__(name)
        _note(self._cell, name, value)
        return value


def _note(cell: CellRun, name: str, value: object) -> None:
    now = digest(value)
    cell.reads[name] = now if cell.reads.get(name, now) == now else None

"""Notes that commits record: author, message and statements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from ducklake_lab.model.commit_notes import LONGEST, NOWHERE, StatementNote, with_origin, write
from ducklake_lab.redaction import hide
from ducklake_lab.sql import operations as op
from ducklake_lab.transaction.transaction import Transaction

#: Returns a commit's additional facts.
Context = Callable[[], Mapping[str, object]]
#: Kinds of statements that differ from the names of their operations.
_KINDS: dict[type[object], str] = {
    op.InsertLiterals: "INSERT",
    op.SetOptions: "ALTER TABLE",
    op.ResetOptions: "ALTER TABLE",
    op.RenameView: "ALTER VIEW",
    op.CopyFrom: "COPY",
    op.CopyDatabase: "COPY FROM DATABASE",
}
_numbers = count()
_WORDS = re.compile(r"[A-Z][a-z]*")


@dataclass(slots=True)
class _Running:
    number: int
    text: str
    kind: str
    started: float
    shown: tuple[str, bool] | None = None


class CommitNotes:
    """The notes for the next commits.

    Attributes:
        author: returns the default author of commits, or None.
        context: returns where statements run, such as the notebook; None turns off the recording of statements.
    """

    def __init__(self) -> None:
        self.author: Callable[[], str | None] = lambda: None
        self.context: Context | None = None
        self._message: str | None = None
        self._running: _Running | None = None

    @contextmanager
    def saying(self, message: str | None) -> Iterator[None]:
        """Sets the commit message of the statements in the block."""
        before, self._message = self._message, message
        try:
            yield
        finally:
            self._message = before

    @contextmanager
    def running(self, statement: op.Statement) -> Iterator[None]:
        """Records the statement in the block, which may commit."""
        before = self._running
        self._running = _Running(next(_numbers), statement.text, kind_of(statement.operation), time.monotonic())
        try:
            yield
        finally:
            self._running = before

    def say(self, transaction: Transaction) -> None:
        """Gives a transaction the message of its current statement."""
        transaction.message = self._message if self._message is not None else transaction.message

    def note(self, transaction: Transaction) -> None:
        """Notes the statement that wrote in a transaction."""
        running = self._running
        if self.context is None or running is None:
            return
        noted = transaction.statements
        # a statement may write several times
        if running.shown is None:
            running.shown = _shown(running.text)
        text, is_cut = running.shown
        noted[running.number] = StatementNote(text, running.kind, time.monotonic() - running.started, is_cut)

    def settle(self, transaction: Transaction) -> None:
        """Adds the notes to a transaction before its commit; keeps an extra info that the user set."""
        if transaction.extra_info is not None:
            transaction.extra_info = with_origin(transaction.extra_info, transaction.origin)
            return
        if self.context is None and transaction.origin == NOWHERE:
            return
        context = self.context() if self.context is not None else {}
        statements = list(transaction.statements.values())
        transaction.extra_info = write(statements, context, transaction.origin)


def _shown(text: str) -> tuple[str, bool]:
    """Returns a statement without its secrets, and whether it was cut. Text beyond the cut is not searched."""
    text = text.strip()
    if len(text) <= 2 * LONGEST:
        return hide(text), False
    # a cut secret might not be recognised, so the last word goes
    return hide(text[: 2 * LONGEST].rpartition(" ")[0])[:LONGEST], True


def kind_of(operation: op.Operation) -> str:
    """Returns the first words of an operation's statements, such as `UPDATE` or `CREATE TABLE`."""
    if type(operation) in _KINDS:
        return _KINDS[type(operation)]
    if isinstance(operation, op.Alteration):
        return "ALTER TABLE"
    return " ".join(_WORDS.findall(type(operation).__name__)).upper()

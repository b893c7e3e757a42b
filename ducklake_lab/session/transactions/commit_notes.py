"""What the commits of a session say of themselves: who made them, a message, and the statements that did."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from ducklake_lab.model.commit_notes import LONGEST, StatementNote, with_restored, write
from ducklake_lab.redaction import hide
from ducklake_lab.sql import operations as op
from ducklake_lab.transaction.transaction import Transaction

#: Gives what a commit notes beside its statements.
Context = Callable[[], Mapping[str, object]]
#: Kinds of statements whose operations are not called so.
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
    """What the next commits say.

    Attributes:
        author: gives the author of commits that name none; None for none.
        context: where the statements run, such as the notebook; None where statements are not noted at all.
    """

    def __init__(self) -> None:
        self.author: Callable[[], str | None] = lambda: None
        self.context: Context | None = None
        self._message: str | None = None
        self._running: _Running | None = None

    @contextmanager
    def saying(self, message: str | None) -> Iterator[None]:
        """Around statements whose commits have a message."""
        before, self._message = self._message, message
        try:
            yield
        finally:
            self._message = before

    @contextmanager
    def running(self, statement: op.Statement) -> Iterator[None]:
        """Around a statement that may commit."""
        before = self._running
        self._running = _Running(next(_numbers), statement.text, kind_of(statement.operation), time.monotonic())
        try:
            yield
        finally:
            self._running = before

    def say(self, transaction: Transaction) -> None:
        """Gives a transaction the message of the statement that writes in it."""
        transaction.message = self._message if self._message is not None else transaction.message

    def note(self, transaction: Transaction) -> None:
        """Notes the statement that has written in a transaction."""
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
        """Gives a transaction that is about to be committed what is noted; a text that it has keeps what it says."""
        if transaction.extra_info is not None:
            transaction.extra_info = with_restored(transaction.extra_info, transaction.restored)
            return
        if self.context is None and not transaction.restored:
            return
        context = self.context() if self.context is not None else {}
        transaction.extra_info = write(list(transaction.statements.values()), context, transaction.restored)


def _shown(text: str) -> tuple[str, bool]:
    """A statement without its secrets, and whether it is the beginning of one: what is not kept need not be looked at."""
    text = text.strip()
    if len(text) <= 2 * LONGEST:
        return hide(text), False
    # the cut may go through a secret, which a part of it does not show to be one
    return hide(text[: 2 * LONGEST].rpartition(" ")[0])[:LONGEST], True


def kind_of(operation: op.Operation) -> str:
    """What statements of an operation begin with, such as `UPDATE` or `CREATE TABLE`."""
    if type(operation) in _KINDS:
        return _KINDS[type(operation)]
    if isinstance(operation, op.Alteration):
        return "ALTER TABLE"
    return " ".join(_WORDS.findall(type(operation).__name__)).upper()

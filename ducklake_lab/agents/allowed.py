"""The filter before the door: an allow-list of statements. It refuses what it does not understand."""

from __future__ import annotations

from collections.abc import Callable

from ducklake_lab.agents.changes import CHANGES, check_change
from ducklake_lab.agents.trees import Known, check_query
from ducklake_lab.agents.words import Reader, plain_text, read_words, refused
from ducklake_lab.errors import SqlError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse

#: First words of statements that read.
_READS = frozenset("SELECT FROM WITH VALUES DESCRIBE SHOW (".split())
_CHANGING = (
    *(op.Insert, op.InsertLiterals, op.Update, op.Delete, op.Merge, op.Truncate),
    *(op.CreateTable, op.CreateView, op.CreateSchema, op.DropTable, op.DropView, op.DropSchema),
    *(op.AddColumn, op.DropColumn, op.RenameColumn, op.RenameTable, op.SetColumnType, op.SetDefault, op.SetNotNull),
    op.Comment,
)


def reading(text: str, known: Known) -> str:
    """Return the text of one statement that only reads the lake, as it may run.

    Raises:
        UsageError: the statement does not pass; the message says why.
    """
    return _passing(text, known, _reading)


def changing(text: str, known: Known) -> str:
    """Return the text of one statement that changes the lake, as it may run.

    Raises:
        UsageError: the statement does not pass; the message says why.
    """
    return _passing(text, known, _changing)


def _passing(text: str, known: Known, check: Callable[[Reader, Known], None]) -> str:
    try:
        plain = plain_text(text)
        check(Reader(plain, read_words(plain)), known)
    except SqlError:
        raise refused("it is not SQL that can be read") from None
    except RecursionError:
        raise refused("it is nested too deeply") from None
    return plain


def _reading(reader: Reader, known: Known) -> None:
    verb = reader.words[0].upper
    if verb in CHANGES:
        raise refused(f"{verb} changes rows or definitions; ask for a change instead of a query")
    if verb not in _READS:
        raise refused(f"it begins with {verb[:40] or 'a quote'!r}; allowed are {', '.join(sorted(_READS - {'('}))}")
    if [word.upper for word in reader.words] == ["SHOW", "TABLES"]:
        return
    check_query(reader.text, known)
    _check_operation(reader.text, (op.Query, op.Describe))


def _changing(reader: Reader, known: Known) -> None:
    check_change(reader, known)
    _check_operation(reader.text, _CHANGING)


def _check_operation(text: str, kinds: tuple[type, ...]) -> None:
    """Check that our own parser reads the statement as the same kind."""
    statements = parse(text, None, keep_refused=True, keep_literals=True)
    operation = statements[0].operation if len(statements) == 1 else None
    if isinstance(operation, op.Other) and operation.refusal is not None:
        raise refused(str(operation.refusal).rstrip("."))
    if not isinstance(operation, kinds) or (isinstance(operation, op.CreateView) and operation.temporary):
        raise refused("it is read in two ways")

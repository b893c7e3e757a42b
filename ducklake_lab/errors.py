"""Every error DuckLake Lab raises on purpose, one tree.

::

    DuckLakeError
    ├── UnsupportedFeatureError      a statement, type or feature that is not supported (yet)
    ├── CatalogError                 the catalog database
    │   ├── CatalogNotFoundError     no lake there, and creating one was not asked for
    │   ├── CatalogLockedError       another process or client holds the catalog file
    │   └── CatalogVersionError      a spec version that cannot be read or written
    ├── SqlError                     the text of a statement; knows line and column
    │   ├── SqlSyntaxError           it cannot be parsed
    │   └── BindError                it names something that does not exist, or is ambiguous
    ├── EntryNotFoundError           no such lake, schema, table or column
    ├── EntryExistsError             the name is taken
    ├── SnapshotNotFoundError        no such snapshot, or no snapshot at that time
    ├── DataFileError                a data or delete file is missing or unreadable
    ├── ConstraintError              a value breaks NOT NULL or does not fit its type
    │   └── ExpectationError         rows violate an expectation of their table; knows the counts and the first rows
    ├── TransactionError             misuse of BEGIN/COMMIT/ROLLBACK, or a failed commit
    │   ├── TransactionConflictError another commit changed what this one builds on
    │   ├── CommitUnknownError       it is not known whether the commit landed
    │   └── MergeConflictError       both sides of a merge changed the same; knows the conflicts
    │       └── RevertConflictError  later snapshots changed what a revert takes back
    ├── RefreshError                 some of all live tables could not be refreshed; knows the errors
    ├── SparkError                   Spark could not start, or a job failed
    │   └── JavaNotFoundError        no Java 17 or newer
    ├── SessionBusyError             another thread works with the session
    └── UsageError                   a wrong option or argument

The text of every error is one line: what is wrong, with which object, what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Self

from ducklake_lab.redaction import hide
from ducklake_lab.signs import visible

__all__ = [
    "BindError",
    "CatalogError",
    "CatalogLockedError",
    "CatalogNotFoundError",
    "CatalogVersionError",
    "CommitUnknownError",
    "ConstraintError",
    "DataFileError",
    "DuckLakeError",
    "EntryExistsError",
    "EntryNotFoundError",
    "ExpectationError",
    "ExpectationWarning",
    "JavaNotFoundError",
    "MergeConflictError",
    "RefreshError",
    "RevertConflictError",
    "SessionBusyError",
    "SnapshotNotFoundError",
    "SparkError",
    "SqlError",
    "SqlSyntaxError",
    "TransactionConflictError",
    "TransactionError",
    "UnsupportedFeatureError",
    "UsageError",
]


#: Characters of a message.
_LONGEST = 3_000


class DuckLakeError(Exception):
    """Root of all errors raised by DuckLake Lab.

    A secret in its message is hidden. Characters that would break, hide or reorder a line are replaced by signs. The middle
    of a message that quotes too much is left out.
    """

    def __init__(self, message: str = "") -> None:
        text = visible(hide(str(message)))
        super().__init__(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 500]} … {text[-500:]}")


def marker(error: DuckLakeError) -> str:
    """Returns the text of an error for its way through Spark, which passes texts only; see `spark.errors`."""
    return f"ducklake-lab {type(error).__name__}: {error}"


class UnsupportedFeatureError(DuckLakeError):
    """Raised before anything runs, for what is not supported; the message names the feature."""


class ExpansionError(UnsupportedFeatureError):
    """The expansion of views and macros is so large that a statement would never end."""


class CatalogError(DuckLakeError):
    """The catalog database cannot be used."""


class CatalogNotFoundError(CatalogError):
    """There is no DuckLake catalog at the given place."""


class CatalogLockedError(CatalogError):
    """The catalog file is held by another process or client."""


class CatalogVersionError(CatalogError):
    """The catalog's spec version cannot be read, or cannot be written."""


class SqlError(DuckLakeError):
    """A statement is wrong.

    Attributes:
        line: 1-based line in the text that was run, or None where it is not known.
        column: 1-based column in that line, or None.
    """

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class CsvLineError(SqlError):
    """A line of a CSV file does not fit the others, or the type of a column.

    Attributes:
        value: the text that does not fit its type; None where the line has another number of columns.
    """

    def __init__(self, message: str, *, value: str | None = None) -> None:
        super().__init__(message)
        self.value = value


class SqlSyntaxError(SqlError):
    """A statement cannot be parsed."""


class BindError(SqlError):
    """A statement names a table or column that does not exist, or is ambiguous."""


class UnknownColumnError(BindError):
    """A name in an expression is no column of FROM. DuckDB may know it as a function or an alias."""


class CapturedNameError(BindError):
    """DuckDB takes a name in an argument of a macro for one in the macro's body."""


class EntryNotFoundError(DuckLakeError):
    """There is no lake, schema, table or column of that name."""


class EntryExistsError(DuckLakeError):
    """The name is already in use."""


class SnapshotNotFoundError(DuckLakeError):
    """There is no snapshot of that id, or none as old as that time."""


class DataFileError(DuckLakeError):
    """A data or delete file that the catalog lists cannot be read."""

    @classmethod
    def without_field_ids(cls, path: str) -> Self:
        """Nothing says which column of the table a column of the file is."""
        return cls(
            f"The data file {path} has no field ids, and the catalog no mapping of names for it: nothing says which of "
            "its columns is which. Add it anew with ducklake_add_data_files."
        )


class ConstraintError(DuckLakeError):
    """A value breaks NOT NULL, or does not fit the type of its column."""


class ExpectationError(ConstraintError):
    """Rows violate an expectation of their table; nothing is written.

    Attributes:
        outcomes: one for each violated expectation; see `expectations.outcomes.Outcome`.
    """

    def __init__(self, message: str, outcomes: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.outcomes = tuple(outcomes)


class ExpectationWarning(UserWarning):
    """Rows violate an expectation of their table, and are written, left out or set aside as it says."""


class TransactionError(DuckLakeError):
    """A transaction was misused, or its commit failed."""


class TransactionConflictError(TransactionError):
    """Another commit changed what this transaction builds on; nothing was written."""


class OutdatedError(TransactionError):
    """Outdated cache: a statement began on cached entries that no longer hold; nothing was written."""


class CommitUnknownError(TransactionError):
    """The connection broke during commit; look at the newest snapshot before trying again."""


class MergeConflictError(TransactionError):
    """Both sides of a merge changed the same, and no rule settles it; nothing was written.

    Attributes:
        conflicts: each has table, row_id, column, base, ours, theirs and reason; 10,000 at most.
        total: the number of all conflicts.
        settling: runs it again under rules, for the view that a notebook shows; None where no session raised it.
    """

    settling: Any = None

    def __init__(self, message: str, conflicts: Sequence[Any] = (), total: int = 0) -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)
        self.total = total


class RevertConflictError(MergeConflictError):
    """Later snapshots changed what a revert takes back, and no rule settles it; nothing was written.

    Attributes:
        conflicts: each has table, row_id, column, base, then, now and reason; 10,000 at most.
        total: the number of all conflicts.
    """


class RefreshError(DuckLakeError):
    """Some of all live tables could not be refreshed; the others are.

    Attributes:
        failed: the error of each of them, by its name.
        done: the outcomes of the others, in order; see `session.refresh_all`.
    """

    def __init__(
        self, message: str, failed: Mapping[str, DuckLakeError] | None = None, done: Sequence[Any] = ()
    ) -> None:
        super().__init__(message)
        self.failed = dict(failed or {})
        self.done = tuple(done)


class SparkError(DuckLakeError):
    """Spark could not start, or a job failed."""


class JavaNotFoundError(SparkError):
    """No Java 17 or newer was found."""


class SessionBusyError(DuckLakeError):
    """Another thread works with the session, and this one has waited for too long."""


class UsageError(DuckLakeError):
    """A wrong option or argument."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A sentence suggesting the closest candidates, with a leading blank; "" where none is close."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    close = get_close_matches(name.casefold(), list(by_folded), n=3, cutoff=0.6)
    if not close:
        return ""
    return f" Did you mean {' or '.join(by_folded[match] for match in close)}?"

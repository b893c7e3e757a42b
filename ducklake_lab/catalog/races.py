"""Meaning of drivers' errors: another commit was quicker, another client holds a lock, or a disk is full."""

from __future__ import annotations

import re
import sqlite3

import sqlalchemy as sa

from ducklake_lab.duckdb import library as duckdb

#: PostgreSQL: serialization failure, deadlock, unique violation.
_SQLSTATES = frozenset(("40001", "40P01", "23505"))
#: MySQL and MariaDB: duplicate entry, lock wait timeout, deadlock, a record that changed since it was read.
_MYSQL_CODES = frozenset((1062, 1205, 1213, 1020))
_MYSQL_TABLE_CHANGED = 1412
#: Errors of waiting too long for a lock, which may be that of `lock_for_commit`.
_POSTGRESQL_LOCK_TIMEOUT, _MYSQL_LOCK_TIMEOUT = "55P03", 1205
#: A disk is full.
_POSTGRESQL_FULL = "53100"
_MYSQL_FULL = frozenset((1021, 1114))
_SQLITE_FULL = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE))
#: Systems' texts for it, in DuckDB's errors and MySQL's.
_FULL = re.compile("No space left on device|File too large|Disk quota exceeded|not enough space", re.IGNORECASE)
_SQLITE_CODES = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
#: DuckDB: two transactions changed one row; a key was there already, which shows at COMMIT at the latest.
_DUCKDB_ERRORS = (duckdb.TransactionException, duckdb.ConstraintException)

#: Errors of statements, which DuckDB files do not raise at COMMIT.
_REFUSALS = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.NotImplementedException,
    duckdb.OutOfRangeException,
    duckdb.ParserException,
)


def is_lost_race(error: Exception) -> bool:
    """Returns whether a statement of a commit, or its COMMIT, failed because another commit was quicker.

    Such a commit can be tried again. Snapshot ids are keys, so only one of two commits gets the next one.
    """
    if isinstance(error, sa.exc.IntegrityError):
        return True
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        # an extended code has the plain one in its low byte
        return getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _SQLITE_CODES
    if isinstance(cause, duckdb.Error):
        return isinstance(cause, _DUCKDB_ERRORS)
    return getattr(cause, "sqlstate", None) in _SQLSTATES or _code(cause) in _MYSQL_CODES


def is_full(error: Exception) -> bool:
    """Returns whether the catalog's disk, or a user's share of it, is full."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) in _SQLITE_FULL
    if getattr(cause, "sqlstate", None) == _POSTGRESQL_FULL or _code(cause) in _MYSQL_FULL:
        return True
    return not isinstance(error, sa.exc.IntegrityError) and _FULL.search(str(cause)) is not None


def is_lock_timeout(error: Exception) -> bool:
    """Returns whether the wait for another client's lock has ended in vain."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_BUSY
    return getattr(cause, "sqlstate", None) == _POSTGRESQL_LOCK_TIMEOUT or _code(cause) == _MYSQL_LOCK_TIMEOUT


def is_refusal(error: Exception) -> bool:
    """Returns whether a server of DuckDB files answered that it cannot run a commit, which it ran as a whole or not at all."""
    return isinstance(_cause(error), _REFUSALS)


def is_nul_byte(error: Exception) -> bool:
    """Returns whether a text has a NUL byte, which PostgreSQL's driver refuses."""
    return "cannot contain NUL (0x00) bytes" in str(_cause(error))


def is_before_table(error: sa.exc.DBAPIError) -> bool:
    """Returns whether MySQL reports a table that was made after the transaction began, and that it does not see."""
    return _code(error.orig) == _MYSQL_TABLE_CHANGED


def _cause(error: Exception) -> BaseException:
    """The driver's own error."""
    cause: BaseException = getattr(error, "orig", None) or error
    return cause


def _code(error: BaseException | None) -> object:
    return error.args[0] if error is not None and error.args else None

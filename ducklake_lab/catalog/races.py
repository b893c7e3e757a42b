"""Whether an error means that another commit was quicker, by the kind of error that each driver gives."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa

from ducklake_lab.duckdb import library as duckdb

#: PostgreSQL: serialization failure, deadlock, unique violation.
_SQLSTATES = frozenset(("40001", "40P01", "23505"))
#: MySQL and MariaDB: duplicate entry, lock wait timeout, deadlock, a record that changed since it was read.
_MYSQL_CODES = frozenset((1062, 1205, 1213, 1020))
_MYSQL_TABLE_CHANGED = 1412
_SQLITE_CODES = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
#: DuckDB: two transactions changed one row; a key was there already, which shows at COMMIT at the latest.
_DUCKDB_ERRORS = (duckdb.TransactionException, duckdb.ConstraintException)


def is_lost_race(error: Exception) -> bool:
    """Whether a statement of a commit, or its COMMIT, failed because another commit was quicker.

    Such a commit can be tried again. Snapshot ids are keys, so only one of two commits gets the next one.
    """
    if isinstance(error, sa.exc.IntegrityError):
        return True
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.Error):
        # an extended code has the plain one in its low byte
        return getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _SQLITE_CODES
    if isinstance(cause, duckdb.Error):
        return isinstance(cause, _DUCKDB_ERRORS)
    return getattr(cause, "sqlstate", None) in _SQLSTATES or _code(cause) in _MYSQL_CODES


def is_before_table(error: sa.exc.DBAPIError) -> bool:
    """Whether a table that a transaction reads was made after it began, as MySQL says; to the transaction it is not there."""
    return _code(error.orig) == _MYSQL_TABLE_CHANGED


def _code(error: BaseException | None) -> object:
    return error.args[0] if error is not None and error.args else None

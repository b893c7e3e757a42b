"""DuckDB's own package as the other rooms see it: its types and errors, but nothing that opens a database."""

from __future__ import annotations

from duckdb import (
    BinderException,
    CatalogException,
    ConstraintException,
    ConversionException,
    DuckDBPyConnection,
    DuckDBPyRelation,
    Error,
    FatalException,
    InternalException,
    InvalidInputException,
    IOException,
    NotImplementedException,
    OutOfRangeException,
    ParserException,
    StatementType,
    TransactionException,
    __version__,
    extract_statements,
    sqltype,
)

__all__ = [
    "BinderException",
    "CatalogException",
    "ConstraintException",
    "ConversionException",
    "DuckDBPyConnection",
    "DuckDBPyRelation",
    "Error",
    "FatalException",
    "IOException",
    "InternalException",
    "InvalidInputException",
    "NotImplementedException",
    "OutOfRangeException",
    "ParserException",
    "StatementType",
    "TransactionException",
    "__version__",
    "extract_statements",
    "sqltype",
]

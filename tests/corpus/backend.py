"""Runs sqllogictest files of the reference on a session: the backend a runner of such files is given.

The runner hands over one statement at a time and compares the rows; it and the suite are given by path:

    python slt.py run test/sql/alter --suite SUITE --backend tests.corpus.backend:Lab --path .

Options: `--opt engine=duckdb` reads in process instead of on Spark.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from slt import Backend, Connection, Context, Result, Unsupported  # type: ignore[import-not-found]

import ducklake_lab as dl
from ducklake_lab.duckdb.casting import typed_sql
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.session.rows.result import Result as LabResult
from ducklake_lab.sql.types import type_or_none

# Values that Python has no type for, or a poorer one, are compared as DuckDB's text of them.
_AS_TEXT = re.compile(r"INTERVAL|TIMESTAMP|DATE|TIME|VARIANT|GEOMETRY|UNION|BIGNUM|BIT\b|MAP|BLOB")
# Files that need httpfs need it to encrypt.
_ENCRYPTS = ("httpfs",) if importlib.util.find_spec("duckdb_extension_httpfs") is not None else ()
_SHARED = re.compile(r"\s*(ATTACH|DETACH)\b", re.IGNORECASE)


class Lab(Backend):  # type: ignore[misc]
    """One database instance: its connections are sessions that have the same lakes attached."""

    name = "ducklake-lab"
    features = (*Backend.features, "ducklake", "parquet", "icu", "json", "no_extension_autoloading", *_ENCRYPTS)

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx)
        self.connections: list[LabConnection] = []
        self.shared: list[tuple[LabConnection, str]] = []

    def connect(self, name: str | None = None) -> LabConnection:
        connection = LabConnection(self)
        self.connections.append(connection)
        return connection

    def restart(self) -> None:
        self.close()

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        self.connections, self.shared = [], []


class LabConnection(Connection):  # type: ignore[misc]
    """A session; what others attached or detached meanwhile is done here too before the next statement."""

    def __init__(self, backend: Lab) -> None:
        self.backend = backend
        self.session = dl.Session(engine=backend.ctx.options.get("engine", "spark"))
        self.seen = 0

    def execute(self, sql: str) -> Sequence[Sequence[Any]]:
        shared = self.backend.shared
        while self.seen < len(shared):
            owner, text = shared[self.seen]
            self.seen += 1
            if owner is not self:
                self.session.sql(text)
        try:
            result = self.session.sql(sql)
            rows = _rows(result)
        except dl.UnsupportedFeatureError as error:
            raise Unsupported(str(error)) from error
        if _SHARED.match(sql):
            shared.append((self, sql))
        return rows

    def close(self) -> None:
        self.session.close()


def _rows(result: LabResult) -> Any:
    rows = result.arrow()
    if not result.columns:
        return Result()
    hard = [index for index, kind in enumerate(result.types) if _AS_TEXT.search(kind)]
    columns = [rows.column(index).to_pylist() for index in range(rows.num_columns) if index not in hard]
    for index, texts in zip(hard, _texts(rows, hard, result.types), strict=True):
        columns.insert(index, texts)
    return Result(list(zip(*columns, strict=True)), result.columns, result.types)


def _texts(rows: pa.Table, indices: Sequence[int], types: Sequence[str]) -> list[list[Any]]:
    """DuckDB's texts of some columns."""
    if not indices:
        return []
    hard = pa.table([rows.column(index) for index in indices], names=[f"c{i}" for i in range(len(indices))])
    casts = ", ".join(f"CAST({_typed(f'c{i}', types[index])} AS VARCHAR) AS c{i}" for i, index in enumerate(indices))
    return [column.to_pylist() for column in evaluate(f"SELECT {casts} FROM hard", {"hard": hard}).columns]


def _typed(column: str, kind: str) -> str:
    """A column's values as they are in the lake, geometries in nested ones too; variants are text already."""
    known = type_or_none(kind) if "GEOMETRY" in kind else None
    return column if known is None else typed_sql(column, known)

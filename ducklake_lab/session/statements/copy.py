"""COPY: writes rows of a lake to files, and reads files into a lake."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import InMemory, Rows
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import DuckLakeError, EntryNotFoundError, UnsupportedFeatureError
from ducklake_lab.file_paths import is_local, is_object
from ducklake_lab.model.entries import Column
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.rows.result import Result, RunInfo, count_result
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse_query
from ducklake_lab.sql.plan import QueryPlan
from ducklake_lab.storage import Storage

Run = Callable[[op.Operation], Result]
_numbers = itertools.count(1)


class Copying:
    """Runs COPY … TO and COPY … FROM.

    Args:
        run: runs an operation on a lake.
    """

    def __init__(
        self, lakes: Lakes, sources: Sources, database: SessionDatabase, engine: SparkEngine, run: Run
    ) -> None:
        self._lakes = lakes
        self._sources = sources
        self._database = database
        self._engine = engine
        self._run = run

    def to_file(self, statement: op.CopyTo) -> Result:
        """Runs COPY … TO; returns the number of written rows."""
        query = parse_query(statement.query)
        plan = self._sources.plan(query)
        info = RunInfo(counted="written")
        loaded = self._sources.load_all(plan, info)
        # in process, the file keeps DuckDB's exact types
        here = self._sources.placed(plan, loaded, info, "change").is_here
        self._make_folder(statement.path)
        if is_object(statement.path) and here:
            return self._to_object(statement, plan, loaded)
        if here:
            target = quote_text(statement.path)
            copy = replace(plan, duckdb_sql=f"COPY ({plan.duckdb_sql}) TO {target} {statement.options}")
            rows = self._sources.run_in_process(copy, loaded).table
            return _counted(rows, info)
        return count_result(self._to_file_on_spark(statement, plan), info)

    def _to_object(self, statement: op.CopyTo, plan: QueryPlan, loaded: Mapping[str, Rows]) -> Result:
        """Writes the file locally and then uploads it."""
        with TemporaryDirectory(prefix="ducklake-") as folder:
            made = Path(folder) / statement.path.rsplit("/", 1)[-1]
            sql = f"COPY ({plan.duckdb_sql}) TO {quote_text(str(made))} {statement.options}"
            rows = self._sources.run_in_process(replace(plan, duckdb_sql=sql), loaded).table
            if not made.is_file():
                raise UnsupportedFeatureError(
                    f"COPY to several files in {statement.path} is not supported; copy to one."
                )
            Storage().upload(str(made), statement.path, is_new=False)
        return _counted(rows, RunInfo(counted="written"))

    def _make_folder(self, path: str) -> None:
        """Creates the folder of a local file under a lake's data path; an empty lake has none yet."""
        if any(path.startswith(lake.data_path) for lake in self._lakes) and is_local(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)

    def _to_file_on_spark(self, statement: op.CopyTo, plan: QueryPlan) -> int:
        from ducklake_lab.spark.export import export

        options = dict(statement.words)
        kind = options.pop("format", statement.path.rsplit(".", 1)[-1]).strip("'\"").casefold()
        partitions = [
            name.strip().strip('"') for name in options.pop("partition_by", "").strip("()").split(",") if name.strip()
        ]
        values = {name: value.strip("'\"") for name, value in options.items()}
        frame = self._sources.run(plan, purpose="change").spark()
        with self._engine.running() as spark:
            return export(spark, frame, statement.path, kind, partitions, values)

    def from_file(self, statement: op.CopyFrom) -> Result:
        """Runs COPY lake.table FROM; returns the number of inserted rows. DuckDB reads the file as for such a table."""
        table = self._sources.names.entry(statement.table).table()
        chosen = _chosen(table.columns, statement.columns)
        name = f"ducklake_copy_{next(_numbers)}"
        kinds = [(column.name, column.data_type) for column in chosen]
        definitions = ", ".join(f"{quote_identifier(n)} {kind.sql()}" for n, kind in kinds)
        self._database.run(f"CREATE TEMP TABLE {name} ({definitions})")
        try:
            with _readable(statement.path) as local_path:
                path = quote_text(local_path)
                self._database.run(f"COPY temp.main.{name} FROM {path} {statement.options}")
            rows = self._database.run(f"FROM temp.main.{name}")
        except BaseException:
            with suppress(DuckLakeError):  # a transaction that this aborted takes the table away itself
                self._database.run(f"DROP TABLE temp.main.{name}")
            raise
        self._database.run(f"DROP TABLE temp.main.{name}")
        view = self._sources.names.register(InMemory(rows.table))
        try:
            names = tuple(column.name for column in chosen)
            return self._run(op.Insert(statement.table, names, parse_query(f"SELECT * FROM {view}").tree))
        finally:
            del self._sources.names.registered[view]


def _counted(rows: pa.Table, info: RunInfo) -> Result:
    if rows.column_names != ["Count"]:
        return Result(InMemory(rows), info=info)
    return count_result(rows.column(0)[0].as_py(), info)


@contextmanager
def _readable(path: str) -> Iterator[str]:
    """Yields a local path of a file during the block; DuckDB itself has no access to object stores."""
    if not is_object(path):
        yield path
        return
    with Storage().local_copies([path]) as places:
        yield places[path]


def _chosen(columns: tuple[Column, ...], names: tuple[str, ...] | None) -> list[Column]:
    if names is None:
        return list(columns)
    by_name = {column.name.casefold(): column for column in columns}
    missing = next((name for name in names if name.casefold() not in by_name), None)
    if missing is not None:
        raise EntryNotFoundError(f'The table has no column "{missing}".')
    return [by_name[name.casefold()] for name in names]

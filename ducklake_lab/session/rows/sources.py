"""Loads the sources of a query plan, for Spark or for DuckDB in process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ducklake_lab.engine.facts import facts_of_rows
from ducklake_lab.engine.in_process.database import Fetched, SessionDatabase
from ducklake_lab.engine.on_spark import OnSpark
from ducklake_lab.engine.placement import Placement, Purpose
from ducklake_lab.engine.rows import InMemory, OnDemand, Rows
from ducklake_lab.engine.scans import Scan
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import BindError, DataFileError, SqlError, TransactionError, UnsupportedFeatureError
from ducklake_lab.files.duckdb_query import DuckDbQuery
from ducklake_lab.files.reader import RowQuery
from ducklake_lab.model.files import DataFile
from ducklake_lab.model.predicates import And, Predicate
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.session.functions import functions_of
from ducklake_lab.session.rows.blame import Blames
from ducklake_lab.session.rows.digests import digest_rows
from ducklake_lab.session.rows.join_keys import implied, key_query, small_side
from ducklake_lab.session.rows.named_rows import LakeTable
from ducklake_lab.session.rows.own_rows import table_behind
from ducklake_lab.session.rows.read_parts import read_parts
from ducklake_lab.session.rows.resolver import NameResolver, plan_or_leave
from ducklake_lab.session.rows.result import Result, RunInfo
from ducklake_lab.session.rows.source_loader import Effects, SourceLoader
from ducklake_lab.session.rows.table_scans import TableScans
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import plan_spark_text
from ducklake_lab.sql.parse.references import PIVOTS, words_of
from ducklake_lab.sql.plan import Described, QueryPlan, Source
from ducklake_lab.sql.planning.own_source import is_of_one_function
from ducklake_lab.sql.planning.spark_text import parameters
from ducklake_lab.sql.spark.stability import differs_by_run
from ducklake_lab.sql.types import type_or_none

if TYPE_CHECKING:
    from ducklake_lab.spark.library import DataFrame


class Sources:
    """Plans queries and loads their sources.

    Attributes:
        names: resolves names in SQL.
        blames: answers who set the cells of rows.
        scans: plans the reads of tables.
        loader: loads single sources.
    """

    def __init__(self, transactions: Transactions, engine: SparkEngine, database: SessionDatabase) -> None:
        self._lakes = lakes = transactions.lakes
        self._database = database
        self._engine = engine
        self.names = NameResolver(
            lakes,
            database,
            functions_of(transactions, engine),
            self.run,
            self.columns,
            self.described,
            engine.temporary_view,
        )
        self.blames = Blames(lakes, engine, self.query, self.read_here)
        self.scans = TableScans(lakes, database.time_zone)
        self.loader = SourceLoader(lakes, engine, database, self.names, self.scans, self.blames, self.run)

    def query(self, query: op.Query, *, purpose: Purpose = "look") -> Result:
        """Plans and runs a query.

        Args:
            purpose: the use of its rows.

        Raises:
            BindError: a name does not exist or is ambiguous.
            UnsupportedFeatureError: it reads data files with SQL that Spark cannot run.
        """
        return self.run(self.plan(query), purpose=purpose)

    def statement(self, query: op.Query) -> Result:
        """Runs a query that is a whole statement; its only source may be a function with effects.

        Raises:
            BindError, UnsupportedFeatureError: as in `query`; raised before the function runs.
        """
        plan = self.plan(query)
        source = self.acting(query, plan)
        if source is None:
            result = self.run(plan)
            result.find_parts = partial(read_parts, query, plan)
            if len(plan.sources) == 1 and isinstance(table := plan.sources[0].rows, LakeTable):
                state = self.loader.state(table)
                if not self._lakes.reads.is_uncommitted(state):
                    result.find_table = partial(table_behind, self._lakes, self._here, query, plan, state)
            return result
        self._database.describe(plan.duckdb_sql, self.loader.empty(plan), plan.macros)
        info = RunInfo(wrote=True)
        rows = self.run_in_process(plan, {source.view: self.loader.load(source, info, effects="run")})
        return Result(InMemory(rows.table), types=rows.types, info=info, engine=self._engine)

    def _here(self, query: op.Query) -> Result:
        """Runs a query in process, whatever the size of its tables."""
        with self._engine.placing.asking("duckdb"):
            return self.query(query)

    def acting(self, query: op.Query, plan: QueryPlan) -> Source | None:
        """Returns the source of a query that only calls a function with effects; None for other queries."""
        if len(plan.sources) != 1 or not is_of_one_function(query):
            return None
        (source,) = plan.sources
        if source.kind != "function" or source.stored:
            return None
        name, args = source.name, [self.names.value(argument) for argument in source.args]
        kwargs = self.names.values(source.kwargs)
        acts = self.names.functions.acts(name.catalog, name.schema, name.name, args, kwargs)
        return source if acts else None

    def plan(self, query: op.Query) -> QueryPlan:
        """Plans a query; leaves queries that the planner cannot parse or bind to DuckDB."""
        return plan_or_leave(query, self.names)

    def run(self, plan: QueryPlan, *, describe: bool = False, purpose: Purpose = "look") -> Result:
        """Runs a plan: now in process, or lazily on Spark.

        Args:
            describe: only the columns are needed; functions with effects do not run.
            purpose: the use of the rows.
        """
        info = RunInfo()
        if describe:
            plan = replace(plan, duckdb_sql=f"({plan.duckdb_sql}) LIMIT 0")
        loaded = self.load_all(plan, info, describe=describe, purpose=purpose)
        answer = self.from_catalog(plan, loaded) if not describe else None
        if answer is not None:
            info.files_read = info.bytes_read = 0
            info.placement = Placement("catalog")
            return Result(InMemory(answer.table), types=answer.types, info=info, engine=self._engine)
        if self.placed(plan, loaded, info, purpose).is_here:
            on_spark = partial(self._reading_on_spark, plan, loaded) if info.files_read else None
            on_demand = purpose == "look" and self._engine.placing.runs_on_demand(info.bytes_read)
            deferred = self._on_demand(plan, loaded) if on_demand else None
            if deferred is not None:
                later, kinds = deferred
                return Result(later, types=kinds, info=info, engine=self._engine, on_spark=on_spark)
            rows = self.run_in_process(plan, loaded)
            return Result(InMemory(rows.table), types=rows.types, info=info, engine=self._engine, on_spark=on_spark)
        self.check_for_spark(plan)
        columns = self._columns_on_spark(plan)
        types = [kind for _, kind in columns] if columns is not None else None
        return Result(OnSpark(self._named(plan, loaded, columns)), types=types, info=info, engine=self._engine)

    def read_here(self, query: op.Query, types: Sequence[str]) -> tuple[pa.Table, list[DataFile]] | None:
        """Returns the rows of a query over tables of lakes, and their data files; None where Spark reads them.

        Args:
            types: DuckDB's type names of the columns.
        """
        plan, info = self.plan(query), RunInfo()
        loaded = self.load_all(plan, info)
        if not self.placed(plan, loaded, info).is_here:
            return None
        rows = self.run_in_process(plan, loaded, types).table
        files = [file.data_file for scan in loaded.values() if isinstance(scan, Scan) for file in scan.files]
        return rows, files

    def _on_demand(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> tuple[OnDemand, Sequence[str]] | None:
        """Returns the rows of a query that runs on demand, and their DuckDB types.

        Returns None if the query could give other rows later than now.
        """
        of_files = all(isinstance(rows, Scan) for rows in loaded.values()) and len(loaded) == len(plan.sources)
        if not of_files or not plan.bound or differs_by_run(plan.own_sql):
            return None
        columns = self._described(plan, {view: rows.here().duckdb_query for view, rows in loaded.items()})
        if columns is None:
            return None
        time_zone, types = self._database.time_zone(), [kind for _, kind in columns]
        transaction = self._lakes.transaction

        def rows(limit: int | None) -> pa.Table:
            some = plan.duckdb_sql if limit is None else f"SELECT * FROM ({plan.duckdb_sql}) LIMIT {limit:d}"
            try:
                with self._database.in_zone(time_zone):
                    return self.run_in_process(replace(plan, duckdb_sql=some), loaded, types).table
            except DataFileError:
                if transaction is None or not transaction.is_rolled_back:
                    raise
                raise TransactionError(
                    "The transaction whose rows this result shows was rolled back; run the query again."
                ) from None

        return OnDemand([name for name, _ in columns], rows), types

    def _reading_on_spark(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> DataFrame | None:
        """Returns a lazy DataFrame of a query that ran in process; None if a second run could give other rows."""
        if not plan.bound or plan.refusal is not None or differs_by_run(plan.own_sql):
            return None
        return self._named(plan, loaded, self._columns_on_spark(plan))

    def _columns_on_spark(self, plan: QueryPlan) -> list[tuple[str, str]] | None:
        """Returns `columns` of a plan that Spark runs, perhaps in other words."""
        words = plan.for_spark().duckdb_sql
        return self.columns(replace(plan, duckdb_sql=words, macros={}) if words is not None else plan)

    def _named(
        self, plan: QueryPlan, loaded: Mapping[str, Rows], columns: Sequence[tuple[str, str]] | None
    ) -> DataFrame:
        """Returns `spark_frame` of a plan, its columns named as DuckDB names them."""
        frame = self.spark_frame(plan, loaded)
        names = [name for name, _ in columns or ()]
        return frame.toDF(*names) if len(names) == len(frame.columns) and names != frame.columns else frame

    def placed(
        self, plan: QueryPlan, loaded: Mapping[str, Rows], info: RunInfo, purpose: Purpose = "look"
    ) -> Placement:
        """Chooses the engine of a plan and notes it in `info`."""

        def refusal() -> Exception | None:
            if plan.refusal is None or (purpose == "change" and self.row_query(plan, loaded) is not None):
                return None  # Spark's workers find changed rows with DuckDB
            return plan.refusal

        info.placement = self._engine.placing.place(facts_of_rows(loaded.values(), purpose, refusal))
        return info.placement

    def from_catalog(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> Fetched | None:
        """Returns a query's rows from the catalog's statistics; None if the files must be read."""
        if plan.digest is None:
            return None
        rows = digest_rows(plan, loaded, self.loader.state)
        return self._database.run(plan.digest.sql, {plan.digest.view: rows}) if rows is not None else None

    def run_in_process(
        self, plan: QueryPlan, loaded: Mapping[str, Rows], types: Sequence[str] | None = None
    ) -> Fetched:
        """Runs a plan in process; `types` are the column types, if they are known."""
        try:
            tables = {view: rows.here().duckdb_query for view, rows in loaded.items()}
        except UnsupportedFeatureError as error:
            if plan.refusal is None:
                raise
            raise plan.refusal from error
        try:
            fetched = self._database.run(plan.duckdb_sql, tables, types or plan.types, plan.macros)
            names = [plan.named(name) for name in fetched.table.column_names]
            return replace(fetched, table=fetched.table.rename_columns(names)) if plan.written else fetched
        except BindError as error:
            if isinstance(plan.refusal, BindError) and not plan.bound:
                raise plan.refusal from error
            raise

    def check_for_spark(self, plan: QueryPlan) -> None:
        """Raises the reason why a plan cannot run on Spark."""
        if plan.bound or not isinstance(plan.refusal, BindError):
            plan.for_spark()
            return
        try:
            self._database.describe(plan.duckdb_sql, self.loader.empty(plan), plan.macros)
        except BindError:
            raise plan.refusal from None
        raise UnsupportedFeatureError(f"This query is not supported on Spark yet: {plan.refusal}")

    def described(self, plan: QueryPlan) -> list[Described]:
        """Returns the columns of a query from DuckDB, without running it.

        Raises:
            BindError: a name does not exist.
            SqlError, UnsupportedFeatureError: DuckDB cannot bind it.
        """
        tables = self.loader.declared(plan)
        if not plan.bound and PIVOTS & set(words_of(plan.duckdb_sql)):  # rows decide about its columns
            info = RunInfo()
            loaded = self.load_all(plan, info)
            if not self.placed(plan, loaded, info).is_here:
                raise UnsupportedFeatureError("DESCRIBE of PIVOT without IN (…) is not supported on Spark.")
            tables = {view: rows.here().duckdb_query for view, rows in loaded.items()}
        found = self._database.described(plan.duckdb_sql, tables, plan.macros)
        return [(plan.named(name), kind, nullable, default) for name, kind, nullable, default in found]

    def columns(self, plan: QueryPlan) -> list[tuple[str, str]] | None:
        """Returns (name, type) of a query's columns from DuckDB, without running it; None if DuckDB cannot bind it."""
        return self._described(plan, self.loader.empty(plan))

    def _described(self, plan: QueryPlan, tables: Mapping[str, pa.Table | DuckDbQuery]) -> list[tuple[str, str]] | None:
        try:
            return [
                (plan.named(name), kind) for name, kind in self._database.describe(plan.duckdb_sql, tables, plan.macros)
            ]
        except (SqlError, UnsupportedFeatureError):
            return None

    def row_query(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> RowQuery | None:
        """Returns the plan as a query for workers, each over a part of its only table; None if Spark must run it.

        Remote files are left to Spark, which reads fewer of their bytes.
        """
        if len(plan.sources) != 1 or not plan.bound:
            return None
        (source,) = plan.sources
        rows = loaded.get(source.view)
        if source.located or not isinstance(rows, Scan) or not rows.virtual:
            return None
        if facts_of_rows([rows]).is_fetched or not self._database.is_row_by_row(plan.duckdb_sql, source.view):
            return None
        columns = [(name, type_or_none(kind)) for name, kind in self.columns(plan) or ()]
        typed = tuple((name, kind) for name, kind in columns if kind is not None)
        if not typed or len(typed) < len(columns):
            return None
        if not self._engine.has_workers():
            return None
        return RowQuery(plan.duckdb_sql, source.view, typed, self._database.time_zone())

    def key_query(self, plan: QueryPlan, loaded: Mapping[str, Rows]) -> RowQuery | None:
        """Returns `join_keys.key_query` of a plan; None if workers cannot run it."""
        query = key_query(plan, loaded, self._database.time_zone())
        return query if query is not None and self._engine.has_workers() else None

    def run_spark_text(self, text: str, params: Mapping[str, object] | None) -> Result:
        """Returns the lazy result of a query in Spark SQL, which may name tables of lakes.

        Raises:
            UnsupportedFeatureError: it is not a query.
        """
        plan = plan_spark_text(text, self.names)
        info = RunInfo()
        self.names.note_definitions(plan, info)
        loaded = {source.view: self.loader.load(source, info) for source in plan.sources}
        self._lakes.reads.note_unknown()
        # only named parameters: a notebook passes all its variables, and Spark would convert each to a literal
        named = parameters(text, params) if params is not None else None
        return Result(OnSpark(self.spark_frame(plan, loaded, named, as_user=True)), info=info, engine=self._engine)

    def spark_frame(
        self,
        plan: QueryPlan,
        loaded: Mapping[str, Rows],
        params: Mapping[str, object] | None = None,
        as_user: bool = False,
    ) -> DataFrame:
        """Returns a lazy, checked DataFrame of a plan over its sources; `as_user` as in `SparkEngine.query`."""
        local = [source for source in plan.sources if source.kind == "local"]
        local_rows = {source.view: InMemory(self._database.run(source.query).table) for source in local}
        return self._engine.query(plan.for_spark(), {**loaded, **local_rows}, params, as_user)

    def run_frame(self, frame: DataFrame) -> None:
        """Computes all rows of a DataFrame and keeps none."""
        with self._engine.running():
            frame.write.format("noop").mode("overwrite").save()

    def load_all(
        self,
        plan: QueryPlan,
        info: RunInfo,
        *,
        describe: bool = False,
        purpose: Purpose = "look",
        fetches: int = 0,
    ) -> dict[str, Rows]:
        """Loads the sources of a plan by view, except local ones; see `load`. Reads only small sides of joins.

        Args:
            fetches: DataFrames of at most that many rows are fetched.
        """
        narrowed: dict[str, Source] = {}
        loaded = self._load_all(plan, info, narrowed, describe=describe, purpose=purpose, fetches=fetches)
        for source in plan.sources:
            if isinstance(source.rows, LakeTable):
                self.loader.note(source.rows, narrowed.get(source.view, source))
        return loaded

    def _load_all(
        self,
        plan: QueryPlan,
        info: RunInfo,
        narrowed: dict[str, Source],
        *,
        describe: bool,
        purpose: Purpose,
        fetches: int,
    ) -> dict[str, Rows]:
        """Loads as `load_all`, and fills in the sources that the small sides of joins have narrowed."""
        sources = [source for source in plan.sources if source.kind != "local"]
        effects: Effects = "skip" if describe else "refuse"
        self.names.note_definitions(plan, info)
        with self.names.system.one_statement():
            loaded = {
                source.view: self.loader.load(source, info, effects=effects, is_noted=False) for source in sources
            }
        if fetches:
            loaded = {view: rows.run_by(self._engine).fetched(fetches) for view, rows in loaded.items()}
        if not any(source.keys for source in sources) or describe:
            return loaded
        placing = self._engine.placing
        if not placing.reads_sides_first(info.bytes_read, lambda: self.placed(plan, loaded, info, purpose)):
            return loaded
        predicates = {source.view: source.predicate for source in sources}
        for source in sources:
            rows = loaded[source.view]
            if not isinstance(rows, Scan) or len(rows.plan.files) < 2:
                continue
            small: dict[str, tuple[ScanPlan | pa.Table, Predicate | None]] = {
                view: (side, predicates[view])
                for view, other in loaded.items()
                if any(key.view == view for key in source.keys)
                and (side := small_side(other, rows, placing)) is not None
            }
            implied_predicate = implied(source.keys, small)
            if implied_predicate is not None:
                terms = [implied_predicate] if source.predicate is None else [source.predicate, implied_predicate]
                info.forget(rows.plan)
                narrowed[source.view] = replace(source, predicate=And(tuple(terms)))
                loaded[source.view] = self.loader.load(narrowed[source.view], info, is_noted=False)
        return loaded

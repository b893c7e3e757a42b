"""Statements on the session's own database: temporary tables, variables, settings, local files."""

from __future__ import annotations

from collections.abc import Sequence

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.catalog.metadata import run_on_metadata
from ducklake_lab.duckdb import canonical
from ducklake_lab.engine.in_process.database import SessionDatabase
from ducklake_lab.engine.rows import InMemory
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import (
    BindError,
    DuckLakeError,
    SqlSyntaxError,
    TransactionError,
    UnsupportedFeatureError,
    UsageError,
)
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.session.rows.result import Result, RunInfo, count_result, nothing
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.session.statements.describing import described
from ducklake_lab.session.statements.settings import Setting, apply, is_duckdb_setting, is_lake_setting, read_setting
from ducklake_lab.session.transactions.transactions import Transactions
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import plan_in_process
from ducklake_lab.sql.parse.parser import pivot_as_query
from ducklake_lab.sql.parse.references import PIVOTS, Target, target_of, without_qualifier, words_of
from ducklake_lab.sql.parse.tokens import split
from ducklake_lab.sql.plan import DESCRIBERS, StoredView

#: First words of statements that only read, or change no lake.
_READS = frozenset(
    "SUMMARIZE PIVOT UNPIVOT PIVOT_WIDER PIVOT_LONGER DESCRIBE DESC SHOW FROM SELECT WITH VALUES".split()
)
#: Kinds of entries that store a query.
_KEPT = ("VIEW", "MACRO", "FUNCTION")
#: First words of DuckDB's statements without an effect here; accepted for scripts that use them.
_PASSED = frozenset("SET RESET PRAGMA ANALYZE VACUUM".split())
#: Extensions of DuckDB that need no installation here.
_EXTENSIONS = frozenset(
    "ducklake parquet json icu core_functions sqlite sqlite_scanner postgres postgres_scanner httpfs autocomplete".split()
)
#: Texts that DuckDB reads as false.
_FALSE = ("false", "f", "no", "n", "0")


class LocalStatements:
    """Runs statements that concern no lake, and recognises them."""

    def __init__(
        self, transactions: Transactions, sources: Sources, database: SessionDatabase, engine: SparkEngine
    ) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._sources = sources
        self._database = database
        self._engine = engine

    def owns(self, statement: op.Statement) -> bool:
        """Returns whether a statement creates, changes or drops an entry of the session's own database."""
        if isinstance(statement.operation, op.InsertLiterals):
            return self._sources.names.owns(statement.operation.table)
        target = target_of(statement.sql)
        return target is not None and self._is_own(target, words_of(statement.sql)[0] == "CREATE")

    def _is_own(self, target: Target, creates: bool) -> bool:
        if target.temporary:
            return True
        name = target.reference.name
        if target.kind == "VIEW" and name.schema is None and self._database.has_temporary(name.name):
            return True
        if target.kind in ("SCHEMA", "DATABASE"):
            # the qualifier of a schema is a database; an unqualified schema is in the current database
            where = name.schema
            return self._sources.names.owns(op.TableName(where, "main", name.name)) if where else self._lakes.at_home
        if creates and name.catalog is None and (name.schema or "main").casefold() == "main":
            return self._lakes.at_home
        return self._sources.names.owns(name)

    def metadata_target(self, statement: op.Statement) -> Lake | None:
        """Returns the lake whose catalog database a statement changes directly; None for other statements."""
        if isinstance(statement.operation, op.InsertLiterals):
            name = statement.operation.table
        elif (target := target_of(statement.sql)) is not None:
            name = target.reference.name
        else:
            return None
        alias = name.catalog or name.schema
        return self._lakes.metadata_of(alias) if alias is not None else None

    def write_metadata(self, lake: Lake, statement: op.Statement) -> Result:
        """Runs a statement in the catalog database; it may name only tables there.

        Raises:
            TransactionError: a transaction is open, or the lake is read-only.
            CatalogError: the database refuses the statement.
        """
        if self._lakes.in_transaction:
            raise TransactionError("Metadata tables can be changed only outside of a transaction; COMMIT first.")
        lake.check_not_read_only()
        rows, count = run_on_metadata(lake.database, without_qualifier(statement.sql, lake.metadata_name))
        lake.cache.forget()
        return count_result(count, RunInfo()) if rows is None else Result(InMemory(rows), engine=self._engine)

    def run(self, statement: op.Statement) -> Result:
        """Runs a statement on the session's own database; it may read lakes."""
        first = words_of(statement.sql)[0]
        if first in ("CREATE", "ATTACH"):
            self._database.note_entries()
        if first == "CREATE" and (target := target_of(statement.sql)) is not None and target.kind in _KEPT:
            refusal = UnsupportedFeatureError(
                f"A {target.kind.lower()} in the session's database cannot read a lake; use CREATE TEMP VIEW."
            )
            if plan_in_process(statement.sql, self._sources.names, refusal).sources:
                raise refusal
        return self._in_process(
            statement.sql,
            UnsupportedFeatureError("This statement cannot read large tables; its rows are the session's own."),
        )

    def create_view(self, statement: op.Statement, view: op.CreateView) -> Result:
        """Creates a temporary view. Each read of the view resolves its lake tables anew."""
        plan = self._sources.plan(view.query)
        if all(source.kind == "local" for source in plan.sources):
            try:
                return self.run(statement)
            except BindError as error:
                raise plan.refusal if isinstance(plan.refusal, BindError) else error from None
        if view.name.schema is not None:
            raise UnsupportedFeatureError(f"A temporary view has no schema; call it {view.name.name}.")
        try:
            columns = self._database.describe(plan.duckdb_sql, self._sources.loader.empty(plan), plan.macros)
        except BindError as error:
            raise plan.refusal if isinstance(plan.refusal, BindError) else error from None
        if len(view.columns) > len(columns):
            raise BindError(f"{view.name.name} names {len(view.columns)} columns, but its query has {len(columns)}.")
        names = [*view.columns, *(name for name, _ in columns[len(view.columns) :])]
        lake = self._lakes.current
        schema = self._lakes.current_schema if lake is not None else None
        stored = StoredView(
            view.name.name,
            canonical.query_text(view.sql),
            view.columns,
            lake.alias if lake is not None else None,
            schema,
            temporary=True,
        )
        values = ", ".join(
            f"CAST(NULL AS {kind}) AS {quote_identifier(name)}" for name, (_, kind) in zip(names, columns, strict=True)
        )
        create = (
            f"CREATE {'OR REPLACE ' if view.replace else ''}TEMP VIEW {'IF NOT EXISTS ' if view.if_not_exists else ''}"
        )
        found_by = quote_text(self._sources.names.add_view(stored))
        self._database.note_entries()
        self._database.run(
            f"{create}{quote_identifier(view.name.name)} AS SELECT {values} WHERE error({found_by}) IS NULL"
        )
        return nothing()

    def run_other(self, statement: op.Statement, other: op.Other) -> Result:
        """Runs a statement without an operation, if it concerns the session's database.

        Raises:
            UnsupportedFeatureError, SqlSyntaxError: it does not.
        """
        first = other.words[0]
        if self.owns(statement):
            return self.run(statement)
        if first in ("LOAD", "INSTALL", "FORCE", "UPDATE_EXTENSIONS"):
            return self._load(statement)
        setting = read_setting(statement.sql) if first in ("SET", "RESET", "PRAGMA") else None
        if setting is not None and is_lake_setting(setting):
            apply(setting, self._setting_value(setting), self._lakes)
            if not is_duckdb_setting(setting):
                return nothing()
        if setting is not None and setting.name == "immediate_transaction_mode":
            self._transactions.immediate = bool(self._setting_value(setting))
        if setting is not None:
            self._refuse_setting(setting)
        if first == "PRAGMA" and set(other.words[1:2]) & {"ENABLE_VERIFICATION", "DISABLE_VERIFICATION"}:
            return nothing()  # otherwise DuckDB verifies each query, and crashes on rows from the program
        words = split(statement.sql)[0]
        if first == "PRAGMA" and len(words) > 3 and f"pragma_{words[1].text.casefold()}" in DESCRIBERS:
            return self._in_process(f"FROM pragma_{statement.sql[words[1].start :]}", other.refusal)
        if _prints_profiles(setting, other.words):
            raise UnsupportedFeatureError(
                "Profiles that DuckDB prints are not supported; EXPLAIN ANALYZE gives that of a query as its result."
            )
        if first in _PASSED:
            if setting is not None and setting.name == "timezone" and (setting.value or "").casefold() == "null":
                raise UsageError(
                    "TimeZone is the name of a time zone, not NULL; RESET TimeZone sets the process's own."
                )
            result = self._in_process(statement.sql, other.refusal)
            self._database.note_settings()
            return result
        if first == "WITH" and target_of(statement.sql) is not None:
            raise other.refusal  # it changes rows
        if first == "CALL" and len(other.words) > 1:
            self.refuse_call(other.words[1])
        if first in _READS or (first == "EXPLAIN"):
            return self._in_process(statement.sql, other.refusal)
        raise other.refusal

    def _refuse_setting(self, setting: Setting) -> None:
        """Refuses settings of DuckDB's that lakes would not follow."""
        if setting.name in ("schema", "search_path") and self._lakes.current is not None:
            raise UnsupportedFeatureError(
                f"The setting {setting.name} is not supported with a lake in use; write USE, with the lake and its schema."
            )
        if setting.name == "preserve_identifier_case" and str(self._setting_value(setting)).casefold() in _FALSE:
            raise UnsupportedFeatureError(
                "preserve_identifier_case = false is not supported: lakes keep names as they are written."
            )

    def refuse_call(self, function: str) -> None:
        """Refuses CALL of a table function of DuckDB's; does nothing for other names."""
        if self._database.has_table_function(function):
            raise UnsupportedFeatureError(
                f"CALL of DuckDB's function {function.casefold()} is not supported; write FROM {function.casefold()}(…)."
            )

    def _setting_value(self, setting: Setting) -> object:
        if setting.value is None:
            return None
        if setting.value.isidentifier() and setting.value.casefold() not in ("true", "false", "null"):
            return setting.value
        return self._sources.names.value(op.SqlConstant(setting.value))

    def _load(self, statement: op.Statement) -> Result:
        """Runs LOAD or INSTALL; ignores the extensions for lakes, which are built in."""
        if not _EXTENSIONS & {name.casefold() for name in words_of(statement.sql)}:
            self._database.run(statement.sql)
        return nothing()

    def _in_process(self, sql: str, refusal: DuckLakeError) -> Result:
        plan = plan_in_process(sql, self._sources.names, refusal, pivot_as_query(sql))
        info = RunInfo()
        loaded = {source.view: self._sources.loader.load(source, info) for source in plan.sources}
        if not self._sources.placed(plan, loaded, info).is_here:
            if plan.refusal is None:
                return self._sources.run(plan)
            words = words_of(sql)
            if words[0] in ("DESCRIBE", "DESC") and words[1] in PIVOTS:
                pivot = self._in_process(sql[split(sql)[0][1].start :], refusal)
                return described(
                    (name, kind, True, None) for name, kind in zip(pivot.columns, pivot.types, strict=True)
                )
            if isinstance(refusal, SqlSyntaxError):
                raise UnsupportedFeatureError(
                    "This statement cannot read large tables: it is not supported on Spark yet."
                )
            raise plan.refusal
        rows = self._sources.run_in_process(plan, loaded)
        if rows.table.column_names == ["Count"] and rows.table.num_rows == 1:
            return count_result(rows.table.column(0)[0].as_py(), info)
        if rows.table.column_names in ([], ["Count"], ["Success"]):
            return nothing(info)
        return Result(InMemory(rows.table), types=rows.types, info=info, engine=self._engine)


def _prints_profiles(setting: Setting | None, words: Sequence[str]) -> bool:
    """Returns whether a setting makes DuckDB print a profile with each result."""
    if setting is not None:
        value = (setting.value or "no_output").strip("'").casefold()
        return setting.name in ("enable_profiling", "enable_profile", "profiling_mode") and value not in (
            "no_output",
            "",
        )
    return words[0] == "PRAGMA" and bool(set(words[1:2]) & {"ENABLE_PROFILING", "ENABLE_PROFILE"})

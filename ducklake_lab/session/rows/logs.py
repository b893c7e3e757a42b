"""DuckDB's log of the session, and in it the queries to the catalogs of lakes (spec: advanced_features/logging)."""

from __future__ import annotations

import re

from ducklake_lab.catalog.options import SessionOptions
from ducklake_lab.engine.in_process.database import SessionDatabase

#: Functions of DuckDB's that set up its log.
FUNCTIONS = frozenset(("enable_logging", "disable_logging", "truncate_duckdb_logs"))
#: The type of what is logged of catalogs; only DuckDB's own extension has it registered.
LOG_TYPE = "DuckLakeMetadata"
#: What `duckdb_logs_parsed` gives for that type.
PARSED = (
    "SELECT * EXCLUDE (message), unnest(message::STRUCT(catalog VARCHAR, query VARCHAR, elapsed_ms BIGINT)) "
    f"FROM duckdb_logs WHERE type = '{LOG_TYPE}'"
)
_NAMED = re.compile(f"'{LOG_TYPE}'", re.IGNORECASE)
#: A type that DuckDB knows, and of which little is logged in between.
_STAND_IN = "HTTP"


def set_up_log(function: str, sql: str, options: SessionOptions, database: SessionDatabase) -> None:
    """Runs a call of one of the functions; from then on queries to catalogs are logged, or no longer.

    They are where their type is named, or none is and the level decides. What writes them is a query itself.

    Args:
        function: its name in lower case.
        sql: the statement.
    """
    is_named = _NAMED.search(sql) is not None
    database.run(_NAMED.sub(f"'{_STAND_IN}'", sql))
    settings = database.run("SELECT current_setting('enabled_log_types') AS types").table
    types = {name for name in settings.column("types")[0].as_py().split(",") if name}
    is_wanted = is_named or not types
    if is_named:
        # settings may name types that are not registered
        types.add(LOG_TYPE)
        if _STAND_IN not in sql.upper():
            types.remove(_STAND_IN)
        database.run("SET logging_level = 'debug'")
        database.run(f"SET enabled_log_types = '{','.join(sorted(types))}'")
    if function != "truncate_duckdb_logs":
        options.report = None
    if function == "enable_logging" and is_wanted:
        options.report = lambda lake, query, seconds: database.write_log(
            LOG_TYPE, {"catalog": lake, "query": query, "elapsed_ms": int(seconds * 1000)}
        )

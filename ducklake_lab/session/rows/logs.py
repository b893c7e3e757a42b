"""DuckDB's log of the session, including the queries to catalogs of lakes (spec: advanced_features/logging)."""

from __future__ import annotations

import re

from ducklake_lab.catalog.options import SessionOptions
from ducklake_lab.engine.in_process.database import SessionDatabase

#: DuckDB's functions that configure its log.
FUNCTIONS = frozenset(("enable_logging", "disable_logging", "truncate_duckdb_logs"))
#: The log type for catalog queries; only DuckDB's own extension registers it.
LOG_TYPE = "DuckLakeMetadata"
#: The columns of `duckdb_logs_parsed` for that type.
PARSED = (
    "SELECT * EXCLUDE (message), unnest(message::STRUCT(catalog VARCHAR, query VARCHAR, elapsed_ms BIGINT)) "
    f"FROM duckdb_logs WHERE type = '{LOG_TYPE}'"
)
_NAMED = re.compile(f"'{LOG_TYPE}'", re.IGNORECASE)
#: A log type that DuckDB knows, with few entries meanwhile.
_STAND_IN = "HTTP"


def set_up_log(function: str, sql: str, options: SessionOptions, database: SessionDatabase) -> None:
    """Runs a call of such a function, and starts or stops the log of catalog queries.

    They are logged if the call names their type, or names none and the log level includes them.

    Args:
        function: the function's name in lower case.
        sql: the statement.
    """
    is_named = _NAMED.search(sql) is not None
    database.run(_NAMED.sub(f"'{_STAND_IN}'", sql))
    settings = database.run("SELECT current_setting('enabled_log_types') AS types").table
    types = {name for name in settings.column("types")[0].as_py().split(",") if name}
    is_wanted = is_named or not types
    if is_named:
        # DuckDB refuses settings with unregistered types
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

"""DuckDB's SQL in: statements, then plans that Spark or DuckDB can run. No catalog and no engine is touched."""

from ducklake_lab.sql.parser import parse
from ducklake_lab.sql.plan import QueryPlan, Resolver, Source
from ducklake_lab.sql.planner import plan_query
from ducklake_lab.sql.writes import plan_delete, plan_insert, plan_update

__all__ = [
    "QueryPlan",
    "Resolver",
    "Source",
    "parse",
    "plan_delete",
    "plan_insert",
    "plan_query",
    "plan_update",
]

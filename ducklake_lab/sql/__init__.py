"""Converts DuckDB's SQL to statements, and statements to plans for Spark or DuckDB. Uses no catalog and no engine."""

from ducklake_lab.sql.parse.parser import parse, parse_query
from ducklake_lab.sql.plan import QueryPlan, Resolver, Source
from ducklake_lab.sql.planning.merge import plan_merge
from ducklake_lab.sql.planning.planner import plan_in_process, plan_query
from ducklake_lab.sql.planning.spark_text import plan_spark_text
from ducklake_lab.sql.planning.writes import plan_delete, plan_insert, plan_update, targets

__all__ = [
    "QueryPlan",
    "Resolver",
    "Source",
    "parse",
    "parse_query",
    "plan_delete",
    "plan_in_process",
    "plan_insert",
    "plan_merge",
    "plan_query",
    "plan_spark_text",
    "plan_update",
    "targets",
]

"""Spark's dialect as this package writes it."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from ducklake_lab.sql.spark.nodes import SparkCast


class SparkSql(Spark):
    """Spark SQL for the planner; the tree already has Spark's meaning."""

    INDEX_OFFSET = 0

    class Generator(SparkGenerator):
        #: Spark takes WITH in every query, as DuckDB does; at the top, equal names of two queries would clash.
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()

        def literal_sql(self, expression: exp.Literal) -> str:
            # Spark replaces ${name} in the text of a statement, even inside quotes.
            return super().literal_sql(expression).replace("${", "\\u0024{")

        TRANSFORMS: ClassVar[Any] = {
            **SparkGenerator.TRANSFORMS,
            SparkCast: lambda self, node: (
                f"{'TRY_CAST' if node.args.get('safe') else 'CAST'}({self.sql(node, 'this')} AS {node.args['kind']})"
            ),
        }

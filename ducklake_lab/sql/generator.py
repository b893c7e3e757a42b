"""Prints syntax trees as DuckDB reads them, where the base generator drops or adds a part."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp

from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.operators import OperatorGenerator
from ducklake_lab.sql.pivot_syntax import Unpivoted


class DuckLakeGenerator(OperatorGenerator):
    """DuckDB's generator as this package writes SQL."""

    TRANSFORMS: ClassVar[Any] = {
        **OperatorGenerator.TRANSFORMS,
        Unpivoted: lambda self, node: f"UNPIVOT ({self.expressions(node, flat=True)})",  # in errors alone
        # The base generator writes a cast empty map as a map of a map.
        exp.ToMap: lambda self, node: f"MAP {self.sql(node, 'this')}" if node.this.expressions else "MAP {}",
    }
    # FLOAT accepts a number of bits, REAL accepts none.
    TYPE_MAPPING: ClassVar[Any] = {**OperatorGenerator.TYPE_MAPPING, exp.DType.FLOAT: "FLOAT"}

    def datatype_sql(self, expression: exp.DataType) -> str:
        # The base generator drops sizes that DuckDB refuses, in the tree as well.
        if not expression.expressions or not expression.is_type(
            exp.DType.TIME, exp.DType.TIMETZ, exp.DType.TIMESTAMPTZ
        ):
            return super().datatype_sql(expression)
        return f"{super().datatype_sql(expression.copy())}({self.expressions(expression, flat=True)})"

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        # DuckDB reads arguments after a bare `position` only as `position(x IN y)`.
        quoted = '"position"' if expression.name.casefold() == "position" else None
        return f"{quoted}({self.expressions(expression, flat=True)})" if quoted else super().anonymous_sql(expression)

    def ignorenulls_sql(self, expression: exp.IgnoreNulls) -> str:
        # The base generator omits it in calls that it does not know as aggregates.
        return f"{self.sql(expression, 'this')} IGNORE NULLS"

    def ordered_sql(self, expression: exp.Ordered) -> str:
        # The base generator omits DuckDB's default, but a setting may change that default.
        last = notes(expression).null_order_is_written and not expression.args.get("nulls_first")
        return super().ordered_sql(expression) + (" NULLS LAST" if last else "")

    def distinct_sql(self, expression: exp.Distinct) -> str:
        # The base generator makes one tuple of the arguments, including string_agg's separator.
        if expression.args.get("on"):
            return super().distinct_sql(expression)
        return f"DISTINCT {self.expressions(expression, flat=True)}".rstrip()

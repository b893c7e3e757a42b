"""Protocol of a query's translation, for the modules that translate single forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import Evaluation
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark.operands import Context
from ducklake_lab.sql.spark.typing import Lifted


class Translating(Context, Protocol):
    """The translation of one query.

    Attributes:
        evaluations: expressions that workers evaluate, by name.
    """

    evaluations: dict[str, Evaluation]

    def translate(self, node: exp.Expr) -> exp.Expr:
        """Returns the Spark tree of a node, built from the node's own parts."""

    def children(self, node: exp.Expr) -> exp.Expr:
        """Translates the children of a node in place."""

    def part(self, node: exp.Expr, key: str) -> None:
        """Translates one argument of a node in place."""

    def scalar(self, node: exp.Expr) -> exp.Expr:
        """Translates an expression, for Spark or a worker."""

    def truth(self, node: exp.Expr) -> exp.Expr:
        """Translates a condition, for Spark or a worker."""

    def is_argument(self, node: exp.Expr) -> bool:
        """Returns whether a node is computed before its enclosing expression."""

    def argument(self, node: exp.Expr) -> exp.Expr:
        """Translates a node that is computed before its enclosing expression."""

    def argument_type(self, node: exp.Expr) -> DataType:
        """Returns the type of a node that a worker receives."""

    def check_scope(self, found: Lifted) -> None:
        """Raises if an expression has columns of both a query and the enclosing one."""

    def of_worker(
        self,
        sql: str,
        kinds: Sequence[DataType],
        result: DataType,
        arguments: Sequence[exp.Expr],
        *,
        columns: tuple[str, ...] = (),
    ) -> exp.Expr:
        """Returns a call of an expression that a worker evaluates; errors name its arguments by `columns`."""

"""Protocol of a query's translation, for the forms that it is translated by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import Evaluation
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.spark.operands import Context
from ducklake_lab.sql.spark.typing import Lifted


class Translating(Context, Protocol):
    """One query on its way to Spark.

    Attributes:
        evaluations: by name, expressions that workers have to evaluate.
    """

    evaluations: dict[str, Evaluation]

    def translate(self, node: exp.Expr) -> exp.Expr:
        """The Spark tree for a node; made from the node's own parts."""

    def children(self, node: exp.Expr) -> exp.Expr:
        """Translates the children of a node in place."""

    def part(self, node: exp.Expr, key: str) -> None:
        """Translates one argument of a node in place."""

    def scalar(self, node: exp.Expr) -> exp.Expr:
        """An expression, by Spark or by a worker."""

    def truth(self, node: exp.Expr) -> exp.Expr:
        """A condition, by Spark or by a worker."""

    def is_argument(self, node: exp.Expr) -> bool:
        """Whether a node is computed before the expressions it stands in."""

    def argument(self, node: exp.Expr) -> exp.Expr:
        """A node that is computed before the expressions it stands in."""

    def argument_type(self, node: exp.Expr) -> DataType:
        """The type of a node that a worker is given."""

    def check_scope(self, found: Lifted) -> None:
        """Raises where an expression has columns of a query and of the one around it."""

    def of_worker(
        self,
        sql: str,
        kinds: Sequence[DataType],
        result: DataType,
        arguments: Sequence[exp.Expr],
        *,
        columns: tuple[str, ...] = (),
    ) -> exp.Expr:
        """A call of an expression that a worker evaluates; errors call what it is computed of by `columns`."""

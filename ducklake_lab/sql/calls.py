"""A function call on its way to Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.inference import Type


@dataclass(frozen=True, slots=True)
class Call:
    """A call to translate.

    Attributes:
        args: the arguments, already Spark's.
        written: the arguments as they were in the DuckDB tree.
        types: their types.
        wrap: puts FILTER and OVER around the aggregate at the core of the result.
    """

    name: str
    args: list[exp.Expr]
    written: list[exp.Expr]
    types: list[Type]
    wrap: Callable[[exp.Expr], exp.Expr] = field(default=lambda node: node)

    def literal(self, index: int, what: str) -> str:
        """The text of a literal argument.

        Raises:
            UnsupportedFeatureError: it is computed.
        """
        if index < len(self.written):
            node = self.written[index].unnest()
            if isinstance(node, exp.Literal):
                return node.name
        raise UnsupportedFeatureError(f"{self.name} needs a constant {what} to run on Spark.")


Build = Callable[[Call], exp.Expr]

"""Protocol of the binder, for the clauses that it binds by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from sqlglot import exp

from ducklake_lab.sql.operations import At, TableName
from ducklake_lab.sql.plan import Resolver, Source, StoredMacro, StoredView
from ducklake_lab.sql.scope import Ctes, Output, Outputs, Scope


class Binding(Protocol):
    """A statement that is being bound.

    Attributes:
        sources: those found so far.
        expanding: the views and macros around the place that is bound.
    """

    resolver: Resolver
    sources: list[Source]
    expanding: tuple[tuple[object, ...], ...]

    def query(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Outputs:
        """Binds a query in place; returns its output columns, None where they are not known."""

    def expression(
        self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None
    ) -> exp.Expr:
        """Binds an expression in place; returns what stands in its place."""

    def children(self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None) -> None:
        """Binds the expressions below a node in place."""

    def view_name(self) -> str:
        """A name for the next source."""

    def owns(self, name: TableName) -> bool:
        """Whether a name is one of the session's own database."""

    def hint(self, name: TableName) -> str:
        """An addition to the message of a missing table."""

    def table(self, name: TableName, at: At | None) -> tuple[Source, tuple[Output, ...]] | StoredView:
        """A table as a new source, or the view of that name."""

    def view(self, view: StoredView, at: At | None) -> tuple[exp.Expr, Outputs]:
        """The bound query of a view, and its columns under their names."""

    def find_macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """The macro that a call means."""

    def table_macro(
        self, macro: StoredMacro, call: exp.Anonymous, scope: Scope, ctes: Ctes
    ) -> tuple[exp.Expr, Outputs]:
        """The bound query that a call of a table macro stands for, and its columns."""

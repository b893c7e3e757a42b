"""Protocol of the binder, for the modules that bind single clauses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from sqlglot import exp

from ducklake_lab.sql.bind.frame import Frame
from ducklake_lab.sql.notes import Output, Outputs
from ducklake_lab.sql.operations import At, TableName
from ducklake_lab.sql.plan import Resolver, Source, StoredMacro, StoredView
from ducklake_lab.sql.scope import Ctes, Scope


class Binding(Protocol):
    """A statement during binding.

    Attributes:
        sources: the sources found so far.
        expanding: the views and macros around the current node.
        frame: the text around the current node.
    """

    resolver: Resolver
    sources: list[Source]
    expanding: tuple[tuple[object, ...], ...]
    frame: Frame

    def query(self, node: exp.Expr, parent: Scope | None, ctes: Ctes) -> Outputs:
        """Binds a query in place; returns its output columns, None if they are unknown."""

    def expression(
        self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None
    ) -> exp.Expr:
        """Binds an expression in place; returns its replacement."""

    def children(self, node: exp.Expr, scope: Scope, ctes: Ctes, aliases: Mapping[str, exp.Expr] | None = None) -> None:
        """Binds the expressions below a node in place."""

    def view_name(self) -> str:
        """Returns a name for the next source."""

    def owns(self, name: TableName) -> bool:
        """Returns whether a name belongs to the session's own database."""

    def hint(self, name: TableName) -> str:
        """Returns a hint for the message of a missing table."""

    def table(self, name: TableName, at: At | None) -> tuple[Source, tuple[Output, ...]] | StoredView:
        """Returns a table as a new source, or the view with that name."""

    def view(self, view: StoredView, at: At | None) -> tuple[exp.Expr, Outputs, str]:
        """Returns the bound query of a view, its columns under their names, and its text."""

    def find_macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """Returns the macro that a call names."""

    def table_macro(
        self, macro: StoredMacro, call: exp.Anonymous, scope: Scope, ctes: Ctes
    ) -> tuple[exp.Expr, Outputs, str]:
        """Returns the bound query of a table macro's call, its columns, and the macro's name in the text."""

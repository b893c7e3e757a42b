"""Binds the query of a live table."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.sql.bind.binder import QueryBinder
from ducklake_lab.sql.bind.expansion import normalised
from ducklake_lab.sql.operations import Query
from ducklake_lab.sql.plan import Resolver, Source
from ducklake_lab.sql.refresh.blocks import NotProven, prepared


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query in the form that `refresh_queries` takes.

    Attributes:
        sources: its tables; the tree names each by its view.
    """

    tree: exp.Expr
    sources: tuple[Source, ...]


def bind(query: Query, resolver: Resolver) -> BoundQuery:
    """Binds a query.

    Raises:
        NotProven: its columns are not known, or no rule covers a part of it.
        BindError, UnsupportedFeatureError: a name does not exist, or is not resolved before the query runs.
    """
    tree = normalised(query.tree)
    binder = QueryBinder(resolver, None)
    if binder.query(tree, None, {}) is None:
        raise NotProven("columns that are not known before it runs")
    sources = tuple(binder.sources)
    return BoundQuery(prepared(tree, [source.view for source in sources]), sources)

"""Graph of lineage: edges between columns of tables and views, and what a column comes from and leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

#: A value comes from the column; the column decides which rows come; rows come from the table.
Kind = Literal["value", "condition", "rows"]
Direction = Literal["upstream", "downstream"]


@dataclass(frozen=True, slots=True)
class Node:
    """A table or view, or a column of one.

    Attributes:
        entry_id: its id in the catalog.
        column: the id of a table's column, the name of a view's; None for the whole.
    """

    entry_id: int
    column: int | str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency.

    Attributes:
        via: the statement that makes it, e.g. `CREATE VIEW`.
        snapshot_id: the last snapshot that did; None for a view.
    """

    source: Node
    target: Node
    kind: Kind
    via: str
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An edge on the way from or to a column.

    Attributes:
        depth: the number of edges between, 1 for the nearest.
    """

    direction: Direction
    depth: int
    edge: Edge


@dataclass(slots=True)
class Graph:
    """Edges without duplicates: the last snapshot of an edge stays.

    Attributes:
        untraced: views and live tables whose queries cannot be read here, so that their edges are missing.
    """

    _edges: dict[tuple[Node, Node, Kind, str], Edge] = field(default_factory=dict)
    untraced: list[Node] = field(default_factory=list)

    def add(self, edges: Iterable[Edge]) -> None:
        """Adds edges; later ones replace equal earlier ones."""
        for edge in edges:
            self._edges[edge.source, edge.target, edge.kind, edge.via] = edge

    def __iter__(self) -> Iterator[Edge]:
        return iter(self._edges.values())

    def around(self, chosen: Callable[[Node], bool]) -> list[Step]:
        """Returns the steps to what the chosen nodes come from, then those to what depends on them, nearest first."""
        return [*self._walk(chosen, "upstream"), *self._walk(chosen, "downstream")]

    def _walk(self, chosen: Callable[[Node], bool], direction: Direction) -> list[Step]:
        edges = list(self)
        near = {edge: _ends(edge, direction) for edge in edges}
        reached = {near[edge][0] for edge in edges if chosen(near[edge][0])}
        steps: dict[Edge, Step] = {}
        depth = 0
        while reached:
            depth += 1
            following: set[Node] = set()
            for edge in edges:
                start, end = near[edge]
                if edge in steps or start not in reached:
                    continue
                steps[edge] = Step(direction, depth, edge)
                if edge.kind == "value":
                    following.add(end)
            reached = following
        return list(steps.values())


def _ends(edge: Edge, direction: Direction) -> Sequence[Node]:
    return (edge.target, edge.source) if direction == "upstream" else (edge.source, edge.target)

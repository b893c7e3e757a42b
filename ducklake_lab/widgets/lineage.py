"""Picture of lineage: boxes of tables and views, with what a chosen one comes from on the left and what depends on it on the right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ducklake_lab.widgets.html import cell, clip, counted, escape, heading, scroll, table

#: One row of `session.lineage`: its columns by name.
Row = Mapping[str, object]
Side = Literal["upstream", "downstream", ""]

_WIDTH, _GAP, _LINE, _HEAD, _BETWEEN = 190, 90, 20, 26, 14
#: Most boxes, and columns of a box; characters of a name in a box, in a title, and rows of the table below.
_BOXES, _COLUMNS, _NAME, _LONG, _ROWS = 60, 40, 25, 200, 200
#: Strokes of the edges by kind, which differ without colour too.
_STROKES = {
    "value": 'stroke="#4f7fd6" stroke-width="1.6"',
    "condition": 'stroke="#c07c00" stroke-width="1.3" stroke-dasharray="5 3"',
    "rows": 'stroke="#7d8590" stroke-width="1.3" stroke-dasharray="1.5 3"',
}
_MEANING = {
    "value": "a value comes from the column",
    "condition": "the column decides which rows come",
    "rows": "rows come, and no column is named",
}

STYLE = """
.dlk .dlk-ln svg text{font-size:12px}
.dlk .dlk-ln .dlk-scroll{max-height:520px;border-bottom:0}
.dlk .dlk-ln path{fill:none;opacity:.85}
.dlk .dlk-ln .dlk-ln-key svg{display:inline-block;vertical-align:middle;margin:0 5px 0 14px}
.dlk .dlk-ln .dlk-ln-key span:first-child svg{margin-left:0}
.dlk .dlk-ln g[tabindex]{cursor:pointer}
.dlk .dlk-ln g[tabindex]:hover rect{fill-opacity:.12}
.dlk .dlk-ln g[tabindex]:focus-visible{outline:none}
.dlk .dlk-ln g[tabindex]:focus-visible rect{stroke:#4f7fd6;stroke-width:2}
.dlk .dlk-ln g[aria-pressed=true] rect{fill:#4f7fd6;fill-opacity:.3}
.dlk .dlk-ln .dlk-ln-chosen path:not(.dlk-ln-on){opacity:.1}
.dlk .dlk-ln .dlk-ln-chosen path.dlk-ln-on{opacity:1;stroke-width:2.4}
"""


@dataclass(slots=True)
class _Box:
    """A table or view of the picture.

    Attributes:
        side: where it is; "" for the chosen one.
        columns: those with edges, and their numbers in the picture; None is the whole.
        layer: the number of boxes to the chosen one.
    """

    side: Side
    name: str
    columns: dict[str | None, int] = field(default_factory=dict)
    layer: int = 0
    x: float = 0
    y: float = 0

    @property
    def shown(self) -> list[str]:
        return [name for name in self.columns if name is not None][:_COLUMNS]

    @property
    def height(self) -> int:
        more = 1 if len(self.columns) - (None in self.columns) > _COLUMNS else 0
        return _HEAD + _LINE * (len(self.shown) + more)

    def middle(self, column: str | None) -> float:
        """Returns the height at which edges of a column end."""
        shown = self.shown
        if column is None:
            return self.y + _HEAD / 2
        line = shown.index(column) if column in shown else len(shown)
        return self.y + _HEAD + _LINE * (line + 0.5)


@dataclass(frozen=True, slots=True)
class _Edge:
    source: tuple[_Box, str | None]
    target: tuple[_Box, str | None]
    row: Row


def drawn(name: str, columns: Sequence[str], rows: Sequence[Row], remarks: Sequence[str] = ()) -> str:
    """Returns the picture of what a table or view comes from and what depends on it, with a table of the same.

    Args:
        name: the chosen one, as `rows` name it.
        columns: all its columns.
        remarks: what the rows lack, in texts.
    """
    said = "".join(f'<p class="dlk-soft">{escape(clip(remark, _LONG))}</p>' for remark in remarks)
    if not rows:
        return (
            f'<div class="dlk-ln">{said}<p>No view, live table or noted statement moves its rows, and it moves none of theirs. '
            "Statements of other clients, and DataFrames, are not known.</p></div>"
        )
    boxes, edges, more = _boxes(name, columns, rows)
    width, height = _place(boxes)
    drawn_boxes = "".join(_box(box) for box in boxes)
    paths = "".join(_path(edge) for edge in edges)
    svg = (
        f'<svg role="group" aria-label="{escape(f"Lineage of {clip(name, _LONG)}")}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{paths}{drawn_boxes}</svg>'
    )
    kinds = [kind for kind in _STROKES if any(edge.row["kind"] == kind for edge in edges)]
    left = f"<p>{counted(more, 'more dependency', 'more dependencies')}: too many to draw.</p>" if more else ""
    return (
        f'<div class="dlk-ln">{scroll(svg, f"Lineage of {clip(name, _LONG)}")}'
        f'<p class="dlk-ln-key dlk-soft">{"".join(map(_key, kinds))}</p>{left}{said}{_listed(rows)}</div>'
    )


def _boxes(name: str, columns: Sequence[str], rows: Sequence[Row]) -> tuple[list[_Box], list[_Edge], int]:
    """Returns the boxes and edges, and the number of edges that are left out."""
    boxes: dict[tuple[Side, str], _Box] = {("", name): _Box("", name)}
    numbers = iter(range(1 << 30))
    chosen = boxes["", name]
    if len(columns) > _COLUMNS:
        # those with edges are shown first
        used = {row[f"{end}_column"] for row in rows for end in ("source", "target") if row[end] == name}
        columns = sorted(columns, key=lambda column: column not in used)
    chosen.columns = {None: next(numbers), **{column: next(numbers) for column in columns}}
    edges: dict[tuple[object, ...], _Edge] = {}
    more = 0
    for row in rows:
        side: Side = "upstream" if row["direction"] == "upstream" else "downstream"
        ends: list[tuple[_Box, str | None]] = []
        for end in ("source", "target"):
            entry, column = str(row[end]), row[f"{end}_column"]
            key: tuple[Side, str] = ("", name) if entry == name else (side, entry)
            if key not in boxes and len(boxes) >= _BOXES:
                break
            box = boxes.setdefault(key, _Box(*key))
            named = None if column is None else str(column)
            if named not in box.columns:
                box.columns[named] = next(numbers)
            ends.append((box, named))
        if len(ends) < 2:
            more += 1
            continue
        numbered = (*(box.columns[column] for box, column in ends), row["kind"], row["via"])
        edges.setdefault(numbered, _Edge(ends[0], ends[1], row))
    _layer(boxes.values(), edges.values())
    return list(boxes.values()), list(edges.values()), more


def _layer(boxes: Iterable[_Box], edges: Iterable[_Edge]) -> None:
    """Puts each box further out than those between it and the chosen one; a circle ends after as many rounds as boxes."""
    all_boxes = list(boxes)
    pairs = {(id(edge.source[0]), id(edge.target[0])): (edge.source[0], edge.target[0]) for edge in edges}
    for _ in all_boxes:
        moved = False
        for source, target in pairs.values():
            near, far = (target, source) if "upstream" in (source.side, target.side) else (source, target)
            if far.side and near is not far and far.layer <= near.layer < len(all_boxes):
                far.layer, moved = near.layer + 1, True
        if not moved:
            return


def _place(boxes: Sequence[_Box]) -> tuple[float, float]:
    """Places the boxes in columns, each column in the middle; returns the size of the picture."""
    by_place: dict[int, list[_Box]] = defaultdict(list)
    for box in boxes:
        by_place[-box.layer if box.side == "upstream" else box.layer].append(box)
    # circles leave places empty
    order = sorted(by_place)
    heights = {at: sum(box.height + _BETWEEN for box in by_place[at]) - _BETWEEN for at in order}
    tallest = max(heights.values())
    for place, at in enumerate(order):
        y = 1 + (tallest - heights[at]) / 2
        for box in by_place[at]:
            box.x, box.y = 1 + place * (_WIDTH + _GAP), y
            y += box.height + _BETWEEN
    return len(order) * (_WIDTH + _GAP) - _GAP + 2, tallest + 2


def _box(box: _Box) -> str:
    outline = 'stroke="currentColor" stroke-opacity=".4"' if box.side else 'stroke="#4f7fd6" stroke-width="2"'
    parts = [
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{_WIDTH}" height="{box.height}" rx="4" fill="currentColor" '
        f'fill-opacity=".04" {outline}/>',
        f'<text x="{box.x + 8:.0f}" y="{box.y + 17:.0f}" font-weight="600">{escape(clip(box.name, _NAME))}'
        f"<title>{escape(clip(box.name, _LONG))}</title></text>",
    ]
    for line, column in enumerate(box.shown):
        y = box.y + _HEAD + _LINE * line
        label = f"{clip(box.name, _LONG)}.{clip(column, _LONG)}"
        parts.append(
            f'<g data-column="{box.columns[column]}" data-name="{escape(label)}">'
            f'<rect x="{box.x + 1:.0f}" y="{y:.0f}" width="{_WIDTH - 2}" height="{_LINE - 1}" fill="currentColor" fill-opacity="0"/>'
            f'<text x="{box.x + 16:.0f}" y="{y + 14:.0f}">{escape(clip(column, _NAME))}</text><title>{escape(label)}</title></g>'
        )
    if len(box.columns) - (None in box.columns) > len(box.shown):
        hidden = len(box.columns) - (None in box.columns) - len(box.shown)
        y = box.y + box.height - _LINE
        parts.append(
            f'<text x="{box.x + 16:.0f}" y="{y + 14:.0f}" opacity=".72">{counted(hidden, "more column")}</text>'
        )
    return "".join(parts)


def _path(edge: _Edge) -> str:
    (source, column), (target, other) = edge.source, edge.target
    y0, y1 = source.middle(column), target.middle(other)
    kind = str(edge.row["kind"])
    if source is target:
        x = source.x + _WIDTH
        curve = f"M{x:.0f} {y0:.0f}C{x + 40:.0f} {y0:.0f} {x + 40:.0f} {y1 + 4:.0f} {x:.0f} {y1 + 4:.0f}"
    else:
        x0, x1 = source.x + _WIDTH, target.x
        bend = max(_GAP / 2, abs(x1 - x0) / 2)
        curve = f"M{x0:.0f} {y0:.0f}C{x0 + bend:.0f} {y0:.0f} {x1 - bend:.0f} {y1:.0f} {x1:.0f} {y1:.0f}"
    return (
        f'<path d="{curve}" {_STROKES[kind]} data-from="{source.columns[column]}" data-to="{target.columns[other]}" '
        f'data-kind="{kind}"><title>{escape(_told(edge.row))}</title></path>'
    )


def _told(row: Row) -> str:
    at = f", snapshot {row['snapshot']}" if row["snapshot"] is not None else ""
    return f"{_end(row, 'source')} → {_end(row, 'target')}: {row['kind']}, by {row['via']}{at}"


def _end(row: Row, end: str) -> str:
    parts = (row[end], row[f"{end}_column"])
    return ".".join(clip(str(part), _LONG) for part in parts if part is not None)


def _key(kind: str) -> str:
    line = f'<svg aria-hidden="true" width="28" height="8"><path d="M0 4H28" {_STROKES[kind]}/></svg>'
    return f"<span>{line}{_MEANING[kind]}</span>"


def _listed(rows: Sequence[Row]) -> str:
    """Returns the dependencies as a folded table, for readers who see no picture."""
    heads = [heading(name) for name in ("from", "to", "kind", "by", "snapshot")]
    lines = [
        f"<tr>{cell(escape(_end(row, 'source')))}{cell(escape(_end(row, 'target')))}{cell(escape(row['kind']))}"
        f"{cell(escape(row['via']))}{cell('' if row['snapshot'] is None else escape(row['snapshot']), right=True)}</tr>"
        for row in rows[:_ROWS]
    ]
    more = f"<p>{counted(len(rows) - _ROWS, 'more row')}</p>" if len(rows) > _ROWS else ""
    return (
        f"<details><summary>{counted(len(rows), 'dependency', 'dependencies')} as a table</summary>"
        f"{table(heads, lines)}{more}</details>"
    )

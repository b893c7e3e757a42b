"""The data files of a table as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename

import plotly.graph_objects as go

from ducklake_lab.hooks import hook
from ducklake_lab.model.history import FileEntry
from ducklake_lab.plots.style import Picture, finish, plain

_GROUP = "rgba(128,136,144,.12)"
_WHOLE = (79, 127, 214)
_DELETED = (217, 72, 47)


def plot(files: Sequence[FileEntry]) -> go.Figure:
    """A treemap: files within partitions, area by size, from blue to red by the share of rows deleted."""
    title = plain(getattr(files, "title", "Files"))
    ids, labels, parents, sizes, colors, texts = ["all"], [title], [""], [0], [_GROUP], [""]
    partitions: dict[str, str] = {}
    for entry in files:
        data = entry.data_file
        name = ", ".join(f"{key} = {'NULL' if value is None else value}" for key, value in entry.partition)
        parent = "all"
        if name:
            parent = partitions.setdefault(name, f"p{len(partitions)}")
            if parent not in ids:
                ids.append(parent)
                labels.append(plain(name))
                parents.append("all")
                sizes.append(0)
                colors.append(_GROUP)
                texts.append("")
        share = entry.deleted / entry.rows if entry.rows else 0.0
        ids.append(f"f{data.data_file_id}")
        labels.append(f"{data.file_size_bytes / 1e6:,.1f} MB")
        parents.append(parent)
        sizes.append(data.file_size_bytes)
        colors.append(_color(share))
        texts.append(
            f"{plain(basename(entry.path), 70)}<br>{entry.rows:,} rows, {entry.deleted:,} deleted"
            f"<br>snapshot {data.begin_snapshot}"
        )
    figure = go.Figure(
        go.Treemap(
            ids=ids,
            labels=labels,
            parents=parents,
            values=sizes,
            hovertext=texts,
            hovertemplate="%{hovertext}<extra></extra>",
            branchvalues="remainder",
            marker={"colors": colors, "line": {"width": 1, "color": "rgba(128,136,144,.35)"}},
            root={"color": "rgba(0,0,0,0)"},
            textfont={"color": ["#808890" if color == _GROUP else "#ffffff" for color in colors]},
            tiling={"pad": 2},
        )
    )
    return Picture(finish(figure, title, 420), lambda: str(hook("files.html")(files)))


def _color(share: float) -> str:
    """Blue where nothing is deleted, red from half of the rows on."""
    part = min(1.0, share * 2)
    mixed = (round(whole + (gone - whole) * part) for whole, gone in zip(_WHOLE, _DELETED, strict=True))
    return "rgb({},{},{})".format(*mixed)

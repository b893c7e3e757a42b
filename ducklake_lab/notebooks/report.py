"""The page about outputs of a notebook that differ at two snapshots."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence

from ducklake_lab.notebooks.comparing import CellOutputs, Shown
from ducklake_lab.widgets.html import clip, counted, escape, page, view

_STYLE = """
.dlk .dlk-nb{display:grid;grid-template-columns:1fr 1fr;gap:12px;margin:6px 0 22px}
.dlk .dlk-nb>div{min-width:0;border:1px solid color-mix(in srgb,currentColor 20%,transparent);border-radius:4px;padding:8px;overflow:auto}
.dlk .dlk-nb iframe{width:100%;height:320px;border:0;background:#fff;resize:vertical}
.dlk .dlk-nb img{max-width:100%;background:#fff}
.dlk .dlk-nb pre,.dlk .dlk-source{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font-family:var(--dlk-code);font-size:12px}
"""
#: Characters of a cell and of a text that are shown.
_SOURCE, _TEXT = 4_000, 200_000


def document(name: str, before: str, after: str, cells: Sequence[CellOutputs]) -> str:
    """Returns a self-contained page, which runs no scripts of the outputs and needs no network.

    Args:
        name: the notebook's name.
        before, after: what the snapshots are called.
    """
    differing = [cell for cell in cells if cell.differs]
    same = [cell for cell in cells if not cell.differs]
    head = (
        f'<p><span class="dlk-title">{escape(clip(name, 160))}</span>&ensp;<b>{escape(before)} → {escape(after)}</b></p>'
        f"<p>{counted(len(differing), 'cell')} with other outputs · {counted(len(same), 'cell')} with equal ones</p>"
    )
    body = "".join(_cell(cell, before, after) for cell in differing)
    rest = "".join(f"<li>{cell.number}: {_source(cell)}</li>" for cell in same)
    more = f"<details><summary>{counted(len(same), 'cell')} with equal outputs</summary><ol>{rest}</ol></details>"
    title = f"Outputs of {clip(name, 120)}"
    return page(view(head + body + (more if same else ""), style=_STYLE, label=title), title)


def _cell(cell: CellOutputs, before: str, after: str) -> str:
    sides = ((before, cell.before), (after, cell.after))
    columns = "".join(f"<div><small>{escape(title)}</small>{_outputs(shown)}</div>" for title, shown in sides)
    return f'<h4>Cell {cell.number}</h4>{_source(cell)}<div class="dlk-nb">{columns}</div>'


def _source(cell: CellOutputs) -> str:
    return f'<pre class="dlk-source">{_lines(clip(cell.source, _SOURCE))}</pre>'


def _outputs(shown: Sequence[Shown] | None) -> str:
    if shown is None:
        return "<p>did not run</p>"
    return "".join(map(_output, shown)) or "<p>no output</p>"


def _output(shown: Shown) -> str:
    """Returns an output as HTML; foreign HTML lies in a frame without scripts, forms and the page's origin."""
    if shown.form == "text/html":
        # nothing is fetched either
        policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        return f'<iframe sandbox="" title="Output" srcdoc="{html.escape(policy + shown.text)}"></iframe>'
    if shown.form == "image/svg+xml":
        packed = base64.b64encode(shown.text.encode()).decode()
        return f'<img alt="Output" src="data:image/svg+xml;base64,{packed}">'
    if shown.form.startswith("image/"):
        return f'<img alt="Output" src="data:{shown.form};base64,{escape("".join(shown.text.split()))}">'
    return f"<pre>{_lines(clip(shown.text, _TEXT))}</pre>"


def _lines(text: str) -> str:
    return "\n".join(map(escape, text.split("\n")))

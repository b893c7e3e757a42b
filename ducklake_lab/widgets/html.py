"""Building blocks of every view: escaping, styles, and text forms of numbers, sizes and times.

A view is one string of static HTML. It must work in three kinds of places: JupyterLab, VS Code and nbconvert
(styles kept, light or dark), a standalone page, and GitHub, which drops `<style>`, classes and SVG. So the structure is
semantic (tables, details, ins/del), essential layout is an attribute such as `align`, and colour never carries meaning
alone. Text has the page's own colour, and fills are mid-tones that read on white and on black, so no view depends on
the theme.
"""

from __future__ import annotations

import html
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from ducklake_lab.model.labels import KIND_COLORS
from ducklake_lab.model.units import counted as counted
from ducklake_lab.model.units import size as size
from ducklake_lab.signs import readable as readable
from ducklake_lab.signs import visible as visible

if TYPE_CHECKING:
    from ducklake_lab.model.history import ChangeKind

#: Label of each kind of change, beside its colour.
KIND_LABELS: Mapping[ChangeKind, str] = {
    "insert": "insert",
    "update": "update",
    "delete": "delete",
    "restore": "restore",
    "schema": "schema",
    "maintenance": "maintenance",
    "none": "no change",
}

MINUS = "\u2212"
DOT = " · "
#: Content of a cell without a number.
NONE = '<span class="dlk-soft">–</span>'

#: Colours and fonts of the notebook for views. VS Code's and Colab's names come first, because their widget managers
#: also define JupyterLab's names, with light colours in any theme. VS Code shows all widgets on white.
PLACE = """
.dlk,.dlk-live,.dlk-pv{
--dlk-text:var(--vscode-editor-foreground,var(--colab-primary-text-color,var(--jp-content-font-color1)));
--dlk-page:var(--vscode-editor-background,var(--colab-primary-surface-color,
var(--jp-layout-color0,var(--background,Canvas))));
--dlk-field:var(--vscode-dropdown-background,var(--colab-primary-surface-color,var(--jp-layout-color1,Canvas)));
--dlk-font:var(--vscode-font-family,var(--jp-ui-font-family,system-ui,sans-serif));
--dlk-code:var(--vscode-editor-font-family,var(--jp-code-font-family,ui-monospace,monospace));
--dlk-soft:color-mix(in srgb,currentColor 78%,transparent);
--dlk-wrong:color-mix(in srgb,#f05050 55%,currentColor);
font:13px/1.45 var(--dlk-font);color:var(--dlk-text,inherit)}
.cell-output-ipywidget-background :is(.dlk-live,.dlk-pv){background:var(--dlk-page);padding:4px}
"""

# The repeated class gives the rules priority over those of a notebook for every table.
_BASE = """
.dlk{--dlk-line:color-mix(in srgb,currentColor 13%,transparent);--dlk-tint:color-mix(in srgb,currentColor 5%,transparent);
--dlk-insert:#159a72;--dlk-update:#c07c00;--dlk-delete:#d9482f;--dlk-schema:#8a63d2;--dlk-restore:#4f7fd6;--dlk-maintenance:#7d8590;
--dlk-none:#a0a7af;--dlk-accent:#4f7fd6;margin:2px 0 6px;font-variant-numeric:tabular-nums}
.dlk .dlk-soft,.dlk small{color:var(--dlk-soft);font-size:12px}
.dlk .dlk-mono{font-family:var(--dlk-code);font-size:12px}
.dlk .dlk-scroll{overflow:auto;max-height:430px;width:fit-content;max-width:100%;border-bottom:1px solid var(--dlk-line)}
.dlk .dlk-fill,.dlk.dlk.dlk .dlk-fill>table{width:100%}
.dlk .dlk-scroll:focus-visible,.dlk summary:focus-visible{outline:2px solid var(--dlk-accent);outline-offset:-2px}
.dlk.dlk.dlk table{border-collapse:collapse;border:0;margin:0;font-size:13px;table-layout:auto;color:inherit}
.dlk.dlk.dlk tr,.dlk.dlk.dlk thead{background:none;border:0}
.dlk.dlk.dlk th,.dlk.dlk.dlk td{padding:3px 14px 3px 0;border:0;border-bottom:1px solid var(--dlk-line);
text-align:left;vertical-align:top;white-space:nowrap;max-width:none;font-weight:400}
.dlk.dlk.dlk tr>*:first-child{padding-left:2px}
.dlk.dlk.dlk tbody tr:last-child>*{border-bottom:0}
.dlk.dlk.dlk tbody tr:hover{background:var(--dlk-tint)}
.dlk.dlk.dlk thead th{vertical-align:bottom;border-bottom:1px solid color-mix(in srgb,currentColor 36%,transparent);
font-weight:600}
.dlk.dlk.dlk .dlk-scroll thead th{position:sticky;top:0;z-index:1;background:var(--dlk-page)}
.dlk.dlk.dlk .dlk-scroll table table thead th{position:static}
.dlk.dlk.dlk [align=right]{text-align:right}
.dlk.dlk.dlk .dlk-wrap{white-space:normal;min-width:12em}
.dlk summary{cursor:pointer;width:fit-content}
.dlk h4{font-size:13px;font-weight:600;margin:16px 0 5px;line-height:1.4}
.dlk small{font-weight:400}.dlk h4 small{margin-left:.5em}
.dlk p{margin:4px 0}
.dlk h4,.dlk p,.dlk ul{max-width:1120px}
.dlk-title{font-size:15px;font-weight:600}
.dlk-foot{margin-top:4px;color:var(--dlk-soft);font-size:12px}
.dlk-dot{display:inline-block;width:9px;height:9px;border-radius:50%;margin-right:6px}
.dlk svg text{fill:currentColor;font-size:11px;font-family:inherit}
.dlk svg{display:block;overflow:visible}
.dlk-cols{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:14px 28px}
"""

_PAGE = """
html{color-scheme:light dark;--jp-layout-color0:#fff}body{margin:24px 0;padding:0 24px;font-family:system-ui,sans-serif;
background:#fff;color:#1f2328}@media(prefers-color-scheme:dark){html{--jp-layout-color0:#111417}body{background:#111417;color:#e6e8eb}}
"""


def escape(text: object) -> str:
    """Returns text that is safe in an element or a quoted attribute; control and bidi characters become visible."""
    return html.escape(visible(str(text)), quote=True)


def clip(text: str, width: int) -> str:
    """Returns at most `width` characters, with an ellipsis at the end if text was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def view(body: str, *, style: str = "", label: str) -> str:
    """Returns a whole view: common styles, the view's own, and its body under an accessible name."""
    css = re.sub(r"\n(?=[.@\w])", "", (PLACE + _BASE + style).strip()).replace("\n", " ")
    return f'<style>{css}</style><div class="dlk" role="group" aria-label="{escape(label)}">{body}</div>'


def new_mount() -> str:
    """Returns a name for the element of a view that a kernel makes interactive."""
    return f"ducklake-{uuid.uuid4().hex[:12]}"


def mounted_at(mount: str, still: str) -> str:
    """Wraps a static view in an element, where the interactive view finds it."""
    return f'<div id="{mount}">{still}</div>'


def page(body: str, title: str) -> str:
    """Returns a self-contained HTML page with one or more views, in the reader's light or dark preference."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_PAGE}</style></head><body>{body}</body></html>"
    )


def scroll(content: str, label: str, *, fill: bool = False) -> str:
    """Returns a scrollable box that the keyboard can reach; `fill` makes its table as wide as the view."""
    return f'<div class="dlk-scroll{" dlk-fill" if fill else ""}" role="region" aria-label="{escape(label)}" tabindex="0">{content}</div>'


def table(head: Iterable[str], rows: Iterable[str]) -> str:
    """Returns a table from HTML: `head` of `<th>` elements, `rows` of `<tr>` elements."""
    return f"<table><thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def heading(name: str, *, right: bool = False, note: str | None = None) -> str:
    """Returns a column heading with an optional second line; both are plain text."""
    below = f"<br><small>{escape(note)}</small>" if note else ""
    return f'<th scope="col"{RIGHT if right else ""}>{escape(name)}{below}</th>'


RIGHT = ' align="right"'


def cell(content: str, *, right: bool = False, title: str = "", wrap: bool = False) -> str:
    """Returns a table cell around HTML."""
    attributes = RIGHT if right else ""
    if title:
        attributes += f' title="{escape(title)}"'
    if wrap:
        attributes += ' class="dlk-wrap"'
    return f"<td{attributes}>{content}</td>"


def dot(kind: ChangeKind) -> str:
    """Returns the coloured mark of a kind of change; always shown beside its name."""
    return f'<span class="dlk-dot" style="background:{KIND_COLORS[kind]}"></span>'


def count(number: int) -> str:
    """Formats a number: 336776 -> 336,776."""
    return f"{number:,}".replace("-", MINUS)


def compact(number: float) -> str:
    """Formats a number in at most four characters and a letter: 8,255 -> 8.3k, 336,776 -> 337k."""
    for limit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            scaled = number / limit
            return f"{scaled:.1f}".removesuffix(".0") + letter if abs(scaled) < 10 else f"{scaled:.0f}{letter}"
    return f"{number:.0f}"


def seconds(elapsed: float) -> str:
    """Formats a duration: 0.04 s, 0.4 s, 12 s, 3 min 5 s."""
    if elapsed >= 100:
        return f"{int(elapsed) // 60} min {int(elapsed) % 60} s"
    if elapsed >= 9.95:
        return f"{elapsed:.0f} s"
    return f"{elapsed:.1f} s" if elapsed >= 0.095 else f"{elapsed:.2f} s"


def time(moment: datetime, *, precise: bool = False) -> str:
    """Formats a time in its own zone, to the minute or the second; `zone` returns the zone."""
    return moment.strftime("%Y-%m-%d %H:%M:%S" if precise else "%Y-%m-%d %H:%M")


def zone(moment: datetime) -> str:
    """Returns the name of an aware time's zone: `UTC`, `America/New_York`."""
    return str(moment.tzinfo)


def percent(share: float) -> str:
    """Formats a share as a whole percentage; only an exact 0 or 1 becomes 0% or 100%."""
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{share:.0%}"


def signed(added: int, removed: int | None, write: Callable[[int], str] = count, *, at_most: bool = False) -> str:
    """Formats added and removed rows or bytes: `+28,000`, `−8,255`, `+10 −3`, `−?` where that is unknown, "" for nothing.

    Args:
        at_most: the numbers are upper bounds.
    """
    parts = ["at most"] if at_most and (added or removed) else []
    if added:
        parts.append(f"+{write(added)}")
    if removed != 0:
        parts.append(MINUS + ("?" if removed is None else write(removed)))
    return " ".join(parts)

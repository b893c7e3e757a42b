"""Maintenance findings for the files of tables, with the calls that solve them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.widgets.html import cell, clip, count, counted, escape, heading, scroll, table, view

if TYPE_CHECKING:
    from ducklake_lab.session.health import Health

#: Most findings listed.
LIMIT = 200

_STYLE = """
.dlk.dlk.dlk .dlk-wrap{min-width:6em;overflow-wrap:anywhere}
.dlk.dlk.dlk .dlk-told>*{border-bottom:0}
"""


def render(health: Health) -> str:
    """Returns a row per finding, with its call in a row below; the effect comes from a dry run."""
    title = f'<p><span class="dlk-title">Health of {escape(clip(health.title, 160))}</span></p>'
    if not health.findings:
        return view(f'{title}<div class="dlk-foot">Nothing to mend.</div>', label="Health")
    rows = (
        f'<tr class="dlk-told">{cell(escape(clip(one.table, 80)), wrap=True)}{cell(escape(one.problem), wrap=True)}{cell(escape(one.effect), wrap=True)}</tr>'
        f'<tr><td class="dlk-wrap" colspan="3"><code class="dlk-mono">{escape(clip(one.call, 400))}</code></td></tr>'
        for one in health.findings[:LIMIT]
    )
    head = (heading("table"), heading("what"), heading("dry run"))
    shown = f"first {count(LIMIT)} of " if len(health.findings) > LIMIT else ""
    foot = f'<div class="dlk-foot">{shown}{counted(len(health.findings), "finding")} · nothing has changed yet</div>'
    return view(f"{title}{scroll(table(head, rows), 'Findings')}{foot}", style=_STYLE, label="Health")

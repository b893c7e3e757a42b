"""What is to be mended in the files of tables, with the calls that would do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.widgets.html import cell, clip, count, counted, escape, heading, scroll, table, view

if TYPE_CHECKING:
    from ducklake_lab.session.health import Health

#: Findings listed.
LIMIT = 200

_STYLE = """
.dlk.dlk.dlk .dlk-call{overflow-wrap:anywhere;white-space:normal}
.dlk.dlk.dlk .dlk-wrap{min-width:9em;overflow-wrap:anywhere}
"""


def render(health: Health) -> str:
    """One row per finding; a dry run gives the effect."""
    title = f'<p><span class="dlk-title">Health of {escape(clip(health.title, 160))}</span></p>'
    if not health.findings:
        return view(f'{title}<div class="dlk-foot">Nothing to mend.</div>', label="Health")
    rows = (
        f"<tr>{cell(escape(clip(one.table, 80)), wrap=True)}{cell(escape(one.problem), wrap=True)}{cell(escape(one.effect), wrap=True)}"
        f'{cell(f"""<code class="dlk-mono dlk-call">{escape(clip(one.call, 400))}</code>""", wrap=True)}</tr>'
        for one in health.findings[:LIMIT]
    )
    head = (heading("table"), heading("what"), heading("dry run"), heading("call"))
    shown = f"first {count(LIMIT)} of " if len(health.findings) > LIMIT else ""
    foot = f'<div class="dlk-foot">{shown}{counted(len(health.findings), "finding")} · nothing has changed yet</div>'
    return view(f"{title}{scroll(table(head, rows), 'Findings')}{foot}", style=_STYLE, label="Health")

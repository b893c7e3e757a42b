"""The findings of a doctor, by severity; a healthy lake is one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ducklake_lab.widgets.html import NONE, cell, clip, count, counted, escape, heading, scroll, table, view

if TYPE_CHECKING:
    from ducklake_lab.doctor import Finding
    from ducklake_lab.session.doctoring import Diagnosis

#: Most findings drawn of each severity.
LIMIT = 100
_TITLES = {"error": "Errors", "warning": "Warnings", "info": "Notes"}
_STYLE = """
.dlk.dlk.dlk .dlk-dr pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:2px 0 4px;max-width:80em}
.dlk.dlk.dlk .dlk-dr td{max-width:46em;overflow-wrap:anywhere}
"""


def render(diagnosis: Diagnosis) -> str:
    """Returns a table of each severity, worst first, with the evidence of a finding folded below it."""
    title = f'<p><span class="dlk-title">Health of {escape(clip(diagnosis.title, 160))}</span></p>'
    parts = [
        _section(name, [one for one in diagnosis.findings if one.severity == severity])
        for severity, name in _TITLES.items()
    ]
    foot = f'<div class="dlk-foot">{escape(diagnosis.summary)}</div>'
    return view(f"{title}{''.join(parts)}{foot}", style=_STYLE, label="Health")


def _section(name: str, findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    head = (heading("object"), heading("finding"), heading("since snapshot", right=True), heading("repair"))
    more = f"first {count(LIMIT)} of " if len(findings) > LIMIT else ""
    label = f"{name} <small>{more}{counted(len(findings), 'finding')}</small>"
    rows = scroll(table(head, map(_row, findings[:LIMIT])), name)
    return f'<h4>{label}</h4><div class="dlk-dr">{rows}</div>'


def _row(one: Finding) -> str:
    evidence = (
        f"<details><summary>evidence</summary><pre><code>{escape(clip(one.evidence, 4_000))}</code></pre></details>"
        if one.evidence
        else ""
    )
    since = count(one.since_snapshot) if one.since_snapshot is not None else NONE
    cells = (
        cell(escape(clip(one.object, 200)), wrap=True),
        cell(f"{escape(clip(one.finding, 600))}{evidence}", wrap=True),
        cell(since, right=True),
        cell(escape(clip(one.repair, 300)), wrap=True),
    )
    return f"<tr>{''.join(cells)}</tr>"

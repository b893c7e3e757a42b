"""A short list of anything the catalog knows, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.widgets import values
from ducklake_lab.widgets.html import cell, clip, count, counted, escape, heading, scroll, table, view

if TYPE_CHECKING:
    from ducklake_lab.session.listings import Listing

#: Rows shown.
LIMIT = 1000


def render(listing: Listing) -> str:
    """All rows up to LIMIT, numbers right-aligned."""
    title, noun = listing.title, listing.noun
    numeric = [
        any(isinstance(row[at], int | float) and not isinstance(row[at], bool) for row in listing.rows)
        for at in range(len(listing.columns))
    ]
    head = [heading(name, right=right) for name, right in zip(listing.columns, numeric, strict=True)]
    body = (
        "<tr>" + "".join(cell(_html(value), right=right) for value, right in zip(row, numeric, strict=True)) + "</tr>"
        for row in listing.rows[:LIMIT]
    )
    shown = f"first {count(LIMIT)} of {counted(len(listing.rows), 'line')} · " if len(listing.rows) > LIMIT else ""
    foot = f"{shown}{counted(listing.total, noun)}" + (f" · {listing.note}" if listing.note else "")
    above = f'<p><span class="dlk-title">{escape(clip(title, 160))}</span></p>' if title else ""
    rows = scroll(table(head, body), title or f"{noun}s") if listing.rows else ""
    return view(f'{above}{rows}<div class="dlk-foot">{escape(foot)}</div>', label=title or noun)


def _html(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    return values.html(value)

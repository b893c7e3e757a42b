"""A short listing of catalog facts, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.widgets import values
from ducklake_lab.widgets.html import (
    cell,
    clip,
    count,
    counted,
    escape,
    heading,
    percent,
    scroll,
    seconds,
    size,
    table,
    view,
)

if TYPE_CHECKING:
    from ducklake_lab.session.listings import Listing

#: Most rows shown.
LIMIT = 1000


def render(listing: Listing) -> str:
    """Returns all rows up to LIMIT, numbers right-aligned."""
    title, noun = listing.title, listing.noun
    numeric = [
        any(isinstance(row[at], int | float) and not isinstance(row[at], bool) for row in listing.rows)
        for at in range(len(listing.columns))
    ]
    units = [listing.units.get(name, "") for name in listing.columns]
    head = [
        heading("size" if unit == "bytes" else name, right=right)
        for name, right, unit in zip(listing.columns, numeric, units, strict=True)
    ]
    body = ("<tr>" + "".join(map(_cell, row, numeric, units)) + "</tr>" for row in listing.rows[:LIMIT])
    shown = f"first {count(LIMIT)} of {counted(len(listing.rows), 'line')} · " if len(listing.rows) > LIMIT else ""
    foot = f"{shown}{counted(listing.total, noun)}" + (f" · {listing.note}" if listing.note else "")
    above = f'<p><span class="dlk-title">{escape(clip(title, 160))}</span></p>' if title else ""
    rows = scroll(table(head, body), title or f"{noun}s") if listing.rows else ""
    return view(f'{above}{rows}<div class="dlk-foot">{escape(foot)}</div>', label=title or noun)


def _cell(value: object, right: bool, unit: str) -> str:
    """Returns a value in its unit; the tooltip has the exact number."""
    if not unit or not isinstance(value, int | float):
        return cell(_html(value), right=right)
    if unit == "seconds":
        return cell(seconds(value), right=right, title=f"{value:,g} seconds")
    if unit == "bytes":
        return cell(size(round(value)), right=right, title=f"{count(round(value))} bytes")
    return cell(escape(percent(value)), right=right, title=f"{value:g}")


def _html(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    return values.html(value)

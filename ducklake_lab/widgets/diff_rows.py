"""Changed rows in a table: deleted rows, inserted rows, and old → new for changed cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ducklake_lab.diff.model import ColumnDiff, RowChange, RowChoice
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.plots.sources import DiffSource
from ducklake_lab.widgets import values
from ducklake_lab.widgets.html import MINUS, clip, count, counted, escape, heading, scroll, table

#: Most unchanged columns beside changed ones, and most columns in total.
_CONTEXT = 5
_COLUMNS = 60
#: Most characters of SQL in a view.
_SQL = 20_000

MARKS = {"deleted": MINUS, "inserted": "+", "updated": "→"}

STYLE = """
.dlk.dlk.dlk .dlk-deleted,.dlk.dlk.dlk .dlk-deleted:hover{background:color-mix(in srgb,var(--dlk-delete) 11%,transparent)}
.dlk.dlk.dlk .dlk-inserted,.dlk.dlk.dlk .dlk-inserted:hover{background:color-mix(in srgb,var(--dlk-insert) 13%,transparent)}
.dlk.dlk.dlk .dlk-edit{background:color-mix(in srgb,var(--dlk-update) 20%,transparent)}
.dlk.dlk.dlk .dlk-rows td,.dlk.dlk.dlk .dlk-rows th{padding-left:8px;padding-right:8px}
.dlk .dlk-edit del{opacity:.82}.dlk .dlk-edit ins{text-decoration:none;font-weight:600}
.dlk .dlk-mark{font-weight:700}
.dlk .dlk-sql{margin-top:6px}.dlk .dlk-sql pre{overflow:auto;max-height:22em;margin:6px 0;padding:8px 10px;background:color-mix(in srgb,currentColor 6%,transparent)}
"""


def has_row_ids(diff: DiffSource) -> bool:
    """Returns whether rows have ids; those of answers have none, and those paired by a key have several."""
    return diff.files is not None and not diff.key


def drawn(diff: DiffSource) -> tuple[Sequence[RowChange], list[str], list[str]]:
    """Returns the rows that are drawn, the names of all columns, and those of the columns to show."""
    rows = diff.page(diff.limit, 0, diff.choice, as_shown=True)
    names = _names(rows, diff.columns)
    return rows, names, shown_names(names, rows, diff.columns, diff.key)


def section(diff: DiffSource) -> str:
    """Returns the diff's rows as a heading and a table; "" if nothing changed."""
    if not diff.summary.changed:
        return ""
    rows, names, shown = drawn(diff)
    types = {column.name: column.type for column in diff.columns}
    numeric = {name: values.is_number(types.get(name, "")) for name in shown}
    ids = [heading("row id", right=True)] if has_row_ids(diff) else []
    head = [heading(""), *ids, *(heading(name, right=numeric[name]) for name in shown)]
    body = []
    for row in rows:
        cells = (_cell(row, name, numeric[name]) for name in shown)
        told = (
            f"{row.kind}: {', '.join(clip(name, 40) for name in sorted(row.changed)[:20])}" if row.changed else row.kind
        )
        number = f'<td align="right"><span class="dlk-soft">{row.row_id}</span></td>' if ids else ""
        body.append(
            f'<tr class="dlk-{row.kind}"><td title="{escape(told)}" class="dlk-mark">{MARKS[row.kind]}</td>'
            f"{number}{''.join(cells)}</tr>"
        )
    note = _note(len(rows), diff.count(diff.choice), diff.choice) + _hidden(names, shown)
    listing = ""
    if rows:
        listing = scroll(table(head, body).replace("<table>", '<table class="dlk-rows">', 1), "Changed rows")
    return f'<div class="dlk-changes"><h4>Rows <small>{escape(note)}</small></h4>{listing}</div>{_as_sql(diff)}'


def _as_sql(diff: DiffSource) -> str:
    """Returns the statement for the rows as a folded section; "" for uncommitted changes and answers."""
    if diff.end is None:
        return ""
    try:
        text = diff.statement(diff.choice)
        if not text:
            return ""
    except UnsupportedFeatureError as error:
        text = f"-- {error}"
    if len(text) > _SQL:
        text = f"-- {count(len(text))} characters, which diff.sql() gives"
    lines = "\n".join(escape(line) for line in text.split("\n"))
    return f'<details class="dlk-sql"><summary>These rows as SQL</summary><pre class="dlk-mono">{lines}</pre></details>'


def _note(shown: int, total: int, choice: RowChoice) -> str:
    kind = "" if choice.is_all else f" {choice.kind or 'updated'}"
    cell = f" in which {clip(choice.changed, 60)} changed" if choice.changed is not None else ""
    amount = count(total) if not kind else f"{count(total)}{kind} {'row' if total == 1 else 'rows'}{cell}"
    note = f"first {count(shown)} of {amount}" if shown < total else amount if kind else counted(total, "row")
    keys = ", ".join(clip(name, 60) + (" descending" if down else "") for name, down in choice.sort)
    return f"{note} · by {keys}" if keys else note


def _hidden(names: Sequence[str], shown: Sequence[str]) -> str:
    hidden = [name for name in names if name not in shown]
    listed = ", ".join(clip(name, 40) for name in hidden[:30]) + (", …" if len(hidden) > 30 else "")
    return f" · {counted(len(hidden), 'more column')} not shown: {listed}" if hidden else ""


def _names(rows: Iterable[RowChange], columns: Sequence[ColumnDiff]) -> list[str]:
    """Returns all column names: the later schema's in order, then dropped ones."""
    names = {column.name: None for column in columns}
    for row in rows:
        names |= dict.fromkeys(row.after or {}) | dict.fromkeys(row.before or {})
    return list(names)


def most_changed(columns: Sequence[ColumnDiff]) -> list[str]:
    """Returns the columns that updates changed, most changed cells first."""
    return [one.name for one in sorted(columns, key=lambda one: -one.updated) if one.updated]


def shown_names(
    names: Sequence[str], rows: Sequence[RowChange], columns: Sequence[ColumnDiff] = (), key: Sequence[str] = ()
) -> list[str]:
    """Returns the columns to show: changed ones and a few to identify the row for updates, all for other rows."""
    seen = {name for row in rows for name in row.changed}
    changed = dict.fromkeys([*(name for name in most_changed(columns) if name in seen), *sorted(seen)])
    return chosen_names(names, changed, key, whole_rows=any(row.kind != "updated" for row in rows))


def chosen_names(
    names: Sequence[str], changed: Collection[str], key: Sequence[str] = (), *, whole_rows: bool
) -> list[str]:
    """Returns the columns to show for changed or whole rows: those of the key, changed ones, then others.

    Args:
        changed: the changed columns, in display order.
        key: the columns that pair rows.
    """
    first = [name for name in dict.fromkeys([*key, *changed]) if name in names]
    others = [name for name in names if name not in first]
    return [*first, *(others if whole_rows else others[:_CONTEXT])][:_COLUMNS]


def signed(step: object) -> str:
    """Returns the change of a number with its sign; that to or from NaN has none."""
    text = values.text(step)
    if text.casefold() == "nan":
        return text
    return MINUS + text.removeprefix("-") if text.startswith("-") else f"+{text}"


def step(row: RowChange, name: str) -> str:
    """Returns the change of a number in parentheses; "" if it is not known."""
    return f"({signed(row.steps[name])})" if name in row.steps else ""


def _cell(row: RowChange, name: str, right: bool) -> str:
    align = ' align="right"' if right else ""
    if name in row.changed and row.before is not None and row.after is not None:
        old = values.html(row.before[name]) if name in row.before else ""
        new = values.html(row.after[name]) if name in row.after else ""
        by = f' <span class="dlk-soft">{escape(step(row, name))}</span>' if name in row.steps else ""
        return f'<td{align} class="dlk-edit"><del>{old}</del> → <ins>{new}</ins>{by}</td>'
    side = row.after if row.after is not None else row.before
    if side is None or name not in side:
        return f"<td{align}></td>"
    return f"<td{align}>{values.html(side[name])}</td>"

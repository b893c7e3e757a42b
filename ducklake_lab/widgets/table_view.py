"""Rows of a table to scroll, sort, filter and profile; the first rows as static HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import traitlets

from ducklake_lab.engine.turn import looking
from ducklake_lab.errors import DuckLakeError, UsageError
from ducklake_lab.redaction import hide
from ducklake_lab.widgets import values
from ducklake_lab.widgets.arrow import pack
from ducklake_lab.widgets.chart_view import PLACE_OF_DRAWING, answer, picture
from ducklake_lab.widgets.downloads import file_of, offered
from ducklake_lab.widgets.html import (
    DOT,
    clip,
    count,
    counted,
    escape,
    heading,
    mounted_at,
    readable,
    scroll,
    table,
    view,
    visible,
)
from ducklake_lab.widgets.html import cell as html_cell
from ducklake_lab.widgets.lives import of_row
from ducklake_lab.widgets.mounted import Mounted, script, styles
from ducklake_lab.widgets.outline import of_json, of_parts, outline
from ducklake_lab.widgets.recorded import metadata, record_of
from ducklake_lab.widgets.result import facts

if TYPE_CHECKING:
    from ducklake_lab.session.rows.chart import Chart
    from ducklake_lab.session.rows.columns import ViewColumn
    from ducklake_lab.session.rows.result import Result
    from ducklake_lab.session.rows.view import RowsView

#: Rows and columns of the static view.
ROWS = 20
COLUMNS = 200
_TEXT = 300
#: Unfolded panels of a grid that a user asked for.
OPEN = ("filter", "profile", "sql", "download")
#: Most characters of one value sent to a browser.
MOST_CHARACTERS = 1_000_000


def render(data: RowsView) -> str:
    """Returns the first rows of the current selection, and the statement for all of them."""
    from ducklake_lab.duckdb.handing import texts_to_show

    columns = data.columns[:COLUMNS]
    rows = data.page(0, ROWS)
    numeric = [values.is_number(column.type) for column in columns]
    lists = texts_to_show(rows.select(range(len(columns))), data.time_zone)
    head = [
        heading(clip(column.name, 80), right=numeric[at], note=clip(column.type.lower(), 40))
        for at, column in enumerate(columns)
    ]
    body = (
        "<tr>" + "".join(html_cell(values.html(row[at]), right=numeric[at]) for at in range(len(columns))) + "</tr>"
        for row in zip(*lists, strict=True)
    )
    listing = scroll(table(head, body), "Rows")
    wide = f" · first {COLUMNS} of {count(len(data.columns))} columns" if len(data.columns) > COLUMNS else ""
    whole = "" if data.whole_rows is None else f" of {count(data.whole_rows)}"
    foot = f"first {counted(rows.num_rows, 'row')}{whole}{wide}" + _part(data, " · ")
    sql = f'<p><code class="dlk-mono">{escape(clip(hide(data.sql), 2000))}</code></p>'
    title = f'<p><span class="dlk-title">{escape(clip(data.title, 160))}</span></p>'
    return view(f'{title}{listing}<div class="dlk-foot">{foot}</div>{sql}', label=data.title)


def _part(data: RowsView, mark: str = "") -> str:
    return f"{mark}looks through the first {count(data.total)} rows only" if data.partial else ""


class TableBrowser(Mounted):
    """A grid of rows with virtual scrolling.

    Attributes:
        data: the rows; `browser.data.sql` is the selection as SQL.
        shows: the unfolded panels among filter, profile, chart, sql and download.
        drawn: the chosen kind, x, y, aggregate, color and bins of the chart; {} chooses by column types.
        sort: [column, descending] pairs, most significant first. A new value sorts in the notebook.
        filters: by column, as written: `> 5`, `= x`, `null`, `not null`, or a part of the text.
        search: a part of the text of any column.
        sql: the selection as a statement, without secrets.
        selected: the selected row as a dict, or None.
        passing: number of rows to scroll: the filtered rows, or the first rows while the others are unread.
        whole: whether all held rows are read, so that the numbers cover them.
        total: number of held rows, or of filtered rows with a filter or search.
        facts: the text after the number of rows.
        heading: the text above the rows.
    """

    _esm = script("table")
    _css = styles("table")

    columns: traitlets.List[list[object]] = traitlets.List().tag(sync=True)
    sort: traitlets.List[list[object]] = traitlets.List().tag(sync=True)
    filters = traitlets.Dict().tag(sync=True)
    search = traitlets.Unicode("").tag(sync=True)
    sql = traitlets.Unicode().tag(sync=True)
    passing = traitlets.Int(0).tag(sync=True)
    look = traitlets.Int(0).tag(sync=True)
    problem = traitlets.Unicode("").tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)
    whole = traitlets.Bool(True).tag(sync=True)
    total = traitlets.Int(0).tag(sync=True)
    facts = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    heading = traitlets.Unicode().tag(sync=True)
    shows: traitlets.List[object] = traitlets.List().tag(sync=True)
    kinds: traitlets.List[object] = traitlets.List().tag(sync=True)
    drawn = traitlets.Dict().tag(sync=True)
    place = traitlets.Int(None, allow_none=True).tag(sync=True)
    has_lives = traitlets.Bool(False).tag(sync=True)

    def __init__(
        self,
        data: RowsView,
        *,
        shows: Sequence[str] = OPEN,
        heading: str | None = None,
        mount: str | None = None,
    ) -> None:
        self.data = data
        super().__init__(
            mount=mount,
            columns=[[column.name, *_shown(column), values.is_number(column.type)] for column in data.columns],
            sort=[list(key) for key in data.sort],
            filters=dict(data.filters),
            search=data.search,
            sql=hide(data.sql),
            title=visible(data.title),
            heading=visible(data.title if heading is None else heading),
            shows=list(shows),
            kinds=offered(),
            has_lives=data.behind is not None,
            **self._figures(),
        )
        self.observe(self._look, ["sort", "filters", "search"])

    def _figures(self) -> dict[str, object]:
        """Returns the current numbers of rows."""
        if self.data.first is not None:
            return {"whole": False, "passing": self.data.first, "total": self.data.first, "note": ""}
        return {"whole": True, "passing": self.data.passing, "total": self.data.total, "note": _part(self.data)}

    def _read(self) -> None:
        """Reads the unread rows, and updates the numbers."""
        if self.whole:
            return
        _ = self.data.rows
        with self.hold_sync():
            for name, value in self._figures().items():
                setattr(self, name, value)

    def _look(self, _change: object) -> None:
        """Applies sort, filters and search; shows the error of an incomplete filter and keeps the rows."""
        try:
            sort = [(str(name), bool(down)) for name, down in self.sort]
            with looking():
                passing = self.data.look(sort, dict(self.filters), self.search)
                self._read()
        except DuckLakeError as error:
            self.problem = str(error)
            return
        with self.hold_sync():
            self.place = None
            self.problem = ""
            self.sql = hide(self.data.sql)
            self.passing = passing
            self.look += 1

    @property
    def selected(self) -> dict[str, Any] | None:
        from ducklake_lab.duckdb.handing import python_rows

        if self.place is None:
            return None
        fetched = self.data.page(self.place, 1)
        return next(
            (dict(zip(fetched.column_names, row, strict=True)) for row in python_rows(fetched, self.data.time_zone)),
            None,
        )

    def answer_all(self, _content: dict[str, object]) -> None:
        """Reads all held rows."""
        self._read()

    def answer_page(self, content: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns some columns of a range of rows as text; NULL is null."""
        from ducklake_lab.duckdb.handing import texts_to_show

        rows = self.data.page(int(content["start"]), int(content["count"]))
        first = int(content["first"])
        columns: dict[str, tuple[str, list[object]]] = {}
        window = range(first, min(len(self.data.columns), first + int(content["wide"])))
        for at, column in zip(window, texts_to_show(rows.select(window), self.data.time_zone), strict=True):
            texts = [None if one is None else visible(clip(values.text(one), _TEXT)) for one in column]
            columns[f"c{at}"] = ("text", list(texts))
        return {}, [pack(columns)]

    def answer_profile(self, content: dict[str, object]) -> dict[str, Any]:
        """Returns the statistics of one column over the filtered rows."""
        profile = asdict(self.data.profile(str(content["column"])))
        profile["top"] = [[None if text is None else visible(text), number] for text, number in profile["top"]]
        return {"profile": profile}

    def answer_cell(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns one value up to `MOST_CHARACTERS`: its text to copy, and its display form if different."""
        column = int(content["column"])
        text = self._whole(int(content["row"]), column)
        answer = {"type": visible(clip(self.data.columns[column].type, _TEXT)), "text": None, "length": 0}
        if text is None:
            return answer
        kept = text[:MOST_CHARACTERS]
        shown = readable(kept)
        return {**answer, "text": kept, "length": len(text)} | ({"shown": shown} if shown != kept else {})

    def answer_life(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns who set a cell, and what changed its row; the choice between rows that look alike."""
        behind = self.data.behind
        if behind is None:
            raise UsageError(f"The rows of {self.data.title} are not those of one table.")
        ids = self.data.row_ids(int(content["row"]))
        column = behind.columns[int(content["column"])]
        return of_row(behind.name, ids, content.get("chosen"), behind.life, column, is_open=behind.is_open)

    def answer_download(self, content: dict[str, object]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns the filtered rows as a file."""
        about, made = file_of(self.data, str(content["kind"]))
        return dict(about), [made]

    def answer_row(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns a row as tab-separated text for a spreadsheet."""
        from ducklake_lab.session.rows.saving import tab_separated

        return {"text": tab_separated(self.data.page(int(content["row"]), 1), self.data.time_zone)}

    def answer_chart(self, content: dict[str, object]) -> tuple[dict[str, Any], list[bytes]]:
        """Returns a chart of the filtered rows; omitted choices follow the column types."""
        return answer(self.data, _chosen(self.data, content))

    def answer_still(self, content: dict[str, Any]) -> dict[str, Any]:
        """Returns the notebook's static view, with a placeholder for a chart's picture if one is given."""
        if not content.get("chart"):
            return {"html": self._repr_html_()}
        chart = picture(self.data, _chosen(self.data, content["chart"]))
        return {"html": mounted_at(self.mount, chart + self.still()), "place": PLACE_OF_DRAWING}

    def answer_code(self, content: dict[str, object]) -> dict[str, Any]:
        """Returns Python code that draws the same chart with plotly."""
        from ducklake_lab.plots.chart import code

        return {"text": code(self.data, _chosen(self.data, content))}

    def _whole(self, row: int, column: int) -> str | None:
        """Returns a value as text, indented if nested; None for NULL."""
        from ducklake_lab.duckdb.handing import parts, texts_to_show

        cell = self.data.page(row, 1).select([column])
        kind = self.data.columns[column].kind
        if kind is not None and kind.is_nested:
            (value,) = parts(cell, self.data.time_zone)
            return None if value is None else outline(of_parts(value, kind))
        ((value,),) = texts_to_show(cell, self.data.time_zone)
        if value is None:
            return None
        return of_json(str(value)) if kind is not None and kind.name == "json" else values.whole(value)

    def still(self) -> str:
        return render(self.data)

    def record(self) -> dict[str, Any]:
        return metadata(self.data.reads)

    def __repr__(self) -> str:
        return repr(self.data)


class ResultBrowser(TableBrowser):
    """A grid of a result's rows; without a kernel the notebook shows the result itself."""

    def __init__(self, result: Result, *, shows: Sequence[str] = OPEN, mount: str | None = None) -> None:
        self._result = result
        view = result.view()
        self._runs_again = view.first is not None and result.differs_by_run
        super().__init__(view, shows=shows, heading="", mount=mount)

    def _figures(self) -> dict[str, object]:
        figures = super()._figures()
        again = "ran again, with other values" if self._runs_again and figures["whole"] else ""
        return {**figures, "facts": DOT.join(filter(None, (facts(self._result), again)))}

    def still(self) -> str:
        return self._result._repr_html_()

    def record(self) -> dict[str, Any]:
        return record_of(self._result)


def _shown(column: ViewColumn) -> tuple[str, str]:
    """Returns the display forms of a column's name and type."""
    return visible(clip(column.name, 200)), visible(clip(column.type.lower(), 60))


def _chosen(data: RowsView, content: dict[str, object]) -> Chart:
    names = ("kind", "x", "y", "aggregate", "color", "bins")
    kind, x, y, aggregate, color, bins = (None if content.get(name) is None else str(content[name]) for name in names)
    return data.chart(kind, x, y, aggregate, color=color, bins=bins)

"""Charts of rows: a few thousand points that SQL counts and sums; notes say which rows are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from ducklake_lab.errors import UsageError
from ducklake_lab.hooks import hook
from ducklake_lab.model.labels import distinct, label
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.session.rows.chart_bins import Bins, Role, bins_of, number, role, ticks
from ducklake_lab.session.rows.chart_choice import Choice
from ducklake_lab.session.rows.columns import ViewColumn

#: Name of the filtered rows in the SQL of a chart.
_SEEN = "ducklake_seen"
#: Most bars, points, intervals of a longer line, of a histogram, and (across, up) of a crowded scatter.
MOST_BARS, MOST_POINTS, LINE_BINS, BINS, ACROSS, UP = 40, 2000, 400, 40, 60, 40
#: One colour per value of the colour column, readable on white and near-black. More values get no colour.
PALETTE = ("#4f7fd6", "#c07c00", "#159a72", "#d9482f", "#8a63d2", "#1590a8", "#b8598f", "#7d8590")
MOST_SERIES = len(PALETTE)


class Drawable(Protocol):
    """Rows for a chart."""

    @property
    def columns(self) -> Sequence[ViewColumn]: ...

    @property
    def partial(self) -> bool:
        """Returns whether the rows are only the first part of a result."""

    @property
    def total(self) -> int:
        """The number of rows."""

    @property
    def sql(self) -> str:
        """A statement that returns the rows."""

    def seen(self, names: Sequence[str]) -> pa.Table:
        """Returns some columns of the rows, under their names."""

    def evaluate(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Returns the rows of a query over tables."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Points to draw.

    Attributes:
        title: the aggregate and its columns.
        x_title, y_title: labels of the axes.
        x_role: "category" for points side by side, else "number" or "time".
        points: `label` and `value` are DuckDB's texts of x and y; `x` and `y` are the numbers to draw, seconds since
            1970 for times. `until`, `x_end`, `value_until` and `y_end` are the exclusive upper ends of intervals.
            `rows` counts the rows behind a point. `series` is the text of the point's colour value,
            and `color` that value's number, from 0; both are NULL without colours. Points with equal x have
            equal `place`.
        ticks: positions and texts on a time axis; () if the points' labels suffice.
        notes: sentences about rows that the chart omits.
        sql: returns x, y, the interval ends and the number of rows.
    """

    choice: Choice
    title: str
    x_title: str
    y_title: str
    x_role: Role
    points: pa.Table
    notes: tuple[str, ...]
    sql: str
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def labels(self) -> list[str]:
        """The distinct x labels of the points."""
        texts = self.points.column("label").to_pylist()
        places = self.points.column("place").to_pylist()
        texts_by_place = dict(zip(places, texts, strict=True))
        names = dict(zip(texts_by_place, distinct(label(text) for text in texts_by_place.values()), strict=True))
        return [names[place] for place in places]

    @property
    def series(self) -> list[tuple[str, pa.Table]]:
        """The points by colour, with its name; one nameless series if there is only one."""
        numbers = self.points.column("color").to_pylist()
        if None in numbers or not numbers:
            return [("", self.points)]
        places: dict[int, list[int]] = {}
        for at, color in enumerate(numbers):
            places.setdefault(color, []).append(at)
        parts = [self.points.take(pa.array(places[color], pa.int64())) for color in sorted(places)]
        return list(zip(distinct(label(part.column("series")[0].as_py()) for part in parts), parts, strict=True))

    def _repr_html_(self) -> str:
        html: str = hook("chart.html")(self)
        return html

    def __repr__(self) -> str:
        return f"<Chart: {self.title}>"


def draw(view: Drawable, choice: Choice) -> Chart:
    """Returns the chart of the filtered rows.

    Raises:
        ConstraintError: a sum does not fit its type.
    """
    return _Drawing(view, choice).chart()


class _Drawing:
    """Makes one chart. Its SQL reads `seen`, the columns that the chart needs."""

    def __init__(self, view: Drawable, choice: Choice) -> None:
        self._view = view
        self._choice = choice
        self._kinds = {column.name: column.kind for column in view.columns}
        self._role: Role = "category" if choice.kind == "bar" else role(self._kinds[choice.x])
        self._rows = view.seen([name for name in (choice.x, choice.y, choice.color) if name is not None])
        self._source = f"(\n{view.sql}\n)"
        self._notes: list[str] = []
        self._over = ""
        #: Each point is one row; nothing is aggregated.
        self._is_single = False
        #: SQL of a row's colour value.
        self._series = None if choice.color is None else self._category(choice.color)

    def chart(self) -> Chart:
        self._leave_out_colors()
        make = {"bar": self._bars, "line": self._line, "scatter": self._scatter, "histogram": self._histogram}
        sql = make[self._choice.kind]()
        points = self._points(sql)
        lost = self._evaluate(f"SELECT count(*) FROM ({sql}) WHERE NOT coalesce(isfinite(y::DOUBLE), false)")
        if lost:
            points_lost = f"{lost:,} {'point' if lost == 1 else 'points'}"
            self._notes.append(f"{points_lost} without a finite {self._y_title()} not drawn")
        if self._view.partial:
            self._notes.append(f"of the first {self._view.total:,} rows only")
        title = f"{self._y_title()} by {self._choice.x}"
        if self._choice.kind == "histogram":
            title = f"rows by {self._choice.x}"
        return Chart(
            self._choice,
            title + self._over,
            self._choice.x,
            self._y_title(),
            self._role,
            points,
            tuple(self._notes),
            sql.replace(_SEEN, self._source),
            self._ticks(sql) if self._role == "time" else (),
        )

    def _leave_out_colors(self) -> None:
        """Keeps the rows with the most frequent colour values, if there are more values than colours."""
        if self._series is None:
            return
        values = self._evaluate(f"SELECT count(*) FROM (SELECT {self._series} AS s FROM {_SEEN} GROUP BY ALL)")
        if values <= MOST_SERIES:
            return
        kept = (
            f"SELECT r.*\nFROM {_SEEN} AS r SEMI JOIN (\n  SELECT {self._series} AS kept FROM {_SEEN} GROUP BY ALL "
            f"ORDER BY count(*) DESC, 1 LIMIT {MOST_SERIES}\n) AS k ON r.{self._series} IS NOT DISTINCT FROM k.kept"
        )
        before = self._rows.num_rows
        self._rows = self._view.evaluate(kept, {_SEEN: self._rows})
        self._source = f"(\n{kept.replace(_SEEN, self._source)}\n)"
        self._notes.append(
            f"the {MOST_SERIES} most frequent of {values:,} values of {self._choice.color}; {values - MOST_SERIES:,} others, of "
            f"{_rows(before - self._rows.num_rows)}, are not drawn"
        )

    def _colored(self, text: str = "") -> str:
        """Returns SQL that adds the colour value to a select list or an order."""
        return "" if self._series is None else f", {text or self._series}"

    def _bars(self) -> str:
        x, y = self._category(self._choice.x), self._aggregated()
        groups = self._evaluate(f"SELECT count(*) FROM (SELECT {x} AS x FROM {_SEEN} GROUP BY ALL)")
        is_time = role(self._kinds[self._choice.x]) == "time"
        if self._choice.bins is not None or (is_time and groups > MOST_BARS):
            return self._aggregated_bins(MOST_BARS - 1, MOST_BARS)
        self._is_single = self._series is None and groups == self._rows.num_rows
        self._leave_out_nulls()
        is_category = role(self._kinds[self._choice.x]) == "category" or groups > MOST_BARS
        sql = f'SELECT {x} AS x, {y} AS y, count(*) AS "rows"{self._colored(f"{self._series} AS series")}\nFROM {_SEEN}\nGROUP BY ALL'
        if self._series is None:
            sql += f"\nORDER BY {'y DESC NULLS LAST, x' if is_category else 'x'}"
            sql += f"\nLIMIT {MOST_BARS}" if groups > MOST_BARS else ""
        else:
            order = "best DESC NULLS LAST, x" if is_category else "x"
            sql = (
                f'SELECT x, y, "rows", series\nFROM (SELECT *, max(y) OVER (PARTITION BY x) AS best FROM (\n{sql}\n))\n'
                f"QUALIFY dense_rank() OVER (ORDER BY {order}) <= {MOST_BARS}\nORDER BY {order}, series"
            )
        if groups > MOST_BARS:
            shown = self._evaluate(f'SELECT sum("rows")::BIGINT FROM ({sql})')
            self._notes.append(
                f"the {MOST_BARS} largest of {groups:,} values of {self._choice.x}; {groups - MOST_BARS:,} others, of "
                f"{_rows(self._rows.num_rows - shown)}, are not drawn"
            )
        return sql

    def _line(self) -> str:
        x, y = quote_identifier(self._choice.x), self._aggregated()
        if self._choice.bins is not None:
            return self._aggregated_bins(LINE_BINS, MOST_POINTS)
        where = f"WHERE {self._is_finite(self._choice.x)}"
        of_color = self._colored(f"{self._series} AS series")
        groups = self._evaluate(f"SELECT count(*) FROM (SELECT {x} AS x{of_color} FROM {_SEEN} {where} GROUP BY ALL)")
        if groups > MOST_POINTS:
            return self._aggregated_bins(LINE_BINS, MOST_POINTS)
        self._is_single = groups == self._rows.num_rows
        self._leave_out(self._choice.x)
        self._leave_out_nulls()
        return (
            f'SELECT {x} AS x, {y} AS y, count(*) AS "rows"{of_color}\nFROM {_SEEN}\n{where}\nGROUP BY ALL\n'
            f"ORDER BY x{self._colored('series')}"
        )

    def _histogram(self) -> str:
        self._leave_out(self._choice.x)
        return self._binned(BINS, MOST_POINTS, "count(*)", "1")

    def _aggregated_bins(self, most: int, limit: int) -> str:
        """Returns intervals of x with an aggregate of y."""
        self._leave_out(self._choice.x)
        self._leave_out_nulls()
        held = quote_identifier(self._choice.y) if self._choice.y is not None else "1"
        return self._binned(most, limit, f"{self._choice.aggregate}(held)", held)

    def _binned(self, most: int, limit: int, y: str, held: str) -> str:
        """Returns an aggregate of `held` over the rows, by intervals of x.

        Args:
            limit: the most intervals if a user chose their width.

        Raises:
            UsageError: the width gives more intervals than that.
        """
        bins = self._bins(self._choice.x, most)
        self._over = f", in intervals of {bins.width}"
        of_color = self._colored("series")
        numbers = (
            f"SELECT {bins.value} AS v, {held} AS held{self._colored(f'{self._series} AS series')} FROM {_SEEN} "
            f"WHERE {self._is_finite(self._choice.x)}"
        )
        keyed = f"SELECT {bins.key('v')} AS bin, held{of_color} FROM ({numbers})"
        if (
            self._choice.bins is not None
            and (count := self._evaluate(f"SELECT count(DISTINCT bin) FROM ({keyed})")) > limit
        ):
            raise UsageError(
                f"{self._choice.x} has {count:,} intervals of {bins.width}, and a {self._choice.kind} shows {limit:,}; choose longer "
                "ones, or filter first."
            )
        return (
            f'SELECT {bins.low("bin")} AS x, {bins.high("bin")} AS "until", {y} AS y, count(*) AS "rows"{of_color}\n'
            f"FROM ({keyed})\nGROUP BY bin{of_color}\nORDER BY bin{of_color}"
        )

    def _scatter(self) -> str:
        x, y = self._choice.x, self._choice.y
        assert y is not None
        self._leave_out(x)
        self._leave_out(y)
        where = f"WHERE {self._is_finite(x)} AND {self._is_finite(y)}"
        sql = (
            f'SELECT {quote_identifier(x)} AS x, {quote_identifier(y)} AS y, count(*) AS "rows"'
            f"{self._colored(f'{self._series} AS series')}\nFROM {_SEEN}\n{where}\nGROUP BY ALL\nORDER BY ALL"
        )
        if self._choice.bins is None and self._evaluate(f"SELECT count(*) FROM ({sql})") <= MOST_POINTS:
            return sql
        if self._series is not None:
            self._notes.append(f"the fields hold rows of all values of {self._choice.color} that are drawn")
            self._series = None
        across, up = self._bins(x, ACROSS, where), self._bins(y, UP, where)
        self._over = f", rows counted in fields of {across.width} by {up.width}"
        numbers = f"SELECT {across.value} AS v, {up.value} AS w FROM {_SEEN} {where}"
        return (
            f'SELECT {across.low("bin")} AS x, {across.high("bin")} AS "until", {up.low("up")} AS y, {up.high("up")} AS y_until, '
            f'count(*) AS "rows"\nFROM (SELECT {across.key("v")} AS bin, {up.key("w")} AS up FROM ({numbers}))\n'
            "GROUP BY bin, up\nORDER BY bin, up"
        )

    def _points(self, sql: str) -> pa.Table:
        """Returns the points from the SQL, as numbers to draw and texts to read."""
        names = self._names(sql)
        position = {"number": "{}::DOUBLE", "time": "epoch({})::DOUBLE", "category": "NULL::DOUBLE"}[self._role]
        until = '"until"' if "until" in names else "NULL"
        end = position.format(until) if "until" in names else "NULL::DOUBLE"
        top = "y_until" if "y_until" in names else "NULL"
        series, color = "NULL", "NULL::BIGINT"
        if "series" in names:
            series, color = "series", "dense_rank() OVER (ORDER BY series) - 1"
        return self._view.evaluate(
            f"SELECT left(x::VARCHAR, 200) AS label, {position.format('x')} AS x, {until}::VARCHAR AS until, {end} AS x_end, "
            f'y::VARCHAR AS value, y::DOUBLE AS y, {top}::VARCHAR AS value_until, {top}::DOUBLE AS y_end, "rows", '
            f"left({series}::VARCHAR, 200) AS series, {color} AS color, dense_rank() OVER (ORDER BY x) - 1 AS place "
            f"FROM (SELECT *, row_number() OVER () AS nth FROM ({sql})) ORDER BY nth",
            {_SEEN: self._rows},
        )

    def _names(self, sql: str) -> list[str]:
        names: list[str] = self._view.evaluate(f"FROM ({sql}) LIMIT 0", {_SEEN: self._rows}).column_names
        return names

    def _ticks(self, sql: str) -> tuple[tuple[float, str], ...]:
        kind = self._kinds[self._choice.x]
        assert kind is not None  # the role is "time"
        high = '"until"' if "until" in self._names(sql) else "x"
        ends = f"SELECT x, {high} AS high FROM ({sql})"
        return ticks(lambda text: self._view.evaluate(text, {_SEEN: self._rows}), ends, kind)

    def _leave_out(self, name: str) -> None:
        """Notes the number of rows without a finite value."""
        counted = self._evaluate(f"SELECT count(*) FROM {_SEEN} WHERE NOT coalesce({self._is_finite(name)}, false)")
        if counted:
            self._notes.append(f"{_rows(counted)} without a finite {name} not drawn")

    def _leave_out_nulls(self) -> None:
        """Notes the number of NULLs that an aggregate ignores."""
        if self._choice.y is None:
            return
        nulls = self._evaluate(f"SELECT count(*) - count({quote_identifier(self._choice.y)}) FROM {_SEEN}")
        if nulls:
            self._notes.append(f"{self._y_title()} leaves out {_rows(nulls)} where it is NULL")

    def _aggregated(self) -> str:
        if self._choice.y is None:
            return "count(*)"
        return f"{self._choice.aggregate}({quote_identifier(self._choice.y)})"

    def _y_title(self) -> str:
        if self._choice.kind == "histogram" or self._choice.aggregate == "count":
            return "rows"
        is_plain = self._choice.aggregate is None or self._is_single
        return str(self._choice.y) if is_plain else f"{self._choice.aggregate} of {self._choice.y}"

    def _category(self, column: str) -> str:
        """Returns SQL of a category value; types without order become text."""
        kind = self._kinds[column]
        name = quote_identifier(column)
        plain = kind is not None and not kind.is_nested and kind.name not in ("json", "variant", "geometry")
        return name if plain else f"{name}::VARCHAR"

    def _is_finite(self, name: str) -> str:
        return f"isfinite({number(name, self._kinds[name])})"

    def _bins(self, name: str, most: int, where: str = "") -> Bins:
        kind = self._kinds[name]
        assert kind is not None  # the role is "number" or "time"
        value = number(name, kind)
        ends = self._view.evaluate(
            f"SELECT coalesce(min({value}), 0), coalesce(max({value}), 0) FROM {_SEEN} {where or f'WHERE {self._is_finite(name)}'}",
            {_SEEN: self._rows},
        )
        low, high = (column[0].as_py() for column in ends.columns)
        return bins_of(name, kind, low, high, most, self._choice.bins if name == self._choice.x else None)

    def _evaluate(self, sql: str) -> int:
        """Returns the single number of a query."""
        return int(self._view.evaluate(sql, {_SEEN: self._rows}).column(0)[0].as_py() or 0)


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"

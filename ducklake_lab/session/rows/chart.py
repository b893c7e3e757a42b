"""Charts of rows: a few thousand points, counted and summed by SQL; what is left out is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from ducklake_lab.errors import UsageError
from ducklake_lab.hooks import hook
from ducklake_lab.model.binning import RoundBins, round_bins
from ducklake_lab.model.labels import distinct, label
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import INTEGERS, TIMESTAMPS, DataType
from ducklake_lab.session.rows.columns import ViewColumn

Role = Literal["number", "time", "category"]

KINDS = ("bar", "line", "scatter", "histogram")
AGGREGATES = ("count", "sum", "avg", "min", "max")
#: What the SQL of a chart calls the rows that pass.
_SEEN = "ducklake_seen"
#: Bars, points of a line or marks of a scatter, intervals of a longer line, of a histogram, and of a crowded scatter.
MOST_BARS, MOST_POINTS, LINE_BINS, BINS, ACROSS, UP = 40, 2000, 400, 40, 60, 40


class Drawable(Protocol):
    """Rows that a chart can be drawn of."""

    @property
    def columns(self) -> Sequence[ViewColumn]: ...

    @property
    def partial(self) -> bool:
        """Whether these are the first rows of more."""

    @property
    def total(self) -> int:
        """How many rows there are."""

    @property
    def sql(self) -> str:
        """A statement that gives the rows."""

    def seen(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows, under their names."""

    def evaluate(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a query over tables of rows."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What is drawn.

    Attributes:
        kind: one of KINDS.
        y: None where rows are counted.
        aggregate: one of AGGREGATES, of bars and lines; None of others.
    """

    kind: str
    x: str
    y: str | None = None
    aggregate: str | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Points to draw.

    Attributes:
        title: what was aggregated, over what.
        x_title, y_title: what the axes measure.
        x_role: "category" where points stand beside each other, else "number" or "time".
        points: `label` and `value` are DuckDB's texts of x and y, `x` and `y` the numbers to draw, of times seconds since
            1970; `until`, `x_end`, `value_until` and `y_end` the same of the ends of intervals, which do not belong to
            them; `rows` how many rows a point stands for.
        notes: what the chart leaves out, for whom reads it.
        sql: gives x, y, the ends of intervals and the number of rows.
    """

    choice: Choice
    title: str
    x_title: str
    y_title: str
    x_role: Role
    points: pa.Table
    notes: tuple[str, ...]
    sql: str

    @property
    def labels(self) -> list[str]:
        """What the points stand for on the x axis, no two alike."""
        return distinct(label(text) for text in self.points.column("label").to_pylist())

    def _repr_html_(self) -> str:
        html: str = hook("chart.html")(self)
        return html

    def __repr__(self) -> str:
        return f"<Chart: {self.title}>"


def role(kind: DataType | None) -> Role:
    """What a column may be on an axis."""
    if kind is not None and kind.is_numeric:
        return "number"
    return "time" if kind is not None and (kind.name == "date" or kind.name in TIMESTAMPS) else "category"


def choose(
    columns: Sequence[ViewColumn], kind: str | None, x: str | None, y: str | None, aggregate: str | None
) -> Choice:
    """Fills in what is not given, by the types of the columns.

    Raises:
        UsageError: there is no such kind or aggregate, or no column that suits it.
    """
    for given, known, what in ((kind, KINDS, "kind of chart"), (aggregate, AGGREGATES, "aggregate")):
        if given is not None and given not in known:
            raise UsageError(f'There is no {what} "{given}"; there are {", ".join(known)}.')
    roles = {column.name: role(column.kind) for column in columns}
    times = [name for name, its in roles.items() if its == "time"]
    numbers = [name for name, its in roles.items() if its == "number"]
    # keys are numbers that nobody sums
    measures = [name for name in numbers if not _is_key(name)]
    numbers = measures or numbers
    categories = [name for name, its in roles.items() if its == "category"]
    if kind is None:
        if x is None:
            x = next((name for names in (times, categories, numbers) for name in names), None)
        if x is None:
            raise UsageError("There is no column to draw.")
        others = [name for name in numbers if name != x]
        if roles[x] == "category":
            kind = "bar"
        elif roles[x] == "time":
            kind = "line" if aggregate or set(measures) & set(others) else "histogram"
        else:
            kind = "scatter" if others and (y is not None or (not times and not categories)) else "histogram"
    if x is None:
        order = {
            "bar": (categories, times, numbers),
            "line": (times, numbers),
            "scatter": (numbers, times),
            "histogram": (numbers, times),
        }
        x = next((name for names in order[kind] for name in names if name != y), None)
    if x is None or (kind != "bar" and roles[x] == "category"):
        raise UsageError(f"A {kind} needs a column of numbers or times{'' if x is None else f', which {x} is not'}.")
    if y is not None and roles[y] != "number":
        raise UsageError(f"{y} is not a column of numbers.")
    if kind == "histogram":
        return Choice(kind, x)
    if y is None and aggregate != "count":
        y = next((name for name in (numbers if kind == "scatter" else measures) if name != x), None)
    if kind == "scatter":
        if y is None:
            raise UsageError("A scatter needs two columns of numbers.")
        return Choice(kind, x, y)
    if y is None:
        if aggregate not in (None, "count"):
            raise UsageError(f"There is no column of numbers for {aggregate}.")
        return Choice(kind, x, None, "count")
    return Choice(kind, x, None if aggregate == "count" else y, aggregate or "sum")


def _is_key(name: str) -> bool:
    return name.casefold() == "id" or name.casefold().endswith(("_id", "_key"))


def draw(view: Drawable, choice: Choice) -> Chart:
    """The points of a chart of the rows that pass.

    Raises:
        ConstraintError: a sum does not fit its type.
    """
    return _Drawing(view, choice).chart()


class _Drawing:
    """Makes one chart; its SQL reads `seen`, of the columns that it needs."""

    def __init__(self, view: Drawable, choice: Choice) -> None:
        self._view = view
        self._choice = choice
        self._kinds = {column.name: column.kind for column in view.columns}
        self._role: Role = "category" if choice.kind == "bar" else role(self._kinds[choice.x])
        self._rows = view.seen([choice.x, *([choice.y] if choice.y is not None else [])])
        self._notes: list[str] = []
        self._over = ""
        #: Every point is one row: nothing is summed.
        self._is_single = False

    def chart(self) -> Chart:
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
            sql.replace(_SEEN, f"(\n{self._view.sql}\n)"),
        )

    def _bars(self) -> str:
        x, y = self._category(), self._aggregated()
        groups = self._evaluate(f"SELECT count(*) FROM (SELECT {x} AS x FROM {_SEEN} GROUP BY ALL)")
        self._is_single = groups == self._rows.num_rows
        self._leave_out_nulls()
        order = "y DESC NULLS LAST, x" if role(self._kinds[self._choice.x]) == "category" or groups > MOST_BARS else "x"
        sql = f'SELECT {x} AS x, {y} AS y, count(*) AS "rows"\nFROM {_SEEN}\nGROUP BY ALL\nORDER BY {order}'
        if groups > MOST_BARS:
            sql += f"\nLIMIT {MOST_BARS}"
            shown = self._evaluate(f'SELECT sum("rows")::BIGINT FROM ({sql})')
            self._notes.append(
                f"the {MOST_BARS} largest of {groups:,} values of {self._choice.x}; {groups - MOST_BARS:,} others, of "
                f"{_rows(self._rows.num_rows - shown)}, are not drawn"
            )
        return sql

    def _line(self) -> str:
        x, y = quote_identifier(self._choice.x), self._aggregated()
        where = f"WHERE {self._is_finite(self._choice.x)}"
        groups = self._evaluate(f"SELECT count(DISTINCT {x}) FROM {_SEEN} {where}")
        self._is_single = groups == self._rows.num_rows and groups <= MOST_POINTS
        self._leave_out(self._choice.x)
        self._leave_out_nulls()
        if groups <= MOST_POINTS:
            return f'SELECT {x} AS x, {y} AS y, count(*) AS "rows"\nFROM {_SEEN}\n{where}\nGROUP BY ALL\nORDER BY x'
        held = quote_identifier(self._choice.y) if self._choice.y is not None else "1"
        return self._binned(LINE_BINS, f"{self._choice.aggregate}(held)", held)

    def _histogram(self) -> str:
        self._leave_out(self._choice.x)
        return self._binned(BINS, "count(*)", "1")

    def _binned(self, most: int, y: str, held: str) -> str:
        """An aggregate of what is held by each row, by intervals of x."""
        x = self._choice.x
        bins = self._bins(x, most)
        self._over = f", in intervals of {self._width(bins, x)}"
        low, high = (self._edge(bins, x, number) for number in ("bin", "(bin + 1)"))
        numbers = f"SELECT {self._number(x)} AS v, {held} AS held FROM {_SEEN} WHERE {self._is_finite(x)}"
        return (
            f'SELECT {low} AS x, {high} AS "until", {y} AS y, count(*) AS "rows"\n'
            f"FROM (SELECT {bins.number_sql('v')} AS bin, held FROM ({numbers}))\nGROUP BY bin\nORDER BY bin"
        )

    def _scatter(self) -> str:
        x, y = self._choice.x, self._choice.y
        assert y is not None
        self._leave_out(x)
        self._leave_out(y)
        where = f"WHERE {self._is_finite(x)} AND {self._is_finite(y)}"
        sql = (
            f'SELECT {quote_identifier(x)} AS x, {quote_identifier(y)} AS y, count(*) AS "rows"\nFROM {_SEEN}\n{where}\n'
            "GROUP BY ALL\nORDER BY ALL"
        )
        if self._evaluate(f"SELECT count(*) FROM ({sql})") <= MOST_POINTS:
            return sql
        across, up = self._bins(x, ACROSS, where), self._bins(y, UP, where)
        self._over = f", rows counted in fields of {self._width(across, x)} by {self._width(up, y)}"
        numbers = f"SELECT {self._number(x)} AS v, {self._number(y)} AS w FROM {_SEEN} {where}"
        ends = [
            f"{self._edge(bins, name, number)} AS {label}"
            for bins, name, number, label in (
                (across, x, "bin", "x"),
                (across, x, "(bin + 1)", '"until"'),
                (up, y, "up", "y"),
                (up, y, "(up + 1)", "y_until"),
            )
        ]
        return (
            f'SELECT {", ".join(ends)}, count(*) AS "rows"\n'
            f"FROM (SELECT {across.number_sql('v')} AS bin, {up.number_sql('w')} AS up FROM ({numbers}))\n"
            "GROUP BY bin, up\nORDER BY bin, up"
        )

    def _points(self, sql: str) -> pa.Table:
        """What the SQL gives, as numbers to draw and texts to read."""
        names = self._view.evaluate(f"FROM ({sql}) LIMIT 0", {_SEEN: self._rows}).column_names
        position = {"number": "{}::DOUBLE", "time": "epoch({})::DOUBLE", "category": "NULL::DOUBLE"}[self._role]
        until = '"until"' if "until" in names else "NULL"
        end = position.format(until) if "until" in names else "NULL::DOUBLE"
        top = "y_until" if "y_until" in names else "NULL"
        return self._view.evaluate(
            f"SELECT left(x::VARCHAR, 200) AS label, {position.format('x')} AS x, {until}::VARCHAR AS until, {end} AS x_end, "
            f'y::VARCHAR AS value, y::DOUBLE AS y, {top}::VARCHAR AS value_until, {top}::DOUBLE AS y_end, "rows" FROM ({sql})',
            {_SEEN: self._rows},
        )

    def _leave_out(self, name: str) -> None:
        """Notes how many rows have no finite value to draw."""
        counted = self._evaluate(f"SELECT count(*) FROM {_SEEN} WHERE NOT coalesce({self._is_finite(name)}, false)")
        if counted:
            self._notes.append(f"{_rows(counted)} without a finite {name} not drawn")

    def _leave_out_nulls(self) -> None:
        """Notes how many NULLs an aggregate leaves out."""
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

    def _category(self) -> str:
        """SQL of x where it is no position: values of types that have no order are texts."""
        kind = self._kinds[self._choice.x]
        name = quote_identifier(self._choice.x)
        plain = kind is not None and not kind.is_nested and kind.name not in ("json", "variant", "geometry")
        return name if plain else f"{name}::VARCHAR"

    def _number(self, name: str) -> str:
        quoted = quote_identifier(name)
        return f"epoch({quoted})::DOUBLE" if role(self._kinds[name]) == "time" else f"{quoted}::DOUBLE"

    def _is_finite(self, name: str) -> str:
        return f"isfinite({self._number(name)})"

    def _bins(self, name: str, most: int, where: str = "") -> RoundBins:
        kind = self._kinds[name]
        assert kind is not None  # it is a number or a time
        number = self._number(name)
        ends = self._view.evaluate(
            f"SELECT coalesce(min({number}), 0), coalesce(max({number}), 0) FROM {_SEEN} {where or f'WHERE {self._is_finite(name)}'}",
            {_SEEN: self._rows},
        )
        low, high = (column[0].as_py() for column in ends.columns)
        return round_bins(low, high, kind, most)

    def _edge(self, bins: RoundBins, name: str, number: str) -> str:
        """SQL of the lower end of a bin, in the type of the column where that is whole."""
        kind = self._kinds[name]
        assert kind is not None
        edge = f"({bins.edge_sql(number)})"
        if kind.name in INTEGERS and "128" not in kind.name:
            return f"{edge}::HUGEINT"
        if kind.name == "date":
            return f"DATE '1970-01-01' + ({edge} / 86400)::INTEGER"
        if kind.name == "timestamptz":
            return f"to_timestamp{edge}"
        return f"make_timestamp(({edge} * 1000000)::BIGINT)" if kind.name in TIMESTAMPS else edge

    def _width(self, bins: RoundBins, name: str) -> str:
        """How wide bins are, for people."""
        if bins.parts > 1:
            number = f"{bins.multiple / bins.parts:g}"
        elif role(self._kinds[name]) == "time":
            for unit, seconds in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
                if bins.multiple % seconds == 0:
                    return f"{bins.multiple // seconds:,} {unit}{'s' * (bins.multiple != seconds)}"
        else:
            number = f"{bins.multiple:,}" if bins.multiple < 10**15 else f"{bins.multiple:g}"
        return f"{number} seconds" if role(self._kinds[name]) == "time" else number

    def _evaluate(self, sql: str) -> int:
        """The only number of a query."""
        return int(self._view.evaluate(sql, {_SEEN: self._rows}).column(0)[0].as_py() or 0)


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"

"""Rows for sorting, filtering and paging; the current selection is available as SQL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from ducklake_lab.duckdb.zones import in_zone
from ducklake_lab.engine.in_process import engine
from ducklake_lab.errors import EntryNotFoundError, UsageError, did_you_mean
from ducklake_lab.hooks import hook
from ducklake_lab.model.binning import bin_sql, equal_bins
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.model.reads import EntryRead
from ducklake_lab.model.types import TIMESTAMPS, DataType
from ducklake_lab.redaction import hide
from ducklake_lab.session.rows.chart import Chart, draw
from ducklake_lab.session.rows.chart_choice import Choice, choose
from ducklake_lab.session.rows.columns import ViewColumn
from ducklake_lab.session.rows.lives import TableBehind

#: Most rows held in memory for viewing. A larger table is read file by file up to this number.
MAX_ROWS = 2_000_000
#: Most rows fetched from Spark for viewing.
MAX_SPARK_ROWS = 100_000

_COMPARISON = re.compile(r"\s*(<=|>=|<>|!=|<|>|=)\s*(.*)", re.DOTALL)
_BINS = 16
_TOP = 6


@dataclass(frozen=True, slots=True)
class Profile:
    """Statistics of one column over the filtered rows.

    Attributes:
        distinct: the number of distinct values.
        low, high: smallest and largest value as text; None without values, or for a type without order.
        bins: counts in equal intervals from low to high, for numbers and times; () for other types.
        top: (value, count) of the most frequent values, for other types.
    """

    column: str
    rows: int
    nulls: int
    distinct: int
    low: str | None
    high: str | None
    bins: tuple[int, ...]
    top: tuple[tuple[str | None, int], ...]


class RowsView:
    """Rows of a table at one snapshot, or of a result, for viewing.

    Attributes:
        title: the name of the table or result.
        columns: the columns; no two share a name.
        sort: (column, descending), most significant first.
        time_zone: the time zone for filters and display.
        filters: by column, as written: `> 5`, `= x`, `null`, `not null`, or a part of the text.
        search: a part of the text of any column, in DuckDB's form; "" for none. It is case-insensitive.
        reads: the tables of lakes that hold the rows, each with its snapshot.
        find_behind: finds the table of which each row is one; None for other rows.

    Args:
        statement: a statement that returns all rows.
        source: the FROM item for SQL over the rows.
        read: returns the held rows, and whether there are more; called once, on demand. After their columns there may be
            their row ids.
        whole_rows: the number of all rows, if it is already known.
        first: first rows to show before the others are read; more rows follow.
    """

    def __init__(
        self,
        title: str,
        statement: str,
        source: str,
        columns: Sequence[ViewColumn],
        read: Callable[[], tuple[pa.Table, bool]],
        time_zone: str,
        *,
        whole_rows: int | None = None,
        first: pa.Table | None = None,
    ) -> None:
        self.title = title
        self._statement = statement
        self._source = source
        self._read = read
        self._whole_rows = whole_rows
        self._first = first
        self.time_zone = time_zone
        self.columns = tuple(columns)
        self.sort: tuple[tuple[str, bool], ...] = ()
        self.filters: dict[str, str] = {}
        self.search = ""
        self.reads: Sequence[EntryRead] = ()
        self.find_behind: Callable[[], TableBehind | None] = lambda: None
        self._row_ids: pa.ChunkedArray | None = None
        self._held: tuple[pa.Table, bool] | None = None
        self._order: pa.Array | None = None

    @cached_property
    def behind(self) -> TableBehind | None:
        """The table of which each row is one; None for other rows."""
        return self.find_behind()

    @property
    def rows(self) -> pa.Table:
        """All held rows, with columns c0, c1, …; read on first use."""
        return self._all()[0]

    @property
    def partial(self) -> bool:
        """Returns whether only some of the rows are held, because there are too many."""
        return self._all()[1]

    @property
    def whole_rows(self) -> int | None:
        """The number of all rows; None if unknown."""
        return self._whole_rows if self._whole_rows is not None or self.partial else self.total

    @property
    def total(self) -> int:
        return int(self.rows.num_rows)

    @property
    def first(self) -> int | None:
        """The number of first rows while the others are unread; the next request for those reads them."""
        return self._first.num_rows if self._held is None and self._first is not None else None

    def _all(self) -> tuple[pa.Table, bool]:
        if self._held is None:
            rows, is_partial = self._read()
            if rows.num_columns > len(self.columns):
                self._row_ids = rows.column(len(self.columns))
                rows = rows.select(range(len(self.columns)))
            self._held = rows.rename_columns([f"c{at}" for at in range(rows.num_columns)]), is_partial
            self._first = None
        return self._held

    @property
    def passing(self) -> int:
        """The number of filtered rows."""
        return self.total if self._order is None else len(self._order)

    def column(self, name: str) -> int:
        """Returns the position of a column.

        Raises:
            EntryNotFoundError: no column has that name.
        """
        for at, column in enumerate(self.columns):
            if column.name == name:
                return at
        raise EntryNotFoundError(
            f'{self.title} has no column "{name}".{did_you_mean(name, [column.name for column in self.columns])}'
        )

    def look(
        self, sort: Sequence[tuple[str, bool]] = (), filters: dict[str, str] | None = None, search: str = ""
    ) -> int:
        """Sorts, filters and searches; returns the number of filtered rows.

        Raises:
            EntryNotFoundError, UsageError: a column is unknown, or a filter does not fit its type; nothing changes.
        """
        filters = {name: text for name, text in (filters or {}).items() if text.strip()}
        where = "\n  AND ".join(self._conditions(filters, search, [f"c{at}" for at in range(len(self.columns))]))
        order = ", ".join(f"c{self.column(name)} {'DESC' if down else 'ASC'} NULLS LAST" for name, down in sort)
        self.sort, self.filters, self.search = tuple(sort), filters, search
        if not where and not order:
            self._order = None
            return self.passing
        sorted_rows = self.evaluate(
            f"SELECT rn FROM (SELECT *, row_number() OVER () - 1 AS rn FROM t) {f'WHERE {where}' if where else ''} "
            f"ORDER BY {f'{order}, ' if order else ''}rn",
            {"t": self.rows},
        )
        self._order = sorted_rows.column(0).combine_chunks()
        return self.passing

    def page(self, start: int, count: int) -> pa.Table:
        """Returns a range of the filtered rows, in order, under the table's column names."""
        rows = self._range(start, count)
        return in_zone(rows.rename_columns([column.name for column in self.columns]), self.time_zone)

    def _range(self, start: int, count: int) -> pa.Table:
        first = self._first if self._held is None else None
        if first is not None and start + count <= first.num_rows:
            return first.slice(start, count)
        rows = self.rows
        return rows.slice(start, count) if self._order is None else rows.take(self._order.slice(start, count))

    def row_ids(self, place: int) -> Sequence[int]:
        """Returns the ids of the rows, in the table behind the view, that a filtered row is; several if they look alike.

        Raises:
            UsageError: no table is known behind the rows.
            UnsupportedFeatureError: the row cannot be looked for.
        """
        if self.behind is None:
            raise UsageError(f"The rows of {self.title} are not those of one table.")
        if self.behind.find is not None:
            return self.behind.find(self._range(place, 1))
        _ = self.rows
        assert self._row_ids is not None  # the view of a table reads them
        at = place if self._order is None else self._order[place].as_py()
        return [self._row_ids[at].as_py()]

    def save(self, path: str | os.PathLike[str], *, part: bool = False) -> int:
        """Writes the filtered rows, in order, to a file or an object; returns their number.

        Args:
            path: a path that ends in .csv, .tsv, .parquet or .xlsx; see `saving.save` for the form of values.
            part: write the held rows even if they are not all rows.

        Raises:
            UsageError: not all rows are held, the path has another ending, or it cannot be written.
            UnsupportedFeatureError, ConstraintError: the format cannot hold a value.
        """
        from ducklake_lab.session.rows import saving

        if self.partial and not part:
            raise UsageError(
                f"{self.title} has more than the {self.total:,} rows that were read: save(path, part=True) writes "
                "those that pass, and COPY (…) TO 'file' with the view's sql writes all."
            )
        saving.save(self.page(0, self.passing), os.fspath(path), self.time_zone)
        return self.passing

    def seen(self, names: Sequence[str]) -> pa.Table:
        """Returns some columns of the filtered rows, in order, under the table's column names."""
        places = [self.column(name) for name in dict.fromkeys(names)]
        rows = self.rows.select(places)
        rows = rows if self._order is None else rows.take(self._order)
        return rows.rename_columns([self.columns[at].name for at in places])

    def evaluate(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Runs a query over given tables, in the view's time zone."""
        return engine.evaluate(sql, tables, self.time_zone)

    def chart(
        self,
        kind: str | None = None,
        x: str | None = None,
        y: str | None = None,
        aggregate: str | None = None,
        *,
        color: str | None = None,
        bins: str | None = None,
    ) -> Chart:
        """Returns a chart of the filtered rows; types of the columns decide omitted arguments.

        Args:
            kind: bar, line, scatter or histogram.
            y: a numeric column.
            aggregate: count, sum, avg, min or max, for bars and lines.
            color: a column; its eight most frequent values get a colour each.
            bins: minute, hour, day, week, month, quarter or year, the intervals for times on x.

        Raises:
            EntryNotFoundError, UsageError: a column, kind or aggregate is unknown or unsuitable.
        """
        for name in (x, y, color):
            if name is not None:
                self.column(name)
        given = Choice(kind or "", x or "", y, aggregate, color, bins)
        return draw(self, choose(self.columns, given))

    def plot(
        self,
        kind: str | None = None,
        x: str | None = None,
        y: str | None = None,
        aggregate: str | None = None,
        *,
        color: str | None = None,
        bins: str | None = None,
    ) -> Any:
        """Returns the chart of `chart` as a plotly figure."""
        return hook("chart.plot")(self.chart(kind, x, y, aggregate, color=color, bins=bins))

    @property
    def sql(self) -> str:
        """A statement for the filtered rows, in the same order."""
        conditions = self._conditions(
            self.filters, self.search, [quote_identifier(column.name) for column in self.columns]
        )
        if not conditions and not self.sort:
            return self._statement
        text = f"SELECT * FROM {self._source}"
        if conditions:
            text += "\nWHERE " + "\n  AND ".join(conditions)
        if self.sort:
            keys = (f"{quote_identifier(name)} {'DESC' if down else 'ASC'} NULLS LAST" for name, down in self.sort)
            text += "\nORDER BY " + ", ".join(keys)
        return text

    def profile(self, name: str) -> Profile:
        """Returns the statistics of a column over the filtered rows."""
        at = self.column(name)
        kind = self.columns[at].kind
        column = self.rows.column(at) if self._order is None else self.rows.column(at).take(self._order)
        tables = {"t": pa.table({"v": column})}
        ordered = kind is not None and not kind.is_nested and kind.name not in ("json", "blob")
        low, high = ("left(min(v)::VARCHAR, 200)", "left(max(v)::VARCHAR, 200)") if ordered else ("NULL", "NULL")
        row = self.evaluate(
            f"SELECT count(*), count(*) - count(v), count(DISTINCT {'v' if ordered else 'v::VARCHAR'}), {low}, {high} FROM t",
            tables,
        )
        rows, nulls, distinct, least, most = (column[0].as_py() for column in row.columns)
        number = _number(kind) if kind is not None else None
        bins: tuple[int, ...] = ()
        top: tuple[tuple[str | None, int], ...] = ()
        if kind is not None and number is not None and distinct > _TOP:
            bins = self._bins(number, kind, tables)
        else:
            frequent = self.evaluate(
                f"SELECT left(label, 100), n FROM (SELECT v::VARCHAR AS label, count(*) AS n FROM t GROUP BY 1) "
                f"ORDER BY n DESC, label LIMIT {_TOP}",
                tables,
            )
            top = tuple(zip(*(column.to_pylist() for column in frequent.columns), strict=True))
        return Profile(name, rows, nulls, distinct, least, most, bins, top)

    def _bins(self, number: str, kind: DataType, tables: dict[str, pa.Table]) -> tuple[int, ...]:
        """Returns the number of values in each interval; () if all finite values are equal."""
        numbers = f"SELECT {number} AS x FROM t WHERE v IS NOT NULL AND isfinite({number})"
        ends = self.evaluate(f"SELECT min(x), max(x) FROM ({numbers})", tables)
        low, high = (column[0].as_py() for column in ends.columns)
        if low is None or low == high:
            return ()
        width, bins = equal_bins(low, high, kind, _BINS)
        counted = self.evaluate(
            f"SELECT least({bin_sql('x', low, width)}, {bins - 1})::INTEGER AS bin, count(*) "
            f"FROM ({numbers}) GROUP BY 1",
            tables,
        )
        counts = dict(zip(*(column.to_pylist() for column in counted.columns), strict=True))
        return tuple(counts.get(at, 0) for at in range(bins))

    def _conditions(self, filters: dict[str, str], search: str, columns: Sequence[str]) -> list[str]:
        """Returns the SQL conditions of the filters and the search.

        Args:
            columns: the SQL names of the columns.
        """
        conditions = [self._condition(name, text, columns[self.column(name)]) for name, text in filters.items()]
        if search.strip():
            conditions.append("(" + " OR ".join(_has_text(column, search.strip()) for column in columns) + ")")
        return conditions

    def _condition(self, name: str, text: str, value_sql: str) -> str:
        """Returns the SQL condition of one filter."""
        column = self.columns[self.column(name)]
        plain = text.strip()
        if plain.casefold() in ("null", "is null"):
            return f"{value_sql} IS NULL"
        if plain.casefold() in ("not null", "is not null"):
            return f"{value_sql} IS NOT NULL"
        compared = _COMPARISON.fullmatch(plain)
        kind = column.kind
        if compared is None and kind is not None and (kind.is_numeric or kind.name == "boolean"):
            compared = _COMPARISON.fullmatch(f"= {plain}")
        if compared is None:
            return _has_text(value_sql, plain)
        operator, value = compared[1], _unquoted(compared[2].strip())
        if kind is None or kind.is_nested:
            return f"{value_sql}::VARCHAR {operator} {quote_text(value)}"
        return f"{value_sql} {operator} {_checked(value, column.name, kind)}"

    def _repr_mimebundle_(self, **_options: object) -> Any:
        return hook("output")(self)

    def _repr_html_(self) -> str:
        html: str = hook("view.html")(self)
        return html

    def __repr__(self) -> str:
        return f"<View of {self.title}: {hide(self.sql)}>"


def _has_text(value: str, part: str) -> str:
    """Returns the SQL condition that a value's text contains a part, in any case."""
    # Python and DuckDB fold non-ASCII letters differently
    small = quote_text(part.lower()) if part.isascii() else f"lower({quote_text(part)})"
    return f"contains(lower({value}::VARCHAR), {small})"


def _number(kind: DataType) -> str | None:
    if kind.is_numeric:
        return "v::DOUBLE"
    return "epoch(v)::DOUBLE" if kind.name == "date" or kind.name in TIMESTAMPS else None


def _checked(value: str, name: str, kind: DataType) -> str:
    """Returns the value as SQL of a column's type.

    Raises:
        UsageError: the value is not of that type.
    """
    if kind.name == "varchar":
        return quote_text(value)
    sql = f"CAST({quote_text(value)} AS {kind.sql()})"
    fits = engine.evaluate(f"SELECT TRY_CAST({quote_text(value)} AS {kind.sql()}) IS NOT NULL AS fits", {})
    if not fits.column(0)[0].as_py():
        raise UsageError(f'"{value}" is no {kind.sql()}, which {name} is; write e.g. > 5, null or not null.')
    return value if kind.is_numeric and re.fullmatch(r"-?\d+(\.\d+)?", value) else sql


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'") if len(text) >= 2 and text[0] == text[-1] == "'" else text

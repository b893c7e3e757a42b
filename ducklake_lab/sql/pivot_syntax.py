"""Bounds the cost of a written PIVOT, whose combinations of values the base parser names, and holds a written-out UNPIVOT."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.type_syntax import TypeParser

#: Combinations of values up to which a PIVOT is parsed; DuckDB's own default of `pivot_limit`.
MOST_COMBINATIONS = 100_000


class Unpivoted(exp.Expression):
    """Item of a SELECT list: the columns that an UNPIVOT keeps, and its cells, a row for each.

    Its `expressions` are the columns, patterns and rows of columns as written; `width` counts the columns of a cell.
    """

    arg_types = {"expressions": True, "width": True}


class PivotParser(TypeParser):
    """The part of a parser that reads PIVOT … FOR … IN (…).

    Raises:
        UnsupportedFeatureError: the lists of a PIVOT have more than `MOST_COMBINATIONS` combinations.
    """

    _combinations = 1

    def _parse_pivot(self) -> Any:
        # a list may hold a query with a PIVOT of its own
        around, self._combinations = self._combinations, 1
        try:
            return super()._parse_pivot()
        finally:
            self._combinations = around

    def _parse_pivot_in(self) -> exp.In:
        values: exp.In = super()._parse_pivot_in()
        self._combinations *= max(1, len(values.expressions))
        if self._combinations > MOST_COMBINATIONS:
            raise UnsupportedFeatureError(f"PIVOT into more than {MOST_COMBINATIONS:,} columns is not supported.")
        return values

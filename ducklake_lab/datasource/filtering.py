"""Skips files by the filters of a query; needs PySpark 4.1 and `spark.sql.python.filterPushdown.enabled`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite

from pyspark.sql import datasource as ds

from ducklake_lab.datasource.reader import EntryReader
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import Comparison, InList, NullTest, Operator, Predicate, StartsWith

_COMPARISONS: dict[type[ds.Filter], Operator] = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_VALUES = (bool, int, float, Decimal, str, bytes, date, time, datetime)


class FilteringReader(EntryReader):
    """A batch read that gets the query's filters. Spark refuses to plan one where the setting is off."""

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - Spark's name
        """Takes note of filters that can skip files. Spark still applies all of them to the rows."""
        self.predicates = [p for p in map(_predicate, filters) if p is not None]
        return filters


def _predicate(pushed: ds.Filter) -> Predicate | None:
    """Translate a pushed filter into a predicate that can skip files; None for filters that cannot."""
    op = _COMPARISONS.get(type(pushed))
    if op is not None and _is_constant(pushed.value):  # type: ignore[attr-defined]
        return Comparison(pushed.attribute, op, _constant(pushed.value))  # type: ignore[attr-defined]
    if isinstance(pushed, ds.In) and all(map(_is_constant, pushed.value)):
        return InList(pushed.attribute, tuple(map(_constant, pushed.value)))
    if isinstance(pushed, ds.IsNull | ds.IsNotNull):
        return NullTest(pushed.attribute, isinstance(pushed, ds.IsNull))
    if isinstance(pushed, ds.StringStartsWith):
        return StartsWith(pushed.attribute, pushed.value)
    return None


def _is_constant(value: object) -> bool:
    return isinstance(value, _VALUES) and not (isinstance(value, float) and not isfinite(value))


def _constant(value: object) -> object:
    return Moment.of(value) if isinstance(value, date | time) else value

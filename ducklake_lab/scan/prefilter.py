"""Pruning in the catalog database: it leaves out files that certainly have no row for which a predicate is true.

A condition in SQL that every file which `pruning.may_match` would keep meets, so that only few have to be fetched and
looked at closely. It may keep more: bounds are compared where their text has the usual form, numbers as DOUBLE and
points in time by the second. Rounding both sides so keeps their order, though it may make them equal; hence a file is
left out only where its bound lies truly beyond the constant. A NULL, or a bound of another form, leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from ducklake_lab.catalog import tables as t
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.moments import DAY, Moment, days_since_1970
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.statistics import kept
from ducklake_lab.model.transforms import Bucket, parse_transform
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.model.values import AS_DOUBLE, Scalar, comparable
from ducklake_lab.scan.partitioned import UNPARTITIONED, Partitioning
from ducklake_lab.scan.pruning import column_at

#: `ducklake_file_column_stats`, one alias per column id, of which a file may have no row.
Joined = Mapping[int, sa.FromClause]
Condition = sa.ColumnElement[bool]

_LARGEST = 1.7976931348623157e308
#: Whole numbers up to here are doubles, and integers of every database.
_EXACT = 2**53
_BIGINT = 2**63
_NUMBER = r"^-?[0-9]{1,40}([.][0-9]{1,40})?([eE][-+]?[0-9]{1,2})?$"
#: The version of PostgreSQL since which it says whether a text can be cast.
_ASKS_FOR_INPUT = (16,)
#: Digits of a number that may still be cast.
_LONGEST = 40
_SECOND = "____-__-__ __:__:__"
#: LIKE patterns of bounds that are compared as text: years of four digits, and no offset but that of UTC.
_FORMS = {
    "date": ("____-__-__",),
    "timestamp": (_SECOND, f"{_SECOND}.%"),
    "timestamp_s": (_SECOND, f"{_SECOND}.%"),
    "timestamp_ms": (_SECOND, f"{_SECOND}.%"),
    "timestamptz": (f"{_SECOND}+00", f"{_SECOND}.%+00"),
}
#: Endings of a time with an offset behind its fraction, or before Christ.
_OTHER_FORMS = {"timestamptz": ("%)",)}
_OFFSETS = ("%)", "%.%+%", "%.%-%")
#: Microseconds since 1970 at which the years 1 and 10000 begin.
_YEARS = days_since_1970(1, 1, 1) * DAY, days_since_1970(10_000, 1, 1) * DAY
#: Characters of a point in time that are compared: up to the seconds.
_SECONDS = 19


def may_match(
    table: Table, predicate: Predicate, joined: Joined, backend: str, partitioning: Partitioning = UNPARTITIONED
) -> Condition | None:
    """The condition for `ducklake_data_file` and its joined statistics; None where nothing can be left out.

    Args:
        partitioning: of the table; only its present keys matter.
    """
    if isinstance(predicate, And | Or):
        terms = [may_match(table, term, joined, backend, partitioning) for term in predicate.terms]
        conditions = [term for term in terms if term is not None]
        if isinstance(predicate, And):
            return sa.and_(*conditions) if conditions else None
        return sa.or_(*conditions) if len(conditions) == len(terms) else None
    column = column_at(table, predicate.column)
    if column is None:
        return None
    stats = joined.get(column.column_id)
    cannot = _cannot_match(predicate, column, stats, backend) if stats is not None else None
    # a NULL leaves nothing out
    kept = cannot.is_not(sa.true()) if cannot is not None else None
    elsewhere = _in_other_buckets(table, partitioning, predicate, column)
    if elsewhere is None:
        return kept
    return sa.not_(elsewhere) if kept is None else sa.and_(kept, sa.not_(elsewhere))


def _in_other_buckets(
    table: Table,
    partitioning: Partitioning,
    predicate: Comparison | InList | NullTest | StartsWith,
    column: Column,
) -> Condition | None:
    """Returns whether no constant falls into a file's bucket; bounds do not distinguish buckets."""
    if isinstance(predicate, InList):
        constants = predicate.values
    elif isinstance(predicate, Comparison) and predicate.op == "=":
        constants = (predicate.value,)
    else:
        return None
    if table.partition is None or column.column_id in partitioning.retyped:
        return None
    for index, field in enumerate(table.partition.fields):
        transform = parse_transform(field.transform)
        if not isinstance(transform, Bucket) or field.column_id != column.column_id:
            continue
        values = [comparable(constant, column.data_type) for constant in constants]
        keys = [transform.key_of(value, column.data_type) if value is not None else None for value in values]
        buckets = {bucket for bucket in keys if bucket is not None}
        if buckets and None not in keys:
            f, p = t.data_file, t.file_partition_value
            others = sa.select(p.c.data_file_id).where(
                p.c.table_id == table.table_id,
                p.c.partition_key_index == index,
                p.c.data_file_id.is_not(None),
                p.c.partition_value.not_in(sorted(buckets)),
            )
            of_spec = sa.func.coalesce(f.c.partition_id, -1) == table.partition.partition_id
            return sa.and_(of_spec, f.c.data_file_id.in_(others))
    return None


def _cannot_match(
    predicate: Comparison | InList | NullTest | StartsWith, column: Column, stats: sa.FromClause, backend: str
) -> Condition | None:
    records, nulls = t.data_file.c.record_count, stats.c.null_count
    # a field is NULL where its struct is, too
    counted = kept(column.data_type).nulls and len(predicate.column) == 1
    if isinstance(predicate, NullTest):
        if not counted:
            return None
        return nulls <= 0 if predicate.is_null else nulls >= records
    bounds = _Bounds(column.data_type, stats, backend)
    beyond = _beyond(predicate, column.data_type, bounds) if kept(column.data_type).bounds else None
    return _either(beyond, nulls >= records if counted else None)


def _beyond(predicate: Comparison | InList | StartsWith, kind: DataType, bounds: _Bounds) -> Condition | None:
    """Returns whether the constants lie outside of the bounds."""
    if isinstance(predicate, StartsWith):
        return bounds.no_prefix(predicate.prefix)
    if isinstance(predicate, InList):
        values = [comparable(value, kind) for value in predicate.values]
        if not values or any(value is None for value in values):
            return None
        ordered: list[Any] = sorted(values)
        return _either(bounds.above(ordered[-1]), bounds.below(ordered[0]))
    value = comparable(predicate.value, kind)
    if value is None:
        return None
    match predicate.op:
        case "=":
            return _either(bounds.above(value), bounds.below(value))
        case "<" | "<=":
            return bounds.above(value)
        case ">" | ">=":
            below = bounds.below(value)
            if below is None or kind.name != "float64":
                return below
            # NaN is greater than every number
            return sa.and_(bounds.stats.c.contains_nan.is_(sa.false()), below)
        case _:
            return None


def _either(*conditions: Condition | None) -> Condition | None:
    certain = [condition for condition in conditions if condition is not None]
    return sa.or_(*certain) if certain else None


#: Form in which a bound is compared, and conditions that the comparison needs.
_Comparable = tuple[sa.ColumnElement[Any], *tuple[Condition, ...]]


class _Bounds:
    """The bounds of a column in a file, in the form in which constants are compared with them."""

    def __init__(self, kind: DataType, stats: sa.FromClause, backend: str) -> None:
        self.stats = stats
        self._kind = kind
        self._backend = backend

    def above(self, value: Scalar) -> Condition | None:
        """Returns whether all values are greater than one."""
        low, constant = self._form(self.stats.c.min_value), self._constant(value, 1)
        return sa.and_(low[0] > constant, *low[1:]) if low is not None and constant is not None else None

    def below(self, value: Scalar) -> Condition | None:
        """Returns whether all values are less than one."""
        high, constant = self._form(self.stats.c.max_value), self._constant(value, -1)
        return sa.and_(high[0] < constant, *high[1:]) if high is not None and constant is not None else None

    def no_prefix(self, prefix: str) -> Condition | None:
        """Returns whether no value begins so."""
        if self._kind.name not in ("varchar", "uuid") or _is_odd(prefix):
            return None
        start = self._ordered(sa.func.substr(self.stats.c.min_value, 1, len(prefix)))
        constant = sa.literal(prefix)
        return _either(start > constant, self._ordered(self.stats.c.max_value) < constant)

    def _form(self, bound: sa.ColumnElement[str]) -> _Comparable | None:
        name = self._kind.name
        if name in ("varchar", "uuid"):
            return (self._ordered(bound),)
        forms = _FORMS.get(name)
        if forms is not None:
            start = self._ordered(sa.func.substr(bound, 1, _SECONDS))
            conditions: list[Condition] = [sa.or_(*(bound.like(form) for form in forms))]
            conditions += [bound.not_like(other) for other in _OTHER_FORMS.get(name, _OFFSETS)]
            return start, *conditions
        # these are not the numbers that their texts say, but the nearest that files hold
        inexact = name == "float32" or name in AS_DOUBLE
        return self._number(bound) if self._kind.is_numeric and not inexact else None

    def _number(self, bound: sa.ColumnElement[str]) -> _Comparable | None:
        integers = self._kind.name in INTEGERS
        if self._backend == "postgresql":
            # casting another text is an error
            if integers:
                return (_Whole(bound),)
            return (sa.case((bound.regexp_match(_NUMBER), sa.cast(bound, sa.Double()))),)
        if integers and self._backend == "duckdb":
            # 0x10 is a number to some and none to others
            return sa.try_cast(bound, sa.BigInteger()), bound.not_like("0_%")
        if integers:
            # these databases cast every text to a number
            integer = sa.cast(bound, sa.BigInteger())
            return integer, sa.cast(integer, sa.String()) == bound
        if self._backend != "duckdb":
            return None  # how these databases read other numbers is not exact
        number: sa.ColumnElement[Any] = sa.try_cast(bound, sa.Double())
        return number, number.between(-_LARGEST, _LARGEST)

    def _constant(self, value: Scalar, away: int) -> sa.ColumnElement[Any] | None:
        """A constant to compare bounds with; one that is rounded goes up (1) or down (-1), away from them."""
        if isinstance(value, str):
            return None if _is_odd(value) else sa.literal(value)
        if isinstance(value, Moment):
            # the text of one that is not in the years 1 to 9999 does not sort as it does
            return sa.literal(value.text()[:_SECONDS]) if _YEARS[0] <= value.micros < _YEARS[1] else None
        if isinstance(value, Decimal) and self._kind.name == "float64":
            if self._backend not in ("duckdb", "postgresql") or abs(value) > Decimal(_LARGEST) / 2:
                return None
            # the bounds of a file older than the widening of the column may be off by half a FLOAT's last place
            return sa.literal(float(value) + away * (abs(float(value)) * 2**-23 + 2**-148), sa.Double())
        if isinstance(value, Decimal):
            integers = self._kind.name in INTEGERS and self._backend != "postgresql"
            if value == int(value) and abs(value) < (_BIGINT if integers else _EXACT):
                return sa.literal(int(value), sa.BigInteger())
            if integers:
                return None  # an integer compared with a DOUBLE may be rounded to another side than the constant was
            if self._backend in ("duckdb", "postgresql") and abs(value) < Decimal(_LARGEST):
                return sa.literal(float(value), sa.Double())
        return None

    def _ordered(self, text: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        """Text that is compared by code points."""
        return text.collate("C") if self._backend == "postgresql" else text


class _Whole(FunctionElement[float]):
    """Cast a text of a whole number to DOUBLE; NULL where PostgreSQL's cast might fail."""

    type = sa.Double()
    inherit_cache = True


@compiles(_Whole, "postgresql")
def _cast_whole(element: _Whole, compiler: SQLCompiler, **options: Any) -> str:
    (clause,) = element.clauses
    text = compiler.process(clause, **options)
    # several times as quick as a regular expression
    digits = (
        f"length({text}) <= {_LONGEST} AND translate({text}, '0123456789', '') IN ('', '-') AND strpos({text}, '-') < 2 "
        f"AND {text} NOT IN ('', '-')"
    )
    cases = f"WHEN {digits} THEN CAST({text} AS DOUBLE PRECISION) END"
    if (compiler.dialect.server_version_info or ()) < _ASKS_FOR_INPUT:
        return f"CASE {cases}"
    # quicker again; other forms of a number, such as 0x10, are no digits either
    number = f"CAST({text} AS BIGINT)"
    usual = f"CASE WHEN pg_input_is_valid({text}, 'bigint') THEN CAST({number} AS TEXT) = {text} ELSE false END"
    return f"CASE WHEN {usual} THEN CAST({number} AS DOUBLE PRECISION) {cases}"


def _is_odd(text: str) -> bool:
    """Returns whether a database may refuse or cut a text."""
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)

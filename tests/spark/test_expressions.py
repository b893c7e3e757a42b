"""Expressions on Spark give what DuckDB gives, values and types, or are refused; see expressions.py.

The small size compares every form that Spark computes, and some of what workers evaluate; the large size compares all:

    EXPRESSIONS=all python -m pytest tests/spark/test_expressions.py
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ducklake_lab as dl
from ducklake_lab.duckdb.casting import texts
from ducklake_lab.engine.placement import Limits
from ducklake_lab.model.types import from_field
from ducklake_lab.sql.types import type_or_none
from tests.spark import expressions as made
from tests.spark.expressions import Expression

ALL = os.environ.get("EXPRESSIONS") == "all"
#: A sample of the suite takes one part of the expressions in so many.
_PARTS = 8
_BATCH = 250
#: What holds of the values that are not refused, by their type.
_HELD = {
    "INTERVAL": "abs(date_part('hour', {})) < 2562047",
    "HUGEINT": "{} BETWEEN -99999999999999999999999999999999999999 AND 99999999999999999999999999999999999999",
}

#: Makes one query of several expressions.
Query = Callable[[Sequence[str]], str]


class Both:
    """A session whose table is in a file that Spark reads, and DuckDB with the same table."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.plain = made.connect()
        uri = f"ducklake:{folder}/x.ducklake"
        options: dict[str, Any] = {"alias": "lake", "data_path": f"{folder}/data", "engine": "spark"}
        # else what Spark refuses would run in process
        self.session = dl.connect(uri, spark=spark, limits=Limits(refused=-1), **options)
        self.set("TimeZone", "UTC")
        self.session.sql("SET ducklake_default_data_inlining_row_limit = 0")
        columns = ", ".join(f"{name} {kind}" for name, kind in made.TYPES.items())
        self.session.sql(f"CREATE TABLE t (k INTEGER, {columns})")
        self.session.sql(f"INSERT INTO t SELECT row_number() OVER (), * FROM (VALUES {made.rows(edges=True)})")

    def set(self, name: str, value: str) -> None:
        self.session.sql(f"SET {name} = '{value}'")
        self.plain.execute(f"SET {name} = '{value}'")

    def reset(self, name: str) -> None:
        self.session.sql(f"RESET {name}")
        self.plain.execute(f"RESET {name}")

    def wanted(self, query: str) -> tuple[list[str], list[tuple[str | None, ...]]]:
        """(types, texts) of a query by DuckDB alone."""
        relation = self.plain.sql(query)
        columns = [f"c{i}" for i in range(len(relation.columns))]
        self.plain.execute(f"CREATE OR REPLACE TEMP TABLE found AS FROM ({query}) AS q({', '.join(columns)})")
        zone = self.plain.execute("SELECT current_setting('TimeZone')").fetchone()
        self.plain.execute("SET TimeZone = 'UTC'")
        # the processor decides the sign of NaN
        shown = (f"replace(CAST({column} AS VARCHAR), '-nan', 'nan')" for column in columns)
        rows = self.plain.execute(f"SELECT {', '.join(shown)} FROM found").fetchall()
        self.plain.execute(f"SET TimeZone = '{zone[0]}'")
        return [str(kind) for kind in relation.types], rows

    def found(self, query: str) -> tuple[list[str], list[tuple[str | None, ...]]]:
        """Return the types and rows of a query on Spark, as texts."""
        result = self.session.sql(query)
        assert not result.in_process
        rows = result.carried()
        kinds = [type_or_none(kind) for kind in result.types]
        names = [f"c{i}" for i in range(len(kinds))]
        fields = zip(names, kinds, rows.schema, strict=True)
        types = {name: from_field(field) if kind is None else kind for name, kind, field in fields}
        found = texts(rows.rename_columns(names), types)
        return list(result.types), [tuple(v and v.replace("-nan", "nan") for v in row) for row in found]

    def difference(self, query: str, items: Sequence[str] = (), *, sums: bool = False) -> list[str]:
        """Describe the differences of a query, a line for each column.

        Args:
            items: what its last columns are, to be shown.
            sums: of DOUBLE are among them, whose last digits may differ.
        """
        (kinds, wanted), (found_kinds, found) = self.wanted(query), self.found(query)
        names = [query] * (len(kinds) - len(items)) + list(items)
        if len(kinds) != len(found_kinds) or len(wanted) != len(found):
            return [f"{query}: {len(wanted)} rows, {len(found)} on Spark"]
        lines = []
        for place, name in enumerate(names):
            values = [(w[place], f[place]) for w, f in zip(wanted, found, strict=True)]
            pairs = [(w, f) for w, f in values if w != f and not (sums and _nearly(w, f))]
            if pairs or kinds[place] != found_kinds[place]:
                lines.append(f"{name}: {kinds[place]} {found_kinds[place]} {pairs[:4]}")
        return lines

    def differences(self, items: Sequence[str], query: Query | None = None, *, sums: bool = False) -> list[str]:
        """Describe the differences of a query's columns; halves the columns of a query that fails."""
        query = query or _beside
        try:
            return self.difference(query(items), items, sums=sums)
        except (dl.DuckLakeError, duckdb.Error) as error:
            if "database has been invalidated" in str(error) or "not marked as fallible" in str(error):
                # a fault of DuckDB 2.0.0, after which it answers nothing: there is no value to compare with
                self.plain.close()
                self.plain = made.connect()
                if len(items) == 1:
                    return []
            elif len(items) == 1:
                return [f"{query(items)}: {error}"]
        half = len(items) // 2
        return [part for some in (items[:half], items[half:]) for part in self.differences(some, query, sums=sums)]

    def close(self) -> None:
        self.session.close()
        self.plain.close()


def _nearly(wanted: str | None, found: str | None) -> bool:
    try:
        return math.isclose(float(wanted or "x"), float(found or "x"), rel_tol=1e-15)
    except ValueError:
        return False


def _named(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS e{n}" for n, item in enumerate(items))


def _beside(items: Sequence[str]) -> str:
    return f"SELECT k, {_named(items)} FROM t ORDER BY k"


@pytest.fixture(scope="module")
def both(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    found = Both(tmp_path_factory.mktemp("expressions"), spark)
    yield found
    found.close()


def _guarded(both: Both, every: Sequence[Expression]) -> list[str]:
    """The expressions, each over the rows for which DuckDB has a result of it, and a text of that."""
    found = []
    for expression in every:
        sql = expression.sql
        try:
            kind = str(both.plain.sql(f"SELECT {sql} FROM t").types[0])
            if kind in _HELD:
                # others are refused
                sql = f"CASE WHEN TRY({_HELD[kind].format(sql)}) THEN {sql} END"
            both.plain.execute(f"CREATE OR REPLACE TEMP TABLE found AS SELECT ({sql}) AS v, v::VARCHAR AS s FROM t")
            found.append(sql)
            continue
        except duckdb.Error:
            pass
        try:
            able = both.plain.execute(f"SELECT k FROM t WHERE TRY(({sql})::VARCHAR) IS NOT NULL").fetchall()
            guarded = f"CASE WHEN k IN ({', '.join(str(k) for (k,) in able) or '0'}) THEN {sql} END"
            both.plain.execute(f"CREATE OR REPLACE TEMP TABLE found AS SELECT {guarded} AS v, v::VARCHAR AS s FROM t")
        except duckdb.Error:
            continue
        if able:
            found.append(guarded)
    return found


def _check(both: Both, every: Sequence[Expression]) -> None:
    items = _guarded(both, every)
    different = []
    for start in range(0, len(items), _BATCH):
        different += both.differences(items[start : start + _BATCH])
    assert not different, f"{len(different)} differ:\n" + "\n".join(different)


@pytest.fixture(scope="module")
def taken(both: Both) -> list[Expression]:
    """Expressions that DuckDB takes: all of them, or a share."""
    return made.chosen(made.every(), 1.0 if ALL else 0.1, 1, lambda expression: made.is_bound(expression, both.plain))


in_parts = pytest.mark.parametrize("part", range(_PARTS))


@pytest.mark.sampled(_PARTS)
@in_parts
def test_what_spark_computes_and_workers_evaluate(both: Both, taken: list[Expression], part: int) -> None:
    by_place: dict[str, list[Expression]] = {"native": [], "worker": []}
    for expression in taken[part::_PARTS]:
        by_place.setdefault(made.where_it_runs(expression.sql), []).append(expression)
    native, evaluated = by_place["native"], by_place["worker"]
    assert min(len(native), len(evaluated)) > 50
    _check(both, native)
    _check(both, evaluated if ALL else made.chosen(evaluated, 0.05, 2))


#: Aggregates; each takes columns of all types, and a group of NULLs.
_AGGREGATES = (
    "count({0}); min({0}); max({0}); sum({0}); avg({0}); any_value({0} ORDER BY k); list({0} ORDER BY k)",
    "count(DISTINCT {0}); sum(DISTINCT {0}); min({0}) FILTER (k > 3); count({0}) FILTER (k < 0); bool_and({0}); bool_or({0})",
    "median({0}); mode({0} ORDER BY k); quantile_disc({0}, 0.25); quantile_cont({0}, 0.75); bit_and({0}); bit_or({0})",
    "bit_xor({0}); first({0} ORDER BY k DESC); last({0} ORDER BY {0}, k); arg_max(k, {0}); arg_min({0}, k); string_agg({0}, '|' ORDER BY k)",
    "stddev_samp({0}); var_pop({0}); product({0}); histogram({0}); approx_count_distinct({0}); skewness({0}); count_if({0})",
    "list(DISTINCT {0} ORDER BY {0} DESC); max({0}, 2); entropy({0}); round(avg({0}), 1); sum({0}) + 1; list_sort(list({0}))",
)
_WINDOWS = (
    "sum({0}) OVER (ORDER BY k); avg({0}) OVER (PARTITION BY bo); min({0}) OVER (ORDER BY k ROWS 2 PRECEDING)",
    "lag({0}) OVER (ORDER BY k); lead({0}, 2, {0}) OVER (ORDER BY k); first_value({0}) OVER (ORDER BY k)",
    "last_value({0} IGNORE NULLS) OVER (ORDER BY k); nth_value({0}, 2) OVER (ORDER BY k); rank() OVER (ORDER BY {0})",
    "dense_rank() OVER (ORDER BY {0} DESC NULLS FIRST); percent_rank() OVER (ORDER BY {0}); cume_dist() OVER (ORDER BY {0} DESC)",
    "row_number() OVER (PARTITION BY {0} ORDER BY k); ntile(3) OVER (ORDER BY k); count({0}) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
)


def _of_all_types(templates: Sequence[str]) -> list[str]:
    every = [one.strip() for template in templates for one in template.split(";")]
    columns = list(made.TYPES)
    # the small size takes each for a quarter of the types, and each type for a quarter of these
    return [
        one.format(column) for n, one in enumerate(every) for column in columns[0 if ALL else n % 4 :: 1 if ALL else 4]
    ]


def _accepted(both: Both, items: Sequence[str], query: Any) -> tuple[list[str], int]:
    """Return the items that DuckDB and Spark both accept, and the number that Spark refuses."""
    found, refused = [], 0
    for item in items:
        try:
            both.plain.execute(f"CREATE OR REPLACE TEMP TABLE found AS {query([item])}")
        except duckdb.Error:
            continue
        place = made.where_it_runs_in(query([item]))
        found += [item] if place in ("native", "worker") else []
        refused += place not in ("native", "worker")
    return found, refused


def _compare(both: Both, items: Sequence[str], query: Query, together: int = 120) -> None:
    able, _ = _accepted(both, items, query)
    different = []
    for start in range(0, len(able), together):
        different += both.differences(able[start : start + together], query, sums=True)
    assert not different, f"{len(different)} differ:\n" + "\n".join(different)


def _by_group(items: Sequence[str]) -> str:
    return f"SELECT k % 3 AS k, {_named(items)} FROM t GROUP BY k % 3 ORDER BY 1"


def _of_no_rows(items: Sequence[str]) -> str:
    return f"SELECT 1 AS k, {_named(items)} FROM t WHERE k + 0 < 0"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("templates", "query"),
    [(_AGGREGATES, _by_group), (_AGGREGATES[:2], _of_no_rows), (_WINDOWS, _beside)],
    ids=["aggregates", "aggregates of no rows", "windows"],
)
def test_few_are_refused(both: Both, templates: Sequence[str], query: Query) -> None:
    able, refused = _accepted(both, _of_all_types(templates), query)
    assert refused < 0.12 * len(able)


def test_aggregates(both: Both) -> None:
    # in whole batches: which row arg_max() takes of several depends on the aggregates beside it
    _compare(both, _of_all_types(_AGGREGATES), _by_group)


@pytest.mark.sampled(_PARTS)
@in_parts
def test_aggregates_of_no_rows(both: Both, part: int) -> None:
    _compare(both, _of_all_types(_AGGREGATES[:2])[part::_PARTS], _of_no_rows)


@pytest.mark.sampled(_PARTS)
@in_parts
def test_windows(both: Both, part: int) -> None:
    # each window stands inside of the one before: 120 are too deep for the stack of a task
    _compare(both, _of_all_types(_WINDOWS)[part::_PARTS], _beside, together=30)


#: Queries that sort, group and join by a column.
_BY_COLUMN = (
    "SELECT {0} FROM t ORDER BY {0}, k",
    "SELECT {0} FROM t ORDER BY {0} DESC NULLS FIRST, k LIMIT 7",
    "SELECT k FROM t ORDER BY {0} NULLS FIRST, k",
    "SELECT min(k) AS k, count(*) AS n FROM t GROUP BY {0} ORDER BY 1",
    "SELECT a.k, b.k AS other FROM t a JOIN t b ON a.{0} = b.{0} ORDER BY 1, 2",
    "SELECT a.k, b.k AS other FROM t a LEFT JOIN t b USING ({0}) ORDER BY 1, 2 NULLS FIRST",
    "SELECT k FROM t WHERE {0} IN (SELECT {0} FROM t WHERE k > 5) ORDER BY k",
    "SELECT count(*) AS n FROM (SELECT DISTINCT {0} FROM t)",
    "SELECT count(*) AS n FROM (SELECT {0} FROM t WHERE k < 9 INTERSECT SELECT {0} FROM t WHERE k > 3)",
)


@pytest.mark.sampled(_PARTS)
@in_parts
def test_rows_are_sorted_and_grouped(both: Both, part: int) -> None:
    different = []
    # the small size takes each for a third of the types, and each type for a third of these
    for n, column in list(enumerate(made.TYPES))[part::_PARTS]:
        for template in _BY_COLUMN if ALL else _BY_COLUMN[n % 3 :: 3]:
            query = template.format(column)
            if made.where_it_runs_in(query) in ("native", "worker"):
                # DuckDB sorts -0.0 as 0.0, and gives that back
                different += both.difference(query, sums=True)
    assert not different, "\n".join(different)


#: Settings that change what expressions mean, and expressions that show it.
_SETTINGS = {
    "TimeZone": ("America/New_York", "Europe/Berlin", "Asia/Kathmandu"),
    "default_null_order": ("nulls_first", "nulls_first_on_asc_last_on_desc", "nulls_last_on_asc_first_on_desc"),
    "default_order": ("desc",),
    "integer_division": ("true",),
    "ieee_floating_point_ops": ("false",),
    "old_implicit_casting": ("true",),
}
_SET = (
    "tz::VARCHAR; tz::DATE; tz::TIMESTAMP; ts::TIMESTAMPTZ; da::TIMESTAMPTZ; date_trunc('day', tz); hour(tz); tz = ts; tz < da",
    "tz + INTERVAL 1 DAY; date_diff('hour', tz, TIMESTAMPTZ '2020-03-09 00:00:00'); strftime(tz, '%H %Z'); tz > '2020-03-08 03:00:00'",
    "vd::TIMESTAMPTZ; epoch(tz); age(tz, TIMESTAMPTZ '2000-01-01 00:00:00'); date_part('timezone', tz); concat(tz, 'x'); tt::VARCHAR",
    "list_sort(li); list_sort([2, NULL, 1]); i4 / 7; i8 / 2; d9 / 2; 7 / i4; i4 // 7; db / 0; ln(0 * i1); 1 / db; i4 % 0; db % 0",
    "array_agg(i4 ORDER BY vc, k) OVER (); row_number() OVER (ORDER BY vc, k); vn = i4",
)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in _SETTINGS.items() for value in values])
def test_settings_go_with_the_query(both: Both, name: str, value: str) -> None:
    both.set(name, value)
    try:
        items = [one.strip() for line in _SET for one in line.split(";")]
        settings = both.session._sources.names.settings()
        guarded = _guarded(both, [Expression(item, item) for item in items])
        able = [item for item in guarded if made.where_it_runs_in(_beside([item]), settings) in ("native", "worker")]
        assert len(able) > 20
        different = both.differences(able)
        for query in (
            "SELECT vc, k FROM t ORDER BY vc, k",
            "SELECT k FROM t ORDER BY db DESC, k",
            "SELECT k FROM t ORDER BY db NULLS LAST, k",
        ):
            different += both.difference(query)
        assert not different, "\n".join(different)
    finally:
        both.reset(name)


def test_a_setting_without_effect_is_refused(both: Both) -> None:
    both.set("default_collation", "NOCASE")
    try:
        with pytest.raises(dl.UnsupportedFeatureError, match="default_collation"):
            both.session.sql("SELECT k FROM t WHERE vc = 'ABC'")
    finally:
        both.reset("default_collation")


def test_volatile_functions_keep_their_meaning(both: Both) -> None:
    rows = both.session.sql("SELECT random() AS r, uuid() AS u, random() AS s FROM t").fetchall()
    assert len({r for r, _, _ in rows}) == len({u for _, u, _ in rows}) == len(rows)
    assert all(0 <= r < 1 and r != s for r, _, s in rows)
    for refused in ("nextval('x')", "getvariable('x')", "current_setting('TimeZone')", "write_log('x')"):
        assert "not supported on Spark" in made.where_it_runs(refused)


def test_an_error_in_a_worker_is_one_line(both: Both) -> None:
    with pytest.raises(dl.ConstraintError, match=" is no INTEGER") as caught:
        both.session.sql("SELECT CAST(vc AS INTEGER) FROM t").fetchall()
    assert "\n" not in str(caught.value)


def test_the_page_is_current() -> None:
    path = Path(__file__).parents[2] / "docs" / "expressions-on-spark.md"
    if ALL:
        assert path.read_text() == made.page()
    head = path.read_text()
    assert float(head.split("Refused**")[1].split("(")[1].split(" %")[0]) <= 5

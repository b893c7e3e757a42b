"""Views and macros in queries: what they become, and what is refused."""

from __future__ import annotations

import pytest
from sqlglot import exp

from ducklake_lab.errors import BindError, ExpansionError
from ducklake_lab.model.entries import MacroImplementation, MacroParameter
from ducklake_lab.model.predicates import Comparison
from ducklake_lab.sql import parse_query, plan_query
from ducklake_lab.sql.bind.expansion import stored_expression, stored_query, without_macros
from ducklake_lab.sql.operations import At, Query
from ducklake_lab.sql.plan import StoredMacro
from tests.unit.sql.lakes import MACROS, Lakes, plan


def _macro(name: str, body: str, *parameters: MacroParameter) -> StoredMacro:
    return StoredMacro(name, (MacroImplementation(body, parameters),), "lake", "main")


def sql(text: str) -> str:
    """The DuckDB SQL of a query's bound tree, its sources called `src`."""
    planned = plan_query(Query(parse_query(text).tree), Lakes())
    written = planned.duckdb_sql.replace('"', "")
    for source in planned.sources:
        written = written.replace(source.view, "src")
    return written


def test_a_view_is_its_query() -> None:
    assert sql("SELECT code FROM names WHERE x = 'a'") == (
        "SELECT names.code AS code FROM (SELECT src.carrier AS carrier, src.name AS x FROM src AS airlines) "
        "AS names(code, x) WHERE names.x = 'a'"
    ).replace("src.", "airlines.")


def test_a_view_can_have_other_names() -> None:
    assert plan("SELECT n.c, y FROM names AS n(c, y)").columns == ("c", "y")
    assert plan("FROM names").columns == ("code", "x")


def test_what_a_view_reads_is_read_at_the_snapshot_asked_for() -> None:
    lakes = Lakes()
    plan("SELECT 1 FROM late_flights AT (VERSION => 3), planes", lakes=lakes)
    assert ("flights", At(version_sql="3")) in [(name.name, at) for name, at in lakes.tables]
    assert ("planes", None) in [(name.name, at) for name, at in lakes.tables]


def test_names_in_a_view_are_those_of_its_lake() -> None:
    (source,) = plan("FROM late_flights").sources
    assert str(source.name) == "lake.main.flights"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "FROM endless",
            "In the view main.endless: The view main.endless refers to itself; infinite recursion detected.",
        ),
        ("FROM broken", 'In the view main.broken: planes has no column "nothing".'),
        ("SELECT nope FROM names", 'names has no column "nope" (line 1, column 8).'),
        ("FROM names AS n(a, b, c)", '"n" names 3 columns, but there are 2.'),
        ("SELECT plus()", "The macro plus cannot be called with these arguments; it is plus(a, b := …)."),
        ("SELECT plus(1, c := 2)", "The macro plus cannot be called with these arguments; it is plus(a, b := …)."),
        ("SELECT plus(1, a := 2)", "The macro plus cannot be called with these arguments; it is plus(a, b := …)."),
    ],
)
def test_errors_say_where(text: str, message: str) -> None:
    with pytest.raises(BindError) as error:
        plan(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("SELECT plus(1, 2) AS v", "SELECT ((1 + 2)) AS v"),
        ("SELECT plus(1) AS v", "SELECT ((1 + CAST('5' AS INT))) AS v"),
        ("SELECT plus(1 + 2, b := 3) * 2 AS v", "SELECT (((1 + 2) + 3)) * 2 AS v"),
        ("SELECT main.plus(1, 2) AS v", "SELECT ((1 + 2)) AS v"),
        ("SELECT typed('3') AS v", "SELECT (CAST('3' AS BIGINT)) AS v"),
        ("SELECT plus(plus(1, 2), 3) AS v", "SELECT ((((1 + 2)) + 3)) AS v"),
        ("SELECT plus(year, year) AS v FROM planes", "SELECT ((planes.year + planes.year)) AS v FROM src AS planes"),
        ("SELECT main.list_value(1, 2) AS v", "SELECT list_value(1, 2) AS v"),
    ],
)
def test_a_macro_is_its_expression(text: str, written: str) -> None:
    assert sql(text) == written


def test_an_argument_keeps_its_meaning_inside_of_a_subquery() -> None:
    # both have a column `year`; the argument's is the caller's
    written = sql("SELECT oldest(p.year) AS v FROM planes AS p")
    assert "min(planes.year) + p.year" in written


def test_a_table_macro_is_its_query_and_its_arguments_restrict_what_is_read() -> None:
    planned = plan("SELECT carrier FROM of_month(3)")
    (source,) = planned.sources
    assert source.predicate == Comparison(("month",), "=", 3)
    assert planned.columns == ("carrier",)


@pytest.mark.parametrize(
    "text",
    [
        "list_transform(l, (x -> (x + k)))",
        "list_filter(l, (lambda x: (x > 1)))",
        'list_reduce(l, (main."row"(a, b) -> (a + b)))',
    ],
)
def test_lambdas_as_duckdb_prints_them(text: str) -> None:
    assert stored_expression(text).find(exp.Lambda) is not None


def test_order_by_all_as_duckdb_prints_it() -> None:
    (key,) = stored_query("SELECT a FROM t ORDER BY COLUMNS(*) DESC").find_all(exp.Ordered)
    assert key.this == exp.Var(this="ALL")
    assert key.args["desc"]


def test_macros_in_an_expression_of_the_catalog() -> None:
    expanded = "(((((year + 1)) + CAST('5' AS INT))) * 2)"
    assert without_macros("(plus(plus(year, 1)) * 2)", MACROS) == expanded
    assert without_macros("lower(s)", MACROS) == "lower(s)"


def test_macros_that_double_at_each_level_are_refused() -> None:
    lakes = Lakes()
    twice = (MacroParameter("x"),)
    for level in range(1, 40):
        calls = f"(calls_{level - 1}() + calls_{level - 1}())" if level > 1 else "1"
        lakes.own_macros["scalar", f"calls_{level}"] = _macro(f"calls_{level}", calls)
        uses = f"uses_{level - 1}(x + x)" if level > 1 else "x"
        lakes.own_macros["scalar", f"uses_{level}"] = _macro(f"uses_{level}", uses, *twice)
    assert plan("SELECT uses_5(month), calls_5() FROM flights", lakes=lakes).columns == ('uses_5("month")', "calls_5()")
    with pytest.raises(ExpansionError, match=r"The macro main\.calls_39 stands for more than 1,000 views and macros"):
        plan("SELECT calls_39()", lakes=lakes)
    with pytest.raises(ExpansionError, match=r"The macro uses_\d+ repeats its arguments too often"):
        plan("SELECT uses_39(month) FROM flights", lakes=lakes)


def test_macros_in_a_stored_expression_that_repeat_their_argument_are_refused() -> None:
    macros = {("scalar", "twice"): _macro("twice", "(x + x)", MacroParameter("x"))}
    assert without_macros("twice(a)", macros) == "((a + a))"
    with pytest.raises(ExpansionError, match="The macro twice repeats its arguments too often"):
        without_macros("twice(" * 20 + "a" + ")" * 20, macros)

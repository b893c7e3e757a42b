"""Statements about views, macros and comments, from text."""

from __future__ import annotations

import pytest

from ducklake_lab.errors import SqlSyntaxError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql import operations as op
from ducklake_lab.sql import parse


def one(text: str, **params: object) -> op.Operation:
    (statement,) = parse(text, params or None)
    return statement.operation


def test_create_view() -> None:
    view = one('CREATE OR REPLACE VIEW lake.s.v(x, "Y z") AS FROM t -- why\n WHERE a > 1')
    assert isinstance(view, op.CreateView)
    assert str(view.name) == "lake.s.v"
    assert view.columns == ("x", "Y z")
    assert view.sql == "FROM t -- why\n WHERE a > 1"
    assert (view.replace, view.if_not_exists) == (True, False)


def test_parameters_become_part_of_a_view() -> None:
    view = one("CREATE VIEW v AS SELECT a FROM t WHERE s = :s", s="it's")
    assert isinstance(view, op.CreateView)
    assert view.sql == "SELECT a FROM t WHERE s = 'it''s'"


def test_create_macro_with_types_and_defaults() -> None:
    macro = one("CREATE FUNCTION s.f(a INTEGER, b DECIMAL(3,2) := 1.5, c := -1) AS a + (b, c)[1]")
    assert isinstance(macro, op.CreateMacro)
    assert macro.kind == "scalar"
    (overload,) = macro.overloads
    assert overload.sql == "a + (b, c)[1]"
    assert overload.parameters == (
        op.MacroParameter("a", DataType("int32")),
        op.MacroParameter("b", DataType("decimal(3,2)"), "1.5"),
        op.MacroParameter("c", None, "-1"),
    )


def test_overloads() -> None:
    macro = one("CREATE MACRO m() AS 0, (a) AS f(a, 1), (a, b) AS a + b")
    assert isinstance(macro, op.CreateMacro)
    assert [(len(overload.parameters), overload.sql) for overload in macro.overloads] == [
        (0, "0"),
        (1, "f(a, 1)"),
        (2, "a + b"),
    ]


def test_commas_of_a_query_are_not_those_between_overloads() -> None:
    macro = one("CREATE MACRO m(a) AS TABLE SELECT a, (a) AS b, (SELECT 1) AS c, (a, b) AS TABLE SELECT a")
    assert isinstance(macro, op.CreateMacro)
    assert macro.kind == "table"
    assert [overload.sql for overload in macro.overloads] == ["SELECT a, (a) AS b, (SELECT 1) AS c", "SELECT a"]


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("DROP VIEW IF EXISTS s.v", op.DropView(op.TableName(None, "s", "v"), if_exists=True)),
        ("ALTER VIEW v RENAME TO w", op.RenameView(op.TableName(None, None, "v"), "w")),
        ("DROP MACRO m", op.DropMacro(op.TableName(None, None, "m"), "scalar")),
        ("DROP MACRO TABLE IF EXISTS m", op.DropMacro(op.TableName(None, None, "m"), "table", if_exists=True)),
        ("COMMENT ON TABLE t IS 'it''s'", op.Comment("table", op.TableName(None, None, "t"), "it's")),
        ("COMMENT ON VIEW v IS NULL", op.Comment("view", op.TableName(None, None, "v"), None)),
        (
            "COMMENT ON COLUMN lake.main.t.c IS 'x'",
            op.Comment("column", op.TableName("lake", "main", "t"), "x", column="c"),
        ),
    ],
)
def test_the_others(text: str, operation: op.Operation) -> None:
    assert one(text) == operation


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE VIEW v AS", "Syntax error at the end (line 1, column 17); expected a query."),
        ("CREATE VIEW v AS 1 + 1", 'Syntax error at "1" (line 1, column 18); expected a query.'),
        ("CREATE VIEW v", "Syntax error at the end (line 1, column 14); expected AS."),
        ("CREATE MACRO m AS 1", 'Syntax error at "AS" (line 1, column 16); expected (.'),
        ("CREATE MACRO m(a) AS a, (b) AS TABLE SELECT 1", "The overloads of a macro are all expressions or all tables"),
        ("COMMENT ON COLUMN c IS 'x'", 'Syntax error at "c" (line 1, column 19); expected table.column.'),
        ("COMMENT ON TABLE t IS 3", 'Syntax error at "3" (line 1, column 23); expected a quoted text.'),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError) as error:
        parse(text)
    assert str(error.value).startswith(message)

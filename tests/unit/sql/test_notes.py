"""Notes on nodes of syntax trees: copies have notes of their own, and nothing else uses the dictionary of a node."""

from __future__ import annotations

import ast
from pathlib import Path

from sqlglot import exp

import ducklake_lab
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import Output, Relation, forget, line_and_column, notes, pass_on, start_of

_PACKAGE = Path(ducklake_lab.__file__).parent
_INTEGER, _TEXT = DataType("int32"), DataType("varchar")


def _parsed(sql: str) -> exp.Expr:
    return DuckLakeSql.Parser().parse(DuckLakeSql().tokenize(sql), sql)[0] or exp.Null()


def test_only_this_module_uses_the_dictionary_of_a_node() -> None:
    others = [
        f"{path.relative_to(_PACKAGE)}:{node.lineno}"
        for path in _PACKAGE.rglob("*.py")
        if path != _PACKAGE / "sql" / "notes.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("meta", "_meta", "meta_get")
    ]
    assert others == []


def test_a_copy_has_notes_of_its_own_and_the_same_relation() -> None:
    relation = Relation("t", "t", (Output("i", _INTEGER),))
    column = relation.column(Output("i", _INTEGER))
    notes(column).is_bound = True
    copied = exp.Paren(this=column).copy().this
    assert notes(copied).relation is relation
    assert notes(copied).is_bound
    notes(copied).set_type(_TEXT)
    notes(copied).relation = None
    assert notes(column).type == _INTEGER
    assert notes(column).relation is relation


def test_columns_of_a_join_are_copied_with_it() -> None:
    column = Relation("t", "t", (Output("i", _INTEGER),)).column(Output("i", _INTEGER))
    join = exp.Join(this=exp.to_table("u"))
    notes(join).joined_by = ((column,),)
    ((other,),) = notes(join.copy()).joined_by
    notes(other).set_type(_TEXT)
    assert notes(column).type == _INTEGER


def test_an_unknown_type_is_noted_too() -> None:
    node = exp.column("i")
    assert not notes(node).is_typed
    notes(node).set_type(None)
    assert notes(node).is_typed
    assert notes(node).type is None


def test_the_parser_notes_items_and_null_order() -> None:
    tree = _parsed("SELECT a + b, c FROM t ORDER BY c NULLS LAST, a")
    assert [notes(item).span for item in tree.expressions] == [(7, 12), None]
    assert [notes(key).null_order_is_written for key in tree.args["order"].expressions] == [True, False]


def test_places_pass_on_with_the_notes() -> None:
    name = _parsed("SELECT\n  first").expressions[0].this
    notes(name).written_name = "first"
    other = exp.to_identifier("second")
    pass_on(name, other)
    assert (start_of(other), line_and_column(other)) == (9, (2, 3))
    notes(other).written_name = "second"
    assert notes(name).written_name == "first"
    forget(other)
    assert (start_of(other), notes(other).written_name) == (None, None)

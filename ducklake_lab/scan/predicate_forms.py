"""Predicates as plain data that outlives names: columns by their ids, values as texts with their kind.

A notebook keeps them, which anybody may have written: what has another form is no predicate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, get_args

from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.moments import Moment, MomentKind
from ducklake_lab.model.predicates import (
    And,
    ColumnPath,
    Comparison,
    InList,
    NullTest,
    Operator,
    Or,
    Predicate,
    StartsWith,
)
from ducklake_lab.model.values import comparable
from ducklake_lab.scan.pruning import column_at

#: Most values and terms of a predicate, deepest nesting, and longest text of a value.
_MOST, _DEEPEST, _LONGEST = 100, 8, 200
_INTEGER = re.compile(r"-?[0-9]{1,40}", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)

Form = dict[str, Any]


class _NoForm(Exception):
    """The predicate, or what should be one, has no such form."""


def form_of(table: Table, predicate: Predicate) -> Form | None:
    """Return the form of a predicate on a table; None where it has none, or a long one."""
    try:
        form = _form(table, predicate, 0)
    except _NoForm:
        return None
    return form if sum(1 for _ in _parts(form)) <= _MOST else None


def predicate_of(table: Table, form: object) -> Predicate | None:
    """Return the predicate of a form on a table; None where a column is not there or cannot have such values."""
    try:
        if sum(1 for _ in _parts(form)) > _MOST:
            return None
        return _predicate(table, form, 0)
    except (_NoForm, KeyError, TypeError, ValueError):
        return None


def _parts(form: object, depth: int = 0) -> Iterator[object]:
    """Yield all lists and values of a form.

    Raises:
        _NoForm: it is nested too deeply.
    """
    if depth > 2 * _DEEPEST:
        raise _NoForm
    if isinstance(form, Mapping):
        for part in form.values():
            yield from _parts(part, depth + 1)
    elif isinstance(form, Sequence) and not isinstance(form, str):
        for part in form:
            yield from _parts(part, depth + 1)
    else:
        yield form


def _form(table: Table, predicate: Predicate, depth: int) -> Form:
    if depth > _DEEPEST:
        raise _NoForm
    if isinstance(predicate, And | Or):
        word = "and" if isinstance(predicate, And) else "or"
        return {word: [_form(table, term, depth + 1) for term in predicate.terms]}
    column = column_at(table, predicate.column)
    if column is None:
        raise _NoForm
    form: Form = {"column": column.column_id}
    match predicate:
        case NullTest(is_null=is_null):
            return {**form, "null": is_null}
        case StartsWith(prefix=prefix):
            return {**form, "prefix": _text(prefix)}
        case InList(values=values):
            return {**form, "in": [_value_form(value) for value in values]}
        case Comparison(op=op, value=value):
            return {**form, "op": op, "value": _value_form(value)}


def _value_form(value: object) -> Form:
    match value:
        case bool():
            return {"boolean": str(value).lower()}
        case int():
            return {"integer": _text(str(value))}
        case float() if isfinite(value):
            return {"double": value.hex()}
        case Decimal() if value.is_finite():
            return {"decimal": _text(f"{value:f}")}
        case str():
            return {"text": _text(value)}
        case Moment(micros=micros, kind=kind):
            return {kind: str(micros)}
    raise _NoForm


def _text(text: str) -> str:
    if len(text) > _LONGEST:
        raise _NoForm
    return text


def _predicate(table: Table, form: Any, depth: int) -> Predicate:
    if depth > _DEEPEST or not isinstance(form, Mapping):
        raise _NoForm
    for word in ("and", "or"):
        if word in form:
            terms = tuple(_predicate(table, term, depth + 1) for term in _of(list, form[word]))
            if not terms:
                raise _NoForm
            return And(terms) if word == "and" else Or(terms)
    path, column = _column(table, _of(int, form["column"]))
    if "null" in form:
        return NullTest(path, _of(bool, form["null"]))
    if "prefix" in form:
        if column.type != "varchar":
            raise _NoForm
        return StartsWith(path, _text(_of(str, form["prefix"])))
    if "in" in form:
        return InList(path, tuple(_value(column, value) for value in _of(list, form["in"])))
    op: Operator = form["op"]
    if op not in get_args(Operator):
        raise _NoForm
    return Comparison(path, op, _value(column, form["value"]))


def _value(column: Column, form: Any) -> object:
    ((kind, text),) = _of(dict, form).items()
    value = _read(kind, _text(_of(str, text)))
    # with a value that does not compare, nothing would be known of rows in the catalog
    if comparable(value, column.data_type) is None:
        raise _NoForm
    return value


def _read(kind: str, text: str) -> object:
    match kind:
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case "integer" if _INTEGER.fullmatch(text):
            return int(text)
        case "decimal" if _DECIMAL.fullmatch(text):
            return Decimal(text)
        case "double" if isfinite(number := float.fromhex(text)):
            return number
        case "text":
            return text
        case "date" | "time" | "timestamp" | "timestamptz" if _INTEGER.fullmatch(text):
            moment_kind: MomentKind = kind
            moment = Moment(int(text), moment_kind)
            if moment.is_known:
                return moment
    raise _NoForm


def _of(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _NoForm
    return value


def _column(table: Table, column_id: int) -> tuple[ColumnPath, Column]:
    for path, column in _leaves(table.columns, ()):
        if column.column_id == column_id and column_at(table, path) is not None:
            return path, column
    raise _NoForm


def _leaves(columns: Sequence[Column], above: ColumnPath) -> Iterator[tuple[ColumnPath, Column]]:
    for column in columns:
        path = (*above, column.name)
        yield path, column
        yield from _leaves(column.children, path)

"""Binds parameters: `:name`, `$name`, `$1` and `?` become literals in the tree; no text is inserted.

A `$name` without a value means the session's variable with that name, as in DuckDB 2.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import BindError, UsageError, did_you_mean
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.operations import Written
from ducklake_lab.sql.types import to_sqlglot


class Binder:
    """Binds the placeholders of a text, statement by statement; `?` is numbered through all of them.

    Attributes:
        bound: the number of bound placeholders.
    """

    def __init__(
        self, params: Mapping[str, object] | None, variables: Callable[[], Collection[str]] = frozenset[str]
    ) -> None:
        """Makes a binder.

        Args:
            variables: returns the names of session variables, in lower case.
        """
        self._params = params if params is not None else {}
        self._variables = variables
        self._set: set[str] = set()
        self.bound = 0
        self._positional = 0

    def bind(self, tree: exp.Expr) -> exp.Expr:
        """Replaces every placeholder of `tree` in place and returns it.

        Raises:
            UsageError: a parameter is missing, or its value has no SQL literal.
        """
        for node in list(tree.find_all(exp.Placeholder, exp.Parameter, bfs=False)):
            name = self._name(node)
            self.bound += 1
            parent = node.parent
            if (clause := _key_of(node)) is not None and not self._is_variable(name):
                raise BindError(f'Parameter "{name}" is a whole key of {clause}, which takes none; write the column.')
            if self._is_variable(name):
                variable = _variable(name)
                if node is tree:
                    return variable
                node.replace(variable)
                continue
            value = self.value(name)
            if isinstance(value, list | tuple | set | frozenset) and isinstance(parent, exp.In):
                literals = [literal(item, name) for item in value] or [exp.Null()]
                others = [item for item in parent.expressions if item is not node]
                parent.set("field", None)
                parent.set("expressions", [*others, *literals])
            elif node is tree:
                return literal(value, name)
            else:
                node.replace(literal(value, name))
        return tree

    def text(self, text: str, tokens: Sequence[Token]) -> str:
        """Returns the text of some tokens with literals for placeholders.

        Raises:
            UsageError: see `bind`.
        """
        return self.written(text, tokens).whole()

    def written(self, text: str, tokens: Sequence[Token]) -> Written:
        """Returns some tokens of a text with the literals of placeholders; raises as `text`."""
        values: list[tuple[int, int, str]] = []
        for index, token in enumerate(tokens):
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if token.token_type is TokenType.PLACEHOLDER:
                self._positional += 1
                values.append((token.start, token.end + 1, self._text(str(self._positional), tokens[:index])))
                continue
            if following is None or following.start != token.end + 1:
                continue
            # in `{'a':b}` and `l[1:n]` a colon begins no parameter
            before = tokens[index - 1].token_type if index else TokenType.STRING
            named = before not in (TokenType.STRING, TokenType.NUMBER) and following.text in self._params
            is_parameter = token.token_type is TokenType.PARAMETER and token.text == "$"  # @ is an operator
            if is_parameter or (token.token_type is TokenType.COLON and named):
                values.append((token.start, following.end + 1, self._text(following.text, tokens[:index])))
        return Written(text, tokens, tuple(values))

    def _text(self, name: str, before: Sequence[Token]) -> str:
        """Returns the literal of a placeholder after some tokens; values of a list in IN are values of that IN."""
        if self._is_variable(name):
            return _variable(name).sql(dialect=DuckLakeSql, normalize_functions=False)
        value = self.value(name)
        if isinstance(value, list | tuple | set | frozenset) and (around := _in_before(before)) is not None:
            items = [item.sql(dialect=DuckLakeSql) for item in ([literal(one, name) for one in value] or [exp.Null()])]
            return f"({', '.join(items)})" if around else ", ".join(items)
        return literal(value, name).sql(dialect=DuckLakeSql, normalize_functions=False)

    def sets(self, variable: str) -> None:
        """Notes a variable that a statement of the text sets."""
        self._set.add(variable.casefold())

    def _is_variable(self, name: str) -> bool:
        if name in self._params or name.isdecimal():
            return False
        return name.casefold() in self._set or name.casefold() in self._variables()

    def fork(self) -> Binder:
        """Returns a binder that continues from here independently."""
        other = Binder(self._params, self._variables)
        other._positional = self._positional
        other._set = self._set
        return other

    def _name(self, node: exp.Expr) -> str:
        name = node.name if isinstance(node.this, exp.Expr) else str(node.this or "")
        if name and name != "?":
            return name
        self._positional += 1
        return str(self._positional)

    def value(self, name: str) -> object:
        """Returns the value of a parameter.

        Raises:
            UsageError: the parameter has no value.
        """
        try:
            return self._params[name]
        except KeyError:
            raise UsageError(
                f'Parameter "{name}" has no value; pass it with params={{"{name}": …}}.'
                f"{did_you_mean(name, self._params)}"
            ) from None


def _in_before(tokens: Sequence[Token]) -> bool | None:
    """Returns whether IN ends some tokens; False if it is before an open parenthesis, None without it."""
    if tokens and tokens[-1].token_type is TokenType.IN:
        return True
    depth = 0
    for index in range(len(tokens) - 1, 0, -1):
        depth += (tokens[index].token_type is TokenType.R_PAREN) - (tokens[index].token_type is TokenType.L_PAREN)
        if depth < 0:
            return False if tokens[index - 1].token_type is TokenType.IN else None
    return None


def _variable(name: str) -> exp.Expr:
    return exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(name)])


def _key_of(node: exp.Expr) -> str | None:
    """Returns the clause of a query that has a node as a key, where DuckDB takes no parameter; None elsewhere."""
    above = node.parent
    while isinstance(above, exp.Paren | exp.Ordered | exp.Tuple):
        above = above.parent
    if isinstance(above, exp.Order) and isinstance(above.parent, exp.Query):
        return "ORDER BY"
    if isinstance(above, exp.Distinct) and isinstance(above.parent, exp.Query):
        return "DISTINCT ON"
    return "GROUP BY" if isinstance(above, exp.Group) else None


def literal(value: object, name: str = "") -> exp.Expr:
    """Returns the literal of a Python value.

    Raises:
        UsageError: the type has no literal; the error names the parameter `name`.
    """
    item: Callable[[], object] | None = getattr(value, "item", None)
    if callable(item) and not isinstance(value, date):  # numpy scalars
        value = item()
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return _signed(str(abs(value)), value < 0)
    if isinstance(value, float):
        if not math.isfinite(value):
            return _cast(str(value), "float64")
        return _cast(repr(value), "float64")
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise UsageError(f'Parameter "{name}" is {value}, which no DECIMAL holds; pass a float.')
        return _signed(format(abs(value), "f"), value < 0)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, bytes | bytearray):
        return _cast("".join(f"\\x{byte:02X}" for byte in value), "blob")
    if isinstance(value, datetime):
        return _cast(value.isoformat(sep=" "), "timestamp" if value.tzinfo is None else "timestamptz")
    if isinstance(value, date):
        return _cast(value.isoformat(), "date")
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise UsageError(f'Parameter "{name}" is a time with a zone; pass one without.')
        return _cast(value.isoformat(), "time")
    if isinstance(value, UUID):
        return _cast(str(value), "uuid")
    if isinstance(value, list | tuple):
        return exp.Array(expressions=[literal(element, name) for element in value])
    if isinstance(value, dict):
        return exp.Struct(
            expressions=[
                exp.PropertyEQ(this=exp.to_identifier(str(key), quoted=True), expression=literal(element, name))
                for key, element in value.items()
            ]
        )
    raise UsageError(
        f'Parameter "{name}" is a {type(value).__name__}; pass None, a bool, number, text, bytes, date, time or list.'
    )


def _signed(digits: str, negative: bool) -> exp.Expr:
    number = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=number)) if negative else number


def _cast(text: str, kind: str) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(text), to=to_sqlglot(DataType(kind)))

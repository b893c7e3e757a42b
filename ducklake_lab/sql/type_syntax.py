"""Reads types and maps that the base parser misreads."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from ducklake_lab.sql.operators import OperatorParser


class TypeParser(OperatorParser):
    """The part of a parser that reads types and maps."""

    def _parse_map(self) -> Any:
        # The base parser drops all text after the second argument.
        if self._match(TokenType.L_BRACE, advance=False):
            return super()._parse_map()
        arguments = self._parse_wrapped_csv(self._parse_assignment)
        if len(arguments) > 2:
            return self.expression(exp.Anonymous(this="map", expressions=arguments))
        keys, values = (*arguments, None, None)[:2]
        return self.expression(exp.Map(keys=keys, values=values))

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        written = self._curr.text if self._curr else ""
        kind = super()._parse_types(*args, **options)
        if not isinstance(kind, exp.DataType):
            return kind
        # The base parser drops the ARRAY of `x::INTEGER ARRAY`, or reads it as an alias.
        is_array = kind.is_type(exp.DType.ARRAY)
        if not is_array and (self._prev.token_type == TokenType.ARRAY or self._match(TokenType.ARRAY)):
            size = [self._parse_number()] if self._match(TokenType.L_BRACKET) else None
            if size and not self._match(TokenType.R_BRACKET):
                self.raise_error("Expected ]")
            kind = exp.DataType(this=exp.DType.ARRAY, expressions=[kind], values=size, nested=True)
        element = kind
        while element.is_type(exp.DType.ARRAY) and element.expressions:
            element = element.expressions[0]
        if element.is_type(exp.DType.FLOAT) and element.expressions and written.upper() != "FLOAT":
            self.raise_error(f"Type {written} takes no size")
        return kind

    def _parse_struct_types(self, type_required: bool = False) -> exp.Expr | None:
        # The base parser reads a text as the name of a field, even an empty one.
        if self._match(TokenType.STRING, advance=False):
            self.raise_error("The name of a field was expected")
        # The base parser reads `map` as a type, which is right only before a parenthesis.
        if self._match(TokenType.MAP) and not self._match(TokenType.L_PAREN, advance=False):
            return self._parse_column_def(exp.to_identifier(self._prev.text))
        if self._prev and self._prev.token_type == TokenType.MAP:
            self._retreat(self._index - 1)
        return super()._parse_struct_types(type_required=type_required)

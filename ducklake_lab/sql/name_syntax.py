"""Reads words of statements as names, where DuckDB takes them for names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import Token, TokenType

from ducklake_lab.sql.pivot_syntax import PivotParser


def _kinds(*names: str) -> frozenset[TokenType]:
    """Returns the kinds of tokens with these names, of those that this sqlglot has."""
    return frozenset(TokenType[name] for name in names if name in TokenType.__members__)


#: Words that begin statements, and are names elsewhere.
_NAMES = _kinds("ALTER", "DROP", "FORCE", "GRANT", "INSERT", "INSTALL", "REVOKE", "ROLLBACK")
#: Words that name functions: `percent(a, b)`.
_FUNCTIONS = _NAMES | _kinds(
    *"ASOF ATTACH BEGIN CACHE COMMENT COMMIT COPY CROSS CUBE DATABASE DELETE DETACH ESCAPE EXECUTE FULL FUNCTION".split(),
    *"INNER IS JOIN LOAD LOCK NATURAL NOTNULL ORDINALITY OUTER OVER OVERLAPS PARTITION PERCENT POSITIONAL PRAGMA".split(),
    *"PROCEDURE RECURSIVE RENAME ROLLUP ROWS SCHEMA SESSION SET TABLE_SAMPLE TEMPORARY TRIGGER UPDATE USE VIEW".split(),
    "VOLATILE",
)

#: Operators that name arguments: `f(glob := 1)`.
_OPERATORS = _kinds("GLOB", "ILIKE", "LIKE", "NOTNULL")


class NameParser(PivotParser):
    """The part of a parser that reads names."""

    ID_VAR_TOKENS: ClassVar[Any] = DuckDBParser.ID_VAR_TOKENS | _NAMES | {TokenType.BETWEEN}
    TABLE_ALIAS_TOKENS: ClassVar[Any] = DuckDBParser.TABLE_ALIAS_TOKENS | _NAMES | {TokenType.BETWEEN, TokenType.LOCK}
    FUNC_TOKENS: ClassVar[Any] = DuckDBParser.FUNC_TOKENS | _FUNCTIONS
    # DuckDB has no IF … THEN, and no locks; it refuses FOR UPDATE.
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
        name: read
        for name, read in DuckDBParser.NO_PAREN_FUNCTION_PARSERS.items()
        if name not in ("IF", "CONNECT_BY_ROOT")
    }
    QUERY_MODIFIER_PARSERS: ClassVar[Any] = {
        kind: read for kind, read in DuckDBParser.QUERY_MODIFIER_PARSERS.items() if kind != TokenType.LOCK
    }
    QUERY_MODIFIER_TOKENS: ClassVar[Any] = set(QUERY_MODIFIER_PARSERS)
    # After a dot or AS, any word is a name: `t.select`.
    RESERVED_TOKENS: ClassVar[Any] = DuckDBParser.RESERVED_TOKENS - _kinds("SELECT", "NOT", "UNKNOWN")

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        after_dot = self._prev is not None and self._prev.token_type == TokenType.DOT
        if self._curr.token_type == TokenType.VALUES and not after_dot:
            return self._parse_id_var(any_token=True)
        if not after_dot or not self._curr.text[:1].isalpha():
            return super()._parse_table_part(schema)
        call = None if schema else self._parse_function(anonymous=True, optional_parens=False, any_token=True)
        return call or self._parse_id_var(any_token=True)

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
        # without rows after it, VALUES is the name of a table
        is_name = self._curr.token_type == TokenType.VALUES and self._next.token_type != TokenType.L_PAREN
        return None if is_name else super()._parse_derived_table_values(allow_value_synonym)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        if self._curr.token_type == TokenType.VALUES:
            alias_tokens = (TokenType.VALUES,)
        return super()._parse_table_alias(alias_tokens)

    def _parse_with(self, skip_with_token: bool = False) -> exp.With | None:
        self._name_query(self._index + (not skip_with_token))
        return super()._parse_with(skip_with_token)

    def _parse_cte(self) -> exp.CTE | exp.FunctionSpecification | None:
        query = super()._parse_cte()
        if self._curr.token_type == TokenType.COMMA:
            self._name_query(self._index + 1)
        return query

    def _name_query(self, at: int) -> None:
        """Reads RECURSIVE as a name in `WITH recursive AS (…)`."""
        kinds = [token.token_type for token in self._tokens[at : at + 2]]
        if kinds in ([TokenType.RECURSIVE, TokenType.ALIAS], [TokenType.RECURSIVE, TokenType.L_PAREN]):
            self._make_name(at)

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        if self._next.token_type == TokenType.COLON_EQ and self._curr.token_type in _OPERATORS:
            self._make_name(self._index)  # `f(glob := 1)`
        return super()._parse_lambda(alias=alias)

    def _make_name(self, at: int) -> None:
        """Reads the token at a position as a name."""
        token = self._tokens[at]
        self._tokens[at] = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
        self._advance(0)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        # `GROUP BY cube` is a column
        is_name = not with_prefix and self._next.token_type != TokenType.L_PAREN
        return None if is_name else super()._parse_cube_or_rollup(with_prefix)

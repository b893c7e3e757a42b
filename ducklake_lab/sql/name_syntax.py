"""Reads words of statements as names, where DuckDB takes them for names."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import TokenType

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
    RESERVED_TOKENS: ClassVar[Any] = DuckDBParser.RESERVED_TOKENS - {TokenType.SELECT, TokenType.NOT}

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        if self._prev is None or self._prev.token_type != TokenType.DOT or not self._curr.text[:1].isalpha():
            return super()._parse_table_part(schema)
        call = None if schema else self._parse_function(anonymous=True, optional_parens=False, any_token=True)
        return call or self._parse_id_var(any_token=True)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        # `GROUP BY cube` is a column
        is_name = not with_prefix and self._next.token_type != TokenType.L_PAREN
        return None if is_name else super()._parse_cube_or_rollup(with_prefix)

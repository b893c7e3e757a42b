"""Reads joins as DuckDB does: conditions belong to the joins that take one, and the others take none."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from ducklake_lab.sql.name_syntax import NameParser

_BARE_METHODS = (TokenType.NATURAL, TokenType.POSITIONAL)


class JoinParser(NameParser):
    """The part of a parser that reads joins."""

    def _parse_join(
        self, skip_join_token: bool = False, parse_bracket: bool = False, alias_tokens: Any = None
    ) -> exp.Join | None:
        join = self._parse_bare_join(parse_bracket, alias_tokens)
        if join is None:
            join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
        if join is None:
            return None
        if join.args.get("method") == "ASOF" and not (join.args.get("on") or join.args.get("using")):
            self._parse_inner_joins(join, alias_tokens)
        if join.this.args.get("joins"):
            # `a JOIN b JOIN c ON … ON …`: other dialects need the parentheses
            join.set("this", exp.Subquery(this=join.this))
        return join

    def _parse_bare_join(self, parse_bracket: bool, alias_tokens: Any) -> exp.Join | None:
        """Read a join that takes no condition: in `a LEFT JOIN b CROSS JOIN c ON …` it belongs to the first one."""
        index = self._index
        method, side, kind = self._parse_join_parts()
        is_cross = kind is not None and kind.token_type == TokenType.CROSS
        is_bare = is_cross or (method is not None and method.token_type in _BARE_METHODS)
        if not is_bare or not self._match(TokenType.JOIN):
            self._retreat(index)
            return None
        words = {"method": method, "side": side, "kind": kind}
        join = exp.Join(
            this=self._parse_table(parse_bracket=parse_bracket, alias_tokens=alias_tokens),
            **{name: word.text.upper() for name, word in words.items() if word is not None},
        )
        join.set("pivots", self._parse_pivots())
        return join

    def _parse_inner_joins(self, join: exp.Join, alias_tokens: Any) -> None:
        """Read the joins on the right of a join whose condition comes after theirs."""
        index = self._index
        joins = list(self._parse_joins(alias_tokens=alias_tokens))
        if joins and self._match(TokenType.ON):
            join.set("on", self._parse_disjunction())
        elif joins and self._match(TokenType.USING):
            join.set("using", self._parse_using_identifiers())
        else:
            self._retreat(index)
            return
        join.this.set("joins", joins)

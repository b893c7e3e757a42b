"""Precedence of DuckDB's operators, which differs from the base parser's, and between DuckDB 1.5 and 2.0.

In 1.5, operators have equal precedence from left to right, except arithmetic, comparison and logic: `a & b || c` is
`(a & b) || c`. A JSON arrow ends the expression before it: `x = j->>'a'` is `(x = j)->>'a'`. The right side of `->`
extends to the next arrow; `->>` takes one operand, and later operators apply to its value.

In 2.0 the arrows are operators like `||`. Only an expression that begins with a name and `->` is grouped as in 1.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parser import build_json_extract, build_json_extract_scalar
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import TokenType

from ducklake_lab.version import SINCE_DUCKDB_2

_Build = Callable[[Any, Any, Any], exp.Expr]


def _node(kind: type[exp.Expr], **options: object) -> _Build:
    return lambda parser, left, right: parser.expression(kind(this=left, expression=right, **options))


def _function(symbol: str) -> _Build:
    """Returns a builder for an operator that is a DuckDB function of the same name."""
    return _node(exp.Operator, operator=symbol)


def _matching(parser: Any, left: exp.Expr, right: exp.Expr | None) -> exp.Expr:
    if SINCE_DUCKDB_2:
        return exp.Anonymous(this="regexp_matches", expressions=[left, right])
    # In DuckDB 1.5 `~` matches the whole string.
    return exp.RegexpFullMatch(this=left, expression=right)


_BITS: Mapping[str, _Build] = {
    "&": _node(exp.BitwiseAnd),
    "|": _node(exp.BitwiseOr),
    "<<": _node(exp.BitwiseLeftShift),
    ">>": _node(exp.BitwiseRightShift),
}
_OTHERS: Mapping[str, _Build] = {
    "||": _node(exp.DPipe, safe=True),
    **{symbol: _function(symbol) for symbol in ("&&", "@>", "<@", "^@", "<->", "<=>")},
}
#: Comparisons in 2.0 that are ordinary operators in 1.5.
_COMPARISONS: Mapping[str, _Build] = {
    "==": _node(exp.EQ),
    "~~": _node(exp.Like),
    "!~~": _node(exp.Like, negate=True),
    "~~*": _node(exp.ILike),
    "!~~*": _node(exp.ILike, negate=True),
    "~~~": _node(exp.Glob),
    "~": _matching,
    "!~": lambda parser, left, right: exp.Not(this=_matching(parser, left, right)),
}
#: Operators by precedence, lowest first.
_LEVELS: tuple[Mapping[str, _Build], ...] = (
    ({**_OTHERS, "->": build_json_extract, "->>": build_json_extract_scalar}, _BITS)
    if SINCE_DUCKDB_2
    else ({**_OTHERS, **_BITS, **_COMPARISONS},)
)
_SYMBOLS = frozenset(
    TokenType[name]
    for name in "AMP PIPE LT GT DPIPE DAMP AT_GT LT_AT CARET_AT LR_ARROW NULLSAFE_EQ EQ LIKE ILIKE GLOB TILDE NOT ARROW DARROW".split()
)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_ARROWS = () if SINCE_DUCKDB_2 else (TokenType.ARROW, TokenType.DARROW)


class OperatorParser(DuckDBParser):
    """The part of a parser that reads operators by DuckDB's precedence."""

    JSON_OPERATORS: ClassVar[Any] = {}
    # `<=>` is a distance, not a comparison.
    EQUALITY: ClassVar[Any] = {TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ}
    EXPONENT: ClassVar[Any] = {
        TokenType.CARET: partial(exp.Operator, operator="^"),
        TokenType.DSTAR: partial(exp.Operator, operator="**"),
    }
    FACTOR: ClassVar[Any] = {kind: node for kind, node in DuckDBParser.FACTOR.items() if kind not in _SYMBOLS}
    RANGE_PARSERS: ClassVar[Any] = {
        kind: parse
        for kind, parse in DuckDBParser.RANGE_PARSERS.items()
        if kind not in _SYMBOLS or kind in (TokenType.LIKE, TokenType.ILIKE, TokenType.GLOB, TokenType.TILDE)
    }
    UNARY_PARSERS: ClassVar[Any] = {
        **DuckDBParser.UNARY_PARSERS,
        TokenType.TILDE: lambda self: self.expression(
            exp.BitwiseNot(this=self._parse_unary() if SINCE_DUCKDB_2 else self._parse_term())
        ),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
        **DuckDBParser.NO_PAREN_FUNCTION_PARSERS,
        "@": lambda self: self.expression(exp.Abs(this=self._parse_term())),
    }

    #: An expression read so far, the first operand of the next operator.
    _left: exp.Expr | None = None
    #: Whether an operand may be any expression.
    _takes_any: bool = False

    def _parse_disjunction(self) -> exp.Expr | None:
        if SINCE_DUCKDB_2 and self._begins_with_arrow():
            return self._parse_arrows()
        this = super()._parse_disjunction()
        while this is not None and self._match_set(_ARROWS):
            if self._prev.token_type == TokenType.ARROW:
                right = super()._parse_disjunction()
                this = build_json_extract(self, this, right) if right is not None else None
            else:
                right = self._parse_term()
                self._left = build_json_extract_scalar(self, this, right) if right is not None else None
                this = super()._parse_disjunction() if right is not None else None
            if this is None:
                self.raise_error("A path was expected")
        return this

    def _begins_with_arrow(self) -> bool:
        """Returns whether a name and `->` follow, which 2.0 reads as the beginning of a lambda."""
        kinds = [token.token_type for token in self._tokens[self._index : self._index + 8]]
        if self._left is not None:
            return False
        while len(kinds) > 2 and kinds[0] in _NAMES and kinds[1] == TokenType.DOT:
            kinds = kinds[2:]
        return len(kinds) > 1 and kinds[0] in _NAMES and kinds[1] == TokenType.ARROW

    def _parse_arrows(self) -> exp.Expr | None:
        """Parses an expression of 2.0 that begins with a name and `->`; any expression may follow the last `->`."""
        this: Any = self._parse_unary()
        while self._match(TokenType.ARROW):
            start = self._index
            right: Any = self._parse_unary()
            after = self._curr.token_type if self._curr is not None else None
            if after not in (TokenType.ARROW, TokenType.DARROW):
                self._retreat(start)
                right = super()._parse_disjunction()
                if right is None:
                    self.raise_error("A path was expected")
                return build_json_extract(self, this, right)
            this = build_json_extract(self, this, right)
        self._left = this
        return super()._parse_disjunction()

    def _parse_term(self, parse_mod: bool = True) -> exp.Expr | None:
        if self._left is not None:
            left, self._left = self._left, None
            return left
        return super()._parse_term(parse_mod)

    def _parse_bitwise(self) -> exp.Expr | None:
        if not self._takes_any:
            return self._parse_level(0)
        self._takes_any = False
        try:
            return self._parse_disjunction()
        finally:
            self._takes_any = True

    def _parse_level(self, level: int) -> exp.Expr | None:
        if level == len(_LEVELS):
            return self._parse_term()
        this = self._parse_level(level + 1)
        while this is not None and (build := self._operator(_LEVELS[level])) is not None:
            this = build(self, this, self._parse_level(level + 1))
        return this

    def _operator(self, level: Mapping[str, _Build]) -> _Build | None:
        """Returns the next operator of this level and steps over it; None if another token follows."""
        if self._curr is None or self._curr.token_type not in _SYMBOLS:
            return None
        symbol, following = self._curr.text, self._next
        if following is not None and following.token_type in _SYMBOLS and following.start == self._curr.end + 1:
            if (build := level.get(symbol + following.text)) is not None:
                self._advance(2)
                return build
        if (build := level.get(symbol)) is not None:
            self._advance()
        return build

    def _parse_tilde(self, this: exp.Expr | None) -> exp.Expr | None:
        return _matching(self, this, self._parse_bitwise()) if this is not None else None

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        return super()._parse_is_rhs(distinct) if distinct else self._parse_null() or self._parse_boolean()

    def _normalize_collate(self, collate: exp.Collate) -> None:
        super()._normalize_collate(collate)
        name = collate.expression
        if isinstance(name, exp.Column):  # `COLLATE nocase.noaccent`, a chain of collations
            collate.set("expression", exp.var(".".join(part.name for part in name.parts)))

    # Places with operands in the base parser, and any expressions in DuckDB.

    def _any(self, parse: Callable[[], Any]) -> Any:
        around, self._takes_any = self._takes_any, True
        try:
            return parse()
        finally:
            self._takes_any = around

    def _parse_extract(self) -> Any:
        return self._any(super()._parse_extract)

    def _parse_substring(self) -> Any:
        return self._any(super()._parse_substring)

    def _parse_trim(self) -> Any:
        return self._any(super()._parse_trim)

    def _parse_grouping_set(self) -> Any:
        return self._any(super()._parse_grouping_set)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> Any:
        return self._any(lambda: DuckDBParser._parse_cube_or_rollup(self, with_prefix))


def _as_operand(write: Callable[[Any, Any], str]) -> Callable[[Any, Any], str]:
    def run(generator: Any, node: exp.Expr) -> str:
        text, around = write(generator, node), node.parent
        is_operand = isinstance(around, exp.Binary | exp.Between | exp.In)
        return f"({text})" if is_operand and not isinstance(around, exp.Connector | exp.Escape) else text

    return run


def _in_parentheses(generator: Any, node: exp.Expr) -> str:
    arrow = "->" if isinstance(node, exp.JSONExtract) else "->>"
    text = f"{generator.sql(node, 'this')} {arrow} {generator.sql(node, 'expression')}"
    return text if isinstance(node.parent, exp.Paren) else f"({text})"


#: Nodes that need parentheses as operands, and nodes that always have them.
_LOOSE = (exp.EQ, exp.Like, exp.ILike, exp.Glob, exp.Not)
_ARROWED = (exp.JSONExtract, exp.JSONExtractScalar)


class OperatorGenerator(DuckDBGenerator):
    """The part of a generator that writes operators with the parentheses that DuckDB needs."""

    TRANSFORMS: ClassVar[Any] = {
        **DuckDBGenerator.TRANSFORMS,
        **{kind: _as_operand(getattr(DuckDBGenerator, f"{kind.key}_sql")) for kind in _LOOSE},
        **dict.fromkeys(_ARROWED, _in_parentheses),
        exp.Abs: lambda self, node: f"(@ {self.sql(node, 'this')})",
        exp.Operator: lambda self, node: (
            f"{self.sql(node, 'this')} {node.args['operator']} {self.sql(node, 'expression')}"
        ),
    }

    def binary(self, expression: exp.Binary, op: str) -> str:
        # The base generator writes chains of one operator without parentheses, which comparisons need.
        if not isinstance(expression, _LOOSE):
            return super().binary(expression, op)
        return f"{self.sql(expression, 'this')} {op} {self.sql(expression, 'expression')}"

    def limitoptions_sql(self, expression: exp.LimitOptions) -> str:
        # DuckDB accepts the word PERCENT only after a number
        return "%" if expression.args.get("percent") else super().limitoptions_sql(expression)

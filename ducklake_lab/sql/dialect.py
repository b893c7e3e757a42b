"""DuckDB's dialect as this package reads and writes it.

The parser keeps each function under its name in the text. Only DuckDB decides the meaning of a name.

The parser overrides private methods of sqlglot. `tests/unit/sql/upstream.py` lists them, with the sqlglot version that
each was compared with; a test fails if a newer version has changed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parser import Parser as SqlglotParser
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokenizer_core import TokenizerCore
from sqlglot.tokens import TokenType

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.generator import DuckLakeGenerator
from ducklake_lab.sql.join_syntax import JoinParser
from ducklake_lab.sql.notes import notes

#: Tokens after which `[` begins an index, not a list.
_OPERAND_ENDS = (TokenType.IDENTIFIER, TokenType.VAR, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.STRING)

#: A number such as `1.5e-3`.
_WITH_EXPONENT = re.compile(r"\d+(_\d+)*(\.(\d+(_\d+)*)?)?[eE][+-]?\d+(_\d+)*")

#: Functions whose argument `x -> …` is a lambda.
TAKE_LAMBDAS = frozenset(
    f"{prefix}{name}" for prefix in ("", "list_", "array_") for name in ("transform", "apply", "filter", "reduce")
)
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)

#: String tokens: '…', E'…', $$…$$.
_TEXTS = (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING, TokenType.RAW_STRING)

#: Tokens after INTERVAL if it begins a value.
_INTERVAL_BEGINS = (
    *(*_TEXTS, TokenType.NUMBER, TokenType.L_PAREN),
    *(TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON),
)

_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in "microsecond millisecond second minute hour day week month quarter year decade".split()
    for plural in ("", "s")
) | {"century", "centuries", "millennium", "millennia"}
#: A text with one amount and one unit.
_AMOUNT = re.compile(
    r"\s*-?\d+\s+(microsecond|millisecond|second|minute|hour|day|week|month|quarter|year|decade)s?\s*", re.IGNORECASE
)

#: Words before a `:name` placeholder that are not prefix aliases.
_NEVER_ALIASES = ("CASE", "INTERVAL", "DATE", "TIMESTAMP", "IF", "DISTINCT", "ALL", "SOME", "ANY", "END", "DEFAULT")
#: Words that begin a value or type elsewhere, but may name a struct field.
_FIELD_NAMES = ("INTERVAL", "DATE", "TIMESTAMP", "TIME", "IF", "MAP", "STRUCT")

_KEPT_FUNCTION_PARSERS = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM")


def _call(name: str, *args: exp.Expr | None) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[arg for arg in args if arg is not None])


def _as_plain_call(node: exp.Expr) -> exp.Expr:
    """Converts EXTRACT(year FROM x), SUBSTRING(x FROM 1) and TRIM(…) to plain function calls."""
    if isinstance(node, exp.Extract):
        return _call("date_part", exp.Literal.string(node.name.lower()), node.expression)
    if isinstance(node, exp.Substring):
        return _call("substring", node.this, node.args.get("start"), node.args.get("length"))
    if isinstance(node, exp.Trim):
        names = {"LEADING": "ltrim", "TRAILING": "rtrim"}
        name = names.get(str(node.args.get("position") or "").upper(), "trim")
        return _call(name, node.this, node.args.get("expression"))
    return node


def _position(parser: Any) -> exp.Expr:
    """Parses POSITION(x IN y), the only form in DuckDB."""
    sought = parser._parse_bitwise()
    if not parser._match(TokenType.IN):
        parser.raise_error("IN was expected")
    return _call("position", parser._parse_bitwise(), sought)


def _unless_quoted(parse: Callable[[object], exp.Expr]) -> Callable[[Any], exp.Expr]:
    """Wraps a parser of special arguments: a quoted function name has plain arguments."""

    def run(parser: Any) -> exp.Expr:
        name = parser._tokens[parser._index - 2]
        if name.token_type is TokenType.IDENTIFIER:
            return exp.Anonymous(this=name.text, expressions=parser._parse_csv(parser._parse_lambda))
        return parse(parser)

    return run


def _plain(parse: Callable[[object], exp.Expr]) -> Callable[[Any], exp.Expr]:
    return lambda parser: _as_plain_call(parse(parser))


#: DuckDB's functions for ordered-set aggregates.
_ORDERED_SETS = {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc", "mode": "mode"}


def _without_within_group(node: exp.Expr | None) -> exp.Expr | None:
    """Rewrites `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` as `quantile_cont(0.5 ORDER BY x)`."""
    part = node
    while isinstance(part, exp.Window | exp.Filter):
        part = part.this
    call = part.this if isinstance(part, exp.WithinGroup) else None
    name = _ORDERED_SETS.get(call.name.lower()) if isinstance(call, exp.Anonymous) else None
    if part is None or call is None or name is None:
        return node
    keys = part.expression.expressions
    subject = call.expressions[0] if call.expressions else keys[0].this.copy()
    made = exp.Anonymous(this=name, expressions=[exp.Order(this=subject, expressions=keys)])
    if part is node:
        return made
    part.replace(made)
    return node


class _Characters(TokenizerCore):
    """Tokenizer of numbers with exponents; the base class reads `1e3+1` as one number."""

    __slots__ = ()

    def _scan_number(self) -> None:
        number = _WITH_EXPONENT.match(self.sql, self._start)
        if number is None:
            super()._scan_number()
            return
        self._advance(number.end() - self._current)
        self._add(TokenType.NUMBER, number[0].replace("_", ""))


class DuckLakeSql(DuckDB):
    """DuckDB SQL; every part of a statement becomes a token (no statement keeps the rest of its line as text)."""

    # List positions stay as written; the base dialect would renumber them from 0.
    INDEX_OFFSET = 0

    def to_json_path(self, path: exp.Expr | None) -> exp.Expr | None:
        """Returns the right side of `->` unchanged: `'a.b'` names one field, it is no path."""
        return path

    class Tokenizer(DuckDB.Tokenizer):
        COMMANDS: ClassVar[Any] = set()
        # DuckDB has no CROSS APPLY; apply(l, f) is a function. Nor has it INSERT INTO FUNCTION.
        KEYWORDS: ClassVar[Any] = {
            key: kind for key, kind in DuckDB.Tokenizer.KEYWORDS.items() if key not in ("APPLY", "FUNCTION", "MACRO")
        }

        def _init_core(self) -> TokenizerCore:
            core = super()._init_core()
            core.__class__ = _Characters
            return core

    class Parser(JoinParser):
        # DuckDB has no type RANGE<…>: `range < 0` compares the column of range().
        NESTED_TYPE_TOKENS: ClassVar[Any] = DuckDBParser.NESTED_TYPE_TOKENS - {TokenType.RANGE}
        TYPE_TOKENS: ClassVar[Any] = DuckDBParser.TYPE_TOKENS - {TokenType.RANGE}
        FUNCTIONS: ClassVar[Any] = {}
        FUNCTION_PARSERS: ClassVar[Any] = {
            **{name: _unless_quoted(_plain(DuckDBParser.FUNCTION_PARSERS[name])) for name in _KEPT_FUNCTION_PARSERS},
            "POSITION": _unless_quoted(_position),
        }
        # The base parser makes a list of any such name: `t.list[1]`, `list(x)[1]`, `"array"[1]`.
        ARRAY_CONSTRUCTORS: ClassVar[Any] = {}
        # The base parser adds default sizes to DECIMAL.
        TYPE_CONVERTERS: ClassVar[Any] = {}
        UNARY_PARSERS: ClassVar[Any] = {
            **DuckDBParser.UNARY_PARSERS,
            # A function to DuckDB: `ORDER BY +2` names no position, and `+'a'` does not exist.
            TokenType.PLUS: lambda self: _call("+", self._parse_unary()),
        }
        PLACEHOLDER_PARSERS: ClassVar[Any] = {
            **DuckDBParser.PLACEHOLDER_PARSERS,
            TokenType.COLON: lambda self: self._parse_named_placeholder(),
        }

        def _parse_primary(self) -> exp.Expr | None:
            # The base parser writes `.34` as `0.34`, with one more digit.
            if self._match_pair(TokenType.DOT, TokenType.NUMBER):
                return exp.Literal.number(f".{self._prev.text}")
            return super()._parse_primary()

        def _parse_named_placeholder(self) -> exp.Expr | None:
            """Parses `:name`, but not in `l[:n]`, which is a slice."""
            before = self._tokens[self._index - 2 : self._index - 1] if self._index >= 2 else []
            indexed = self._tokens[self._index - 3 : self._index - 2] if self._index >= 3 else []
            if before and before[0].token_type == TokenType.L_BRACKET and indexed:
                operand = indexed[0].token_type in _OPERAND_ENDS or indexed[0].token_type in self.ID_VAR_TOKENS
                if operand:
                    return None
            if self._match_set(self.ID_VAR_TOKENS) or self._match(TokenType.NUMBER):
                return self.expression(exp.Placeholder(this=self._prev.text)).update_positions(self._prev)
            return None

        def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
            # DuckDB takes `1 AS ''` for `1`.
            aliased = super()._parse_alias(this, explicit=explicit)
            return (
                aliased.this
                if isinstance(aliased, exp.Alias) and aliased is not this and not aliased.alias
                else aliased
            )

        def _parse_expression(self) -> exp.Expr | None:
            # The base parser reads any token before a colon as an alias (`alias: expression`), in `select :x` too.
            if self._next.token_type == TokenType.COLON and not self._prefix_alias():
                return SqlglotParser._parse_expression(self)
            return super()._parse_expression()

        def _prefix_alias(self) -> bool:
            kind = self._curr.token_type
            if kind == TokenType.IDENTIFIER:
                return True
            return kind in self.ID_VAR_TOKENS and self._curr.text.upper() not in _NEVER_ALIASES

        def _parse_projections(self) -> Any:
            # The base parser keeps no places of items.
            def item() -> exp.Expr | None:
                first = self._curr
                node = self._parse_expression()
                if node is not None and not isinstance(node, exp.Alias | exp.Column | exp.Star):
                    notes(node).span = first.start, self._prev.end + 1
                return node

            return self._parse_csv(item), None

        def _parse_star_ops(self) -> exp.Expr | None:
            # The base parser drops the star of an unknown function.
            if self._match_text_seq("COLUMNS", "(", advance=False):
                return exp.Anonymous(this="unpack", expressions=[self._parse_function()])
            return super()._parse_star_ops()

        def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
            index, keyword = self._index, self._curr.text.upper() == "LAMBDA"
            if self._curr.token_type == TokenType.L_PAREN and self._next and self._next.text.upper() == "LAMBDA":
                self._advance()
                node = self._parse_lambda(alias=alias)
                if isinstance(node, exp.Lambda) and self._match(TokenType.R_PAREN):
                    return node
                self._retreat(index)
            node = super()._parse_lambda(alias=alias)
            if not isinstance(node, exp.Lambda) or keyword:
                return node
            if self._takes_lambda(index):
                return node
            self._retreat(index)  # `f(j -> 'a')` reads JSON
            value = self._parse_select_or_expression(alias=alias)
            return self._parse_order(self._parse_respect_or_ignore_nulls(value))

        def _takes_lambda(self, index: int) -> bool:
            """Returns whether the argument at a token may be a lambda: only after the list, in functions of lists."""
            depth, at, is_first = 0, index - 1, True
            while at > 0 and depth >= 0:
                kind = self._tokens[at].token_type
                depth += (kind in _CLOSING) - (kind in _OPENING)
                is_first = is_first and not (depth == 0 and kind == TokenType.COMMA)
                at -= 1
            is_method = self._tokens[at - 1].token_type == TokenType.DOT
            return self._tokens[at].text.casefold() in TAKE_LAMBDAS and (is_method or not is_first)

        def _parse_ordered(self, *args: Any, **options: Any) -> exp.Ordered | None:
            node = super()._parse_ordered(*args, **options)
            words = [token.text.upper() for token in self._tokens[max(self._index - 2, 0) : self._index]]
            if node is not None and words in (["NULLS", "FIRST"], ["NULLS", "LAST"]):
                notes(node).null_order_is_written = True
            return node

        def _parse_limit_options(self) -> exp.LimitOptions | None:
            options = super()._parse_limit_options()
            if options is not None:
                # DuckDB has neither WITH TIES nor FETCH FIRST … PERCENT ROWS
                if options.args.get("with_ties") or (options.args.get("percent") and options.args.get("rows")):
                    self.raise_error("ONLY was expected", self._prev)
            return options

        def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
            # The base parser reads the first amount of `1 month ago`, and adds the next value: `INTERVAL 1 DAY + '…'`.
            index, first = self._index, self._next
            if self._curr.token_type != TokenType.INTERVAL or first.token_type not in _INTERVAL_BEGINS:
                return None  # a name
            self._advance()
            is_text = first.token_type == TokenType.STRING
            this = self._parse_primary() if is_text else self._parse_term()
            has_unit = self._curr is not None and self._curr.text.lower() in _UNITS
            if this is None or (isinstance(this, exp.Column) and not has_unit):
                self._retreat(index)
                return None
            if is_text and not has_unit and not _AMOUNT.fullmatch(first.text):
                return self.expression(exp.Cast(this=this, to=exp.DataType(this=exp.DType.INTERVAL)))
            return self._parse_interval_span(this, parse_function_unit=parse_function_unit)

        def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> Any:
            if isinstance(this, exp.Anonymous) and not alias and self._match_text_seq("EXPORT_STATE", advance=False):
                raise UnsupportedFeatureError("EXPORT_STATE is not supported yet.")
            return _without_within_group(super()._parse_window(this, alias=alias))

        def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> Any:
            # In a list, NULL is an ordinary value: `1 IN [NULL]` is false, `1 IN (NULL)` is NULL.
            if self._curr is not None and self._curr.token_type == TokenType.L_BRACKET:
                values = self._parse_unary()
                return self.expression(exp.Anonymous(this="contains", expressions=[values, this]))
            node = super()._parse_in(this, alias)
            # `x IN ((SELECT …))` is IN over the query, not over its single value.
            query = node.args.get("query")
            while isinstance(query, exp.Subquery) and query.is_wrapper and isinstance(query.this, exp.Subquery):
                query = query.this
            node.set("query", query)
            return node

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
            if (literal := self._parse_typed_literal()) is not None:
                return self._parse_column_ops(literal)
            if fallback_to_identifier:
                return super()._parse_type(parse_interval, fallback_to_identifier)
            # No other value begins with a type: `text[1]` is an index, but the base parser reads a type.
            if (atom := self._parse_atom()) is not None:
                return atom
            interval = self._parse_interval() if parse_interval else None
            return self._parse_column_ops(interval) if interval is not None else self._parse_column()

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            bare = isinstance(this, exp.Column) and not this.table and not this.this.quoted
            is_array = bare and this is not None and this.name.upper() == "ARRAY"
            return super()._parse_bracket(None if is_array else this)

        def _parse_map(self) -> Any:
            if not self._match_set((TokenType.L_BRACE, TokenType.L_PAREN), advance=False):
                name = exp.to_identifier(self._prev.text).update_positions(self._prev)
                return self.expression(exp.Column(this=name))
            node = super()._parse_map()
            # The base parser reads the indexed map of `MAP {…}[x]` as its entries.
            entries = node.this
            while isinstance(entries, exp.Bracket):
                entries = entries.this
            if entries is node.this:
                return node
            indexed = node.this.pop()
            entries.replace(exp.ToMap(this=entries.copy()))
            return indexed

        def _parse_schema(self, this: exp.Expr | None = None) -> exp.Expr | None:
            # `INSERT INTO t (VALUES (1))` and `(FROM s)`: the base parser reads column lists.
            first, second = (
                self._tokens[at] if at < len(self._tokens) else None for at in range(self._index + 1, self._index + 3)
            )
            is_values = first is not None and first.token_type == TokenType.VALUES
            has_row = second is not None and second.token_type == TokenType.L_PAREN
            if first is not None and (first.token_type == TokenType.FROM or (is_values and has_row)):
                return this
            return super()._parse_schema(this)

        def _parse_bracket_key_value(self, is_map: bool = False) -> exp.Expr | None:
            # The base parser reads `{interval: 1}` and `{map: 1}` as a value and a type.
            if is_map and self._next.token_type == TokenType.COLON and self._curr.text.upper() in _FIELD_NAMES:
                if self._brace_of_struct():
                    self._advance(2)
                    key = exp.to_identifier(self._tokens[self._index - 2].text)
                    return self.expression(exp.PropertyEQ(this=key, expression=self._parse_assignment()))
            return super()._parse_bracket_key_value(is_map)

        def _brace_of_struct(self) -> bool:
            """Returns whether the innermost open brace belongs to a struct, not to a map."""
            depth, at = 0, self._index
            while at and depth >= 0:
                at -= 1
                kind = self._tokens[at].token_type
                depth += (kind == TokenType.R_BRACE) - (kind == TokenType.L_BRACE)
            return self._tokens[at - 1].token_type != TokenType.MAP

        def _parse_insert_table(self) -> exp.Expr | None:
            # The base parser reads `rows FROM` as syntax of other dialects, and `values (a) VALUES (1)` as rows.
            is_name = self._curr.text.upper() == "ROWS" and self._next.token_type == TokenType.FROM
            is_name = is_name or self._curr.token_type == TokenType.VALUES
            if is_name:
                table = self._parse_schema(self._parse_table_parts(schema=True))
            else:
                table = super()._parse_insert_table()
            return self._parse_schema(this=table) if self._match_text_seq("BY", "POSITION") else table

        def _parse_typed_literal(self) -> exp.Expr | None:
            """Parses `DATE '2024-01-31'`: a following `::` or `[…]` applies to the value, not to the text in it.

            Any name before a string is a type, as in DuckDB.
            """
            kind = self._curr.token_type if self._curr else None
            if kind == TokenType.INTERVAL or kind not in self.TYPE_TOKENS | {TokenType.VAR, TokenType.IDENTIFIER}:
                return None
            index = self._index
            named = self._next is not None and self._next.token_type in _TEXTS
            # `ROW(1, 'x')` is a call, not a type whose field has a text as its name
            data_type = self._try_parse(lambda: self._parse_types(check_func=True, allow_identifiers=named))
            if isinstance(data_type, exp.DataType) and self._curr and self._curr.token_type in _TEXTS:
                return self.expression(exp.Cast(this=self._parse_primary(), to=data_type))
            self._retreat(index)
            return None

    generator_class = DuckLakeGenerator


def check_extensible(parser: Callable[[], object]) -> None:
    """Checks that sqlglot's classes can be extended; its compiled build forbids it.

    Raises:
        UnsupportedFeatureError: the package sqlglotc is installed beside sqlglot.
    """
    try:
        parser()
    except TypeError as error:
        raise UnsupportedFeatureError(
            "sqlglot's compiled build cannot be extended by DuckLake Lab; run pip uninstall sqlglotc, then restart Python."
        ) from error


check_extensible(DuckLakeSql.Parser)

"""Tables of lakes as arguments of DuckDB's functions: `query_table(t)`, `histogram(t, x)`, `query('FROM t')`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.sql.bind.expansion import stored_query
from ducklake_lab.sql.operations import SqlConstant, TableName
from ducklake_lab.sql.parse.references import Reference, read_reference, word
from ducklake_lab.sql.parse.tokens import split
from ducklake_lab.sql.plan import DESCRIBERS, Resolver

#: The parameters and the body of a macro.
Macro = tuple[Sequence[str], str]

_ASSIGNS = (":=", "=>")
#: DuckDB's function whose argument is a query as JSON.
_SERIALIZED = "json_execute_serialized_sql"
#: DuckDB's functions whose first argument names tables.
_READERS = ("query", "query_table", _SERIALIZED)
_SCHEMAS = (None, "main")


@dataclass(frozen=True, slots=True)
class TableArgument:
    """An argument that names tables.

    Attributes:
        first, last: its first and last token in the call's text.
        names: the table names as texts.
        is_list: the argument is a list.
        is_text: the argument is a text or a list of texts, not a name.
    """

    first: Token
    last: Token
    names: tuple[str, ...]
    is_list: bool
    is_text: bool

    def spelled(self, put: Callable[[str], str | None]) -> str | None:
        """Returns the argument with other names; None if `put` changes none."""
        found = [put(name) for name in self.names]
        if all(new is None for new in found):
            return None
        each = [
            quote_text(name if new is None else new)
            if self.is_text
            else (name if new is None else quote_identifier(new))
            for name, new in zip(self.names, found, strict=True)
        ]
        return f"[{', '.join(each)}]" if self.is_list else each[0]


def table_parameters(name: TableName, macros: Callable[[str], Sequence[Macro]]) -> Collection[str | int]:
    """Returns the places and names of the parameters of DuckDB's functions that name tables.

    Args:
        macros: returns DuckDB's table macros of a name.
    """
    return _naming(name.name.casefold(), macros, frozenset()) if _is_own(name) else ()


def _naming(name: str, macros: Callable[[str], Sequence[Macro]], around: frozenset[str]) -> set[str | int]:
    """Returns the naming parameters of a function; `around` are the macros whose bodies call it."""
    if name in _READERS:
        return {0}
    found: set[str | int] = set()
    for parameters, definition in macros(name) if name not in around else ():
        try:
            body = stored_query(definition)
        except (SqlSyntaxError, UnsupportedFeatureError):
            continue
        for call in body.find_all(exp.Anonymous):
            if not isinstance(call.parent, exp.Table):
                continue
            naming = _naming(call.name.casefold(), macros, around | {name})
            for place, argument in enumerate(call.expressions):
                is_named = isinstance(argument, exp.Kwarg | exp.PropertyEQ)
                if (argument.this.name.casefold() if is_named else place) in naming:
                    columns = {column.name.casefold() for column in argument.find_all(exp.Column)}
                    found.update(
                        key for n, one in enumerate(parameters) if one.casefold() in columns for key in (n, one)
                    )
    return found


def asked(reference: Reference, text: str, resolver: Resolver) -> str | None:
    """Returns the query that a call of `_READERS` stands for; None for other references and several tables."""
    function = reference.name.name.casefold()
    if not _is_own(reference.name) or reference.arguments is None or len(reference.arguments) != 1:
        return None
    if function in ("query", _SERIALIZED):
        tokens = reference.arguments[0]
        written = text[tokens[0].start : tokens[-1].end + 1]
        query = _value(f"json_deserialize_sql({written})" if function == _SERIALIZED else written, resolver)
        return query if isinstance(query, str) and len(split(query)) == 1 else None
    found = table_arguments(reference, text, resolver) if function == "query_table" else []
    if len(found) != 1 or len(found[0].names) != 1:
        return None
    query = f"FROM {found[0].names[0]}"
    return query if len(split(query)) == 1 else None


def described_by(reference: Reference, text: str, resolver: Resolver) -> str | None:
    """Returns the table that a call describes by DuckDB's own catalog; None for other calls."""
    if reference.name.name.casefold() not in DESCRIBERS or not _is_own(reference.name) or not reference.arguments:
        return None
    argument = _argument(reference.arguments[0], text, resolver)
    return argument.names[0] if argument is not None else None


def table_arguments(reference: Reference, text: str, resolver: Resolver) -> list[TableArgument]:
    """Returns the arguments of a call by which DuckDB's function reads tables."""
    if reference.arguments is None or not _is_own(reference.name) or reference.name.name.casefold() == _SERIALIZED:
        return []
    naming = resolver.table_parameters(reference.name)
    found: list[TableArgument] = []
    for place, tokens in enumerate(reference.arguments):
        name: str | int = place
        if len(tokens) > 2 and tokens[1].text in _ASSIGNS:
            name, tokens = tokens[0].text.casefold(), tokens[2:]
        argument = _argument(tokens, text, resolver) if name in naming else None
        if argument is not None:
            found.append(argument)
    return found


def _is_own(name: TableName) -> bool:
    return name.schema in _SCHEMAS and name.catalog in (None, "system")


def _argument(tokens: Sequence[Token], text: str, resolver: Resolver) -> TableArgument | None:
    first, last = tokens[0], tokens[-1]
    if _is_path(tokens):
        written = text[first.start : last.end + 1]
        return TableArgument(first, last, (written,), is_list=False, is_text=False)
    inside = tokens[1:-1] if first.token_type is TokenType.L_BRACKET else ()
    items = _items(inside)
    if items and all(map(_is_path, items)):
        names = tuple(text[item[0].start : item[-1].end + 1] for item in items)
        return TableArgument(first, last, names, is_list=True, is_text=False)
    value = _constant(tokens, text, resolver)
    if isinstance(value, str):
        return TableArgument(first, last, (_as_name(value),), is_list=False, is_text=True)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return TableArgument(first, last, tuple(map(_as_name, value)), is_list=True, is_text=True)
    return None


def _items(tokens: Sequence[Token]) -> list[list[Token]]:
    items: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _is_path(tokens: Sequence[Token]) -> bool:
    """Returns whether tokens are a name, or names between dots."""
    return len(tokens) % 2 == 1 and all(
        token.token_type is TokenType.DOT
        if place % 2
        else token.token_type is TokenType.IDENTIFIER or (word(token) != "" and token.text.isidentifier())
        for place, token in enumerate(tokens)
    )


def _constant(tokens: Sequence[Token], text: str, resolver: Resolver) -> object:
    """Returns the value of a constant expression; None if it names columns or cannot be computed."""
    if len(tokens) == 1 and tokens[0].token_type is TokenType.STRING:
        return tokens[0].text
    return _value(text[tokens[0].start : tokens[-1].end + 1], resolver)


def _value(expression: str, resolver: Resolver) -> object:
    try:
        return resolver.value(SqlConstant(expression))
    except (BindError, SqlSyntaxError, UnsupportedFeatureError):
        return None


def _as_name(text: str) -> str:
    """Returns a name as DuckDB reads it in a text: parts between dots, or one name."""
    tokens = split(text)[0] if split(text) else ()
    return text if _is_path(tokens) else quote_identifier(text)


def named(argument_name: str) -> TableName | None:
    """Returns the table that a name in an argument stands for."""
    tokens = split(argument_name)[0]
    reference = read_reference(argument_name, tokens, 0)
    return reference.name if reference is not None and reference.last == len(tokens) - 1 else None

"""Parses SQL text to statements: DuckLake's own forms first, then the general parser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

from sqlglot import TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.alter import alter_statement
from ducklake_lab.sql.parse.describe import VERBS, read_listing
from ducklake_lab.sql.parse.entries import entry_statement
from ducklake_lab.sql.parse.expectations import check_statement
from ducklake_lab.sql.parse.general import operation_of, select_from_values
from ducklake_lab.sql.parse.literal_insert import read_literal_insert
from ducklake_lab.sql.parse.live import live_statement
from ducklake_lab.sql.parse.merge import is_merge, read_merge
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import PIVOTS, word
from ducklake_lab.sql.parse.secrets import read_secret
from ducklake_lab.sql.parse.statements import own_statement, prepared
from ducklake_lab.sql.parse.tokens import Cursor, from_parse_error, position, split, syntax_error

_DIALECT = DuckLakeSql()

#: Statements that DuckDB describes as it does queries.
_BEGIN_QUERIES = ("SELECT", "FROM", "VALUES", "TABLE", "DESCRIBE", "SUMMARIZE", "INSERT", "UPDATE", "DELETE", "MERGE")
_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_GENERAL_WORDS = (*_QUERY_WORDS, "CREATE", "DROP", "INSERT", "UPDATE", "DELETE", "TRUNCATE")

#: First words of DuckDB's statements that are not supported -> text of their refusal.
_REFUSED = {
    "PIVOT": "PIVOT",
    "PIVOT_WIDER": "PIVOT",
    "PIVOT_LONGER": "UNPIVOT",
    "UNPIVOT": "UNPIVOT",
}


def parse(
    text: str,
    params: Mapping[str, object] | None = None,
    *,
    keep_refused: bool = False,
    keep_literals: bool = False,
    variables: Callable[[], Collection[str]] = frozenset[str],
) -> list[op.Statement]:
    """Returns the statements of `text`, in order.

    Args:
        params: values of `:name`, `$name`, and `?` (the first is "1"); they become literals in the tree.
        keep_refused: an unsupported or wrong statement becomes an `Other`, which holds the error.
        keep_literals: an INSERT of literals becomes an `InsertLiterals`.
        variables: returns the names of session variables in lower case, which `$name` may mean.

    Raises:
        SqlSyntaxError: a statement is wrong; the error has its line and column.
        UnsupportedFeatureError: a statement is not supported; nothing of the text has run.
        UsageError: a parameter has no value.
    """
    keep_literals = keep_literals and not params
    if keep_literals and (literals := _literal_insert(text, "")) is not None:
        return [literals]  # the values are not even split into tokens
    binder = Binder(params, variables)
    statements: list[op.Statement] = []
    for tokens in split(text):
        source = text[tokens[0].start : tokens[-1].end + 1]
        line, column = position(text, tokens[0].start)
        if keep_literals:
            literals = _literal_insert(source, "\n" * (line - 1) + " " * (column - 1))
            if literals is not None:
                statements.append(literals)
                continue
        prepare = prepared(Cursor(text, tokens))
        if prepare is not None:
            statements.append(op.Statement(prepare, source, line, source))
            continue
        _refuse_changes_in_with(tokens)
        for_text = binder.fork()
        if [word(token) for token in tokens[:2]] == ["SET", "VARIABLE"] and len(tokens) > 2:
            binder.sets(tokens[2].text)
        operation: op.Operation
        try:
            operation = _operation(text, tokens, binder)
        except (UnsupportedFeatureError, SqlSyntaxError, BindError) as error:
            if not keep_refused:
                raise
            operation = op.Other(tuple(word(token) for token in tokens[:8]), error)
        statements.append(op.Statement(operation, source, line, for_text.text(text, tokens)))
    return statements


def _literal_insert(text: str, before: str) -> op.Statement | None:
    """Returns the statement of a text that inserts literals; None for other text.

    Args:
        before: blanks in place of the text before it.
    """
    literal_insert = read_literal_insert(text)
    if literal_insert is None:
        return None
    head, rows = literal_insert
    insert = _insert_of_head(before + head)
    if insert is None:
        return None
    operation, line = insert
    written = text.strip().removesuffix(";").rstrip()
    return op.Statement(op.InsertLiterals(operation, rows, before + text), written, line, written)


@lru_cache(maxsize=64)
def _insert_of_head(head: str) -> tuple[op.Insert, int] | None:
    """Parses an INSERT without its rows; returns it with its line, or None if the general parser must explain an error.

    The result is cached, because a program inserts into one table many times.
    """
    try:
        (statement,) = parse(f"{head}VALUES (NULL)")
    except (UnsupportedFeatureError, SqlSyntaxError):
        return None  # for example, the name is a keyword
    assert isinstance(statement.operation, op.Insert)
    return statement.operation, statement.line


def parse_query(text: str) -> op.Query:
    """Parses a text that is one query.

    Raises:
        SqlSyntaxError: the text is not one query.
    """
    statements = parse(text)
    if len(statements) != 1 or not isinstance(statements[0].operation, op.Query):
        raise SqlSyntaxError("A query was expected.")
    return statements[0].operation


def pivot_as_query(text: str) -> op.Query | None:
    """Returns a PIVOT or UNPIVOT statement as a query; None for other or unsupported statements."""
    statements = split(text)
    if len(statements) != 1:
        return None
    top: list[Token] = []
    depth = 0
    for token in statements[0]:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0:
            top.append(token)
    after_with = top if word(top[0]) == "WITH" else top[:1]
    pivot = next((token for token in after_with if word(token) in _REFUSED or word(token) in _BEGIN_QUERIES), top[0])
    if word(pivot) not in _REFUSED:
        return None
    last = statements[0][-1].end + 1
    ends = (
        token.start for token in top if token.start > pivot.start and word(token) in ("ORDER BY", "LIMIT", "OFFSET")
    )
    end = next(ends, last)
    begin = statements[0][0].start
    try:
        return parse_query(f"{text[begin : pivot.start]} FROM ({text[pivot.start : end]}) {text[end:last]}")
    except (UnsupportedFeatureError, SqlSyntaxError):
        return None


def _operation(text: str, tokens: Sequence[Token], binder: Binder) -> op.Operation:
    cursor = Cursor(text, tokens)
    if is_merge(cursor):
        return read_merge(cursor, binder)
    readers = (live_statement, own_statement, read_secret, alter_statement, check_statement, entry_statement)
    own = next((operation for read in readers if (operation := read(cursor, binder)) is not None), None)
    if own is not None:
        return own
    first = cursor.word()
    if first == "EXPLAIN":
        cursor.index += 1
        analyze = cursor.take("ANALYZE")
        if cursor.current is None:
            raise syntax_error(text, None, "a statement")
        pivot = pivot_as_query(text[cursor.current.start : tokens[-1].end + 1])
        return op.Explain(pivot or _operation(text, cursor.rest(), binder), analyze)
    if first == "PRAGMA" and (pragma := read_listing(cursor)) is not None:
        return pragma
    if first in VERBS:
        cursor.index += 1
        listing = read_listing(cursor)
        if listing is not None:
            return listing
        if cursor.word() in _QUERY_WORDS:
            query = _general(text, cursor.rest(), binder)
            assert isinstance(query, op.Query)
            return op.Describe(query=query)
        if cursor.word() in PIVOTS and cursor.word(1):
            raise UnsupportedFeatureError(f"DESCRIBE {cursor.word()} is not supported on Spark yet.")
        table = cursor.table()
        cursor.finish()
        return op.Describe(table=table, or_setting=first == "SHOW" and len(table.qualifiers) == 0)
    if first == "CREATE":
        _refuse_create(cursor)
    if first == "DROP" and cursor.word(1) not in ("TABLE", "SCHEMA"):
        raise UnsupportedFeatureError(f"DROP {cursor.word(1)} is not supported yet.")
    if first not in _GENERAL_WORDS:
        if first in _REFUSED or first in _OTHER_STATEMENTS:
            raise UnsupportedFeatureError(f"{_REFUSED.get(first, first)} is not supported yet.")
        raise syntax_error(text, tokens[0], "a statement")
    return _general(text, tokens, binder)


#: First words of further DuckDB statements.
_OTHER_STATEMENTS = frozenset(
    "ALTER ANALYZE EXPORT IMPORT INSTALL LOAD PRAGMA PREPARE RESET SET SUMMARIZE "
    "UPDATE_EXTENSIONS VACUUM GRANT REVOKE CONNECT DISCONNECT".split()
)


#: First words of statements that change rows -> possible second words; None for any name.
_CHANGES = {"INSERT": ("INTO", "OR"), "UPDATE": None, "DELETE": ("FROM",), "MERGE": ("INTO",), "COPY": None}


def _refuse_changes_in_with(tokens: Sequence[Token]) -> None:
    """Raises if a common table expression changes rows; lakes do not support that, and nothing may run."""
    after_with = False
    for index, token in enumerate(tokens[:-2]):
        after_with = after_with or word(token) == "WITH"
        if not after_with or token.token_type is not TokenType.L_PAREN:
            continue
        before, first, second = word(tokens[index - 1]), word(tokens[index + 1]), tokens[index + 2]
        if before not in ("AS", "MATERIALIZED") or first not in _CHANGES:
            continue
        following = _CHANGES[first]
        is_name = second.token_type is TokenType.IDENTIFIER or second.text[:1].isalpha()
        if word(second) in following if following else is_name or first == "COPY":
            raise UnsupportedFeatureError(f"{first} in WITH is not supported; run it as a statement of its own.")


_NO_GENERATED = "Generated columns are not supported: lakes have NOT NULL and DEFAULT only."


def _refuse_create(cursor: Cursor) -> None:
    ahead = 1
    if cursor.word(ahead) == "OR":
        ahead += 2
    while cursor.word(ahead) in ("TEMP", "TEMPORARY", "UNLOGGED", "PERSISTENT", "UNIQUE", "RECURSIVE"):
        if cursor.word(ahead) in ("TEMP", "TEMPORARY"):
            raise UnsupportedFeatureError(f"CREATE TEMPORARY {cursor.word(ahead + 1)} is not supported yet.")
        ahead += 1
    if cursor.word(ahead) not in ("TABLE", "SCHEMA"):
        kind = "SECURE VIEW" if cursor.word(ahead) == "SECURE" else cursor.word(ahead)
        raise UnsupportedFeatureError(f"CREATE {kind} is not supported yet.")
    depth = 0
    for before, token, after in zip(cursor.tokens, cursor.tokens[1:], [*cursor.tokens[2:], None], strict=False):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 1 and (word(token), word(after)) == ("USING", "COMPRESSION"):
            raise UnsupportedFeatureError(
                "USING COMPRESSION is not supported: lakes have one compression for all columns, the option parquet_compression."
            )
        if depth == 1 and before.token_type is TokenType.R_PAREN and word(token) in ("VIRTUAL", "STORED"):
            raise UnsupportedFeatureError(_NO_GENERATED)


def _general(text: str, tokens: Sequence[Token], binder: Binder) -> op.Operation:
    for_text = binder.fork()
    try:
        trees = _DIALECT.parser().parse(list(tokens), text)
    except ParseError as error:
        raise from_parse_error(text, tokens, error) from error
    tree = trees[0] if trees else None
    if tree is None:
        raise syntax_error(text, tokens[0])
    tree = binder.bind(tree)
    for raw in list(tree.find_all(exp.RawString)):
        raw.replace(exp.Literal.string(raw.name))
    if isinstance(tree, exp.Query):
        return op.Query(tree, written=for_text.written(text, tokens))
    if isinstance(tree, exp.Values):
        return op.Query(select_from_values(tree), written=for_text.written(text, tokens))
    operation = operation_of(text, tokens, tree, for_text)
    if operation is not None:
        return operation
    word = tokens[0].text.upper()
    raise UnsupportedFeatureError(f"{_REFUSED.get(word, word)} is not supported yet.")

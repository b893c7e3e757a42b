"""Explains errors of a text: their positions in it, and corrections that DuckDB's parser accepts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from ducklake_lab.duckdb import library as duckdb
from ducklake_lab.duckdb.canonical import reserved_words
from ducklake_lab.duckdb.wording import as_written, position_of_error
from ducklake_lab.engine.in_process.engine import translated
from ducklake_lab.errors import BindError, ConstraintError, SqlSyntaxError
from ducklake_lab.model.quoting import quote_identifier, quote_text
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.parse.tokens import position, spans, without_at

#: Statements whose whole text DuckDB's parser checks.
_PARSED = (op.Query, op.Insert, op.Update, op.Delete)
#: Statements in which DuckDB's parser finds reserved words that are names; lakes take longer paths and further clauses.
_DEFINITIONS = (
    *(op.CreateSchema, op.DropSchema, op.CreateTable, op.DropTable, op.CreateView, op.DropView, op.RenameView),
    *(op.AddColumn, op.DropColumn, op.RenameColumn, op.RenameTable, op.SetColumnType, op.SetDefault, op.SetNotNull),
    *(op.CreateMacro, op.DropMacro, op.Describe),
)
#: Keywords that users misspell, including first words of statements.
_WORDS = (
    "SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET JOIN UNION INSERT INTO VALUES UPDATE DELETE CREATE TABLE DROP ALTER "
    "MERGE USING DESCRIBE SUMMARIZE PIVOT UNPIVOT ATTACH DETACH COPY EXPLAIN BEGIN COMMIT ROLLBACK CHECKPOINT BETWEEN "
    "DISTINCT QUALIFY WINDOW EXCEPT INTERSECT WITH TRUNCATE REPLACE"
).split()
#: DuckDB's refusal of a name with more parts than its own names have.
_PATH = re.compile(r"more parts|Expected 1, 2 or 3 qualifications")
#: The error of an incomplete text.
_AT_END = "Syntax error at the end."
_BRACES = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}")


@contextmanager
def placing(text: str) -> Iterator[None]:
    """Maps errors of DuckDB, which may have run a rewritten text, to positions and functions of this text.

    Raises:
        SqlSyntaxError: the error, with its position if that is certain.
        BindError: the error, with the function as written, or a hint on quotes.
        ConstraintError: the error, with the position of the value.
    """
    try:
        yield
    except BindError as error:
        said = as_written(str(error), text)
        said = _with_quotes(said, text, error.line, error.column)
        if said != str(error):
            raise BindError(said, line=error.line, column=error.column) from error.__cause__
        raise
    except ConstraintError as error:
        said = _with_place(str(error), text)
        if said != str(error):
            raise type(error)(said) from error.__cause__
        raise
    except SqlSyntaxError as error:
        try:
            _check_syntax(text)
        except SqlSyntaxError as placed:
            is_plain = error.line is None or str(error) == str(placed)
            if placed.line is not None and is_plain and _is_same(placed, error):
                hint = _hint(text, _offset(text, placed.line, placed.column))
                raise SqlSyntaxError(
                    f"{str(placed).rstrip('.')}{hint or '.'}", line=placed.line, column=placed.column
                ) from None
        raise


def _is_same(placed: SqlSyntaxError, error: SqlSyntaxError) -> bool:
    """Returns whether two errors concern the same word."""
    words = [str(one).casefold().split('"')[1:2] for one in (placed, error)]
    return words[0] == words[1]


def _with_place(message: str, text: str) -> str:
    """Adds the position of a value that does not fit its type, if the text contains it once."""
    missing = re.match(r"'(.*)' is no [^.]+(?=\.)", message)
    if missing is None or text.count(quote_text(missing[1])) != 1:
        return message
    line, column = position(text, text.index(quote_text(missing[1])))
    return f"{missing[0]} (line {line}, column {column}){message[missing.end() :]}"


def _with_quotes(message: str, text: str, line: int | None, column: int | None) -> str:
    """Adds a hint if a wrong column name in double quotes may be meant as text."""
    lines = text.split("\n")
    name = re.search(r'has no column "(.+?)"', message)
    if name is None or "Did you mean" in message or line is None or column is None or line > len(lines):
        return message
    if not lines[line - 1][column - 1 :].startswith(f'"{name[1]}"'):
        return message
    return f"{message.rstrip('.')}. A text takes single quotes: {quote_text(name[1])}."


def check(statements: Sequence[op.Statement], text: str) -> None:
    """Raises the error of a statement that cannot be parsed, before anything runs.

    Raises:
        SqlSyntaxError: DuckDB refuses the text; the error has a position and a correction if they are known.
    """
    for statement in statements:
        operation = statement.operation
        refusal = operation.refusal if isinstance(operation, op.Other) else None
        if isinstance(refusal, SqlSyntaxError) or isinstance(operation, (*_PARSED, *_DEFINITIONS)):
            try:
                _check_syntax(statement.sql)
            except SqlSyntaxError as error:
                if isinstance(operation, _DEFINITIONS) and not str(error).startswith("Syntax error"):
                    continue
                if refusal is None and (_PATH.search(str(error)) or _is_known(statement.sql)):
                    continue  # nested schemas and other syntax that lakes support
                if refusal is not None and not (
                    isinstance(refusal, SqlSyntaxError) and str(refusal).startswith("Syntax error")
                ):
                    raise refusal from None
                is_placed = error.line is not None or str(error) == _AT_END
                cause = error if refusal is None or (is_placed and statement.sql == statement.text) else refusal
                raise _explained(statement, text, cause, refusal) from None


def _is_known(sql: str) -> bool:
    """Returns whether DuckDB refuses a statement only for an alias after AT, or for a reserved word that names an argument."""
    plain = _with_quoted_arguments(without_at(sql))
    return plain != sql and _is_syntax(plain)


def _with_quoted_arguments(sql: str) -> str:
    """Returns a statement with quotes around reserved words that name arguments, as in `lake.blame('t', where => …)`."""
    places = spans(sql)
    for (start, stop), (next_start, _) in reversed([*itertools.pairwise(places)]):
        if sql.startswith(("=>", ":="), next_start) and sql[start:stop].casefold() in reserved_words():
            sql = f"{sql[:start]}{quote_identifier(sql[start:stop])}{sql[stop:]}"
    return sql


def _explained(statement: op.Statement, text: str, cause: SqlSyntaxError, refusal: Exception | None) -> SqlSyntaxError:
    """Returns the error with its position in the whole text, and a hint."""
    message = str(cause)
    line, column = cause.line, cause.column
    if cause is refusal:
        at = _offset(text, line, column) - text.index(statement.text)
    else:
        before = _before(statement, text)
        at = _offset(statement.text, line, column)
        if line is not None and column is not None:
            line, column = line + statement.line - 1, column + (before if line == 1 else 0)
        elif message == _AT_END:
            line, column = position(text, text.index(statement.text) + len(statement.text))
        message = re.sub(r" \(line \d+, column \d+\)", "", message.rstrip("."))
        if isinstance(refusal, SqlSyntaxError) and "; expected " in str(refusal) and refusal.line == line:
            message, line, column = str(refusal).rstrip("."), refusal.line, refusal.column
        elif line is not None:
            message = f"{message} (line {line}, column {column})"
    if statement.sql != statement.text or line is None:
        hint = _braces(statement.text)
    else:
        hint = _hint(statement.text, at)
    return SqlSyntaxError(
        f"{message.rstrip('.')}{hint or ('' if message.endswith('!') else '.')}", line=line, column=column
    )


def _before(statement: op.Statement, text: str) -> int:
    """Returns the number of characters before a statement in its first line."""
    first = statement.text.split("\n", 1)[0]
    return max(0, text.split("\n")[statement.line - 1].find(first))


def _offset(text: str, line: int | None, column: int | None) -> int:
    if line is None or column is None:
        return len(text)
    return sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1


def _hint(text: str, at: int | None) -> str | None:
    """Returns a correction that DuckDB's parser accepts, as the end of a sentence."""
    braces = _braces(text)
    if braces is not None:
        return braces
    at = len(text) if at is None else at
    near = [span for span in spans(text) if span[0] <= at][-3:]
    for start, stop in reversed(near if at < len(text) else []):
        word = text[start:stop]
        if word.casefold() in reserved_words() and _is_syntax(f"{text[:start]}{quote_identifier(word)}{text[stop:]}"):
            return f": {word} is a reserved word; as a name it takes quotes, {quote_identifier(word)}."
    for start, stop in near:
        if text[start:stop].casefold() in reserved_words():
            continue
        for meant in get_close_matches(text[start:stop].upper(), _WORDS, n=3, cutoff=0.6):
            if meant != text[start:stop].upper() and _is_syntax(f"{text[:start]}{meant}{text[stop:]}"):
                return f". Did you mean {meant}?"
    if at >= len(text) and near:
        return f": something is missing after {text[near[-1][0] : near[-1][1]]}."
    return None


def _braces(text: str) -> str | None:
    """Returns a hint on parameters, if a name in braces occurs outside of quotes."""
    for braces in _BRACES.finditer(text):
        if any(start == braces.start() for start, _ in spans(text)):
            return f": {braces[0]} is not filled in; write :{braces[1]} for the value of the notebook's variable."
    return None


def _check_syntax(sql: str) -> None:
    """Checks a text with DuckDB's parser, without running it.

    Raises:
        SqlSyntaxError: the text is not valid SQL.
    """
    try:
        duckdb.extract_statements(sql)
    except duckdb.Error as error:
        error_position = position_of_error(error, sql)
        if "syntax error at end of input" in str(error) or (
            error_position is not None and _breaks_off(sql, error_position.word)
        ):
            raise SqlSyntaxError(_AT_END) from error
        if error_position is None:
            raise SqlSyntaxError(str(translated(error))) from error
        raise SqlSyntaxError(
            f'Syntax error at "{error_position.word}" (line {error_position.line}, column {error_position.column}).',
            line=error_position.line,
            column=error_position.column,
        ) from error


def _is_syntax(sql: str) -> bool:
    """Returns whether DuckDB can parse a text."""
    try:
        _check_syntax(sql)
    except SqlSyntaxError:
        return False
    return True


def _breaks_off(sql: str, word: str) -> bool:
    """Returns whether a text is incomplete after its last word; DuckDB 2.0 reports only a plain syntax error then."""
    is_last = bool(word) and sql.rstrip("; \t\n").endswith(word)
    is_bare = word.casefold() in reserved_words() or not word.isidentifier()
    return is_last and is_bare and (_is_syntax(f"{sql} x") or _is_syntax(f"{sql} BY x"))

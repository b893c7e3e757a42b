"""Parses SQL text to statements: DuckLake's own forms first, then the general parser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

from sqlglot import TokenType, exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.quoting import schema_path
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.notes import start_of
from ducklake_lab.sql.parse.alter import alter_statement, column_definition, partition_keys
from ducklake_lab.sql.parse.entries import entry_statement
from ducklake_lab.sql.parse.literal_insert import read_literal_insert
from ducklake_lab.sql.parse.merge import is_merge, read_merge
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import PIVOTS, matching, word
from ducklake_lab.sql.parse.secrets import read_secret
from ducklake_lab.sql.parse.statements import own_statement, prepared
from ducklake_lab.sql.parse.tokens import Cursor, from_parse_error, position, split, syntax_error

_DIALECT = DuckLakeSql()

#: Statements that DuckDB describes as it does queries.
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
    if len(statements) != 1 or word(statements[0][0]) not in _REFUSED:
        return None
    depth, end = 0, len(text)
    for token in statements[0]:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and word(token) in ("ORDER BY", "LIMIT", "OFFSET"):
            end = token.start
            break
    last = statements[0][-1].end + 1
    try:
        return parse_query(f"FROM ({text[statements[0][0].start : min(end, last)]}) {text[end:last]}")
    except (UnsupportedFeatureError, SqlSyntaxError):
        return None


def _operation(text: str, tokens: Sequence[Token], binder: Binder) -> op.Operation:
    cursor = Cursor(text, tokens)
    if is_merge(cursor):
        return read_merge(cursor, binder)
    readers = (own_statement, read_secret, alter_statement, entry_statement)
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
    if first in ("DESCRIBE", "DESC"):
        cursor.index += 1
        if cursor.word() in _QUERY_WORDS:
            query = _general(text, cursor.rest(), binder)
            assert isinstance(query, op.Query)
            return op.Describe(query=query)
        if cursor.word() in PIVOTS and cursor.word(1):
            raise UnsupportedFeatureError(f"DESCRIBE {cursor.word()} is not supported on Spark yet.")
        cursor.take("TABLE")
        table = cursor.table()
        cursor.finish()
        return op.Describe(table=table)
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
        return op.Query(_select_from_values(tree), written=for_text.written(text, tokens))
    if isinstance(tree, exp.Create):
        return _create(text, tokens, tree, for_text)
    if isinstance(tree, exp.Drop):
        return _drop(text, tokens, tree)
    if isinstance(tree, exp.Insert):
        return _insert(text, tree)
    if isinstance(tree, exp.Update):
        _refuse(tree, "UPDATE", returning="RETURNING", order="ORDER BY", limit="LIMIT")
        return op.Update(table_name(text, tree.this), tree)
    if isinstance(tree, exp.Delete):
        _refuse(tree, "DELETE", returning="RETURNING", order="ORDER BY", limit="LIMIT")
        if tree.args.get("tables"):
            raise syntax_error(text, tokens[0], "DELETE FROM one table")
        return op.Delete(table_name(text, tree.this), tree)
    if isinstance(tree, exp.TruncateTable):
        if len(tree.expressions) != 1:
            raise UnsupportedFeatureError("TRUNCATE of several tables at once is not supported.")
        return op.Truncate(table_name(text, tree.expressions[0]))
    word = tokens[0].text.upper()
    raise UnsupportedFeatureError(f"{_REFUSED.get(word, word)} is not supported yet.")


def _select_from_values(values: exp.Values) -> exp.Select:
    """Rewrites VALUES (…) as SELECT * FROM (VALUES (…)), with DuckDB's column names `col0`, `col1`, …"""
    return exp.select(exp.Star()).from_(values)


def table_name(text: str, table: exp.Expr | None) -> op.TableName:
    """Returns the name of a table reference with its position."""
    if isinstance(table, exp.Schema):
        table = table.this
    parts = table.parts if isinstance(table, exp.Table) else []
    if not parts or not all(isinstance(part, exp.Identifier) for part in parts):
        raise SqlSyntaxError("A table's name was expected here.")
    if not all(part.name for part in parts):
        raise SqlSyntaxError("The name of a table is empty; give it one.")
    start = start_of(parts[0])
    line, column = position(text, start) if isinstance(start, int) else (None, None)
    return op.TableName.of([part.name for part in parts], line, column)


def _schema_name(text: str, tokens: Sequence[Token]) -> op.TableName:
    """Returns the name after SCHEMA and IF [NOT] EXISTS; the general parser keeps only its last two parts.

    The schema is the last part, or all parts after the first; the first part may also be a catalog.
    """
    start = next(i for i, token in enumerate(tokens) if word(token) == "SCHEMA") + 1
    while start < len(tokens) and word(tokens[start]) in ("IF", "NOT", "EXISTS"):
        start += 1
    end = start
    while end + 2 < len(tokens) and tokens[end + 1].token_type is TokenType.DOT:
        end += 2
    parts = [token.text for token in tokens[start : end + 1 : 2]]
    if not parts:
        raise SqlSyntaxError("A schema's name was expected here.")
    catalog, path = (parts[0], parts[1:]) if len(parts) > 1 else (None, parts)
    return op.TableName(None, catalog, schema_path(path), *position(text, tokens[start].start))


def _refuse(tree: exp.Expr, statement: str, **parts: str) -> None:
    for part, name in parts.items():
        if tree.args.get(part):
            text = name if name.startswith("WITH") else f"{statement} … {name}"
            raise UnsupportedFeatureError(f"{text} is not supported yet.")


def _create(text: str, tokens: Sequence[Token], tree: exp.Create, binder: Binder) -> op.Operation:
    if tree.args.get("kind") == "SCHEMA":
        if tree.args.get("replace"):
            raise UnsupportedFeatureError("CREATE OR REPLACE SCHEMA is not supported; DROP SCHEMA first.")
        return op.CreateSchema(_schema_name(text, tokens), bool(tree.args.get("exists")))
    name = table_name(text, tree.this)
    with_data, partitioned = True, False
    for item in tree.args["properties"].expressions if tree.args.get("properties") else []:
        if isinstance(item, exp.WithDataProperty):
            with_data = not item.args.get("no")
        elif isinstance(item, exp.PartitionedByProperty):
            partitioned = True
        elif isinstance(item, exp.LikeProperty):
            raise UnsupportedFeatureError(
                "CREATE TABLE … LIKE is not supported; use CREATE TABLE … AS FROM … WITH NO DATA."
            )
        else:
            raise UnsupportedFeatureError(
                f"{type(item).__name__.removesuffix('Property')} in CREATE TABLE is not supported yet."
            )
    columns: list[op.ColumnDef] = []
    names: list[exp.Identifier] = []
    if isinstance(tree.this, exp.Schema):
        for definition in tree.this.expressions:
            if isinstance(definition, exp.ColumnDef):
                columns.append(column_definition(definition))
            elif isinstance(definition, exp.Identifier):
                names.append(definition)
            else:
                raise BindError(
                    "Table constraints (PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY) are not supported: "
                    "lakes have NOT NULL and DEFAULT only."
                )
    query = _renamed(_query(tree.expression), names) if tree.expression else None
    if query is None and not columns:
        raise syntax_error(text, None, "columns or AS")
    return op.CreateTable(
        name=name,
        columns=tuple(columns),
        query=op.Query(query, True, None if names else _after_as(text, tokens, binder)) if query else None,
        replace=bool(tree.args.get("replace")),
        if_not_exists=bool(tree.args.get("exists")),
        with_data=with_data,
        partitioned_by=_partition_clause(text, tokens) if partitioned else (),
    )


def _after_as(text: str, tokens: Sequence[Token], binder: Binder) -> op.Written:
    """Returns the query of CREATE TABLE … AS."""
    words, first = [word(token) for token in tokens], 0
    while words[first] != "AS":
        first = (matching(tokens, first) if tokens[first].token_type is TokenType.L_PAREN else first) + 1
    end = len(tokens) - (3 if words[-3:] == ["WITH", "NO", "DATA"] else 2 if words[-2:] == ["WITH", "DATA"] else 0)
    return binder.written(text, tokens[first + 1 : end])


def _partition_clause(text: str, tokens: Sequence[Token]) -> tuple[op.PartitionKey, ...]:
    cursor = Cursor(text, tokens)
    while not cursor.take("PARTITIONED BY"):
        cursor.index += 1
    return partition_keys(cursor)


def _renamed(query: exp.Query, names: Sequence[exp.Identifier]) -> exp.Query:
    """Returns a query with other names for its first columns."""
    if not names:
        return query
    folded = [name.name.casefold() for name in names]
    if len(set(folded)) < len(folded):
        twice = next(name.name for name in names if folded.count(name.name.casefold()) > 1)
        raise BindError(f'Two columns are called "{twice}"; give each a name of its own.')
    alias = exp.TableAlias(this=exp.to_identifier("created", quoted=True), columns=list(names))
    return exp.select(exp.Star()).from_(exp.Subquery(this=query, alias=alias))


def _query(tree: exp.Expr | None) -> exp.Query:
    if isinstance(tree, exp.Values):
        return _select_from_values(tree)
    if isinstance(tree, exp.Query):
        return tree
    if tree is None:
        raise SqlSyntaxError("INSERT lacks its rows; add VALUES (…), a query or DEFAULT VALUES.")
    raise UnsupportedFeatureError(f"{type(tree).__name__} is not supported as a source of rows.")


def _drop(text: str, tokens: Sequence[Token], tree: exp.Drop) -> op.Operation:
    tables = tree.args.get("tables") or [tree.this]
    if len(tables) != 1:
        raise UnsupportedFeatureError("DROP of several tables at once is not supported.")
    exists, cascade = bool(tree.args.get("exists")), bool(tree.args.get("cascade"))
    if tree.args.get("kind") == "SCHEMA":
        return op.DropSchema(_schema_name(text, tokens), exists, cascade)
    return op.DropTable(table_name(text, tables[0]), exists)


#: Parts of INSERT in other dialects, by their names in the general parser.
_FOREIGN_TO_INSERT = ("overwrite", "ignore", "exists", "where", "using", "partition", "settings", "stored", "source")


def _insert(text: str, tree: exp.Insert) -> op.Insert:
    _refuse(tree, "INSERT", conflict="ON CONFLICT", returning="RETURNING")
    for part in _FOREIGN_TO_INSERT:
        if tree.args.get(part) or tree.this.args.get(part):
            raise SqlSyntaxError(f"INSERT has no {part.upper()} in DuckDB.")
    if tree.args.get("alternative"):
        raise UnsupportedFeatureError(f"INSERT OR {str(tree.args['alternative']).upper()} is not supported yet.")
    table = tree.this
    identifiers = table.expressions if isinstance(table, exp.Schema) else []
    columns = tuple(column.name for column in identifiers) if isinstance(table, exp.Schema) else None
    places = tuple(
        position(text, start) if (start := start_of(column)) is not None else (None, None) for column in identifiers
    )
    name = table_name(text, table)
    if tree.args.get("default"):
        return op.Insert(name, columns, None, column_positions=places)
    query = _query(tree.expression)
    if tree.args.get("with_"):
        if query.args.get("with_"):
            raise UnsupportedFeatureError("WITH before INSERT together with WITH after it is not supported.")
        query.set("with_", tree.args["with_"])
    return op.Insert(name, columns, query, bool(tree.args.get("by_name")), places)

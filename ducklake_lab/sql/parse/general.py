"""Operations of the general parser's trees: CREATE TABLE and SCHEMA, DROP, and changes of rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import TokenType, exp
from sqlglot.tokens import Token

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.quoting import schema_path
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.notes import start_of
from ducklake_lab.sql.parse.alter import column_definition, partition_keys
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.references import matching, word
from ducklake_lab.sql.parse.tokens import Cursor, position, syntax_error


def operation_of(text: str, tokens: Sequence[Token], tree: exp.Expr, binder: Binder) -> op.Operation | None:
    """Returns the operation of a tree; None for a query and for other statements.

    Args:
        binder: binds the parameters of a query's text.
    """
    if isinstance(tree, exp.Create):
        return _create(text, tokens, tree, binder)
    if isinstance(tree, exp.Drop):
        return _drop(text, tokens, tree)
    if isinstance(tree, exp.Insert):
        return _insert(text, tree)
    if isinstance(tree, exp.Update):
        _refuse(tree, "UPDATE", returning="RETURNING", order="ORDER BY", limit="LIMIT")
        return op.Update(_table_name(text, tree.this), tree)
    if isinstance(tree, exp.Delete):
        _refuse(tree, "DELETE", returning="RETURNING", order="ORDER BY", limit="LIMIT")
        if tree.args.get("tables"):
            raise syntax_error(text, tokens[0], "DELETE FROM one table")
        return op.Delete(_table_name(text, tree.this), tree)
    if isinstance(tree, exp.TruncateTable):
        if len(tree.expressions) != 1:
            raise UnsupportedFeatureError("TRUNCATE of several tables at once is not supported.")
        return op.Truncate(_table_name(text, tree.expressions[0]))
    return None


def select_from_values(values: exp.Values) -> exp.Select:
    """Rewrites VALUES (…) as SELECT * FROM (VALUES (…)), with DuckDB's column names `col0`, `col1`, …"""
    return exp.select(exp.Star()).from_(values)


def _table_name(text: str, table: exp.Expr | None) -> op.TableName:
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
    name = _table_name(text, tree.this)
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
                raise UnsupportedFeatureError(
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
    """Returns the query of CREATE TABLE … AS.

    Raises:
        SqlSyntaxError: AS is missing, as in `CREATE TABLE t (from INTEGER)`.
    """
    words, first = [word(token) for token in tokens], 0
    while first < len(words) and words[first] != "AS":
        first = (matching(tokens, first) if tokens[first].token_type is TokenType.L_PAREN else first) + 1
    if first >= len(words):
        raise syntax_error(text, tokens[-1], "AS")
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
        return select_from_values(tree)
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
    return op.DropTable(_table_name(text, tables[0]), exists)


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
    name = _table_name(text, table)
    if tree.args.get("default"):
        return op.Insert(name, columns, None, column_positions=places)
    query = _query(tree.expression)
    if tree.args.get("with_"):
        if query.args.get("with_"):
            raise UnsupportedFeatureError("WITH before INSERT together with WITH after it is not supported.")
        query.set("with_", tree.args["with_"])
    return op.Insert(name, columns, query, bool(tree.args.get("by_name")), places)

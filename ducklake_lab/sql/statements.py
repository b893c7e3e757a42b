"""DuckLake's own statements, read from tokens: ATTACH, USE, transactions, CALL, SHOW, ALTER TABLE.

They come before the general parser, which reads several of them as something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.constants import constant
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.placeholders import Binder
from ducklake_lab.sql.tokens import Cursor, from_parse_error, position, syntax_error
from ducklake_lab.sql.types import from_sqlglot

_DIALECT = DuckLakeSql()
_Tree = TypeVar("_Tree", bound=exp.Expr)

_TRANSFORMS = ("year", "month", "day", "hour")

#: Transaction options that change nothing here.
_TRANSACTION_WORDS = ("TRANSACTION", "WORK")


def parse_tokens(kind: type[_Tree], tokens: Sequence[Token], text: str, binder: Binder) -> _Tree:
    """The syntax tree of some tokens of `text`, parameters bound.

    Raises:
        SqlSyntaxError: they are not a `kind`.
    """
    if not tokens:
        raise syntax_error(text, None)
    try:
        trees = _DIALECT.parser().parse_into(kind, list(tokens), text)
    except ParseError as error:
        raise from_parse_error(text, tokens, error) from error
    if not trees or trees[0] is None:
        raise syntax_error(text, tokens[0])
    tree = binder.bind(trees[0])
    return tree  # type: ignore[return-value]


def own_statement(cursor: Cursor, binder: Binder) -> op.Operation | None:
    """The operation if this is one of DuckLake's own statements, else None (nothing is read then)."""
    first = cursor.word()
    reader = _READERS.get(first)
    if reader is not None:
        return reader(cursor, binder)
    if cursor.at("ALTER"):
        return _alter(cursor, binder)
    return None


def _attach(cursor: Cursor, binder: Binder) -> op.Attach:
    cursor.expect("ATTACH")
    replace = cursor.take("OR", "REPLACE")
    cursor.take("DATABASE")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    end = cursor.index
    while end < len(cursor.tokens) and cursor.tokens[end].text.upper() not in ("AS", "("):
        end += 1
    path_tokens = cursor.tokens[cursor.index : end]
    if not path_tokens:
        raise syntax_error(cursor.text, cursor.current, "the quoted path of a lake")
    path = parse_tokens(exp.Expr, path_tokens, cursor.text, binder)
    if not (isinstance(path, exp.Literal) and path.is_string) and not isinstance(path, exp.RawString):
        raise syntax_error(cursor.text, path_tokens[0], "the quoted path of a lake")
    cursor.index = end
    alias = cursor.name("the name of the lake") if cursor.take("AS") else None
    options: dict[str, object] = {}
    if cursor.at("("):
        for item in cursor.parenthesised():
            part = Cursor(cursor.text, item)
            name = part.name("an option").lower()
            part.take("=")
            left = part.rest()
            options[name] = _option(left, cursor.text, binder) if left else True
    cursor.finish()
    return op.Attach(path.name, alias, options, if_not_exists, replace)


def _option(tokens: Sequence[Token], text: str, binder: Binder) -> object:
    """An option's value; a bare word such as `true` or `sqlite` counts as text unless it is a boolean."""
    tree = parse_tokens(exp.Expr, tokens, text, binder)
    if isinstance(tree, exp.Column) and not tree.table:
        return tree.name
    if isinstance(tree, exp.Var):
        return tree.name
    return constant(tree)


def _detach(cursor: Cursor, binder: Binder) -> op.Detach:
    cursor.expect("DETACH")
    cursor.take("DATABASE")
    if_exists = cursor.take("IF", "EXISTS")
    alias = cursor.name("the name of a lake")
    cursor.finish()
    return op.Detach(alias, if_exists)


def _use(cursor: Cursor, binder: Binder) -> op.Use:
    cursor.expect("USE")
    first = cursor.current
    parts = cursor.names("the name of a lake or schema")
    if len(parts) > 2:
        raise syntax_error(cursor.text, first, "catalog or catalog.schema")
    cursor.finish()
    return op.Use(tuple(parts))


def _transaction(operation: op.Operation) -> Callable[[Cursor, Binder], op.Operation]:
    def read(cursor: Cursor, binder: Binder) -> op.Operation:
        cursor.index += 1
        for word in _TRANSACTION_WORDS:
            if cursor.take(word):
                break
        if isinstance(operation, op.Begin) and cursor.at("READ"):
            raise UnsupportedFeatureError("BEGIN TRANSACTION READ ONLY or READ WRITE is not supported yet.")
        cursor.finish()
        return operation

    return read


def _call(cursor: Cursor, binder: Binder) -> op.Call:
    cursor.expect("CALL")
    first = cursor.current
    tree = parse_tokens(exp.Table, cursor.rest(), cursor.text, binder)
    function = tree.this
    if not isinstance(function, exp.Anonymous):
        raise syntax_error(cursor.text, first, "a function call")
    line, column = position(cursor.text, first.start if first else 0)
    name = op.TableName(tree.catalog or None, tree.db or None, function.name, line, column)
    args, kwargs = call_arguments(function)
    return op.Call(name, tuple(args), kwargs)


def call_arguments(call: exp.Anonymous) -> tuple[list[object], dict[str, object]]:
    """The constant arguments of a call: positional ones, and the named ones by their lower-case name."""
    args: list[object] = []
    kwargs: dict[str, object] = {}
    for argument in call.expressions:
        if isinstance(argument, exp.Kwarg | exp.PropertyEQ):
            kwargs[argument.this.name.lower()] = constant(argument.expression)
        else:
            args.append(constant(argument))
    return args, kwargs


def _show(cursor: Cursor, binder: Binder) -> op.Operation:
    cursor.expect("SHOW")
    all_schemas = cursor.take("ALL")
    if cursor.take("TABLES"):
        source = tuple(cursor.names("a lake or schema")) if cursor.take("FROM") else None
        cursor.finish()
        return op.ShowTables(all_schemas, source)
    if all_schemas or cursor.word() in ("DATABASES", "SCHEMAS", "VARIABLES", "SETTINGS"):
        raise UnsupportedFeatureError(f"SHOW {'ALL ' if all_schemas else ''}{cursor.word()} is not supported yet.")
    table = cursor.table()
    cursor.finish()
    return op.Describe(table=table)


def _alter(cursor: Cursor, binder: Binder) -> op.Operation:
    cursor.expect("ALTER")
    if not cursor.take("TABLE"):
        raise UnsupportedFeatureError(f"ALTER {cursor.word()} is not supported yet.")
    if_exists = cursor.take("IF", "EXISTS")
    table = cursor.table()
    operation = _alter_table(cursor, binder, table, if_exists)
    cursor.finish()
    return operation


def _alter_table(cursor: Cursor, binder: Binder, table: op.TableName, if_exists: bool) -> op.Operation:
    if cursor.take("SET", "PARTITIONED BY"):
        return op.SetPartitionedBy(table, partition_keys(cursor))
    if cursor.take("RESET", "PARTITIONED BY"):
        return op.ResetPartitionedBy(table)
    if cursor.take("RENAME", "TO"):
        return op.RenameTable(table, cursor.name("the new name"), if_exists)
    if cursor.take("RENAME"):
        cursor.take("COLUMN")
        old = cursor.names("a column")
        if len(old) > 1:
            raise UnsupportedFeatureError("RENAME of a struct field is not supported yet.")
        cursor.expect("TO")
        return op.RenameColumn(table, old[0], cursor.name("the new name"), if_exists)
    if cursor.take("ADD"):
        if cursor.word() in ("CONSTRAINT", "PRIMARY KEY", "UNIQUE", "FOREIGN KEY", "CHECK"):
            raise UnsupportedFeatureError(f"ALTER TABLE ADD {cursor.word()} is not supported: lakes have no such keys.")
        cursor.take("COLUMN")
        if_not_exists = cursor.take("IF", "NOT", "EXISTS")
        if cursor.word(1) == ".":
            raise UnsupportedFeatureError("ADD COLUMN of a struct field is not supported yet.")
        definition = parse_tokens(exp.ColumnDef, cursor.rest(), cursor.text, binder)
        return op.AddColumn(table, column_definition(definition), if_exists, if_not_exists)
    if cursor.take("DROP"):
        cursor.take("COLUMN")
        if_column_exists = cursor.take("IF", "EXISTS")
        column = cursor.names("a column")
        if len(column) > 1:
            raise UnsupportedFeatureError("DROP COLUMN of a struct field is not supported yet.")
        if cursor.take("CASCADE"):
            raise UnsupportedFeatureError("DROP COLUMN … CASCADE is not supported yet.")
        return op.DropColumn(table, column[0], if_exists, if_column_exists)
    if cursor.take("ALTER"):
        cursor.take("COLUMN")
        cursor.names("a column")
        words = " ".join(word for word in (cursor.word(n) for n in range(3)) if word.replace(" ", "").isalpha())
        raise UnsupportedFeatureError(f"ALTER COLUMN {_first_words(words)} is not supported yet.")
    words = " ".join(word for word in (cursor.word(n) for n in range(3)) if word.replace(" ", "").isalpha())
    if not words:
        raise syntax_error(cursor.text, cursor.current)
    raise UnsupportedFeatureError(f"ALTER TABLE {words} is not supported yet.")


def _first_words(words: str) -> str:
    for known in ("SET DATA TYPE", "SET TYPE", "TYPE", "SET DEFAULT", "DROP DEFAULT", "SET NOT NULL", "DROP NOT NULL"):
        if words.startswith(known):
            return "SET TYPE" if known in ("TYPE", "SET DATA TYPE") else known
    return words


def partition_keys(cursor: Cursor) -> tuple[op.PartitionKey, ...]:
    """The keys of `(a, month(ts), bucket(8, x))`.

    Raises:
        UnsupportedFeatureError: a transform DuckLake does not have.
    """
    keys: list[op.PartitionKey] = []
    for item in cursor.parenthesised():
        part = Cursor(cursor.text, item)
        name = part.name("a column")
        if not part.at("("):
            part.finish()
            keys.append(op.PartitionKey(name))
            continue
        transform = name.lower()
        arguments = [Cursor(cursor.text, argument) for argument in part.parenthesised()]
        part.finish()
        if transform in _TRANSFORMS and len(arguments) == 1:
            keys.append(op.PartitionKey(arguments[0].name("a column"), transform))
        elif transform == "bucket" and len(arguments) == 2:
            buckets = arguments[0].number()
            if buckets < 1:
                raise syntax_error(cursor.text, item[0], "one bucket or more")
            keys.append(op.PartitionKey(arguments[1].name("a column"), f"bucket({buckets})"))
        elif transform == "identity" and len(arguments) == 1:
            keys.append(op.PartitionKey(arguments[0].name("a column")))
        else:
            raise UnsupportedFeatureError(
                f'Partition transform "{name}" is not supported; use a column, year, month, day, hour or bucket(n, x).'
            )
        for argument in arguments:
            argument.finish()
    if not keys:
        raise syntax_error(cursor.text, cursor.current, "a partition key")
    return tuple(keys)


def column_definition(definition: exp.ColumnDef) -> op.ColumnDef:
    """A parsed column of CREATE TABLE or ADD COLUMN.

    Raises:
        UnsupportedFeatureError: a constraint other than NOT NULL and DEFAULT.
    """
    kind = definition.args.get("kind")
    if not isinstance(kind, exp.DataType):
        raise UnsupportedFeatureError(f'Column "{definition.name}" needs a type.')
    nulls_allowed = True
    default: str | None = None
    default_type: Literal["literal", "expression"] = "literal"
    for constraint in definition.args.get("constraints") or []:
        rule = constraint.args.get("kind")
        if isinstance(rule, exp.NotNullColumnConstraint):
            nulls_allowed = bool(rule.args.get("allow_null"))
        elif isinstance(rule, exp.DefaultColumnConstraint):
            default, default_type = default_text(rule.this)
        else:
            raise UnsupportedFeatureError(
                f'{_CONSTRAINTS.get(type(rule), "This constraint")} on column "{definition.name}" is not supported: '
                "lakes have NOT NULL and DEFAULT only."
            )
    return op.ColumnDef(definition.name, from_sqlglot(kind), nulls_allowed, default, default_type)


_CONSTRAINTS: dict[type, str] = {
    exp.PrimaryKeyColumnConstraint: "PRIMARY KEY",
    exp.UniqueColumnConstraint: "UNIQUE",
    exp.CheckColumnConstraint: "CHECK",
    exp.Reference: "REFERENCES",
    exp.GeneratedAsIdentityColumnConstraint: "GENERATED ALWAYS AS",
    exp.ComputedColumnConstraint: "GENERATED ALWAYS AS",
    exp.CollateColumnConstraint: "COLLATE",
}


def default_text(tree: exp.Expr) -> tuple[str | None, Literal["literal", "expression"]]:
    """A default as the catalog keeps it: a literal's bare text, or the SQL of an expression."""
    bare = tree.unnest()
    if isinstance(bare, exp.Null):
        return None, "literal"
    if isinstance(bare, exp.Literal):
        return bare.name, "literal"
    if isinstance(bare, exp.Neg) and isinstance(bare.this, exp.Literal):
        return f"-{bare.this.name}", "literal"
    if isinstance(bare, exp.Boolean):
        return ("true" if bare.this else "false"), "literal"
    if isinstance(bare, exp.Cast) and isinstance(bare.this, exp.Literal) and not isinstance(bare, exp.TryCast):
        return bare.this.name, "literal"
    return tree.sql(dialect=DuckLakeSql), "expression"


_READERS: dict[str, Callable[[Cursor, Binder], op.Operation]] = {
    "ATTACH": _attach,
    "DETACH": _detach,
    "USE": _use,
    "BEGIN": _transaction(op.Begin()),
    "START": _transaction(op.Begin()),
    "COMMIT": _transaction(op.Commit()),
    "END": _transaction(op.Commit()),
    "ROLLBACK": _transaction(op.Rollback()),
    "ABORT": _transaction(op.Rollback()),
    "CALL": _call,
    "SHOW": _show,
}

"""Parses ALTER TABLE, and its common parts with CREATE TABLE: columns, defaults, partition keys."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from ducklake_lab.errors import BindError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.transforms import TRANSFORMS, Bucket
from ducklake_lab.sql import operations as op
from ducklake_lab.sql.dialect import DuckLakeSql
from ducklake_lab.sql.parse.constants import constant
from ducklake_lab.sql.parse.expectations import drop_expectation, expect
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.statements import data_type, parse_tokens
from ducklake_lab.sql.parse.tokens import Cursor, as_identifier, syntax_error
from ducklake_lab.sql.types import from_sqlglot


def alter_statement(cursor: Cursor, binder: Binder) -> op.Operation | None:
    """Parses ALTER TABLE; returns None for another statement and reads nothing then."""
    if not cursor.take("ALTER", "TABLE"):
        return None
    if_exists = cursor.take("IF", "EXISTS")
    table = cursor.table()
    operation = _alteration(cursor, binder, table, if_exists)
    cursor.finish()
    return operation


def _alteration(cursor: Cursor, binder: Binder, table: op.TableName, if_exists: bool) -> op.Operation:
    if cursor.take("SET", "PARTITIONED BY"):
        return op.SetPartitionedBy(table, partition_keys(cursor))
    if cursor.take("RESET", "PARTITIONED BY"):
        return op.ResetPartitionedBy(table)
    if cursor.take("SET", "SORTED", "BY"):
        return op.SetSortedBy(table, _sort_keys(cursor, binder))
    if cursor.take("RESET", "SORTED", "BY"):
        return op.SetSortedBy(table, ())
    if cursor.at("SET", "("):
        return op.SetOptions(table, _options(cursor, binder), if_exists)
    if cursor.at("RESET", "("):
        return op.ResetOptions(table, _option_names(cursor), if_exists)
    if cursor.take("RENAME", "TO"):
        return op.RenameTable(table, cursor.name("the new name"), if_exists)
    if cursor.take("RENAME"):
        cursor.take("COLUMN")
        *parents, old = cursor.names("a column")
        cursor.expect("TO")
        return op.RenameColumn(table, old, cursor.name("the new name"), if_exists, tuple(parents))
    if cursor.take("ADD"):
        return _add(cursor, binder, table, if_exists)
    if cursor.take("EXPECT"):
        return expect(cursor, binder, table, if_exists)
    if cursor.at("DROP", "EXPECTATION") and len(cursor.tokens) > cursor.index + 2:
        cursor.index += 2
        return drop_expectation(cursor, table, if_exists)
    if cursor.take("DROP"):
        cursor.take("COLUMN")
        if_column_exists = cursor.take("IF", "EXISTS")
        *parents, column = cursor.names("a column")
        cascade = cursor.take("CASCADE")
        if not cascade:
            cursor.take("RESTRICT")
        return op.DropColumn(table, column, if_exists, if_column_exists, tuple(parents), cascade)
    if cursor.take("ALTER"):
        return _alter_column(cursor, binder, table, if_exists)
    words = " ".join(word for word in (cursor.word(n) for n in range(3)) if word.replace(" ", "").isalpha())
    if not words:
        raise syntax_error(cursor.text, cursor.current)
    raise UnsupportedFeatureError(f"ALTER TABLE {words} is not supported yet.")


def _add(cursor: Cursor, binder: Binder, table: op.TableName, if_exists: bool) -> op.AddColumn:
    if cursor.word() in ("CONSTRAINT", "PRIMARY KEY", "UNIQUE", "FOREIGN KEY", "CHECK"):
        raise UnsupportedFeatureError(f"ALTER TABLE ADD {cursor.word()} is not supported: lakes have no such keys.")
    cursor.take("COLUMN")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    parents: list[str] = []
    while cursor.word(1) == ".":
        parents.append(cursor.name("a column"))
        cursor.expect(".")
    tokens = list(cursor.rest())
    if parents and tokens:
        tokens[0] = as_identifier(tokens[0])  # a field may have any keyword as its name
    definition = parse_tokens(exp.ColumnDef, tokens, cursor.text, binder)
    return op.AddColumn(table, column_definition(definition), if_exists, if_not_exists, tuple(parents))


def _alter_column(cursor: Cursor, binder: Binder, table: op.TableName, if_exists: bool) -> op.Operation:
    cursor.take("COLUMN")
    first = cursor.current
    path = cursor.names("a column")
    if len(path) > 1:
        raise UnsupportedFeatureError(
            "ALTER COLUMN of a struct field is not supported; change the type of the whole column."
        )
    if cursor.take("SET", "DEFAULT"):
        default, kind = default_text(parse_tokens(exp.Expr, cursor.rest(), cursor.text, binder))
        return op.SetDefault(table, path[0], default, kind, if_exists)
    if cursor.take("DROP", "DEFAULT"):
        return op.SetDefault(table, path[0], None, "literal", if_exists)
    if cursor.take("SET", "NOT", "NULL") or cursor.take("SET", "NOT NULL"):
        return op.SetNotNull(table, path[0], True, if_exists)
    if cursor.take("DROP", "NOT", "NULL") or cursor.take("DROP", "NOT NULL"):
        return op.SetNotNull(table, path[0], False, if_exists)
    if cursor.take("SET", "DATA", "TYPE") or cursor.take("SET", "TYPE") or cursor.take("TYPE"):
        rest = list(cursor.rest())
        using = next((i for i, token in enumerate(rest) if token.text.upper() == "USING"), None)
        if using is not None:
            raise UnsupportedFeatureError(
                "ALTER COLUMN … USING an expression is not supported; add a column and UPDATE."
            )
        if any(token.token_type is TokenType.COLLATE for token in rest):
            raise UnsupportedFeatureError(f'COLLATE on column "{path[0]}" is not supported: {_RULES}')
        if not rest:
            raise syntax_error(cursor.text, None, "a type")
        return op.SetColumnType(table, path[0], data_type(rest, cursor.text, binder), if_exists)
    raise syntax_error(cursor.text, cursor.current or first, "SET DEFAULT, SET NOT NULL, SET DATA TYPE or DROP")


def _options(cursor: Cursor, binder: Binder) -> dict[str, object]:
    """Returns the values of `SET (name = value, …)` by name."""
    cursor.expect("SET")
    values: dict[str, object] = {}
    for item in _listed(cursor, "an option and its value"):
        part = Cursor(cursor.text, item)
        name = _option_name(part, values)
        part.expect("=")
        value = part.rest()
        if not value:
            raise syntax_error(cursor.text, cursor.current, "a value")
        values[name] = constant(parse_tokens(exp.Expr, value, cursor.text, binder))
    return values


def _option_names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("RESET")
    names: dict[str, None] = {}
    for item in _listed(cursor, "an option"):
        part = Cursor(cursor.text, item)
        names[_option_name(part, names)] = None
        part.finish()
    return tuple(names)


def _listed(cursor: Cursor, expected: str) -> list[list[Token]]:
    items = cursor.parenthesised()
    if not items:
        raise syntax_error(cursor.text, cursor.current, expected)
    return items


def _option_name(part: Cursor, before: Collection[str]) -> str:
    token = part.current
    quoted = token is not None and token.token_type == TokenType.STRING
    name = (part.string() if quoted else part.name("an option")).lower()
    if name in before:
        raise BindError(f"The option {name} is given twice.")
    return name


def _sort_keys(cursor: Cursor, binder: Binder) -> tuple[op.SortKey, ...]:
    """Returns the keys of `(a, lower(b) DESC NULLS FIRST)`; keeps their text as written."""
    keys: list[op.SortKey] = []
    for item in cursor.parenthesised():
        words = [token.text.upper() for token in item]
        null_order: Literal["NULLS FIRST", "NULLS LAST"] = "NULLS LAST"
        if words[-2:-1] == ["NULLS"] and words[-1] in ("FIRST", "LAST"):
            null_order = "NULLS FIRST" if words[-1] == "FIRST" else "NULLS LAST"
            item, words = item[:-2], words[:-2]
        elif words[-1:] and words[-1] in ("NULLS FIRST", "NULLS LAST"):
            null_order = "NULLS FIRST" if words[-1] == "NULLS FIRST" else "NULLS LAST"
            item, words = item[:-1], words[:-1]
        direction: Literal["ASC", "DESC"] = "ASC"
        if words[-1:] in (["ASC"], ["DESC"]):
            direction = "DESC" if words[-1] == "DESC" else "ASC"
            item = item[:-1]
        before = binder.bound
        tree = parse_tokens(exp.Expr, item, cursor.text, binder)
        columns = tuple(column.name for column in tree.find_all(exp.Column))
        if any(column.table for column in tree.find_all(exp.Column)):
            raise BindError("Sort keys name columns of the table without qualifiers.")
        text = cursor.text[item[0].start : item[-1].end + 1]
        if binder.bound > before:
            text = tree.sql(dialect=DuckLakeSql)
        keys.append(op.SortKey(text, columns, direction, null_order))
    if not keys:
        raise syntax_error(cursor.text, cursor.current, "a sort key")
    return tuple(keys)


def partition_keys(cursor: Cursor) -> tuple[op.PartitionKey, ...]:
    """Returns the keys of `(a, month(ts), bucket(8, x))`.

    Raises:
        UnsupportedFeatureError: a transform does not exist in DuckLake.
    """
    keys: list[op.PartitionKey] = []
    for item in cursor.parenthesised():
        part = Cursor(cursor.text, item)
        name = part.name("a column")
        if not part.at("("):
            part.finish()
            keys.append(op.PartitionKey(name))
            continue
        transform = TRANSFORMS.get(name.lower())
        arguments = [Cursor(cursor.text, argument) for argument in part.parenthesised()]
        part.finish()
        if transform is None:
            transforms = ", ".join(kind.shape() for kind in TRANSFORMS.values() if kind.since is None)
            raise UnsupportedFeatureError(
                f'Partition transform "{name}" is not supported; use a column or {transforms}.'
            )
        if len(arguments) != transform.arguments:
            raise BindError(
                f"{transform.name} with {len(arguments)} arguments is no partition key. Expected {transform.shape()}."
            )
        text = transform.name
        if transform is Bucket:
            buckets = arguments[0].number()
            if buckets < 1:
                raise syntax_error(cursor.text, item[0], "one bucket or more")
            if buckets > Bucket.most:
                raise BindError(f"bucket({buckets}, …) has too many buckets; the most are {Bucket.most}.")
            text = str(Bucket(buckets))
        keys.append(op.PartitionKey(arguments[-1].name("a column"), text))
        for argument in arguments:
            argument.finish()
    if not keys:
        raise syntax_error(cursor.text, cursor.current, "a partition key")
    return tuple(keys)


def column_definition(definition: exp.ColumnDef) -> op.ColumnDef:
    """Returns a parsed column of CREATE TABLE or ADD COLUMN.

    Raises:
        UnsupportedFeatureError: a constraint other than NOT NULL and DEFAULT.
    """
    kind = definition.args.get("kind")
    if not definition.name:
        raise SqlSyntaxError("The name of a column is empty; give it one.")
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
            shown = _CONSTRAINTS.get(type(rule), "This constraint")
            raise UnsupportedFeatureError(f'{shown} on column "{definition.name}" is not supported: {_RULES}')
    if not isinstance(kind, exp.DataType):
        raise UnsupportedFeatureError(f'Column "{definition.name}" needs a type.')
    return op.ColumnDef(definition.name, from_sqlglot(kind), nulls_allowed, default, default_type)


_RULES = "lakes have NOT NULL and DEFAULT only."
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
    """Returns a default in the catalog's form: a constant's bare text, or the SQL of an expression.

    Casts are expressions, including TRUE and DATE '…', as in the reference.
    """
    bare = tree.unnest()
    if isinstance(bare, exp.Null):
        return None, "literal"
    sign = "-" if isinstance(bare, exp.Neg) else ""
    number = bare.this if sign else bare
    if isinstance(number, exp.Literal) and not number.is_string:
        text = number.name.replace("_", "")
        return sign + (repr(float(text)) if "e" in text.casefold() else text), "literal"
    if isinstance(bare, exp.Literal):
        return bare.name, "literal"
    return tree.sql(dialect=DuckLakeSql), "expression"

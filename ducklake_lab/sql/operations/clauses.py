"""Parts of statements: names, columns, keys and queries, as written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp
from sqlglot.tokens import Token

from ducklake_lab.model.quoting import path_parts, path_title, schema_path
from ducklake_lab.model.types import DataType


@dataclass(frozen=True, slots=True)
class TableName:
    """A name as written: `name`, `schema.name` or `catalog.schema.name`.

    The first of two parts may also be a catalog, and the first of more parts a schema; the resolver decides.

    Attributes:
        schema: the schema's name; with more than three parts the path of a nested schema, see `schema_path`.
        line: 1-based line of its first character in the text, or None.
        column: 1-based column there, or None.
    """

    catalog: str | None
    schema: str | None
    name: str
    line: int | None = field(default=None, compare=False)
    column: int | None = field(default=None, compare=False)

    @classmethod
    def of(cls, parts: Sequence[str], line: int | None = None, column: int | None = None) -> TableName:
        """Returns the name with these parts."""
        schema = schema_path(parts[1:-1] if len(parts) > 2 else parts[:1]) if len(parts) > 1 else None
        return cls(parts[0] if len(parts) > 2 else None, schema, parts[-1], line, column)

    def __str__(self) -> str:
        schema = path_title(self.schema) if self.schema is not None else None
        return ".".join(part for part in (self.catalog, schema, self.name) if part is not None)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The parts before the last, innermost first."""
        schema = path_parts(self.schema) if self.schema else ()
        return (*reversed(schema), self.catalog) if self.catalog else tuple(reversed(schema))


@dataclass(frozen=True, slots=True)
class At:
    """A time-travel clause; exactly one field is set, to the DuckDB SQL of a constant expression."""

    version_sql: str | None = None
    timestamp_sql: str | None = None


@dataclass(frozen=True, slots=True)
class SqlConstant:
    """A constant argument that is no literal, e.g. `now() - INTERVAL '1' DAY`: its DuckDB SQL."""

    sql: str


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column of CREATE TABLE or ADD COLUMN.

    Attributes:
        default: the text of the default value, unquoted if `default_type` is `literal`; None means NULL.
    """

    name: str
    type: DataType
    nulls_allowed: bool = True
    default: str | None = None
    default_type: Literal["literal", "expression"] = "literal"


@dataclass(frozen=True, slots=True)
class Written:
    """A query, or an expression, as it is written.

    Attributes:
        text: the text around it; offsets in `tokens`, and in nodes of its tree, refer to this text.
        tokens: its tokens.
        values: (start, exclusive end, literal) of each placeholder.
    """

    text: str
    tokens: Sequence[Token]
    values: tuple[tuple[int, int, str], ...] = ()

    def part(self, start: int, end: int, replacements: Iterable[tuple[int, int, str]] = ()) -> str:
        """Returns the text between two offsets with literals for placeholders and further replacements.

        A replacement inside of an earlier one has no effect.
        """
        parts: list[str] = []
        for first, last, new in sorted((*self.values, *replacements), key=lambda item: (item[0], -item[1])):
            if start <= first and last <= end:
                parts += [self.text[start:first], new]
                start = last
        return "".join(parts) + self.text[start:end]

    def whole(self, replacements: Iterable[tuple[int, int, str]] = ()) -> str:
        """Returns the text of all tokens, as `part`."""
        return self.part(self.tokens[0].start, self.tokens[-1].end + 1, replacements)


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, WITH, VALUES, FROM, TABLE.

    Attributes:
        distinct_names: repeated output names get `_1`, `_2`, … as in a table created from the query.
        written: the text of the tree; None for a tree that was made.
    """

    tree: exp.Query
    distinct_names: bool = False
    written: Written | None = None


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """A partition key as written; `transforms.parse_transform` reads the text in `transform`."""

    column: str
    transform: str = "identity"


@dataclass(frozen=True, slots=True)
class SortKey:
    """A sort key as written.

    Attributes:
        columns: the columns that the key uses.
    """

    sql: str
    columns: tuple[str, ...]
    direction: Literal["ASC", "DESC"] = "ASC"
    null_order: Literal["NULLS FIRST", "NULLS LAST"] = "NULLS LAST"


@dataclass(frozen=True, slots=True)
class MacroParameter:
    """A macro's parameter; `default_sql` is a constant expression."""

    name: str
    type: DataType | None = None
    default_sql: str | None = None


@dataclass(frozen=True, slots=True)
class MacroOverload:
    """A parameter list of a macro, with the text of its expression or query."""

    parameters: tuple[MacroParameter, ...]
    sql: str

"""Statements on the session, its transactions and its lakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ducklake_lab.sql.operations.clauses import Query, TableName
from ducklake_lab.sql.operations.expectations import Check


@dataclass(frozen=True, slots=True)
class Begin:
    """BEGIN or START TRANSACTION."""


@dataclass(frozen=True, slots=True)
class Commit:
    """COMMIT or END."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """ROLLBACK or ABORT."""


@dataclass(frozen=True, slots=True)
class Attach:
    """ATTACH.

    Attributes:
        uri: the quoted path, e.g. `ducklake:metadata.ducklake`.
        alias: the name after AS, or None.
        options: option names in lower case; an option without a value is True.
    """

    uri: str
    alias: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateSecret:
    """CREATE SECRET of type `ducklake`, `postgres` or `mysql`.

    Attributes:
        name: None for the default secret of the type.
        options: option names in lower case; never show their values.
    """

    name: str | None
    kind: str
    options: Mapping[str, object] = field(repr=False)
    replace: bool = False
    if_not_exists: bool = False
    persistent: bool = False


@dataclass(frozen=True, slots=True)
class DropSecret:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Detach:
    alias: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """USE catalog, USE schema or USE catalog.schema; `parts` has one or two names."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """CALL lake.function(…); argument values are Python values or SqlConstant."""

    function: TableName
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """CHECKPOINT lake: runs all of its maintenance; None means the current lake."""

    lake: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """SHOW TABLES, and the other listings of entries.

    Attributes:
        kind: the entries; `all` lists the tables of all schemas, `places` the databases with their paths.
        source: the database or schema after FROM, whose tables are listed; None for the current schema.
    """

    kind: Literal["tables", "all", "databases", "schemas", "places"] = "tables"
    source: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE of a table or a query; exactly one field is set.

    Attributes:
        or_setting: the statement is SHOW, which shows a setting if no table has the name.
    """

    table: TableName | None = None
    query: Query | None = None
    or_setting: bool = False


@dataclass(frozen=True, slots=True)
class Prepare:
    """PREPARE name AS statement."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    """EXECUTE name(…); argument values are Python values or SqlConstant."""

    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deallocate:
    name: str


#: Statements on the session, its transactions and its lakes.
Command = (
    Begin
    | Commit
    | Rollback
    | Attach
    | CreateSecret
    | DropSecret
    | Detach
    | Use
    | Call
    | Checkpoint
    | Listing
    | Describe
    | Prepare
    | Execute
    | Deallocate
    | Check
)

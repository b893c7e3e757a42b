"""Table functions of a lake, and the resolution of calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from ducklake_lab.catalog.lake import Lake
from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.errors import EntryNotFoundError, TransactionError, UnsupportedFeatureError, UsageError, did_you_mean
from ducklake_lab.model.types import DataType
from ducklake_lab.session.names.attached_lakes import Lakes
from ducklake_lab.session.transactions.transactions import Transactions

#: Names and types of the result columns.
Columns = tuple[tuple[str, DataType], ...]
#: Effects: none, changes staged in the open transaction, or immediate deletion of files, which ROLLBACK cannot undo.
Effects = Literal["none", "staged", "immediate"]

BOOLEAN, BIGINT, UBIGINT = DataType("boolean"), DataType("int64"), DataType("uint64")
#: Time zone of named arguments without one: UTC, as in the reference, in any session time zone.
NAMED_ZONE = "UTC"
VARCHAR, BLOB, TIMESTAMPTZ = DataType("varchar"), DataType("blob"), DataType("timestamptz")


@dataclass(frozen=True, slots=True)
class Call:
    """A call with its constant arguments, without the argument that names the lake.

    Attributes:
        transactions: the transactions and lakes of the session.
        engine: returns the engine, and starts Spark if necessary.
        name: the short name of the function, in lower case.
        schema: the schema that qualifies the function (`lake.schema.f`), or "main".
        kwargs: named arguments; the names are in lower case.
    """

    transactions: Transactions
    engine: SparkEngine
    lake: Lake
    name: str
    schema: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def lakes(self) -> Lakes:
        return self.transactions.lakes

    def argument(self, position: int, name: str, default: object = None) -> Any:
        """Returns an argument given by position or by name; `default` if it is absent or NULL."""
        value = self.args[position] if position < len(self.args) else self.kwargs.get(name)
        return default if value is None else value

    def named(self, name: str, default: object = None) -> Any:
        """Returns a named argument; `default` if it is absent or NULL."""
        value = self.kwargs.get(name)
        return default if value is None else value


@dataclass(frozen=True, slots=True)
class Function:
    """A table function of a lake.

    Attributes:
        columns: the result columns, or a function of the call that computes them.
        evaluate: returns the rows, or a source that an engine reads.
        arguments: smallest and largest number of positional arguments, without the lake.
        named: names of its named arguments.
        effects: changes that the function makes. A function with effects runs once, as a statement of its own only
            (ADR 67). One with staged effects writes in `call.transactions.writing(call.lake)`.
    """

    name: str
    columns: Columns | Callable[[Call], Columns]
    evaluate: Callable[[Call], object]
    arguments: tuple[int, int] = (0, 0)
    named: tuple[str, ...] = ()
    effects: Effects = "none"

    def acts(self, call: Call) -> bool:
        """Returns whether a call has effects; a `dry_run` call has none."""
        return self.effects != "none" and call.named("dry_run") is not True

    def check(self, call: Call) -> None:
        """Raises UsageError for wrong arguments."""
        for name in call.kwargs:
            if name not in self.named:
                raise UsageError(f"{self.name} has no argument {name}.{did_you_mean(name, self.named)}")
        low, high = self.arguments
        if not low <= len(call.args) <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            raise UsageError(f"{self.name} takes {wanted} arguments; it was given {len(call.args)}.")


class Functions:
    """Finds and evaluates the table functions of the attached lakes."""

    def __init__(self, transactions: Transactions, engine: SparkEngine, functions: Mapping[str, Function]) -> None:
        self._transactions = transactions
        self._lakes = transactions.lakes
        self._engine = engine
        self._by_name = functions

    def knows(self, catalog: str | None, schema: str | None, name: str) -> bool:
        """Returns whether a name may be a function of a lake: `lake.f`, `ducklake_f`, or `f` in the current lake."""
        alias = catalog or schema
        if alias is not None:
            return self._lakes.find(alias) is not None
        return name.casefold().startswith("ducklake_") or self._of_current(name)

    @property
    def names(self) -> Collection[str]:
        """The names of the functions of a lake."""
        return self._by_name.keys()

    def _of_current(self, name: str) -> bool:
        return self._lakes.current is not None and name.casefold() in self._by_name

    def columns(
        self, catalog: str | None, schema: str | None, name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Columns | None:
        """Returns the columns of a function's result without running it; None if it is no function of a lake."""
        call = self._find(catalog, schema, name, args, kwargs)
        if call is None:
            return None
        return _columns(*call)

    def evaluate(
        self,
        catalog: str | None,
        schema: str | None,
        name: str,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        effects: Literal["run", "skip", "refuse"] = "refuse",
    ) -> Any:
        """Returns the rows as an Arrow table, or a source that an engine reads.

        Args:
            effects: `run` for a call that is a whole statement; `skip` returns no rows from a function with effects.

        Raises:
            EntryNotFoundError: the function, or its lake, does not exist.
            UsageError: its arguments are wrong, or it has effects and the statement reads a snapshot of the past.
            UnsupportedFeatureError: it has effects, and the call is part of another statement.
            TransactionError: its effects cannot be rolled back, and a transaction is open.
        """
        function_and_call = self._find(catalog, schema, name, args, kwargs)
        if function_and_call is None:
            if catalog or schema:
                self._lakes.get(catalog or schema)  # raises, as no lake has the name
            raise EntryNotFoundError(f"There is no table function {name}.{did_you_mean(name, self._by_name)}")
        function, call = function_and_call
        if not function.acts(call):
            return function.evaluate(call)
        if effects == "skip":
            return arrow_schema(_columns(function, call)).empty_table()
        if effects == "refuse":
            raise UnsupportedFeatureError(
                f"{function.name} changes the lake {call.lake.alias}: run it as a statement of its own, "
                f"CALL {call.lake.alias}.{function.name}(…), not within a query, a view or a macro, nor with WHERE or LIMIT."
            )
        self._transactions.check_present()
        if function.effects == "immediate" and self._lakes.in_transaction:
            raise TransactionError(
                f"{function.name} deletes files for good, so it runs in no transaction and no preview; COMMIT or "
                "ROLLBACK first. With dry_run => true it only lists them."
            )
        return function.evaluate(call)

    def acts(
        self, catalog: str | None, schema: str | None, name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> bool:
        """Returns whether a call has effects; False for an unknown function."""
        call = self._find(catalog, schema, name, args, kwargs)
        return call is not None and call[0].acts(call[1])

    def _find(
        self, catalog: str | None, schema: str | None, name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Function, Call] | None:
        short = name.casefold()
        given = {key.casefold(): value for key, value in kwargs.items()}
        alias = catalog or schema
        if alias is None and self._lakes.current is not None and self._of_current(name):
            lake, where, rest = self._lakes.current, "main", tuple(args)
        elif alias is None:
            short = short.removeprefix("ducklake_")
            if short == name.casefold() or short not in self._by_name:
                return None
            if not args or not isinstance(args[0], str):
                raise UsageError(f"The first argument of {name} is the name of a lake, e.g. {name}('lake').")
            lake, where, rest = self._lakes.get(args[0]), "main", tuple(args[1:])
        else:
            named = self._lakes.find(alias)
            if named is None:
                return None
            lake, where, rest = named, schema if catalog and schema else "main", tuple(args)
        function = self._by_name.get(short)
        if function is None:
            hint = did_you_mean(short, self._by_name)
            raise EntryNotFoundError(f"The lake {lake.alias} has no function {name}.{hint}")
        call = Call(self._transactions, self._engine, lake, short, where, rest, given)
        function.check(call)
        return function, call


def _columns(function: Function, call: Call) -> Columns:
    return function.columns(call) if callable(function.columns) else function.columns


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([data_type.field(name) for name, data_type in columns])


def rows_of(columns: Columns, rows: Iterable[Sequence[object]]) -> pa.Table:
    """Returns an Arrow table made from sequences of Python values."""
    names = [name for name, _ in columns]
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], arrow_schema(columns))

"""Binds names of tables, views and macros; views and macros are bound where they stand, and become parts of the text."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Literal

from sqlglot import exp

from ducklake_lab.duckdb.canonical import is_one
from ducklake_lab.errors import BindError, EntryNotFoundError, SqlSyntaxError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation
from ducklake_lab.model.quoting import path_parts, quote_identifier, schema_path
from ducklake_lab.sql.bind.arguments import has_qualified_names, note_names
from ducklake_lab.sql.bind.binding import Binding
from ducklake_lab.sql.bind.expansion import Allowance, choose, declared, macro_expression, macro_query, view_query
from ducklake_lab.sql.bind.frame import Frame
from ducklake_lab.sql.bind.item_names import name_columns, repeated
from ducklake_lab.sql.bind.printing import duckdb_sql
from ducklake_lab.sql.notes import Output, Outputs, last_of, notes, start_of
from ducklake_lab.sql.operations import At, TableName, Written
from ducklake_lab.sql.parse.tokens import split
from ducklake_lab.sql.plan import MACRO_PREFIX, SOURCE_PREFIX, Resolver, Source, StoredMacro, StoredView
from ducklake_lab.sql.scope import Ctes, Scope


class EntryBinder(Binding):
    """Binds names of tables, views and macros.

    Attributes:
        sources: the sources found so far.
        frame: the text around the current node.
        macros: the macros that the text calls: parameters and bodies, by name.
        definitions: the stored views and macros that were expanded, each with its AT clause.
        changed: the query that a statement that changes rows is bound as.
    """

    def __init__(
        self, resolver: Resolver, lake_schema: tuple[str, str] | None = None, written: Written | None = None
    ) -> None:
        self.resolver = resolver
        self.sources: list[Source] = []
        self.frame = Frame(written)
        self.macros: dict[str, str] = {}
        self.definitions: list[tuple[StoredView | StoredMacro, At | None]] = []
        self.changed: exp.Expr | None = None
        self._token = secrets.token_hex(4)
        # inside a view or macro: its schema, its snapshot, and the views and macros being expanded
        self._lake_schema = lake_schema
        self._at: At | None = None
        self.expanding: tuple[tuple[object, ...], ...] = ()
        # stored views and macros cannot read objects of this session
        self._is_own = lake_schema is None
        self._known_macros: dict[tuple[str, str] | None, Mapping[tuple[str, str], StoredMacro]] = {}
        self._allowance = Allowance(resolver.most_expansions)
        self._outermost = ""

    @property
    def is_in_macro(self) -> bool:
        """Whether names are looked up as in the text of a macro."""
        return bool(self.expanding) and self.expanding[-1][0] is StoredMacro

    # -- sources ---------------------------------------------------------------------------------

    def view_name(self) -> str:
        return f"{SOURCE_PREFIX}{self._token}_{len(self.sources) + 1}"

    def table(self, name: TableName, at: At | None) -> tuple[Source, tuple[Output, ...]] | StoredView:
        """Returns a lake table as a new source, or the view with that name.

        Raises:
            BindError: the table or view does not exist.
        """
        own = self._is_own and at is None
        handed_in = self.resolver.handed_in(name) if own else None
        if handed_in is not None:
            return self._source(handed_in, None)
        temporary = self.resolver.temporary_view(name) if self._is_own else None
        if temporary is not None and self._key(temporary) not in self.expanding:
            return temporary
        at = at or self._at
        missing: EntryNotFoundError | None = None
        for candidate in self._candidates(name):
            try:
                return self._source(candidate, at)
            except EntryNotFoundError as error:
                view = self.resolver.view(candidate, at)
                if view is not None:
                    return view
                missing = missing or error
        replacement = self.resolver.replacement(name) if own else None
        if replacement is not None:
            return self._source(replacement, None)
        raise BindError(_placed(str(missing), name) + self.hint(name), line=name.line, column=name.column) from missing

    def hint(self, name: TableName) -> str:
        """Returns a hint for the message of a missing table."""
        return self.resolver.hint(name) if self._is_own else ""

    def _source(self, name: TableName, at: At | None) -> tuple[Source, tuple[Output, ...]]:
        rows = self.resolver.table(name, at)
        source = Source(self.view_name(), "table", name, at, rows)
        if self._is_collated:
            source.share()  # statistics of files are in the order of bytes
        self.sources.append(source)
        return source, tuple(Output(column, kind) for column, kind in rows.columns)

    @cached_property
    def _is_collated(self) -> bool:
        """Whether texts compare by another order than the order of bytes."""
        return "default_collation" in dict(self.resolver.settings())

    def owns(self, name: TableName) -> bool:
        """Returns whether a name belongs to the session's own database; inside a view, its lake comes first."""
        inside = self._candidates(name)[:-1]
        return not any(self._exists(candidate) for candidate in inside) and self.resolver.owns(name)

    def _exists(self, name: TableName) -> bool:
        try:
            self.resolver.table(name, self._at)
        except EntryNotFoundError:
            return self.resolver.view(name, self._at) is not None
        return True

    def _candidates(self, name: TableName) -> list[TableName]:
        """Returns the possible meanings of a name; inside a view or macro, its own schema comes first."""
        if self._lake_schema is None:
            return [name]
        lake, schema = self._lake_schema
        if name.catalog is not None and name.catalog.casefold() == lake.casefold():
            return [name]
        if name.catalog is not None:
            nested = schema_path((name.catalog, *path_parts(name.schema or "main")))
            return [TableName(lake, nested, name.name, name.line, name.column), name]
        return [TableName(lake, name.schema or schema, name.name, name.line, name.column), name]

    # -- views and macros ------------------------------------------------------------------------

    def view(self, view: StoredView, at: At | None) -> tuple[exp.Expr, Outputs, str]:
        """Returns the bound query of a view, its columns under their names, and its text; "" if no text is certain."""
        with _supported("view", view.name):
            tree = view_query(view.sql)
        with self.inside(view, at), self._reading(view.sql) as frame:
            outputs = self.query(tree, None, {})
        columns = name_columns(outputs, list(view.columns), view.name)
        names = [*view.columns] or repeated(outputs)
        if not self.frame.certain:
            return tree, columns, ""
        text = frame.text()
        if text is None or not is_one("SELECT", f"({text})"):
            text = duckdb_sql(tree)
        if names and columns is not None:
            listed = ", ".join(quote_identifier(column.name) for column in columns)
            text = f"SELECT * FROM ({text}) AS v({listed})"
        return tree, columns, text

    @contextmanager
    def _reading(self, text: str) -> Iterator[Frame]:
        """Binds the nodes of a stored text in the block."""
        frame = Frame(Written(text, split(text)[0]) if self.frame.certain else None)
        before, self.frame = self.frame, frame
        try:
            yield frame
        finally:
            self.frame = before

    @staticmethod
    def _key(entry: StoredView | StoredMacro) -> tuple[object, ...]:
        return type(entry), getattr(entry, "temporary", False), entry.lake, entry.schema, entry.name

    @contextmanager
    def inside(self, entry: StoredView | StoredMacro, at: At | None = None) -> Iterator[None]:
        """Looks up names in the block as the text of a view or macro does, at a snapshot.

        Raises:
            BindError: the text is its own part.
            ExpansionError: the statement expands too many views and macros.
        """
        is_view = isinstance(entry, StoredView)
        kind, at = ("view", at or self._at) if is_view else ("macro", at)
        key, temporary = self._key(entry), is_view and getattr(entry, "temporary", False)
        title = entry.name if temporary else f"{entry.schema}.{entry.name}"
        if key in self.expanding:
            raise BindError(f"The {kind} {title} refers to itself; infinite recursion detected.")
        if self.expanding:
            self._allowance.expand(self._outermost)
        else:
            self._outermost = f"{kind} {title}"
        if entry.entry_id is not None and (entry, at) not in self.definitions:
            self.definitions.append((entry, at))
        before = self._lake_schema, self._at, self.expanding, self._is_own
        self._lake_schema = (entry.lake, entry.schema) if entry.lake is not None and entry.schema is not None else None
        self._at, self.expanding = at, (*self.expanding, key)
        self._is_own = self._is_own and temporary
        try:
            yield
        except BindError as error:
            # a position in the stored text means nothing to the query's author
            message = re.sub(r" \(line \d+, column \d+\)", "", str(error))
            inside = message if message.startswith("In the ") else f"In the {kind} {title}: {message}"
            raise type(error)(inside) from error
        finally:
            self._lake_schema, self._at, self.expanding, self._is_own = before

    def find_macro(self, name: TableName, kind: Literal["scalar", "table"]) -> StoredMacro | None:
        """Returns the macro that a call names."""
        if name.schema is not None:
            return self.resolver.macro(name, kind)
        lake_schemas = (self._lake_schema, None) if self._lake_schema is not None else (None,)
        for lake_schema in lake_schemas:
            if lake_schema not in self._known_macros:
                self._known_macros[lake_schema] = self.resolver.macros(lake_schema)
            macro = self._known_macros[lake_schema].get((kind, name.name.casefold()))
            if macro is not None:
                return macro
        return None

    def scalar_macro(
        self,
        name: TableName,
        call: exp.Anonymous,
        scope: Scope,
        ctes: Ctes,
        aliases: Mapping[str, exp.Expr] | None,
        first: exp.Expr | None = None,
    ) -> exp.Expr | None:
        """Returns the expanded call of a scalar macro; None if it calls none.

        Args:
            first: the first part of its name, if it has several.
        """
        macro = self.find_macro(name, "scalar")
        if macro is None:
            return None
        impl, arguments = self.macro_arguments(macro, call, scope, ctes, aliases)
        with _supported("macro", macro.name):
            holder = exp.Paren(this=macro_expression(macro, impl, arguments, self._allowance))
        before = len(self.sources)
        with self.inside(macro), self._reading(impl.sql) as body:
            around, scope.frame = scope.frame, body
            try:
                self.children(holder, scope, {})
            finally:
                scope.frame = around
        notes(holder).set_type(notes(holder.this).type)
        start = start_of(call) if first is None else start_of(first)
        own = self._as_own_macro(macro, impl, arguments, holder.find(exp.Query, exp.Lambda) is not None, body.text())
        self.frame.replace(start, last_of(call), own)
        self.frame.called(start, self.sources[before:])
        return holder

    def _as_own_macro(
        self,
        macro: StoredMacro,
        impl: MacroImplementation,
        arguments: Mapping[str, exp.Expr],
        reads: bool,
        body: str | None,
        *,
        of_rows: bool = False,
    ) -> str:
        """Returns the name of a macro of the session's database with a body.

        Args:
            reads: the body has queries or lambdas, whose names capture those of arguments in DuckDB's macros.
        """
        captures = reads and any(value.find(exp.Identifier) is not None for value in arguments.values())
        parameters = ", ".join(map(declared, impl.parameters))
        definition = f"({parameters}) AS {'TABLE ' if of_rows else ''}{body}"
        known = next((name for name, one in self.macros.items() if one == definition), None)
        if known is not None:
            return quote_identifier(known)
        name = self.own_macro(macro, definition) if body is not None and not captures else None
        if name is None:
            self.frame.certain = False
            return ""
        return name

    def own_macro(self, macro: StoredMacro, definition: str) -> str | None:
        """Returns the name of a macro of the session's database; None if the definition is not one of a macro.

        Args:
            definition: parameters and bodies, as CREATE MACRO takes them.
        """
        if not is_one("CREATE", f"CREATE MACRO m{definition}"):
            return None
        name = f"{MACRO_PREFIX}{self._token}_{len(self.macros) + 1}_{macro.name}"
        self.macros[name] = definition
        return quote_identifier(name)

    def macro_arguments(
        self,
        macro: StoredMacro,
        call: exp.Anonymous,
        scope: Scope,
        ctes: Ctes,
        aliases: Mapping[str, exp.Expr] | None = None,
        *,
        of_rows: bool = False,
    ) -> tuple[MacroImplementation, dict[str, exp.Expr]]:
        """Returns the called overload and its arguments, bound in the scope of the call."""
        is_qualified = has_qualified_names(call, self.changed)
        for argument in list(call.expressions):
            named = isinstance(argument, exp.Kwarg | exp.PropertyEQ)
            value = argument.expression if named else argument
            written = value.copy()
            bound = self.expression(value, scope, ctes, aliases)
            note_names(bound, written, scope, aliases or (), is_qualified=is_qualified, of_rows=of_rows)
        impl, arguments = choose(macro, call)
        for value in arguments.values():
            notes(value).is_bound, notes(value).is_argument = notes(value).is_typed, True
        return impl, arguments

    def table_macro(
        self, macro: StoredMacro, call: exp.Anonymous, scope: Scope, ctes: Ctes
    ) -> tuple[exp.Expr, Outputs, str]:
        """Returns the bound query of a table macro's call, its columns, and the macro's name in the text."""
        impl, arguments = self.macro_arguments(macro, call, scope, ctes, of_rows=True)
        with _supported("macro", macro.name):
            tree = macro_query(macro, impl, arguments, self._allowance)
        before = len(self.sources)
        with self.inside(macro), self._reading(impl.sql) as body:
            outputs = self.query(tree, None, {})
        self.frame.called(start_of(call), self.sources[before:])
        return tree, outputs, self._as_own_macro(macro, impl, arguments, True, body.text(), of_rows=True)


@contextmanager
def _supported(kind: str, name: str) -> Iterator[None]:
    """Refuses a stored text in the block that only DuckDB reads."""
    try:
        yield
    except SqlSyntaxError:
        raise UnsupportedFeatureError(f"The text of the {kind} {name} is not supported on Spark.") from None


def _placed(message: str, name: TableName) -> str:
    """Returns an error's text with the position in its first sentence."""
    if name.line is None:
        return message
    spot = f" (line {name.line}, column {name.column})"
    head, separator, tail = message.partition(". ")
    if separator:
        return f"{head}{spot}. {tail}"
    return f"{message.removesuffix('.')}{spot}."

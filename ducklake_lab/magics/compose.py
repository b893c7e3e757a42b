"""Prepares the SQL of a cell: Jinja templates, saved queries, EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ducklake_lab.errors import SqlError, UsageError, did_you_mean
from ducklake_lab.model.quoting import quote_identifier

#: Blanks and comments, then WITH [RECURSIVE], at the beginning of a query.
_WITH = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(WITH)\b(\s+RECURSIVE\b)?", re.IGNORECASE | re.DOTALL)
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query from --save, and the saved queries that it needs."""

    sql: str
    compose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Composed:
    """SQL to run.

    Attributes:
        lines: number of lines before the cell's own; positions in errors count them.
    """

    sql: str
    lines: int = 0
    names: tuple[str, ...] = field(default=())

    def relocate(self, error: SqlError) -> None:
        """Converts the position in an error to a position in the cell."""
        if not self.lines or error.line is None:
            return
        text = str(error)
        if error.line <= self.lines:
            error.line = error.column = None
            position = f"(in {' or '.join(self.names)}, kept with --save)" if self.names else ""
        else:
            error.line -= self.lines
            position = f"(line {error.line}, column {error.column})"
        error.args = (_PLACE.sub(position, text).replace("  ", " "), *error.args[1:])


def explained(composed: Composed) -> Composed:
    """Puts EXPLAIN before the SQL, on a line of its own."""
    return Composed(f"EXPLAIN\n{composed.sql}", composed.lines + 1, composed.names)


def view_of(name: str, composed: Composed) -> Composed:
    """Returns the statement for a temporary view of a query; parentheses prevent a second statement."""
    sql = f"CREATE OR REPLACE TEMP VIEW {quote_identifier(name)} AS (\n{_body(composed.sql)}\n)"
    return Composed(sql, composed.lines + 1, composed.names)


def compose(sql: str, names: Sequence[str], saved: Mapping[str, SavedQuery]) -> Composed:
    """Adds saved queries, and those that they need, to a query as WITH clauses.

    Raises:
        UsageError: no query is saved under a name.
    """
    order: dict[str, SavedQuery] = {}
    for name in names:
        _collect(name, saved, order)
    if not order:
        return Composed(sql)
    recursive = any((clause := _WITH.match(query.sql)) and clause[2] for query in order.values())
    clauses = ",\n".join(f"{quote_identifier(name)} AS (\n{_body(query.sql)}\n)" for name, query in order.items())
    own = _WITH.match(sql)
    if own is not None:
        recursive = recursive or own[2] is not None
        # blanks in place of the words keep the columns of the rest
        blanks = " " * (own.end() - own.start(1))
        sql = sql[: own.start(1)] + blanks + sql[own.end() :]
        clauses += ","
    head = f"WITH {'RECURSIVE ' if recursive else ''}{clauses}\n"
    return Composed(head + sql, head.count("\n"), tuple(order))


def _collect(name: str, saved: Mapping[str, SavedQuery], order: dict[str, SavedQuery]) -> None:
    if name in order:
        return
    if name not in saved:
        hint = did_you_mean(name, saved) or " Save one with %%ducklake --save NAME."
        raise UsageError(f'No query was saved as "{name}".{hint}')
    for needed in saved[name].compose:
        _collect(needed, saved, order)
    order[name] = saved[name]


def _body(sql: str) -> str:
    return sql.strip().rstrip(";").rstrip()


def fill_template(sql: str, variables: Mapping[str, object]) -> str:
    """Fills `{{ name }}` in a Jinja template with text; a missing name is an error, never an empty text.

    Raises:
        UsageError: a name is undefined, or the template is wrong.
    """
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
    try:
        return environment.from_string(sql).render(_Looked(variables))
    except jinja2.UndefinedError as error:
        name = re.search(r"'([^']+)' is undefined", str(error))
        hint = did_you_mean(name[1], variables) if name else ""
        raise UsageError(f"Jinja: {error}.{hint}") from None
    except jinja2.TemplateSyntaxError as error:
        raise UsageError(f"Jinja: {error.message} (line {error.lineno}).") from None


def names_of_template(sql: str) -> frozenset[str]:
    """Returns the variables that a Jinja template reads; none for a wrong template."""
    import jinja2
    from jinja2.meta import find_undeclared_variables

    try:
        return frozenset(find_undeclared_variables(jinja2.Environment(autoescape=False).parse(sql)))
    except jinja2.TemplateError:
        return frozenset()


class _Looked(dict[str, object]):
    """All variables as a dict, which Jinja requires."""

    def __init__(self, variables: Mapping[str, object]) -> None:
        super().__init__({name: variables[name] for name in variables})

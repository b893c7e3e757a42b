"""Expands views and macros in queries, before the translation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.tokens import Token

from ducklake_lab.duckdb.canonical import overload
from ducklake_lab.errors import BindError, ExpansionError, UnsupportedFeatureError
from ducklake_lab.model.entries import MacroImplementation, MacroParameter
from ducklake_lab.model.quoting import quote_identifier
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.bind import pivots
from ducklake_lab.sql.bind.lambdas import bare
from ducklake_lab.sql.dialect import TAKE_LAMBDAS, DuckLakeSql
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.notes import pass_on
from ducklake_lab.sql.operations import Query
from ducklake_lab.sql.parse.placeholders import Binder
from ducklake_lab.sql.parse.row_columns import columns_in
from ducklake_lab.sql.parse.statements import data_type, parse_query, parse_tokens
from ducklake_lab.sql.parse.tokens import split
from ducklake_lab.sql.plan import MOST_EXPANSIONS, StoredMacro
from ducklake_lab.sql.scope import Scope, resolve
from ducklake_lab.sql.types import to_sqlglot

#: Most nested macro calls in one expression; deeper ones are treated as endless.
_DEEPEST = 1000
#: Most argument nodes that the macros of one statement may repeat.
_MOST_REPEATED = 100_000


class Allowance:
    """Limits the expansion of views and macros in one statement, because each level may double it.

    Args:
        expansions: most nested views and macros.
    """

    def __init__(self, expansions: int = MOST_EXPANSIONS) -> None:
        self._expansions = self._most = expansions
        self._repeated = _MOST_REPEATED

    def expand(self, title: str) -> None:
        """Counts a nested view or macro; `title` is the one that the statement names.

        Raises:
            ExpansionError: the limit is exceeded.
        """
        self._expansions -= 1
        if self._expansions < 0:
            raise ExpansionError(
                f"The {title} stands for more than {self._most:,} views and macros within each other; "
                "make tables of some of them."
            )

    def repeat(self, title: str, nodes: int) -> None:
        """Counts argument nodes that a macro repeats.

        Raises:
            ExpansionError: the limit is exceeded.
        """
        self._repeated -= nodes
        if self._repeated < 0:
            raise ExpansionError(f"The macro {title} repeats its arguments too often; the expression would not end.")


def normalised(tree: exp.Expr) -> exp.Expr:
    """Returns a copy of a parsed query; each VALUES that is a whole query becomes a SELECT from it."""
    copy = tree.copy()
    for values in list(copy.find_all(exp.Values)):
        if not isinstance(values.parent, exp.From | exp.Join):
            select = exp.select(exp.Star()).from_(values.copy())
            alias = values.args.get("alias")
            around = values.parent
            if isinstance(around, exp.Table):
                # the first item of a join in parentheses
                parts = {part: around.args.get(part) for part in ("alias", "joins")}
                around.replace(exp.Subquery(this=select, **parts))
            elif isinstance(around, exp.Subquery) or alias is None:
                values.replace(select)
    return copy


def dotted_column(parts: Sequence[exp.Identifier], scope: Scope) -> exp.Expr | None:
    """Resolves a dotted name as `resolve`; returns None if only a lambda parameter has that name.

    Raises:
        BindError: nothing has that name, or several columns have it.
    """
    try:
        return resolve(parts, scope)
    except BindError:
        if not _is_parameter(parts[0]):
            raise
        return None


def _is_parameter(name: exp.Identifier) -> bool:
    """Returns whether a bare name is a parameter of an enclosing lambda."""
    around = name.find_ancestor(exp.Lambda) if isinstance(name.parent, exp.Dot) else None
    while around is not None:
        if any(name.name.casefold() == parameter.name.casefold() for parameter in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def rows_as_list(call: exp.Expr) -> exp.Expr | None:
    """Returns the unnest of a list that equals a call with several rows; None for other expressions."""
    if not isinstance(call, exp.Anonymous) or len(call.expressions) != 2:
        return None
    first, second = call.expressions
    name = call.name.casefold()
    if name == "regexp_split_to_table":
        rows = exp.Anonymous(this="string_split_regex", expressions=[first, second])
    elif name == "generate_subscripts" and isinstance(second, exp.Literal) and second.name == "1":
        length = exp.Anonymous(this="len", expressions=[first])
        rows = exp.Anonymous(this="generate_series", expressions=[exp.Literal.number(1), length])
    else:
        return None
    return exp.Anonymous(this="unnest", expressions=[rows])


def _tokens(sql: str) -> Sequence[Token]:
    """Returns the tokens of a stored text, which is one query or expression."""
    statements = split(sql)
    if len(statements) != 1:
        raise UnsupportedFeatureError("Views and macros hold one query or expression; the catalog has something else.")
    return statements[0]


def _with_lambdas(tree: exp.Expr) -> exp.Expr:
    """Restores arrow lambdas; DuckDB prints them in parentheses, like the JSON operator."""
    for call in tree.find_all(exp.Anonymous):
        if call.name.casefold() not in TAKE_LAMBDAS:
            continue
        owner = call.parent.this if isinstance(call.parent, exp.Dot) and call.arg_key == "expression" else None
        is_method = owner is not None and owner.name.casefold() not in ("main", "system")  # `l.list_filter(q -> …)`
        for argument in call.expressions[0 if is_method else 1 :]:
            arrow = argument.unnest()
            if not isinstance(arrow, exp.JSONExtract):
                continue
            subject = arrow.this.unnest()
            row = subject.expression if isinstance(subject, exp.Dot) else subject
            several = isinstance(row, exp.Anonymous) and row.name.casefold() == "row"
            columns = row.expressions if several else [subject]
            if all(isinstance(column, exp.Column) and not column.table for column in columns):
                names = [column.name for column in columns]
                parameters = [exp.to_identifier(name) for name in names]
                argument.replace(exp.Lambda(this=bare(arrow.expression.copy(), *names), expressions=parameters))
    return tree


def stored_query(sql: str) -> exp.Expr:
    """Parses a stored query."""
    tree = _with_lambdas(normalised(parse_query(_tokens(sql), sql, Binder(None))))
    for item in list(tree.find_all(exp.Ordered)):
        if isinstance(item.this, exp.Columns) or item.this.sql().upper() == "COLUMNS(*)":
            item.set("this", exp.Var(this="ALL"))  # DuckDB prints ORDER BY ALL in this form
    return tree


def view_query(sql: str) -> exp.Expr:
    """The tree of a view kept in the catalog.

    Raises:
        UnsupportedFeatureError: it holds a PIVOT that is not written out.
    """
    return pivots.stored(stored_query(sql))


def stored_expression(sql: str) -> exp.Expr:
    """Parses a stored expression; its parameters become columns."""
    holder = _with_lambdas(exp.Paren(this=parse_tokens(exp.Expr, _tokens(sql), sql, Binder(None))))
    tree: exp.Expr = holder.this
    return tree.pop()


def columns_of(sql: str) -> list[str]:
    """Returns the columns that a stored expression names."""
    return [name.name for name, _ in columns_in(stored_expression(sql))]


def renamed(sql: str, names: Mapping[str, str]) -> str:
    """Returns a stored expression with columns renamed at once.

    Args:
        names: new names by the folded ones.

    Raises:
        BindError: a lambda around a column has a parameter of its new name.
    """
    tree = stored_expression(sql)
    for name, parameters in list(columns_in(tree)):
        new = names.get(name.name.casefold())
        if new is None:
            continue
        if new.casefold() in parameters:
            raise BindError(f"{new} is a parameter in {sql}, which names {name.name}; choose another name.")
        name.set("this", new)
        name.set("quoted", True)
    return str(tree.sql(dialect=DuckLakeSql, normalize_functions=False))


def without_macros(sql: str, macros: Mapping[tuple[str, str], StoredMacro]) -> str:
    """Returns a stored expression with its scalar macros expanded.

    Args:
        macros: macros by kind and folded name.

    Raises:
        BindError: a macro gets wrong arguments, or calls itself.
    """
    holder = exp.Paren(this=stored_expression(sql))
    allowance = Allowance()
    for _ in range(_DEEPEST):
        calls = [call for call in holder.find_all(exp.Anonymous) if ("scalar", call.name.casefold()) in macros]
        if not calls:
            return str(holder.this.sql(dialect=DuckLakeSql, normalize_functions=False))
        # innermost first: expand an argument before the call that contains it
        call = calls[-1]
        macro = macros["scalar", call.name.casefold()]
        impl, arguments = choose(macro, call)
        copies = {name: value.copy() for name, value in arguments.items()}
        call.replace(exp.Paren(this=substitute(stored_expression(impl.sql), macro, impl, copies, allowance)))
    raise BindError(f"The macros in {sql} call each other without end.")


def choose(macro: StoredMacro, call: exp.Anonymous) -> tuple[MacroImplementation, dict[str, exp.Expr]]:
    """Returns the overload of a call and its arguments by folded parameter name, with defaults.

    Raises:
        BindError: no overload accepts these arguments.
    """
    positional: list[exp.Expr] = []
    named: dict[str, exp.Expr] = {}
    for argument in call.expressions:
        if isinstance(argument, exp.Kwarg | exp.PropertyEQ):
            if argument.this.name.casefold() in named:
                raise BindError(f'The macro {macro.name} gets its argument "{argument.this.name}" twice.')
            named[argument.this.name.casefold()] = argument.expression
        elif named:
            raise BindError(f"The macro {macro.name} gets an argument without a name after one with a name.")
        else:
            positional.append(argument)
    fitting = [fit for impl in macro.implementations if (fit := _fit(impl, positional, named)) is not None]
    if not fitting:
        shown = " or ".join(_signature(macro.name, impl) for impl in macro.implementations)
        raise BindError(f"The macro {macro.name} cannot be called with these arguments; it is {shown}.")
    if len(fitting) == 1 or (constants := _constants(call)) is None:
        return fitting[0]
    chosen = overload(tuple(", ".join(map(declared, impl.parameters)) for impl, _ in fitting), constants)
    if chosen is None:
        raise BindError(f"DuckDB chooses no overload of the macro {macro.name} for these arguments; cast them.")
    return fitting[chosen]


def _constants(call: exp.Anonymous) -> str | None:
    """Returns the arguments of a call as constants of their types; None if one is unknown."""
    constants: list[str] = []
    for argument in call.expressions:
        named = isinstance(argument, exp.Kwarg | exp.PropertyEQ)
        value = argument.expression if named else argument
        if value.find(exp.Column, exp.Query) is None:
            constant = value.sql(dialect=DuckLakeSql)
        elif (kind := kind_of(value)) is not None:
            constant = f"CAST(NULL AS {kind.sql()})"
        else:
            return None
        constants.append(f"{quote_identifier(argument.this.name)} := {constant}" if named else constant)
    return ", ".join(constants)


def _fit(
    impl: MacroImplementation, positional: Sequence[exp.Expr], named: Mapping[str, exp.Expr]
) -> tuple[MacroImplementation, dict[str, exp.Expr]] | None:
    if impl.dialect.casefold() != "duckdb" or len(positional) > len(impl.parameters):
        return None
    arguments: dict[str, exp.Expr] = {}
    left = dict(named)
    for index, parameter in enumerate(impl.parameters):
        folded = parameter.name.casefold()
        given = left.pop(folded, None)
        if index < len(positional):
            if given is not None:
                return None
            arguments[folded] = positional[index]
        elif given is not None:
            arguments[folded] = given
        elif parameter.is_optional:
            arguments[folded] = _default(parameter)
        else:
            return None
    return None if left else (impl, arguments)


def declared(parameter: MacroParameter) -> str:
    """Returns a parameter as CREATE MACRO declares it."""
    kind = f" {_target(parameter.type).sql(dialect=DuckLakeSql)}" if parameter.type != "unknown" else ""
    default = f" := {_default(parameter).sql(dialect=DuckLakeSql)}" if parameter.is_optional else ""
    return f"{quote_identifier(parameter.name)}{kind}{default}"


def _default(parameter: MacroParameter) -> exp.Expr:
    kind = DataType(parameter.default_value_type)
    text = parameter.default_value
    value = exp.Null() if text is None or kind.name == "null" else exp.Literal.string(text)
    return value if kind.name == "null" else exp.Cast(this=value, to=to_sqlglot(kind))


def _signature(name: str, impl: MacroImplementation) -> str:
    return f"{name}({', '.join(p.name + (' := …' if p.is_optional else '') for p in impl.parameters)})"


def substitute(
    body: exp.Expr,
    macro: StoredMacro,
    impl: MacroImplementation,
    arguments: Mapping[str, exp.Expr],
    allowance: Allowance,
) -> exp.Expr:
    """Returns the body with its parameters replaced by the bound arguments.

    Raises:
        ExpansionError: the body repeats them too often.
    """
    typed = {parameter.name.casefold(): parameter.type for parameter in impl.parameters}
    values = {name: _typed(value, typed[name]) for name, value in arguments.items()}
    sizes = {name: sum(1 for _ in value.walk()) for name, value in values.items()}
    root = exp.Paren(this=body)
    for dot in list(root.find_all(exp.Dot)):
        # `x.upper()`: the parser takes x as a qualifier
        if isinstance(dot.this, exp.Identifier) and dot.this.name.casefold() in values:
            dot.set("this", exp.column(dot.this.copy()))
    for column in list(root.find_all(exp.Column)):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        if len(parts) > 1 and parts[0].name.casefold() == macro.name.casefold():
            parts = parts[1:]
        if not parts or len(parts) < len(column.parts) - 1 or parts[0].name.casefold() not in values:
            continue
        allowance.repeat(macro.name, sizes[parts[0].name.casefold()])
        value = values[parts[0].name.casefold()].copy()
        for part in parts[1:]:
            value = exp.Dot(this=value, expression=part.copy())
        column.replace(value)
    result: exp.Expr = root.this
    result.pop()
    return result


def macro_expression(
    macro: StoredMacro, impl: MacroImplementation, arguments: Mapping[str, exp.Expr], allowance: Allowance
) -> exp.Expr:
    """The expression that a call of a scalar macro stands for; raises as `substitute`."""
    return substitute(stored_expression(impl.sql), macro, impl, arguments, allowance)


def macro_query(
    macro: StoredMacro, impl: MacroImplementation, arguments: Mapping[str, exp.Expr], allowance: Allowance
) -> exp.Expr:
    """The query that a call of a table macro stands for.

    Raises:
        ExpansionError, UnsupportedFeatureError: as `substitute` and `view_query`.
    """
    return pivots.stored(substitute(stored_query(impl.sql), macro, impl, arguments, allowance))


def sample_call(macro: StoredMacro, impl: MacroImplementation, *, table: bool) -> Query:
    """Returns an overload as a query; variables, which fit any type, serve as arguments."""
    arguments: dict[str, exp.Expr] = {
        parameter.name.casefold(): exp.Anonymous(this="getvariable", expressions=[exp.Literal.string(parameter.name)])
        for parameter in impl.parameters
    }
    if table:
        tree = macro_query(macro, impl, arguments, Allowance())
    else:
        tree = exp.Select(expressions=[macro_expression(macro, impl, arguments, Allowance())])
    assert isinstance(tree, exp.Query)  # as the body is
    return Query(tree)


def _typed(value: exp.Expr, kind: str) -> exp.Expr:
    if kind != "unknown":
        value = exp.Cast(this=value, to=_target(kind))
    elif not isinstance(value, exp.Column | exp.Literal | exp.Anonymous | exp.Cast | exp.Paren | exp.Null):
        inner = value
        value = exp.Paren(this=inner)
        pass_on(inner, value)
    return value


def _target(kind: str) -> exp.DataType:
    """Returns the type of a parameter; the catalog keeps its first word alone."""
    if kind in ("list", "struct", "map"):
        raise UnsupportedFeatureError(
            f"A macro with a parameter of type {kind.upper()} is not supported, as the catalog keeps no inner types; "
            "leave the type out."
        )
    spelled = DataType(kind).sql()
    return to_sqlglot(data_type(split(spelled)[0], spelled, Binder(None)))

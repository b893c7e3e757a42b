"""The parts of a bound query that decide which rows of its result depend on which rows of its sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import is_aggregate
from ducklake_lab.sql.kinds import kind_of
from ducklake_lab.sql.notes import notes


class NotProven(Exception):
    """Raised where no rule says which rows a change affects; its text is what a query has that no rule covers."""


#: Aggregates whose value depends on the order of rows, unless an ORDER BY in the call gives one.
_ORDERED = frozenset(
    "first last any_value arbitrary first_value last_value nth_value list array_agg string_agg group_concat listagg".split()
)
#: Aggregates that choose among rows that are equal, or that approximate.
_CHOOSING = frozenset(
    "arg_min arg_max argmin argmax min_by max_by arg_min_null arg_max_null arg_min_nulls_last arg_max_nulls_last mode "
    "approx_quantile reservoir_quantile approx_top_k".split()
)
#: Functions of windows that number or choose rows.
_PLACED = frozenset("row_number lag lead ntile fill".split()) | _ORDERED
#: Functions whose value has no digits that depend on the order of rows.
_EXACT = frozenset(
    "count count_star count_if countif min max bool_and bool_or bit_and bit_or bit_xor row_number rank dense_rank "
    "rank_dense ntile lag lead".split()
)
_INTEGRAL = frozenset("boolean int8 int16 int32 int64 int128 uint8 uint16 uint32 uint64 uint128 decimal".split())
_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
#: Functions that sort a list, as DuckDB spells an aggregate with ORDER BY.
_SORTING = frozenset(("list_sort", "array_sort", "list_reverse_sort", "array_reverse_sort"))
_EXPANDING = frozenset(("unnest", "explode", "generate_subscripts", "regexp_split_to_table"))


@dataclass(frozen=True, slots=True)
class Block:
    """A SELECT.

    Attributes:
        keys: expressions over FROM; the rows of the block with some values of them depend only on the rows of FROM with
            those values. Of a block that works row by row these are all its columns.
        by_row: each row of FROM gives a row or none; DISTINCT may follow.
    """

    keys: tuple[exp.Expr, ...]
    by_row: bool


def bare(query: exp.Expr) -> exp.Expr:
    """Returns a query without parentheses around it.

    Raises:
        NotProven: the parentheses have a LIMIT.
    """
    while isinstance(query, exp.Subquery):
        _refuse_limit(query)
        query = query.this
    return query


def prepared(tree: exp.Expr, sources: Sequence[str]) -> exp.Expr:
    """Returns a copy of a bound query without WITH, and with expressions for the positions in its clauses.

    Args:
        sources: the names of tables of lakes in the tree.

    Raises:
        NotProven: it has a part for which there is no rule.
    """
    tree = tree.copy()
    if tree.find(exp.Collate) is not None:
        raise NotProven("COLLATE, which makes different texts equal")
    _inline(tree, {}, frozenset(sources))
    for select in list(tree.find_all(exp.Select)):
        _prepare(select)
    for operation in tree.find_all(exp.SetOperation):
        _refuse_limit(operation)
        if operation.args.get("by_name"):
            raise NotProven(f"{operation.key.upper()} BY NAME")
        operation.set("order", None)
    return tree


def _inline(node: exp.Expr, ctes: dict[str, exp.CTE], sources: frozenset[str]) -> None:
    """Puts the queries of WITH in the places of their names."""
    clause = node.args.get("with_") if isinstance(node, exp.Query) else None
    if clause is not None:
        if clause.args.get("recursive"):
            raise NotProven("WITH RECURSIVE")
        ctes = dict(ctes)
        for cte in clause.expressions:
            _inline(cte.this, ctes, sources)
            ctes[cte.alias.casefold()] = cte
        node.set("with_", None)
    for child in list(node.iter_expressions()):
        if isinstance(child, exp.Table) and not child.db and child.name not in sources:
            cte = ctes.get(child.name.casefold())
            if cte is None:
                raise NotProven(f"{child.sql(dialect='duckdb')}, which is no table of the lake")
            if child.args.get("joins"):
                raise NotProven("a join in parentheses")
            alias = child.args.get("alias")
            given = alias.columns if alias is not None else []
            names = given or cte.args["alias"].columns
            named = exp.TableAlias(
                this=exp.to_identifier(child.alias_or_name, quoted=True), columns=[name.copy() for name in names]
            )
            child.replace(exp.Subquery(this=cte.this.copy(), alias=named))
        else:
            _inline(child, ctes, sources)


def _prepare(select: exp.Select) -> None:
    """Writes positions of GROUP BY and DISTINCT ON as expressions, and drops an ORDER BY that decides nothing."""
    _refuse_limit(select)
    commas = False
    for join in select.args.get("joins") or []:
        if commas and (join.args.get("side") or "").upper() in ("RIGHT", "FULL"):
            raise NotProven("a RIGHT or FULL JOIN after a comma")
        if join.args.get("method") or join.args.get("match_condition") or join.this.args.get("joins"):
            raise NotProven("a join in parentheses, or one by position, time or name")
        if not any(join.args.get(part) for part in ("on", "using", "side", "kind")):
            join.set("kind", "CROSS")
            commas = True
    source = select.args.get("from_")
    if source is None:
        raise NotProven("a SELECT without FROM")
    if source.this.args.get("joins"):
        raise NotProven("a join in parentheses")
    group, distinct = select.args.get("group"), select.args.get("distinct")
    if group is not None:
        parts = ("rollup", "cube", "grouping_sets", "totals")
        if any(map(group.args.get, parts)) or any(isinstance(key, _SETS) for key in group.expressions):
            raise NotProven("GROUPING SETS, ROLLUP or CUBE")
        if notes(group).replaces_all and select.args.get("having") is not None:
            raise NotProven("HAVING with GROUP BY ALL")
        group.set("expressions", [_at_place(key, select) for key in group.expressions])
    on = distinct.args.get("on") if distinct is not None else None
    order = select.args.get("order")
    if on is not None:
        if order is None:
            raise NotProven("DISTINCT ON without ORDER BY, which takes any row")
        on.set("expressions", [_at_place(key, select) for key in on.expressions])
        for item in order.expressions:
            item.set("this", _at_place(item.this, select))
    else:
        select.set("order", None)
    for part in (*select.expressions, *(select.args.get(name) for name in ("where", "having", "qualify"))):
        if part is not None:
            _check(part)
    for join in select.args.get("joins") or []:
        if join.args.get("on") is not None:
            _check(join.args["on"])


def _refuse_limit(query: exp.Expr) -> None:
    if query.args.get("limit") or query.args.get("offset"):
        raise NotProven("LIMIT over the whole result")


def _at_place(key: exp.Expr, select: exp.Select) -> exp.Expr:
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
        shown: exp.Expr = select.expressions[int(key.name) - 1].unalias().copy()
        return shown
    return key


def _check(part: exp.Expr) -> None:
    """Refuses what gives other values for the same rows, or rows that are not seen in FROM.

    Raises:
        NotProven: there is such a part.
    """
    if part.find(exp.Query, exp.Exists) is not None:
        raise NotProven("a subquery in an expression")
    if part.find(exp.Unnest, exp.Explode, exp.Star) is not None and not _only_counts(part):
        raise NotProven("an expression that gives several rows or columns")
    for call in part.find_all(exp.Anonymous):
        name = call.name.casefold()
        if name in _EXPANDING:
            raise NotProven(f"{name}, which gives several rows")
        if name in _CHOOSING:
            raise NotProven(f"{name}, which chooses among equal rows or approximates")
        window = _window_of(call)
        is_sorted = isinstance(call.parent, exp.Anonymous) and call.parent.name.casefold() in _SORTING
        is_ordered = is_sorted or call.find(exp.Order) is not None
        if name in _PLACED and not is_ordered and (window is None or not _is_ordered(window)):
            raise NotProven(f"{name} without ORDER BY, which takes rows in any order")


def _window_of(call: exp.Expr) -> exp.Window | None:
    """Returns the window that a function is computed over; None for other calls."""
    parent = call.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) and parent.this is call:
        call, parent = parent, parent.parent
    return parent if isinstance(parent, exp.Window) and parent.this is call else None


def _only_counts(part: exp.Expr) -> bool:
    """Returns whether all stars of an expression are arguments of calls, as in count(*)."""
    stars = list(part.find_all(exp.Star))
    return part.find(exp.Unnest, exp.Explode) is None and all(isinstance(star.parent, exp.Anonymous) for star in stars)


def _is_ordered(window: exp.Window) -> bool:
    return window.args.get("order") is not None or (
        (named := _named(window)) is not None and named.args.get("order") is not None
    )


def _named(window: exp.Window) -> exp.Window | None:
    """Returns the window of the WINDOW clause that a call names; None if it names none."""
    alias = window.args.get("alias")
    if alias is None:
        return None
    select = window.find_ancestor(exp.Select)
    for one in (select.args.get("windows") or []) if select is not None else []:
        if one.name.casefold() == alias.name.casefold():
            found: exp.Window = one
            return found
    raise NotProven(f"a window named {alias.name}")


def block_of(select: exp.Select) -> Block:
    """Returns the keys of a prepared SELECT."""
    shown = [item.unalias() for item in select.expressions]
    clauses = [select.args[name] for name in ("having", "qualify") if select.args.get(name) is not None]
    group, distinct = select.args.get("group"), select.args.get("distinct")
    keys: list[exp.Expr] | None = None
    if group is not None or any(map(_aggregates, (*shown, *clauses))):
        keys = list(group.expressions) if group is not None else []
    windows = [window for part in (*shown, *clauses) for window in part.find_all(exp.Window)]
    for window in windows:
        parts = _partition(window)
        keys = parts if keys is None else [key for key in keys if key in parts]
    on = distinct.args.get("on") if distinct is not None else None
    if on is not None:
        keys = list(on.expressions) if keys is None else [key for key in keys if key in on.expressions]
    if keys is None:
        return Block(tuple(shown), by_row=True)
    return Block(tuple(dict.fromkeys(keys)), by_row=False)


def check_repeats(
    select: exp.Select, wanted: Sequence[exp.Expr], keys: Sequence[exp.Expr], *, digits: bool = True
) -> None:
    """Refuses values of a prepared SELECT that a second computation over the same rows may give otherwise.

    Args:
        digits: whether last digits matter.

    Raises:
        NotProven: sums of floats differ in their last digits, or the choice or the place of equal rows is open.
    """
    clauses = [select.args[name].this for name in ("having", "qualify") if select.args.get(name) is not None]
    windows = select.args.get("windows") or []
    if digits and not all(value in keys or is_exact(value) for value in (*wanted, *clauses, *windows)):
        raise NotProven("a part that depends on a value whose last digits may differ")
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        fixed = [*distinct.args["on"].expressions, *_sort_keys(select)]
        for value in wanted:
            if value not in fixed and any(part not in fixed for part in value.find_all(exp.Column, exp.Anonymous)):
                raise NotProven("DISTINCT ON whose ORDER BY leaves the choice among rows open")
    used = [*(value for value in wanted if value not in keys), *clauses]
    for window in (window for value in used for window in value.find_all(exp.Window)):
        if _places_rows(window):
            fixed = [*_partition(window), *_order(window)]
            if any(_is_open(value, fixed) for value in used):
                raise NotProven("a window whose ORDER BY leaves the place of rows open")


def _places_rows(window: exp.Window) -> bool:
    """Returns whether the value of a window depends on the order of rows with equal sort keys."""
    call = window.this
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    specs = [one.args.get("spec") for one in (window, _named(window)) if one is not None]
    by_row = any(spec is not None and str(spec.args.get("kind")).upper() == "ROWS" for spec in specs)
    return by_row or not isinstance(call, exp.Anonymous) or call.name.casefold() in _PLACED


def _is_open(node: exp.Expr, fixed: Sequence[exp.Expr]) -> bool:
    """Returns whether rows that are equal in some values may differ in this one, the order of a window apart."""
    if node in fixed:
        return False
    if isinstance(node, exp.Window):
        call = node.this
        return any(_is_open(part, fixed) for part in (*call.iter_expressions(), *_partition(node), *_order(node)))
    if isinstance(node, exp.Column) or (isinstance(node, exp.Anonymous) and is_aggregate(node.name)):
        return True
    return any(_is_open(part, fixed) for part in node.iter_expressions())


def _order(window: exp.Window) -> list[exp.Expr]:
    """Returns the sort keys of a window, and of the window that it names."""
    named = _named(window)
    return [*_sort_keys(window), *(_sort_keys(named) if named is not None else [])]


def _sort_keys(node: exp.Expr) -> list[exp.Expr]:
    order = node.args.get("order")
    return [item.this for item in order.expressions] if order is not None else []


def _partition(window: exp.Window) -> list[exp.Expr]:
    named = _named(window)
    return [*(window.args.get("partition_by") or []), *((named.args.get("partition_by") or []) if named else [])]


def _aggregates(node: exp.Expr) -> bool:
    """Returns whether an expression has an aggregate that is no window function itself."""
    if isinstance(node, exp.Window):
        call, parts = node.this, [*(node.args.get("partition_by") or [])]
        while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            parts += [part for part in call.iter_expressions() if part is not call.this]
            call = call.this
        parts += call.iter_expressions()
        order = node.args.get("order")
        return any(map(_aggregates, [*parts, *([order] if order is not None else [])]))
    if isinstance(node, exp.Anonymous) and is_aggregate(node.name):
        return True
    return any(map(_aggregates, node.iter_expressions()))


def is_exact(node: exp.Expr) -> bool:
    """Returns whether a second computation over the same rows gives equal values, sums of floats apart."""
    return all(
        call.name.casefold() in _EXACT or _is_integral_sum(call)
        for call in node.find_all(exp.Anonymous)
        if is_aggregate(call.name) or _window_of(call) is not None
    )


def _is_integral_sum(call: exp.Anonymous) -> bool:
    if call.name.casefold() != "sum" or len(call.expressions) != 1:
        return False
    argument = call.expressions[0]
    kind = kind_of(argument.this if isinstance(argument, exp.Distinct) else argument)
    return kind is not None and kind.name.partition("(")[0] in _INTEGRAL


def names_of(query: exp.Expr) -> list[str]:
    """Returns the names of a query's columns."""
    query = bare(query)
    while isinstance(query, exp.SetOperation):
        query = bare(query.this)
    return [item.alias_or_name for item in query.expressions]


def tables_in(node: exp.Expr) -> Iterator[exp.Table]:
    return node.find_all(exp.Table)

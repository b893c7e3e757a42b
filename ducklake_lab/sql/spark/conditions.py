"""Translates conditions of WHERE, HAVING and joins to Spark SQL; each part of an AND is separate."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import DataType
from ducklake_lab.sql.notes import notes
from ducklake_lab.sql.spark.comparing import is_collated
from ducklake_lab.sql.spark.deferring import conjunction
from ducklake_lab.sql.spark.failing import may_fail
from ducklake_lab.sql.spark.nodes import as_column, binary, cast, number
from ducklake_lab.sql.spark.operands import FLOATS, is_ordered, operands
from ducklake_lab.sql.spark.stability import check_same_for_all, is_volatile
from ducklake_lab.sql.spark.translating import Translating
from ducklake_lab.sql.spark.typing import from_items, is_over_list
from ducklake_lab.sql.types import to_sqlglot

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
#: Pairs of types in which DuckDB casts to one of them, but Spark to another.
_WIDER = {("date", "timestamp"): "timestamp", ("timestamp", "date"): "timestamp"}

#: Comparisons with swapped sides, and negated comparisons.
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
}
_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LT,
    exp.GT: exp.LTE,
    exp.LTE: exp.GT,
    exp.LT: exp.GTE,
}


def truth(translation: Translating, node: exp.Expr) -> exp.Expr:
    """Translates a condition; parts that Spark computes stay filters of their own."""
    return conjunction([_part(translation, part) for part in parts_of_and(translation, node)])


def parts_of_and(translation: Translating, node: exp.Expr) -> list[exp.Expr]:
    inner = node.unnest()
    if isinstance(inner, exp.And):
        return [*parts_of_and(translation, inner.this), *parts_of_and(translation, inner.expression)]
    if isinstance(inner, exp.Between) and not inner.args.get("symmetric") and not is_volatile(inner):
        bounds: list[exp.Expr] = [
            exp.GTE(this=inner.this.copy(), expression=inner.args["low"].copy()),
            exp.LTE(this=inner.this.copy(), expression=inner.args["high"].copy()),
        ]
        if translation.native(node) is None and all(_apart(translation, bound) is not None for bound in bounds):
            return bounds
    return [node]


def _part(translation: Translating, node: exp.Expr) -> exp.Expr:
    kind = translation.type_of(node)
    if kind is not None and kind.name != "boolean":
        node = exp.Cast(this=node.copy(), to=to_sqlglot(DataType("boolean")))
    found = translation.native(node)
    if found is None:
        found = _apart(translation, node)
    inner = node.unnest()
    if found is None and isinstance(inner, exp.Or) and may_fail(inner, translation.type_of):
        # as in DuckDB, a row that fulfils the left side raises no error of the right one
        sides = [exp.Paren(this=truth(translation, side)) for side in (inner.this, inner.expression)]
        return exp.Paren(this=exp.Or(this=sides[0], expression=sides[1]))
    return translation.scalar(node) if found is None else found


class _Computed:
    """Values of any kind as operands of a comparison, computed by Spark or a worker."""

    def __init__(self, translation: Translating) -> None:
        self.settings = translation.settings
        self.type_of = translation.type_of
        self.native = translation.scalar


def _apart(translation: Translating, node: exp.Expr) -> exp.Expr | None:
    """Returns a comparison between two relations with each side computed in its own relation; None for others.

    Spark joins by such a comparison. A worker that computed both sides would see all pairs of rows.
    """
    if not isinstance(node, _COMPARISONS) or is_collated(node) or is_over_list(node) or is_volatile(node):
        return None
    tables = [{column.table for column in side.find_all(exp.Column)} for side in (node.this, node.expression)]
    if not all(tables) or tables[0] & tables[1]:
        return None
    sides = [node.this, node.expression]
    kinds = [translation.type_of(side) for side in sides]
    wider = _WIDER.get((kinds[0].name, kinds[1].name)) if kinds[0] is not None and kinds[1] is not None else None
    if wider is not None:
        sides = [exp.Cast(this=side.copy(), to=to_sqlglot(DataType(wider))) for side in sides]
    found = operands(_Computed(translation), *sides)
    if found is None:
        return None
    return type(node)(this=exp.Paren(this=found[0]), expression=exp.Paren(this=found[1]))


# Joins


def join_condition(translation: Translating, node: exp.Join) -> None:
    """Translates the condition of a join; its right side is already translated.

    Raises:
        UnsupportedFeatureError: Spark cannot join by the condition.
    """
    condition = node.args["on"]
    check_same_for_all(condition, "the condition of a join")
    node.set("on", translation.truth(condition))
    if not (node.side or node.kind.upper() in ("SEMI", "ANTI")):
        return
    for found in node.args["on"].find_all(exp.Anonymous):
        if found.name in translation.evaluations and len({c.table for c in found.find_all(exp.Column)}) > 1:
            _by_pairs(translation, node, condition, translation.evaluations[found.name].sql)
            return


def _by_pairs(translation: Translating, node: exp.Join, condition: exp.Expr, shown: str) -> None:
    """Joins by pairs of values that fulfil a condition. Spark has no outer join whose condition a worker computes.

    An inner join finds the pairs, and the outer join compares with them.
    """
    right = node.this.alias_or_name
    columns = {(column.table, column.name): column for column in condition.find_all(exp.Column)}
    lefts = {table for table, _ in columns if table.casefold() != right.casefold()}
    kinds = [translation.type_of(column) for column in columns.values()]
    around = node.parent
    if (
        not lefts
        or not isinstance(around, exp.Select)
        or isinstance(node.this, exp.Lateral)
        or condition.find(exp.Query) is not None
        or not all(map(_is_exact, kinds))
        or not {name.casefold() for name in lefts} <= {item.alias_or_name.casefold() for item in from_items(around)}
        or any(_differs_by_reading(translation, item) for item in from_items(around))
    ):
        raise UnsupportedFeatureError(
            f"This condition of a {node.side or node.kind} JOIN is not supported on Spark: {shown} uses both sides."
        )
    names = [f"_ducklake_p{place}" for place in range(len(columns))]
    keys = [_key(column, kind) for column, kind in zip(columns.values(), kinds, strict=True)]
    of_left = [column.table in lefts for column in columns.values()]
    pairs = exp.select(*(as_column(key.copy(), name) for key, name in zip(keys, names, strict=True)), copy=False)
    pairs = pairs.distinct().select(as_column(number(1), "_ducklake_met"), copy=False)
    pairs = _left_side(pairs, around, node, lefts).join(node.this.copy(), on=node.args["on"].copy(), copy=False)
    pair = exp.to_identifier("_ducklake_pairs", quoted=True)
    known = [exp.column(exp.to_identifier(name, quoted=True), table=pair.copy()) for name in names]
    same = [_alike(key, one) for key, one, is_left in zip(keys, known, of_left, strict=True) if not is_left]
    whole = exp.column(exp.Star(), table=exp.to_identifier(right, quoted=True))
    met = exp.column(exp.to_identifier("_ducklake_met", quoted=True), table=pair.copy())
    kept = [one for one, is_left in zip(known, of_left, strict=True) if is_left]
    rows = (
        exp.select(whole, *kept, met, copy=False)
        .from_(node.this, copy=False)
        .join(
            exp.Subquery(this=pairs, alias=exp.TableAlias(this=pair)),
            # a condition of the left side alone holds for all rows of the right one
            on=exp.and_(*same, copy=False) if same else exp.true(),
            join_type="LEFT" if node.side.upper() in ("RIGHT", "FULL") else "INNER",
            copy=False,
        )
    )
    alias = exp.to_identifier(right, quoted=True)
    node.set("this", exp.Subquery(this=rows, alias=exp.TableAlias(this=alias)))
    found: list[exp.Expr] = [
        _alike(key, exp.column(one.this.copy(), table=alias.copy()))
        for key, one, is_left in zip(keys, known, of_left, strict=True)
        if is_left
    ]
    found.append(exp.EQ(this=exp.column(met.this.copy(), table=alias.copy()), expression=number(1)))
    node.set("on", exp.and_(*found, copy=False))


def _left_side(pairs: exp.Select, around: exp.Select, node: exp.Join, lefts: set[str]) -> exp.Select:
    """Returns a query whose FROM has the rows left of a join: of one relation, if it has all values."""
    joins = around.args.get("joins") or []
    before = joins[: next(place for place, one in enumerate(joins) if one is node)]
    item = _plain_item(around, node, before, next(iter(lefts))) if len(lefts) == 1 else None
    if item is not None:
        return pairs.from_(item.copy(), copy=False)
    pairs.set("from_", around.args["from_"].copy())
    pairs.set("joins", [join.copy() for join in before])
    return pairs


def _plain_item(around: exp.Select, node: exp.Join, before: Sequence[exp.Join], name: str) -> exp.Expr | None:
    """Returns the item of FROM with a name before a join, if no preceding join makes its columns NULL."""
    if before and node.side.upper() in ("RIGHT", "FULL"):
        return None  # some of its rows are not rows of the left side
    items = [(None, around.args["from_"].this), *((one, one.this) for one in before)]
    place = next((at for at, (_, item) in enumerate(items) if item.alias_or_name.casefold() == name.casefold()), None)
    if place is None:
        return None
    own, item = items[place]
    sides = [own.side.upper()] if own is not None else []
    nulled = any(side in ("LEFT", "FULL") for side in sides) or any(
        one.side.upper() in ("RIGHT", "FULL") for one in before[place:]
    )
    plain = isinstance(item, exp.Table | exp.Subquery) and not item.args.get("joins") and not nulled
    return item if plain else None


def _is_exact(kind: DataType | None) -> bool:
    """Returns whether values of a type that are equal on Spark are identical in DuckDB."""
    if kind is not None and kind.name in ("list", "struct"):
        return all(_is_exact(child) and child.name not in FLOATS for _, child in kind.children)
    return is_ordered(kind)


def _differs_by_reading(translation: Translating, node: exp.Expr) -> bool:
    """Returns whether a relation may have other rows in a second read."""
    called = (translation.evaluations.get(call.name) for call in node.find_all(exp.Anonymous))
    unordered = any(query.args.get("limit") and not query.args.get("order") for query in node.find_all(exp.Query))
    return unordered or any(one is not None and one.volatile for one in called)


def _key(column: exp.Expr, kind: DataType | None) -> exp.Expr:
    """Returns a value in a form that distinguishes 0.0 and -0.0."""
    return cast(column.copy(), "STRING") if kind is not None and kind.name in FLOATS else column.copy()


def _alike(one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return binary(exp.NullSafeEQ, one.copy(), other.copy())


# ASOF


def on_columns(node: exp.Join, using: Sequence[Sequence[exp.Column]]) -> None:
    """Rewrites USING of an ASOF JOIN as ON: its last column is the inexact one.

    Raises:
        UnsupportedFeatureError: several relations before the join have a column.
    """
    if any(len(columns) != 2 for columns in using):
        raise UnsupportedFeatureError("ASOF JOIN with USING over several joins is not supported on Spark; use ON.")
    forms = [exp.EQ] * (len(using) - 1) + [exp.GTE]
    parts = (form(this=left.copy(), expression=right.copy()) for form, (left, right) in zip(forms, using, strict=True))
    node.set("using", None)
    node.set("on", exp.and_(*parts, copy=False))


def asof(translation: Translating, node: exp.Join) -> None:
    """Rewrites an ASOF JOIN as a join: each right row gets the range of values for which it is the nearest.

    Conditions of the right side alone choose the rows that can be near, those of the left side the rows that look for one.

    Raises:
        UnsupportedFeatureError: the condition compares the two sides in no such form.
    """
    right = node.this.alias_or_name
    keys: list[exp.Expr] = []
    before: list[exp.Expr] = []
    after: list[exp.Expr] = []
    nearest: exp.Expr | None = None
    condition = node.args.get("on")
    for part in _flat(condition) if condition is not None else ():
        turned = _turned(part.unnest(), right)
        if turned is None:
            is_own = {column.table.casefold() for column in part.find_all(exp.Column)} == {right.casefold()}
            (before if is_own else after).append(part)
            continue
        if isinstance(turned, exp.EQ | exp.NullSafeEQ):
            keys.append(turned.expression)
        elif nearest is None:
            nearest = turned
        else:
            raise UnsupportedFeatureError("ASOF JOIN on Spark takes one of >=, >, <= and < between the sides.")
        after.append(part)
    _check_others(node, [part for part in (*before, *after) if _turned(part.unnest(), right) is None])
    if nearest is None or condition is None:
        raise UnsupportedFeatureError("ASOF JOIN on Spark needs ON with one of >=, >, <= and <.")
    value = nearest.expression
    is_lower = isinstance(nearest, exp.GTE | exp.GT)
    window = exp.Window(
        this=exp.Anonymous(this="lead" if is_lower else "lag", expressions=[value.copy()]),
        partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=[exp.Ordered(this=value.copy(), desc=False, nulls_first=False)]),
        over="OVER",
    )
    end = exp.column(exp.to_identifier("_ducklake_end", quoted=True), table=exp.to_identifier(right, quoted=True))
    notes(end).set_type(translation.type_of(value))
    until = exp.Is(this=end.copy(), expression=exp.Null())
    beyond = _OPPOSITE[type(nearest)](this=nearest.this.copy(), expression=end)
    check_same_for_all(condition, "the condition of a join")
    near = exp.Paren(this=exp.Or(this=until, expression=beyond))
    node.set("on", exp.and_(*(part.copy() for part in after), near, copy=False))
    node.set("method", None)
    whole = exp.column(exp.Star(), table=exp.to_identifier(right, quoted=True))
    shown = as_column(translation.scalar(window), "_ducklake_end")
    rows = exp.select(whole, shown, copy=False).from_(translation.translate(node.this), copy=False)
    if before:
        rows = rows.where(translation.truth(exp.and_(*(part.copy() for part in before), copy=False)), copy=False)
    node.set("this", exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(right, quoted=True))))


def _check_others(node: exp.Join, parts: Sequence[exp.Expr]) -> None:
    """Refuses conditions of an ASOF JOIN besides its comparisons, except those of one side.

    DuckDB takes the nearest of the pairs that fulfil those of both sides. It has none for RIGHT and FULL.
    """
    right = node.this.alias_or_name.casefold()
    for part in parts:
        tables = {column.table.casefold() for column in part.find_all(exp.Column)}
        uses_both = right in tables and len(tables) > 1
        if uses_both or node.side.upper() in ("RIGHT", "FULL") or part.find(exp.Query) is not None:
            shown = part.sql(dialect="duckdb")
            raise UnsupportedFeatureError(
                f"{shown} in the condition of an ASOF {node.side or node.kind or 'INNER'} JOIN is not supported on Spark."
            )


def _flat(node: exp.Expr) -> list[exp.Expr]:
    inner = node.unnest()
    return [*_flat(inner.this), *_flat(inner.expression)] if isinstance(inner, exp.And) else [inner]


def _turned(node: exp.Expr, right: str) -> exp.Expr | None:
    """Returns a comparison with the right relation's value on the right; None if it does not compare both sides."""
    if type(node) not in _TURNED:
        return None
    sides = [{column.table.casefold() for column in side.find_all(exp.Column)} for side in (node.this, node.expression)]
    own = {right.casefold()}
    if sides[1] == own and sides[0] and not sides[0] & own:
        return node
    if sides[0] == own and sides[1] and not sides[1] & own:
        return _TURNED[type(node)](this=node.expression.copy(), expression=node.this.copy())
    return None

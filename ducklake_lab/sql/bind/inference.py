"""Infers types of DuckDB expressions for translation and pruning; None for unknown types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.types import FLOATS, INTEGERS, DataType
from ducklake_lab.sql.scope import TYPE
from ducklake_lab.sql.types import from_sqlglot

Type = DataType | None

BOOLEAN = DataType("boolean")
BIGINT = DataType("int64")
INTEGER = DataType("int32")
DOUBLE = DataType("float64")
VARCHAR = DataType("varchar")
DATE = DataType("date")
TIMESTAMP = DataType("timestamp")
TIMESTAMPTZ = DataType("timestamptz")
INTERVAL = DataType("interval")

_PREDICATES = (
    exp.Connector,
    exp.Not,
    exp.Predicate,
    exp.Exists,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Boolean,
    exp.In,
)
_TRANSPARENT = (
    exp.Paren,
    exp.Alias,
    exp.Distinct,
    exp.Filter,
    exp.Window,
    exp.IgnoreNulls,
    exp.RespectNulls,
    exp.Order,
)

#: Result types of operators that are functions.
_OPERATORS = {**dict.fromkeys(("^", "**"), DOUBLE), **dict.fromkeys(("&&", "@>", "<@", "^@"), BOOLEAN)}

#: Integer types from narrow to wide, for results of mixed operands.
_WIDTH = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int128")


def type_of(node: exp.Expr | None) -> Type:
    """Returns the noted type of a bound node."""
    if node is None:
        return None
    kind = node.meta.get(TYPE)
    return kind if isinstance(kind, DataType) else None


def infer(node: exp.Expr) -> Type:
    """Returns the type of a node whose children have noted types."""
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, _TRANSPARENT):
        return type_of(node.this if isinstance(node.this, exp.Expr) else node.expressions[0])
    if isinstance(node, exp.Cast):
        try:
            return from_sqlglot(node.to)
        except DuckLakeError:
            return None
    if isinstance(node, _PREDICATES):
        return BOOLEAN
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Mod):
        return _arithmetic(node, type_of(node.this), type_of(node.expression))
    if isinstance(node, exp.Operator):
        return _OPERATORS.get(node.args["operator"])
    if isinstance(node, exp.Div):
        return DOUBLE
    if isinstance(node, exp.IntDiv):
        left, right = type_of(node.this), type_of(node.expression)
        return common((left, right)) if _integer(left) and _integer(right) else DOUBLE if left and right else None
    if isinstance(node, exp.Neg | exp.BitwiseNot | exp.BitwiseAnd | exp.BitwiseOr):
        return type_of(node.this)
    if isinstance(node, exp.DPipe):
        kind = type_of(node.this)
        return kind if kind is not None and kind.name in ("list", "blob") else VARCHAR
    if isinstance(node, exp.Case):
        return common(
            [*(type_of(branch.args["true"]) for branch in node.args["ifs"]), type_of(node.args.get("default"))],
            skip=[*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")],
        )
    if isinstance(node, exp.If):
        branches = [node.args.get("true"), node.args.get("false")]
        return common([type_of(branch) for branch in branches], skip=branches)
    if isinstance(node, exp.Interval):
        return INTERVAL
    if isinstance(node, exp.CurrentDate):
        return DATE
    if isinstance(node, exp.CurrentTimestamp):
        return TIMESTAMPTZ
    if isinstance(node, exp.Array):
        element = common([type_of(item) for item in node.expressions], skip=node.expressions)
        return DataType("list", (("element", element),)) if element is not None else None
    if isinstance(node, exp.Struct):
        fields = [
            (item.this.name, type_of(item.expression)) for item in node.expressions if isinstance(item, exp.PropertyEQ)
        ]
        known = tuple((name, kind) for name, kind in fields if kind is not None)
        return DataType("struct", known) if len(known) == len(node.expressions) else None
    if isinstance(node, exp.Bracket):
        return _element(node)
    if isinstance(node, exp.Dot):
        kind = type_of(node.this)
        if kind is not None and kind.name == "struct":
            return next(
                (child for name, child in kind.children if name.casefold() == node.expression.name.casefold()), None
            )
        return None
    return None


def common(kinds: Sequence[Type], skip: Sequence[exp.Expr | None] = ()) -> Type:
    """Returns the common type of several values; ignores NULL literals and missing nodes in `skip`."""
    relevant = list(kinds)
    if skip:
        relevant = [
            kind
            for kind, node in zip(kinds, skip, strict=True)
            if node is not None and not isinstance(node.unnest(), exp.Null)
        ]
    if not relevant or any(kind is None for kind in relevant):
        return None
    known = [kind for kind in relevant if kind is not None]
    first = known[0]
    if all(kind == first for kind in known):
        return first
    if all(_integer(kind) for kind in known):
        return DataType(
            max((kind.name for kind in known), key=lambda name: _WIDTH.index(name) if name in _WIDTH else 9)
        )
    if all(kind.is_numeric for kind in known):
        if any(kind.name in FLOATS for kind in known):
            return DOUBLE if any(kind.name != "float32" for kind in known) else DataType("float32")
        return _decimal(known)
    if {kind.name for kind in known} == {"date", "timestamp"}:
        return TIMESTAMP
    return None


def _decimal(kinds: Sequence[DataType]) -> DataType:
    sizes = [kind.decimal or (19, 0) for kind in kinds]
    scale = max(size[1] for size in sizes)
    whole = max(size[0] - size[1] for size in sizes)
    return DataType(f"decimal({min(38, whole + scale)},{scale})")


def _integer(kind: Type) -> bool:
    return kind is not None and kind.name in INTEGERS


def _literal(node: exp.Literal) -> Type:
    if node.is_string:
        return VARCHAR
    text = node.name.replace("_", "")
    if text.isdigit():
        value = int(text)
        return INTEGER if value < 2**31 else BIGINT if value < 2**63 else DataType("int128")
    if "e" in text.lower():
        return DOUBLE
    whole, _, fraction = text.partition(".")
    return DataType(f"decimal({min(38, max(len(whole.lstrip('0')) + len(fraction), 1))},{len(fraction)})")


def _arithmetic(node: exp.Expr, left: Type, right: Type) -> Type:
    names = {kind.name for kind in (left, right) if kind is not None}
    if "interval" in names:
        other = left if right is not None and right.name == "interval" else right
        if other is None:
            return None
        return TIMESTAMP if other.name == "date" else other
    if "date" in names:
        if left is not None and right is not None and left.name == right.name == "date":
            return BIGINT
        return DATE if _integer(left) or _integer(right) else None
    if names & {"timestamp", "timestamptz"}:
        return INTERVAL if left == right else None
    if left is None or right is None:
        return None
    return common((left, right))


def _element(node: exp.Bracket) -> Type:
    kind = type_of(node.this)
    if kind is None:
        return None
    index = node.expressions[0]
    if isinstance(index, exp.Slice) or kind.name == "varchar":
        return kind
    if kind.name == "list":
        return kind.children[0][1]
    if kind.name == "map":
        return kind.children[1][1]
    if kind.name == "struct" and isinstance(index, exp.Literal) and index.is_string:
        return next((child for name, child in kind.children if name.casefold() == index.name.casefold()), None)
    return None

"""Names of output columns without an alias, as DuckDB forms them from the expression.

DuckDB 2.0 keeps more of the original text: `true`, `1e7`, NOT before a comparison, functions without their schema,
and type names that are not keywords.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import printed
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.model.quoting import quote_text, quoted_if_needed
from ducklake_lab.sql.dialect import ARROW, INTERVAL_TEXT, SPECIAL_SYNTAX, WRITTEN_PART, DuckLakeSql
from ducklake_lab.sql.scope import WORDS
from ducklake_lab.sql.type_syntax import WRITTEN_TYPE
from ducklake_lab.sql.types import from_sqlglot
from ducklake_lab.version import SINCE_DUCKDB_2

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.Like: "~~",
    exp.ILike: "~~*",
    exp.Glob: "~~~",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.JSONExtract: "->",
    exp.JSONExtractScalar: "->>",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


#: The schema before functions with special call syntax.
_MAIN = "" if SINCE_DUCKDB_2 else "main."
#: The comparisons that DuckDB 1.5 prints for a negated comparison.
_OPPOSITE: dict[type[exp.Expr], str] = {
    exp.EQ: "!=",
    exp.NEQ: "=",
    exp.LT: ">=",
    exp.GTE: "<",
    exp.GT: "<=",
    exp.LTE: ">",
}


def aliased(value: exp.Expr, name: str) -> exp.Expr:
    """Returns a value with an alias; copies it only if its node type has an alias of its own."""
    if "alias" in value.arg_types:
        return exp.alias_(value, name, quoted=True)
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def output_name(node: exp.Expr) -> str:
    """Returns the name of a projection: its alias, its column's name, or its text."""
    if isinstance(node, exp.Alias):
        return node.alias
    bare = node.unnest()
    if isinstance(bare, exp.Column):
        return bare.name
    if _is_path(bare):
        return str(bare.expression.name)
    return text(node)


def _is_path(node: exp.Expr) -> bool:
    """Whether a node is a column with struct fields, `a.b.c`."""
    inner = node.this if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier) else None
    return isinstance(inner, exp.Column | exp.Identifier) or (inner is not None and _is_path(inner))


def text(node: exp.Expr) -> str:
    """Returns an expression as DuckDB prints it."""
    if isinstance(node, exp.Paren):
        return text(node.this)
    if isinstance(node, exp.Alias):
        return text(node.this)
    if isinstance(node, exp.Column):
        return ".".join(quoted_if_needed(part.name) for part in node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        whole = text(node.this)
        return f"{whole if _is_path(node) else f'({whole})'}.{quoted_if_needed(node.expression.name)}"
    if isinstance(node, exp.Literal):
        return quote_text(node.name) if node.is_string else _number(node.name)
    if isinstance(node, exp.Null):
        return "NULL"
    if isinstance(node, exp.Boolean):
        if SINCE_DUCKDB_2:
            return "true" if node.this else "false"
        return f"CAST('{'t' if node.this else 'f'}' AS BOOLEAN)"
    if isinstance(node, exp.Neg):
        inner = text(node.this)
        return f"-{inner}" if isinstance(node.this, exp.Literal) else _unary(f"-({inner})")
    if isinstance(node, exp.BitwiseNot):
        return _unary(f"~({text(node.this)})")
    if isinstance(node, exp.Abs):
        return f"@({text(node.this)})"
    if isinstance(node, exp.Escape):
        function = "ilike_escape" if isinstance(node.this, exp.ILike) else "like_escape"
        if node.this.args.get("negate"):
            function = f"not_{function}"
        return f"{_MAIN}{function}({text(node.this.this)}, {text(node.this.expression)}, {text(node.expression)})"
    if isinstance(node, exp.Tuple):
        return f'{_MAIN}"row"({", ".join(map(text, node.expressions))})'
    if type(node) in WORDS:
        return WORDS[type(node)]
    if isinstance(node, exp.IgnoreNulls):
        return f"{text(node.this)} IGNORE NULLS"
    if isinstance(node, exp.Not):
        return _negated(node.this)
    if isinstance(node, exp.Like | exp.ILike) and node.args.get("negate"):
        operator = _BINARY[type(node)].replace("~~", "!~~")
        return f"({text(node.this)} {operator} {text(node.expression)})"
    if isinstance(node, exp.And | exp.Or):
        return f"({f' {_BINARY[type(node)]} '.join(map(text, _chained(node, type(node))))})"
    if _is_quantified(node):
        return _printed(_written(node))
    if type(node) in _BINARY:
        return f"({text(node.this)} {_BINARY[type(node)]} {text(node.expression)})"
    if isinstance(node, exp.Operator):
        return f"({text(node.this)} {node.args['operator']} {text(node.expression)})"
    if isinstance(node, exp.Is) and not isinstance(node.expression, exp.Boolean):
        return f"({text(node.this)} IS {text(node.expression)})"
    if isinstance(node, exp.Between):
        return f"({text(node.this)} BETWEEN {text(node.args['low'])} AND {text(node.args['high'])})"
    if isinstance(node, exp.In) and node.expressions:
        return f"({text(node.this)} IN ({', '.join(map(text, node.expressions))}))"
    if isinstance(node, exp.Cast):
        word = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
        return f"{word}({text(node.this)} AS {_type(node.to)})"
    if isinstance(node, exp.Collate):
        return f"{text(node.this)} COLLATE {node.expression.name}"
    if isinstance(node, exp.Case):
        return _case(node)
    if isinstance(node, exp.If):
        other = text(node.args["false"]) if node.args.get("false") else "NULL"
        if SINCE_DUCKDB_2:
            return f'"if"({text(node.this)}, {text(node.args["true"])}, {other})'
        return f"CASE  WHEN ({text(node.this)}) THEN ({text(node.args['true'])}) ELSE {other} END"
    if isinstance(node, exp.Anonymous):
        return _call(node)
    if isinstance(node, exp.Window):
        return _window(node)
    if isinstance(node, exp.Filter):
        return f"{text(node.this)} FILTER (WHERE {text(node.expression.this)})"
    if isinstance(node, exp.Distinct):
        return "DISTINCT " + ", ".join(map(text, node.expressions))
    if isinstance(node, exp.Order):
        ordered = ", ".join(_ordered(item) for item in node.expressions)
        return f"{text(node.this)} ORDER BY {ordered}" if node.this else f" ORDER BY {ordered}"
    if isinstance(node, exp.Kwarg | exp.PropertyEQ):
        return f"{quoted_if_needed(node.this.name)} := {text(node.expression)}"
    if isinstance(node, exp.Bracket):
        return f"{text(node.this)}[{', '.join(map(text, node.expressions))}]"
    if isinstance(node, exp.Slice):
        return ":".join(text(part) if part else "" for part in (node.this, node.expression))
    if isinstance(node, exp.Array):
        return f"{_MAIN}list_value({', '.join(map(text, node.expressions))})"
    if isinstance(node, exp.Struct):
        return f"{_MAIN}struct_pack({', '.join(map(text, node.expressions))})"
    if isinstance(node, exp.ToMap):
        sides = (
            ", ".join(text(entry.args[side]) for entry in node.this.expressions) for side in ("this", "expression")
        )
        return f'{_MAIN}"map"({", ".join(f"{_MAIN}list_value({side})" for side in sides)})'
    if isinstance(node, exp.Map):
        return f'"map"({", ".join(text(side) for side in (node.args.get("keys"), node.args.get("values")) if side)})'
    if isinstance(node, exp.RegexpFullMatch):
        return f"regexp_full_match({text(node.this)}, {text(node.expression)})"
    if isinstance(node, exp.Lambda):
        names = ", ".join(part.name for part in node.expressions)
        if node.meta.get(ARROW):
            return f"({names} -> {text(node.this)})"
        return f"(lambda {names}: {text(node.this)})"
    if isinstance(node, exp.Identifier):
        return quoted_if_needed(node.name)
    if isinstance(node, exp.Interval):
        return _interval(node)
    return _printed(_written(node))


def _written(node: exp.Expr) -> str:
    return node.sql(dialect=DuckLakeSql, normalize_functions=False, comments=False)


def _printed(sql: str) -> str:
    """Returns an expression as DuckDB prints it; lambdas stay as written, because DuckDB does not keep their form."""
    found = printed(sql)
    return sql if found is None or " -> " in found else found


def _is_quantified(node: exp.Expr) -> bool:
    """Whether a node compares with ANY or ALL, over a query or a list."""
    right = node.expression if isinstance(node, exp.Binary) else None
    return isinstance(right, exp.Any | exp.All) or (
        isinstance(right, exp.Anonymous) and right.name.casefold() in ("any", "all", "some")
    )


def _chained(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Yields the operands of a chain of one operator, which prints without inner parentheses."""
    bare = node.unnest()
    if type(bare) is not kind:
        yield node
        return
    yield from _chained(bare.this, kind)
    yield from _chained(bare.expression, kind)


def _unary(text: str) -> str:
    return f"({text})" if SINCE_DUCKDB_2 else text


def _negated(inner: exp.Expr) -> str:
    bare = inner.unnest()
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({text(inner.this)} IS NOT NULL)"
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Boolean):
        return _printed(f"{_written(inner.this)} IS NOT {_written(inner.expression)}")
    if SINCE_DUCKDB_2:
        return f"(NOT {text(bare)})"
    if isinstance(bare, exp.In) and bare.expressions:
        return f"({text(bare.this)} NOT IN ({', '.join(map(text, bare.expressions))}))"
    if type(bare) in _OPPOSITE and not _is_quantified(bare):
        return f"({text(bare.this)} {_OPPOSITE[type(bare)]} {text(bare.expression)})"
    return f"(NOT {text(bare)})"


#: Types that DuckDB prints as keywords; it quotes the names of all others.
_KEYWORD_TYPES = (
    "INTEGER", "SMALLINT", "BIGINT", "FLOAT", "VARCHAR", "TIMESTAMP", "TIME", "BOOLEAN", "INTERVAL", "BIT",
)  # fmt: skip
#: Type names that DuckDB 2.0 respells; it keeps others as written.
_KEYWORD_TYPES_2 = (
    "INT", "INTEGER", "SMALLINT", "BIGINT", "FLOAT", "REAL", "DOUBLE PRECISION", "BOOLEAN", "VARCHAR", "CHAR", "CHARACTER", "NCHAR",
    "CHAR VARYING", "CHARACTER VARYING", "NCHAR VARYING", "TIMESTAMP", "TIME", "INTERVAL", "BIT", "VARIANT", "GEOMETRY",
)  # fmt: skip


def _type(kind: exp.DataType) -> str:
    if kind.this in (exp.DType.ARRAY, exp.DType.LIST):
        return f"{_type(kind.expressions[0])}[{''.join(size.name for size in kind.args.get('values') or ())}]"
    try:
        known = from_sqlglot(kind).sql()
    except DuckLakeError:
        known = kind.sql(dialect=DuckLakeSql)
    if kind.this == exp.DType.STRUCT:
        fields = (f"{quoted_if_needed(part.name)} {_type(part.args['kind'])}" for part in kind.expressions)
        return f"STRUCT({', '.join(fields)})"
    if kind.this == exp.DType.MAP:
        return f"MAP({', '.join(map(_type, kind.expressions))})"
    if kind.this == exp.DType.ENUM:
        name = kind.meta.get(WRITTEN_TYPE, "ENUM") if SINCE_DUCKDB_2 else '"ENUM"'
        return f"{name}({', '.join(map(text, kind.expressions))})"
    written, sizes = kind.meta.get(WRITTEN_TYPE, known), [size.name for size in kind.expressions]
    if known == "JSON":
        return f'"{written}"'
    if kind.this == exp.DType.DECIMAL:
        return _sized("DECIMAL", sizes)
    if SINCE_DUCKDB_2:
        return _since_2(written, known, sizes)
    if known == "VARCHAR":
        return _sized(known, sizes or ["1"] * (written.upper() in ("CHAR", "CHARACTER", "NCHAR")))
    if known.startswith("TIMESTAMP") and sizes:
        return _sized("TIMESTAMP", sizes)
    if kind.this == exp.DType.BIT:
        return _sized("BIT", sizes or ["1"] * (written.upper() == "BIT"))
    return known if known in _KEYWORD_TYPES else f'"{known}"'


def _since_2(written: str, known: str, sizes: Sequence[str]) -> str:
    name = written.upper()
    if name not in _KEYWORD_TYPES_2:
        return _sized(written, sizes)
    if name in ("FLOAT", "BIT"):
        return _sized(name, sizes if name == "FLOAT" else ())
    return _sized(known, sizes) if known == "VARCHAR" else known


def _sized(name: str, sizes: Sequence[str]) -> str:
    return f"{name}({', '.join(sizes)})" if sizes else name


def _number(digits: str) -> str:
    if SINCE_DUCKDB_2:
        return digits
    return repr(float(digits)) if "e" in digits.lower() else digits.replace("_", "").removesuffix(".")


def _case(node: exp.Case) -> str:
    whens = "".join(
        f" WHEN ({f'({text(node.this)} = {text(branch.this)})' if node.this else text(branch.this)})"
        f" THEN ({text(branch.args['true'])})"
        for branch in node.args["ifs"]
    )
    other = text(node.args["default"]) if node.args.get("default") else "NULL"
    return f"CASE {whens} ELSE {other} END"


#: Date parts that DuckDB 1.5 prints in the singular.
_UNITS = ("year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond", "week", "quarter", "decade")
_PARTS = {name: unit for unit in (*_UNITS, "century", "millennium") for name in (unit, f"{unit}s")}
_PARTS |= {"centuries": "century", "millennia": "millennium", "millenniums": "millennium"}


def _call(node: exp.Anonymous) -> str:
    name = node.name
    lower = name.lower()
    args = node.expressions
    if lower == "count" and (not args or (len(args) == 1 and isinstance(args[0], exp.Star))):
        return "count()" if isinstance(node.parent, exp.Window) else "count_star()"
    if lower == "ifnull":
        lower, name = "coalesce", "COALESCE"
    if lower == "coalesce":
        return f"COALESCE({', '.join(map(text, args))})"
    if lower in ("grouping", "grouping_id"):
        return f"GROUPING({', '.join(map(text, args))})"
    if lower == "nullif":
        return f'"nullif"({", ".join(map(text, args))})'
    prefix = _MAIN if node.meta.get(SPECIAL_SYNTAX) or lower in ("substring", "trim", "row") else ""
    rendered = [text(arg) for arg in args]
    if lower == "date_part" and node.meta.get(SPECIAL_SYNTAX):
        part, is_text = node.meta[WRITTEN_PART]
        if not is_text:
            part = part.upper() if SINCE_DUCKDB_2 else _PARTS.get(part.lower(), part.lower())
        rendered[0] = quote_text(part)
    return f"{prefix}{quoted_if_needed(lower)}({', '.join(rendered)})"


def _ordered(item: exp.Expr) -> str:
    if not isinstance(item, exp.Ordered):
        return text(item)
    direction = {True: " DESC", False: " ASC", None: ""}[item.args.get("desc")]
    return f"{text(item.this)}{direction}{' NULLS FIRST' if item.args.get('nulls_first') else ''}"


def _defined(window: exp.Expr) -> str:
    """Returns the text of a window in the WINDOW clause."""
    window = window.copy()
    window.set("over", "AS")
    return _written(window)


def _window(node: exp.Window) -> str:
    select = node.find_ancestor(exp.Select) if node.args.get("alias") else None
    named = ", ".join(map(_defined, select.args.get("windows") or ())) if select is not None else ""
    if named or node.args.get("spec"):
        return _printed(f"{_written(node)} WINDOW {named}" if named else _written(node))
    parts: list[str] = []
    if node.args.get("alias"):
        parts.append(node.args["alias"].name)
    if node.args.get("partition_by"):
        parts.append("PARTITION BY " + ", ".join(map(text, node.args["partition_by"])))
    if node.args.get("order"):
        parts.append("ORDER BY " + ", ".join(_ordered(item) for item in node.args["order"].expressions))
    return f"{text(node.this)} OVER ({' '.join(parts)})"


def _interval(node: exp.Interval) -> str:
    unit = node.text("unit").lower().rstrip("s")
    value = node.this
    written = node.meta.get(INTERVAL_TEXT)
    if isinstance(written, str) and any(map(str.isalpha, written)):
        return f"CAST('{written}' AS INTERVAL)"
    number = value.name if isinstance(value, exp.Literal) else text(value)
    if written is not None:
        number = f"'{written}'"
    if unit in ("second", "millisecond"):
        return f"to_{unit}s(CAST({number} AS DOUBLE))"
    width = "BIGINT" if unit in ("hour", "minute", "microsecond") else "INTEGER"
    plural = {"century": "centuries", "millennium": "millennia", "millennia": "millennia"}.get(unit, f"{unit}s")
    return f"to_{plural}(CAST(trunc(CAST({number} AS DOUBLE)) AS {width}))"

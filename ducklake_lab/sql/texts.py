"""DuckDB's functions of texts in Spark's words."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.calls import Build, Call
from ducklake_lab.sql.inference import Type
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, number, text


def _is_list(kind: Type) -> bool:
    return kind is not None and kind.name == "list"


def length(c: Call) -> exp.Expr:
    return cast(call("size" if _is_list(c.types[0]) else "char_length", c.args[0]), "BIGINT")


def substring(c: Call) -> exp.Expr:
    start = c.written[1].unnest()
    if isinstance(start, exp.Literal) and start.name.isdigit() and int(start.name) > 0:
        return call("substring", *c.args)
    # Spark takes position 0 for position 1; DuckDB counts it as a place before the text.
    value, begin = c.args[0], cast(c.args[1], "INT")
    zero = binary(exp.EQ, begin, number(0))
    if len(c.args) == 2:
        return call("substring", value, begin)
    length = cast(c.args[2], "INT")
    shorter = call("greatest", binary(exp.Sub, length, number(1)), number(0))
    return case(zero, call("substring", value.copy(), number(1), shorter), call("substring", value, begin, length))


def left_right(name: str) -> Build:
    def build(c: Call) -> exp.Expr:
        written = c.written[1].unnest()
        if isinstance(written, exp.Neg) and isinstance(written.this, exp.Literal) and written.this.name.isdigit():
            # all but so many characters
            left_out = int(written.this.name)
            if name == "right":
                return call("substring", c.args[0], number(left_out + 1))
            length = binary(exp.Sub, call("char_length", c.args[0].copy()), number(left_out))
            return call("left", c.args[0], call("greatest", length, number(0)))
        if not c.literal(1, "count").isdigit():
            raise UnsupportedFeatureError(f"{name} with that count is not supported on Spark yet.")
        return call(name, *c.args)

    return build


def concat(c: Call) -> exp.Expr:
    if any(_is_list(kind) for kind in c.types):
        raise UnsupportedFeatureError("concat of lists is not supported on Spark yet; use list_concat.")
    # DuckDB's concat leaves NULLs out.
    return call("concat", *[call("coalesce", cast(arg, "STRING"), text("")) for arg in c.args])


def split(c: Call) -> exp.Expr:
    separator = c.literal(1, "separator")
    if not separator or "\\E" in separator:
        raise UnsupportedFeatureError("Splitting at that separator is not supported on Spark.")
    return call("split", c.args[0], text(f"\\Q{separator}\\E"))


def regexp_extract(c: Call) -> exp.Expr:
    group = c.args[2] if len(c.args) > 2 else number(0)
    return call("regexp_extract", c.args[0], c.args[1], group)


def regexp_replace(c: Call) -> exp.Expr:
    replacement = c.literal(2, "replacement").replace("$", "\\$")
    if len(c.args) == 4 and c.literal(3, "option") == "g":
        for digit in range(10):
            replacement = replacement.replace(f"\\{digit}", f"${digit}")
        return call("regexp_replace", c.args[0], c.args[1], text(replacement))
    pattern = c.literal(1, "pattern")
    if len(c.args) > 3 or "(" in pattern or "^" in pattern or "\\" in replacement:
        raise UnsupportedFeatureError("regexp_replace of the first match is not supported on Spark; pass 'g' for all.")
    # what comes before the first match is kept with it; Spark replaces all matches of a pattern
    return call("regexp_replace", c.args[0], text(f"(?s)^(.*?)(?-s:{pattern})"), text(f"$1{replacement}"))


def regexp_matches(c: Call) -> exp.Expr:
    return call("regexp_like", c.args[0], c.args[1])


def full_match(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Whether a regular expression matches the whole text."""
    return call("regexp_like", value, call("concat", text("^(?:"), pattern, text(")$")))

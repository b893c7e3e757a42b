"""CAST as DuckDB does it, in Spark SQL: rounding to integers, ranges of unsigned types, the text of numbers."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import FLOATS, INTEGERS, DataType
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, number, text
from ducklake_lab.sql.types import UNSIGNED_MAXIMUM, spark_type
from ducklake_lab.sql.zones import from_local, from_text

#: Types that Spark lacks and only carries, and what as.
_CARRIED = {"timetz": "STRING", "interval": "STRING", "geometry": "BINARY"}


def convert(value: exp.Expr, source: DataType | None, target: DataType, safe: bool = False) -> exp.Expr:
    """A Spark expression's value as `target`.

    Args:
        source: the DuckDB type of the value, None where not known.
        safe: NULL instead of an error where it does not fit (TRY_CAST).

    Raises:
        UnsupportedFeatureError: Spark has no such type, or writes it as other text than DuckDB.
    """
    if source == target and (isinstance(value, exp.Column) or target.name in _CARRIED):
        return value
    if target.name in _CARRIED and isinstance(value, exp.Null):
        return cast(value, _CARRIED[target.name])
    kind = spark_type(target)
    if target.name == "timestamptz" and source != target and not isinstance(value, exp.Null):
        if source is None:
            raise UnsupportedFeatureError("CAST of a value of no known type to TIMESTAMPTZ is not supported on Spark.")
        return from_text(value, safe) if source.name == "varchar" else from_local(value)
    if target.name in INTEGERS:
        return _to_integer(value, source, target, kind, safe)
    if target.name == "varchar" and source is not None:
        if source.name in FLOATS:
            return float_text(value)
        if source.is_nested or source.name in ("timestamptz", "blob", "interval"):
            raise UnsupportedFeatureError(f"CAST of {source.sql()} to VARCHAR is not supported on Spark yet.")
    if target.name == "blob" and isinstance(value, exp.Literal) and value.is_string:
        return _binary_literal(value.name)
    return cast(value, kind, safe)


def _to_integer(value: exp.Expr, source: DataType | None, target: DataType, kind: str, safe: bool) -> exp.Expr:
    if isinstance(value, exp.Null):
        return cast(value, kind)
    if source is None or source.decimal is not None:
        rounded: exp.Expr = call("round", value)
    elif source.name in FLOATS:
        # Halves go to the even neighbour.
        rounded = call("rint", value)
    elif source.name == "varchar":
        # DuckDB reads '7.5' and '1e2' as numbers too, and rounds; Spark only whole numbers
        rounded = call("round", cast(value, "DECIMAL(38,10)", safe))
    else:
        rounded = value
    maximum = UNSIGNED_MAXIMUM.get(target.name)
    result = cast(rounded, kind, safe)
    if source is not None and source.name == "varchar":
        result = call("coalesce", cast(value.copy(), kind, safe=True), result)
    if maximum is None:
        return result
    within = exp.Between(
        this=cast(rounded.copy(), "DECIMAL(38,0)", safe), low=number(0), high=exp.Literal.number(str(maximum))
    )
    if safe:
        return case(within, result)
    message = call(
        "concat", text("Conversion error: "), cast(rounded.copy(), "STRING"), text(f" does not fit {target.sql()}")
    )
    fails = cast(call("raise_error", message), kind)
    outside = exp.Not(this=exp.Paren(this=within))
    return case(outside, fails, result)


def _binary_literal(written: str) -> exp.Expr:
    r"""DuckDB's `'\xAA\x00ab'::BLOB` as X'AA006162'."""
    digits, index = "", 0
    while index < len(written):
        if written[index : index + 2] == "\\x":
            digits += written[index + 2 : index + 4]
            index += 4
        else:
            digits += written[index].encode().hex()
            index += 1
    return call("unhex", text(digits))


def float_text(value: exp.Expr) -> exp.Expr:
    """A DOUBLE as DuckDB writes it: `1e+20`, `10000000.0`, `inf`; Spark writes 1.0E20, 1.0E7, Infinity."""
    plain = cast(value, "STRING")
    size = call("abs", value.copy())
    digits = call(
        "regexp_replace", cast(cast(value.copy(), "DECIMAL(38,18)"), "STRING"), text(r"(\.\d+?)0+$"), text("$1")
    )
    mantissa = call(
        "regexp_replace", call("substring_index", plain.copy(), text("E"), number(1)), text(r"\.0$"), text("")
    )
    exponent = call("substring_index", plain.copy(), text("E"), exp.Neg(this=number(1)))
    sign = case(call("startswith", exponent, text("-")), text("e-"), text("e+"))
    padded = call(
        "lpad",
        call("ltrim", text("-"), exponent.copy()),
        call("greatest", number(2), call("char_length", call("ltrim", text("-"), exponent.copy()))),
        text("0"),
    )
    return exp.Case(
        ifs=[
            exp.If(this=call("isnan", value.copy()), true=text("nan")),
            exp.If(
                this=binary(exp.EQ, size, cast(text("Infinity"), "DOUBLE")),
                true=case(binary(exp.GT, value.copy(), number(0)), text("inf"), text("-inf")),
            ),
            exp.If(
                this=exp.Or(
                    this=binary(exp.EQ, value.copy(), number(0)),
                    expression=exp.Paren(
                        this=exp.And(
                            this=binary(exp.GTE, size.copy(), exp.Literal.number("1e-3")),
                            expression=binary(exp.LT, size.copy(), exp.Literal.number("1e7")),
                        )
                    ),
                ),
                true=plain,
            ),
            exp.If(
                this=exp.Paren(
                    this=exp.And(
                        this=binary(exp.GTE, size.copy(), exp.Literal.number("1e-4")),
                        expression=binary(exp.LT, size.copy(), exp.Literal.number("1e16")),
                    )
                ),
                true=digits,
            ),
        ],
        default=call("concat", mantissa, sign, padded),
    )

"""DuckDB's functions and what Spark calls them: every function that may run on Spark is listed here.

An entry says what type the result has in DuckDB and how Spark computes the same. What is not listed is
refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.model.types import INTEGERS, DataType
from ducklake_lab.sql import aggregates, lists, numbers, temporal, texts
from ducklake_lab.sql.calls import Build, Call
from ducklake_lab.sql.inference import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Type,
    common,
    type_of,
)
from ducklake_lab.sql.spark_nodes import binary, call, case, cast, is_null, negate, number, text

#: A type, or what gives it from the types of the arguments.
Result = DataType | Callable[[Sequence[Type]], Type] | None


@dataclass(frozen=True, slots=True)
class Function:
    """How Spark computes a DuckDB function.

    Attributes:
        build: a Spark function of the same arguments and meaning, or what makes the Spark tree.
        arity: the numbers of arguments that are vouched for.
    """

    build: str | Build
    result: Result
    arity: range
    aggregate: bool = False


def _first(types: Sequence[Type]) -> Type:
    return types[0] if types else None


def _common(types: Sequence[Type]) -> Type:
    return common(types)


def _element(types: Sequence[Type]) -> Type:
    kind = _first(types)
    return kind.children[0][1] if kind is not None and kind.name == "list" else None


def _list_of_first(types: Sequence[Type]) -> Type:
    kind = _first(types)
    return DataType("list", (("element", kind),)) if kind is not None else None


def _child(index: int) -> Callable[[Sequence[Type]], Type]:
    def result(types: Sequence[Type]) -> Type:
        kind = _first(types)
        return DataType("list", (("element", kind.children[index][1]),)) if kind and kind.name == "map" else None

    return result


def _sum(types: Sequence[Type]) -> Type:
    kind = _first(types)
    if kind is None:
        return None
    if kind.name in INTEGERS or kind.name == "boolean":
        return BIGINT
    if kind.decimal is not None:
        return DataType(f"decimal(38,{kind.decimal[1]})")
    return DOUBLE


def _rounded(types: Sequence[Type]) -> Type:
    kind = _first(types)
    return kind if kind is not None and kind.decimal is None else None


# -- builders -------------------------------------------------------------------------------------


def _fixed(name: str, *before: exp.Expr, after: Sequence[exp.Expr] = (), kind: str | None = None) -> Build:
    """A Spark function with constant arguments around, its result cast to `kind`."""

    def build(c: Call) -> exp.Expr:
        node: exp.Expr = call(name, *[n.copy() for n in before], *c.args, *[n.copy() for n in after])
        return cast(node, kind) if kind else node

    return build


def _as_double(name: str) -> Build:
    return lambda c: call(name, *[cast(arg, "DOUBLE") for arg in c.args])


def _swapped(name: str, kind: str | None = None) -> Build:
    def build(c: Call) -> exp.Expr:
        node: exp.Expr = call(name, *reversed(c.args))
        return cast(node, kind) if kind else node

    return build


def _list_contains(c: Call) -> exp.Expr:
    rows, value = c.args
    known = exp.And(this=negate(is_null(rows)), expression=negate(is_null(value)))
    return case(known, call("coalesce", call("array_contains", rows.copy(), value.copy()), exp.Boolean(this=False)))


def _struct_pack(c: Call) -> exp.Expr:
    parts: list[exp.Expr] = []
    for argument in c.args:
        if not isinstance(argument, exp.Kwarg | exp.PropertyEQ):
            raise UnsupportedFeatureError("struct_pack needs named arguments: struct_pack(a := 1).")
        parts += [text(argument.this.name), argument.expression]
    return call("named_struct", *parts)


def _struct_extract(c: Call) -> exp.Expr:
    return exp.Dot(this=c.args[0], expression=exp.to_identifier(c.literal(1, "field name"), quoted=True))


_ONE, _TWO, _THREE = range(1, 2), range(2, 3), range(3, 4)
_ANY = range(1, 1000)

FUNCTIONS: dict[str, Function] = {}


def _add(names: str, build: str | Build, result: Result, arity: range = _ONE, aggregate: bool = False) -> None:
    for name in names.split():
        FUNCTIONS[name] = Function(build, result, arity, aggregate)


# Text
_add("upper ucase", "upper", VARCHAR)
_add("lower lcase", "lower", VARCHAR)
_add("length len char_length character_length strlen", texts.length, BIGINT)
FUNCTIONS["strlen"] = Function(_fixed("octet_length", kind="BIGINT"), BIGINT, _ONE)
_add("array_length", _fixed("size", kind="BIGINT"), BIGINT)
_add("substring substr", texts.substring, VARCHAR, range(2, 4))
_add("trim", "btrim", VARCHAR, range(1, 3))
_add("ltrim", _swapped("ltrim"), VARCHAR, range(1, 3))
_add("rtrim", _swapped("rtrim"), VARCHAR, range(1, 3))
_add("left", texts.left_right("left"), VARCHAR, _TWO)
_add("right", texts.left_right("right"), VARCHAR, _TWO)
_add("replace", "replace", VARCHAR, _THREE)
_add("reverse", "reverse", VARCHAR)
_add("repeat", lambda c: call("repeat", c.args[0], cast(c.args[1], "INT")), VARCHAR, _TWO)
_add("lpad", lambda c: call("lpad", c.args[0], cast(c.args[1], "INT"), c.args[2]), VARCHAR, _THREE)
_add("rpad", lambda c: call("rpad", c.args[0], cast(c.args[1], "INT"), c.args[2]), VARCHAR, _THREE)
_add("concat", texts.concat, VARCHAR, _ANY)
_add("concat_ws", "concat_ws", VARCHAR, _ANY)
_add("contains", "contains", BOOLEAN, _TWO)
_add("starts_with prefix", "startswith", BOOLEAN, _TWO)
_add("ends_with suffix", "endswith", BOOLEAN, _TWO)
_add("strpos instr position", _fixed("instr", kind="BIGINT"), BIGINT, _TWO)
_add("split string_split str_split string_to_array", texts.split, DataType("list", (("element", VARCHAR),)), _TWO)
_add("split_part", lambda c: call("split_part", c.args[0], c.args[1], cast(c.args[2], "INT")), VARCHAR, _THREE)
_add("ascii", "ascii", INTEGER)
_add("unicode ord", lists.unicode, INTEGER)
_add(
    "regexp_split_to_array string_split_regex str_split_regex",
    lists.split_by_pattern,
    DataType("list", (("element", VARCHAR),)),
    _TWO,
)
_add("chr", "chr", VARCHAR)
_add("md5", "md5", VARCHAR)
_add("sha256", _fixed("sha2", after=[number(256)]), VARCHAR)
_add("to_base64 base64", "base64", VARCHAR)
_add("levenshtein editdist3", _fixed("levenshtein", kind="BIGINT"), BIGINT, _TWO)
_add("translate", "translate", VARCHAR, _THREE)
_add("regexp_matches", texts.regexp_matches, BOOLEAN, _TWO)
_add("regexp_full_match", lambda c: texts.full_match(c.args[0], c.args[1]), BOOLEAN, _TWO)
_add("regexp_extract", texts.regexp_extract, VARCHAR, range(2, 4))
_add("regexp_replace", texts.regexp_replace, VARCHAR, range(3, 5))

# Numbers
_add("abs", "abs", _first)
_add("ceil ceiling", numbers.ceil_floor("ceil"), _rounded)
_add("floor", numbers.ceil_floor("floor"), _rounded)
_add("round", numbers.rounded, _rounded, range(1, 3))
_add("trunc", numbers.truncate, DOUBLE)
_add("sign", numbers.sign, DataType("int8"))
for _name in "sqrt exp ln log2 log10 sin cos tan asin acos atan degrees radians cbrt".split():
    _add(_name, _as_double(_name), DOUBLE)
_add("log", numbers.log, DOUBLE, range(1, 3))
_add("atan2", _as_double("atan2"), DOUBLE, _TWO)
_add("pow power", _as_double("power"), DOUBLE, _TWO)
_add("pi", "pi", DOUBLE, range(1))
_add("random", "rand", DOUBLE, range(1))
_add("isnan", "isnan", BOOLEAN)
_add("greatest", "greatest", _common, _ANY)
_add("least", "least", _common, _ANY)
_add("bit_count", numbers.bit_count, DataType("int8"))
_add("xor", lambda c: binary(exp.BitwiseXor, c.args[0], c.args[1]), _common, _TWO)

# NULL
_add("coalesce ifnull", "coalesce", _common, _ANY)
_add("nullif", "nullif", _first, _TWO)

# Dates and times
_add(
    "year month day dayofmonth quarter hour minute dayofyear week weekofyear second dow dayofweek isodow doy weekday",
    lambda c: temporal.part(c.name.lower(), c.args[0], c.types[0]),
    BIGINT,
)
_add("date_part datepart", lambda c: temporal.part(c.literal(0, "part"), c.args[1], c.types[1]), BIGINT, _TWO)
_add(
    "date_trunc datetrunc",
    lambda c: temporal.truncate(c.literal(0, "part"), c.args[1], c.types[1]),
    lambda types: TIMESTAMPTZ if types[1] == TIMESTAMPTZ else TIMESTAMP,
    _TWO,
)
_add(
    "date_diff datediff",
    lambda c: temporal.difference(c.literal(0, "part"), c.args[1], c.args[2], c.types[1:]),
    BIGINT,
    _THREE,
)
_add("epoch", lambda c: temporal.epoch(c.args[0], c.types[0], 0), DOUBLE)
_add("epoch_ms", lambda c: temporal.epoch(c.args[0], c.types[0], 3), BIGINT)
_add("epoch_us", lambda c: temporal.epoch(c.args[0], c.types[0], 6), BIGINT)
_add("strftime", lambda c: temporal.formatted(c.args[0], c.literal(1, "format")), VARCHAR, _TWO)
_add("strptime", lambda c: temporal.parsed(c.args[0], c.literal(1, "format")), TIMESTAMP, _TWO)
_add("make_date", "make_date", DATE, _THREE)
_add("make_timestamp", lambda c: call("make_timestamp_ntz", *c.args), TIMESTAMP, range(6, 7))
_add("last_day", lambda c: call("last_day", cast(c.args[0], "DATE")), DATE)
_add("dayname", _fixed("date_format", after=[text("EEEE")]), VARCHAR)
_add("monthname", _fixed("date_format", after=[text("MMMM")]), VARCHAR)
_add("now get_current_timestamp transaction_timestamp", "current_timestamp", TIMESTAMPTZ, range(1))
_add("today current_date", "current_date", DATE, range(1))

# Lists, structs, maps
_add("list_contains array_contains list_has array_has", _list_contains, BOOLEAN, _TWO)
_add("list_transform array_transform list_apply array_apply apply", "transform", None, _TWO)
_add("list_filter array_filter filter", "filter", _first, _TWO)
_add("list_concat array_concat list_cat array_cat", lists.concat, _first, _TWO)
_add("list_append array_append array_push_back", lists.append, _first, _TWO)
_add("list_prepend array_prepend", lists.prepend, lambda types: types[1], _TWO)
_add("list_sort array_sort", lists.sort(descending=False), _first, range(1, 3))
_add("list_reverse_sort array_reverse_sort", lists.sort(descending=True), _first)
_add("list_distinct array_distinct", lists.distinct, _first)
_add("list_unique array_unique", lists.unique, DataType("uint64"))
_add("list_count", lists.count, BIGINT)
_add("list_sum", lists.total, None)
_add("list_avg", lists.average, DOUBLE)
_add("list_first", lists.element(1), _element)
_add("list_last", lists.element(-1), _element)
_add("list_has_any array_has_any", lists.has_any, BOOLEAN, _TWO)
_add("list_has_all array_has_all", lists.has_all, BOOLEAN, _TWO)
_add("array_to_string list_to_string", lists.joined, VARCHAR, _TWO)
_add("range", lists.sequence(inclusive=False), DataType("list", (("element", BIGINT),)), range(1, 3))
_add("generate_series", lists.sequence(inclusive=True), DataType("list", (("element", BIGINT),)), range(1, 3))
_add("list_max array_max", "array_max", _element)
_add("list_min array_min", "array_min", _element)
_add("list_reverse array_reverse", "reverse", _first)
_add("list_value list_pack", "array", _list_of_first, range(1000))
_add("list_position array_position list_indexof", lists.position, INTEGER, _TWO)
_add("flatten", lists.flatten, _element)
_add("unnest", "explode", _element)
_add("list_extract list_element array_extract", "try_element_at", _element, _TWO)
_add("struct_pack", _struct_pack, None, _ANY)
_add("struct_extract", _struct_extract, None, _TWO)
_add("map_keys", "map_keys", _child(0))
_add("map_values", "map_values", _child(1))
_add("cardinality", _fixed("size", kind="DECIMAL(20,0)"), DataType("uint64"))

# Aggregates
_add("count", aggregates.count, BIGINT, range(2), aggregate=True)
_add("count_star", aggregates.count, BIGINT, range(1), aggregate=True)
_add("sum", aggregates.total, _sum, aggregate=True)
_add("avg mean", aggregates.average, DOUBLE, aggregate=True)
_add("min", aggregates.plain("min"), _first, aggregate=True)
_add("max", aggregates.plain("max"), _first, aggregate=True)
for _name in "stddev stddev_samp stddev_pop variance var_samp var_pop".split():
    _add(_name, aggregates.plain(_name), DOUBLE, aggregate=True)
for _name in "corr covar_pop covar_samp".split():
    _add(_name, aggregates.plain(_name), DOUBLE, _TWO, aggregate=True)
_add(
    "median",
    lambda c: c.wrap(call("percentile", aggregates.cast_inside(c.args[0], "DOUBLE"), exp.Literal.number("0.5D"))),
    DOUBLE,
    aggregate=True,
)
_add("quantile_cont", aggregates.quantile, DOUBLE, _TWO, aggregate=True)
_add("quantile_disc quantile", aggregates.quantile_disc, _first, _TWO, aggregate=True)
_add("arg_max argmax max_by", aggregates.arg_extreme("max_by"), _first, _TWO, aggregate=True)
_add("arg_min argmin min_by", aggregates.arg_extreme("min_by"), _first, _TWO, aggregate=True)
_add("any_value", aggregates.any_value, _first, aggregate=True)
_add("first arbitrary", aggregates.first_last("first"), _first, aggregate=True)
_add("last", aggregates.first_last("last"), _first, aggregate=True)
_add("string_agg listagg group_concat", aggregates.string_agg, VARCHAR, range(1, 3), aggregate=True)
_add("array_agg list", aggregates.array_agg, _list_of_first, aggregate=True)
_add("bool_and", aggregates.plain("bool_and"), BOOLEAN, aggregate=True)
_add("bool_or", aggregates.plain("bool_or"), BOOLEAN, aggregate=True)
_add("count_if countif", aggregates.plain("count_if"), BIGINT, aggregate=True)
_add("bit_and", aggregates.plain("bit_and"), _first, aggregate=True)
_add("bit_or", aggregates.plain("bit_or"), _first, aggregate=True)
_add("bit_xor", aggregates.plain("bit_xor"), _first, aggregate=True)
_add("approx_count_distinct", aggregates.plain("approx_count_distinct"), BIGINT, aggregate=True)
_add("grouping", _fixed("grouping", kind="BIGINT"), BIGINT)
FUNCTIONS["grouping"] = Function(FUNCTIONS["grouping"].build, BIGINT, _ONE, True)

# Window functions
_add("row_number", aggregates.window_function("row_number", "BIGINT"), BIGINT, range(1))
_add("rank", aggregates.window_function("rank", "BIGINT"), BIGINT, range(1))
_add("dense_rank rank_dense", aggregates.window_function("dense_rank", "BIGINT"), BIGINT, range(1))
_add("percent_rank", aggregates.window_function("percent_rank"), DOUBLE, range(1))
_add("cume_dist", aggregates.window_function("cume_dist"), DOUBLE, range(1))
_add("ntile", aggregates.window_function("ntile", "BIGINT"), BIGINT)
_add("lag", aggregates.window_function("lag"), _first, range(1, 4))
_add("lead", aggregates.window_function("lead"), _first, range(1, 4))
_add("first_value", aggregates.window_function("first_value"), _first)
_add("last_value", aggregates.window_function("last_value"), _first)
_add("nth_value", aggregates.window_function("nth_value"), _first, _TWO)

#: Aggregates whose result the order of the rows decides, and that follow it on Spark; those that cannot.
_KEEPS_ORDER = frozenset("string_agg listagg group_concat array_agg list".split())
_ANY_OF = frozenset("first arbitrary last any_value".split())
WINDOW_ONLY = frozenset("row_number rank dense_rank rank_dense percent_rank cume_dist ntile lag lead".split())


#: Aggregates DuckDB has and Spark is not asked for; GROUP BY ALL has to know them.
_OTHER_AGGREGATES = frozenset(
    "mode histogram product skewness kurtosis kurtosis_pop entropy mad fsum kahan_sum sumkahan favg sum_no_overflow "
    "approx_quantile reservoir_quantile regr_slope regr_intercept regr_r2 regr_count arg_max_null arg_min_null "
    "bitstring_agg max_n min_n sem approx_top_k grouping_id".split()
)


def is_aggregate(name: str) -> bool:
    """Whether a DuckDB function aggregates rows."""
    folded = name.lower()
    function = FUNCTIONS.get(folded)
    return folded in _OTHER_AGGREGATES or (function is not None and function.aggregate)


def result_type(node: exp.Anonymous) -> Type:
    """The type of a call's result in DuckDB; None where not known."""
    function = FUNCTIONS.get(node.name.lower())
    if function is None:
        return None
    if callable(function.result):
        types = [type_of(argument) for argument in node.expressions]
        return function.result(types) if types else None
    if node.name.lower() == "struct_extract" and len(node.expressions) == 2:
        kind = type_of(node.expressions[0])
        return next((t for n, t in kind.children if n == node.expressions[1].name), None) if kind else None
    return function.result


def translate_call(c: Call) -> exp.Expr:
    """The Spark expression of a call.

    Raises:
        UnsupportedFeatureError: the function is not one that is known to mean the same.
    """
    function = FUNCTIONS.get(c.name.lower())
    if function is None:
        raise UnsupportedFeatureError(f"Function {c.name} is not supported on Spark yet.")
    count = len(c.args)
    if count == 1 and isinstance(c.args[0], exp.Distinct):
        count = len(c.args[0].expressions)
    if count not in function.arity:
        raise UnsupportedFeatureError(f"{c.name} with {count} arguments is not supported on Spark yet.")
    if function.aggregate and c.args and isinstance(c.args[-1], exp.Order) and c.name.lower() not in _KEEPS_ORDER:
        if c.name.lower() in _ANY_OF:
            raise UnsupportedFeatureError(f"{c.name} with ORDER BY is not supported on Spark; use arg_min or arg_max.")
        # the order of the rows means nothing to the others
        c.args[-1] = c.args[-1].this
    if isinstance(function.build, str):
        return call(function.build, *c.args)
    return function.build(c)

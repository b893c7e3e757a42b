"""Recognises volatile calls, and calls that a worker can evaluate because they need nothing of the session."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from ducklake_lab.duckdb.evaluation import stabilities
from ducklake_lab.errors import BindError, UnsupportedFeatureError
from ducklake_lab.sql.dialect import TAKE_LAMBDAS
from ducklake_lab.sql.spark.typing import moment

#: Functions whose only effect is a random value.
_RANDOM = frozenset(("random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7"))
#: Functions that depend on the session, or on the memory layout of a value.
_OF_THE_SESSION = frozenset(
    "getvariable current_setting current_catalog current_query ago get_block_size alias "
    "current_localtime get_current_time vector_type json_serialize_plan".split()
)
#: Macros for the current time, and words for it without parentheses.
_OF_THE_TIME = frozenset(
    ("age", "current_time", "current_timestamp", "current_localtimestamp", "localtime", "localtimestamp")
)
_CALLED = re.compile(r'\b(\w+)"?\s*\(|\b(current_\w+|localtime\w*)\b', re.IGNORECASE)

#: Functions that return several rows.
_OF_ROWS = ("regexp_split_to_table", "generate_subscripts")
#: Functions of how a file holds a value: Spark's reader gives a variant's integers in fewer bits.
_OF_ENCODINGS = ("variant_typeof",)
#: Functions that name struct fields by their arguments, and the number of arguments that are no fields.
_NAMING = {"struct_pack": 0, "struct_insert": 1, "struct_update": 1, "union_value": 0}


def is_volatile(node: exp.Expr) -> bool:
    """Returns whether an expression contains a volatile call."""
    return any(call.name.lower() in stabilities() for call in node.find_all(exp.Anonymous))


def volatile_call(node: exp.Expr) -> str | None:
    """Returns the name of a volatile function in an expression; None if there is none."""
    calls = (call.name for call in node.find_all(exp.Anonymous))
    return next((name for name in calls if stabilities().get(name.lower()) == "VOLATILE"), None)


def check_same_for_all(node: exp.Expr, place: str) -> None:
    """Checks an expression that Spark evaluates only once.

    Raises:
        UnsupportedFeatureError: it calls a volatile function.
    """
    name = volatile_call(node)
    if name is not None:
        raise UnsupportedFeatureError(f"{name}() in {place} is not supported on Spark; compute it in a subquery.")


def differs_by_row(sql: str) -> bool:
    """Returns whether a text may call a function whose value differs by row."""
    return any(stabilities().get(name) == "VOLATILE" for name in _called(sql))


def differs_by_run(sql: str) -> bool:
    """Returns whether a text may call a function whose value differs by statement."""
    return any(name in stabilities() or name in _OF_THE_SESSION | _OF_THE_TIME for name in _called(sql))


def _called(sql: str) -> Iterator[str]:
    return ((found[1] or found[2]).lower() for found in _CALLED.finditer(sql))


def check_calls(node: exp.Expr) -> None:
    """Checks the calls of a query.

    Raises:
        BindError: a lambda has parameters with dots.
        UnsupportedFeatureError: a function needs the session, or has side effects.
    """
    for call in node.find_all(exp.Anonymous):
        name = call.name.lower()
        if name in TAKE_LAMBDAS and any(isinstance(part.unnest(), exp.JSONExtract) for part in call.expressions[1:2]):
            raise BindError(f"The parameters of the lambda in {call.name} are no plain names, such as x -> x + 1.")
        fit = name in _RANDOM or name == "error" or moment(call) is not None
        unfit = name in stabilities() and not fit
        if name == "age" and len(call.expressions) == 1:
            raise UnsupportedFeatureError("age of one argument is not supported on Spark; use age(current_date, …).")
        of_rows = name in _OF_ROWS or name in _OF_ENCODINGS
        if unfit or name in _OF_THE_SESSION or (name.startswith("pg_") and name != "pg_typeof") or of_rows:
            raise UnsupportedFeatureError(f"Function {call.name} is not supported on Spark.")
        fields = call.expressions[_NAMING[name] :] if name in _NAMING else []
        if any(isinstance(argument, exp.Column) for argument in fields):
            raise UnsupportedFeatureError(f"{call.name} needs named arguments on Spark: {call.name}(a := …).")
    for kind in (exp.CurrentTime, exp.Localtime):
        if node.find(kind) is not None:
            raise UnsupportedFeatureError("The current time of day is not supported on Spark; use now().")

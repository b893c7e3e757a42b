"""Which calls may be evaluated in a worker: those that need nothing of the session, and change nothing."""

from __future__ import annotations

from sqlglot import exp

from ducklake_lab.catalog.evaluation import stabilities
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.sql.spark.typing import moment

#: Functions that give something else each time, and nothing but that.
_RANDOM = frozenset(("random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7"))
#: Functions of the session, which a worker does not have.
_OF_THE_SESSION = frozenset(
    "getvariable current_setting current_catalog current_query ago get_block_size alias "
    "current_localtime get_current_time".split()
)


#: Functions that give several rows.
_OF_ROWS = ("regexp_split_to_table", "generate_subscripts")
#: Functions that name fields after columns where no name is given.
_NAMING = ("struct_pack", "struct_insert", "struct_update", "union_value")


def is_volatile(node: exp.Expr) -> bool:
    """Whether an expression calls what gives something else each time."""
    return any(call.name.lower() in stabilities() for call in node.find_all(exp.Anonymous))


def check_calls(node: exp.Expr) -> None:
    """Checks the calls in a query.

    Raises:
        UnsupportedFeatureError: one needs the session, or changes something.
    """
    for call in node.find_all(exp.Anonymous):
        name = call.name.lower()
        fit = name in _RANDOM or name == "error" or moment(call) is not None
        unfit = name in stabilities() and not fit
        if name == "age" and len(call.expressions) == 1:
            raise UnsupportedFeatureError("age of one argument is not supported on Spark; use age(current_date, …).")
        if unfit or name in _OF_THE_SESSION or (name.startswith("pg_") and name != "pg_typeof") or name in _OF_ROWS:
            raise UnsupportedFeatureError(f"Function {call.name} is not supported on Spark.")
        if name in _NAMING and any(isinstance(argument, exp.Column) for argument in call.expressions):
            raise UnsupportedFeatureError(f"{call.name} needs named arguments on Spark: {call.name}(a := …).")
    for kind in (exp.CurrentTime, exp.Localtime):
        if node.find(kind) is not None:
            raise UnsupportedFeatureError("The current time of day is not supported on Spark; use now().")

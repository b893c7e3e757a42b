"""The table functions of a lake: `CALL lake.f(…)`, `FROM lake.f(…)` and `FROM ducklake_f('lake', …)`.

Each family of functions is a module with a list `FUNCTIONS`; a new family is added to `_FAMILIES`.
"""

from __future__ import annotations

from ducklake_lab.engine.spark_engine import SparkEngine
from ducklake_lab.session.functions import (
    adding,
    blame,
    cleanup,
    feed,
    files,
    foreign,
    maintenance,
    messages,
    options,
    restore,
    snapshots,
)
from ducklake_lab.session.functions.blame import BlameCall, LifeCall
from ducklake_lab.session.functions.feed import FeedCall
from ducklake_lab.session.functions.registry import Call, Columns, Function, Functions, arrow_schema
from ducklake_lab.session.transactions.transactions import Transactions

__all__ = [
    "FUNCTIONS",
    "BlameCall",
    "Call",
    "Columns",
    "FeedCall",
    "Function",
    "Functions",
    "LifeCall",
    "arrow_schema",
    "functions_of",
]

_FAMILIES = (
    adding.FUNCTIONS,
    foreign.FUNCTIONS,
    snapshots.FUNCTIONS,
    messages.FUNCTIONS,
    options.FUNCTIONS,
    files.FUNCTIONS,
    feed.FUNCTIONS,
    maintenance.FUNCTIONS,
    cleanup.FUNCTIONS,
    restore.FUNCTIONS,
    blame.FUNCTIONS,
)


#: Every table function of a lake, by name.
FUNCTIONS = {function.name: function for family in _FAMILIES for function in family}


def functions_of(transactions: Transactions, engine: SparkEngine) -> Functions:
    """Returns all table functions, bound to the lakes of a session."""
    return Functions(transactions, engine, FUNCTIONS)

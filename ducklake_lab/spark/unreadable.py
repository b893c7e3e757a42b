"""Columns that Spark cannot read: a query that reads one is refused by name, before a job runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.spark.errors import marked

_NAME = re.compile(r"ducklake_unreadable_\d+")
_numbers = count(1)
#: Errors by the names of their functions.
_errors: dict[str, str] = {}


def without(frame: DataFrame, messages: Mapping[int, str]) -> DataFrame:
    """Returns the rows with a function that raises in place of some columns.

    Spark drops the function where nobody reads the column, and evaluates no Python function while it plans.

    Args:
        messages: the errors, by the positions of the columns.
    """
    columns = []
    for place, field in enumerate(frame.schema.fields):
        column = frame[f"`{field.name.replace('`', '``')}`"]
        if place in messages:
            column = F.udf(_refusal(messages[place]), field.dataType)(column)
        columns.append(column.alias(field.name))
    return frame.select(*columns)


def check(explained: Callable[[], str]) -> None:
    """Raises an error if a plan reads such a column.

    Args:
        explained: returns the text of the plan; it is asked for only if a table has had such a column.

    Raises:
        UnsupportedFeatureError: the plan reads it.
    """
    name = _NAME.search(explained()) if _errors else None
    if name is not None:
        raise UnsupportedFeatureError(_errors[name[0]])


def _refusal(message: str) -> Callable[[object], None]:
    error = marked(UnsupportedFeatureError(message))

    def refuse(_: object) -> None:
        raise error

    refuse.__annotations__.clear()  # PySpark warns of hints that it does not know
    known = (name for name, one in list(_errors.items()) if one == message)
    refuse.__name__ = next(known, None) or f"ducklake_unreadable_{next(_numbers)}"
    _errors[refuse.__name__] = message
    return refuse

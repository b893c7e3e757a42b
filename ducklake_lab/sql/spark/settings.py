"""DuckDB's settings that change the meaning of a query, on Spark."""

from __future__ import annotations

from ducklake_lab.duckdb.evaluation import Settings
from ducklake_lab.errors import UnsupportedFeatureError

#: Settings that the translation and the workers obey.
FOLLOWED = (
    "TimeZone",
    "Calendar",
    "integer_division",
    "ieee_floating_point_ops",
    "default_null_order",
    "default_order",
    "old_implicit_casting",
    "disable_timestamptz_casts",
    "lambda_syntax",
    "pivot_limit",
    "order_by_non_integer_literal",
)
#: Settings that Spark cannot obey.
_REFUSED = ("default_collation", "scalar_subquery_error_on_multiple_rows")


def meaningful() -> tuple[str, ...]:
    """Returns the names of the settings that change the meaning of a query."""
    return (*FOLLOWED, *_REFUSED)


def check_settings(settings: Settings) -> None:
    """Raises if a setting would have no effect.

    Raises:
        UnsupportedFeatureError: Spark cannot obey a setting.
    """
    for name, value in settings:
        if name in _REFUSED:
            raise UnsupportedFeatureError(
                f"{name} = '{value}' has no effect on Spark; RESET {name}, or use engine=\"duckdb\"."
            )


def order_of(
    desc: bool | None, nulls_first: bool | None, written: bool | None, settings: Settings
) -> tuple[bool, bool]:
    """Returns (descending, NULLs first) of a sort key.

    Args:
        desc: None without ASC or DESC.
        written: whether the key has NULLS FIRST or NULLS LAST.
    """
    known = dict(settings)
    descending = known.get("default_order", "ASC").upper().startswith("DESC") if desc is None else desc
    if written:
        return descending, bool(nulls_first)
    match known.get("default_null_order", "NULLS_LAST").upper():
        case "NULLS_FIRST":
            return descending, True
        case "NULLS_FIRST_ON_ASC_LAST_ON_DESC":
            return descending, not descending
        case "NULLS_LAST_ON_ASC_FIRST_ON_DESC":
            return descending, descending
    return descending, bool(nulls_first)

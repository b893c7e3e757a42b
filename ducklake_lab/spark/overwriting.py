"""Spark's dynamic overwrite mode, which replaces only the partitions that receive rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.errors import UnsupportedFeatureError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's setting; a writer's option has the last part of its name.
SETTING = "spark.sql.sources.partitionOverwriteMode"
OPTION = SETTING.rpartition(".")[2]


def check_static(mode: str | None, name: str = OPTION) -> None:
    """Raises for a dynamic overwrite, because an overwrite here replaces all rows of the table.

    Raises:
        UnsupportedFeatureError: the mode is `dynamic`.
        UsageError: the mode is unknown.
    """
    folded = (mode or "static").casefold()
    if folded == "dynamic":
        raise UnsupportedFeatureError(
            f"{name}=dynamic is not supported: an overwrite replaces all rows of a lake's table. "
            "Delete the rows of the partitions and append, or set it to static."
        )
    if folded != "static":
        raise UsageError(f"{name} is static, not {mode}.")


def check_session(frame: DataFrame) -> None:
    """Raises as `check_static`, for the setting of a DataFrame's session."""
    check_static(frame.sparkSession.conf.get(SETTING, None), SETTING)

"""Spark's overwrite modes: `static` replaces all rows, `dynamic` those of the partitions that receive rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ducklake_lab.errors import UnsupportedFeatureError, UsageError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's setting; a writer's option has the last part of its name.
SETTING = "spark.sql.sources.partitionOverwriteMode"
OPTION = SETTING.rpartition(".")[2]

OverwriteMode = Literal["static", "dynamic"]


def overwrite_mode(mode: str | None, name: str = OPTION) -> OverwriteMode:
    """Returns the mode of an option or setting; static by default.

    Raises:
        UsageError: the mode is unknown.
    """
    folded = (mode or "static").casefold()
    if folded == "static":
        return "static"
    if folded == "dynamic":
        return "dynamic"
    raise UsageError(f"{name} is static or dynamic, not {mode}.{did_you_mean(folded, ('static', 'dynamic'))}")


def check_static(frame: DataFrame) -> None:
    """Raises for a DataFrame whose session overwrites partitions only, where all rows would be replaced.

    Raises:
        UnsupportedFeatureError: the mode is `dynamic`.
    """
    if overwrite_mode(frame.sparkSession.conf.get(SETTING, None), SETTING) == "dynamic":
        raise UnsupportedFeatureError(
            f"{SETTING}=dynamic is not supported by session.write, whose overwrite replaces all rows of a table. "
            'Use format("ducklake"), or set it to static.'
        )

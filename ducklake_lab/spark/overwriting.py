"""Spark's dynamic overwriting, which replaces only the partitions that rows are written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ducklake_lab.errors import UnsupportedFeatureError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's setting; the option of a writer has its last part as its name.
SETTING = "spark.sql.sources.partitionOverwriteMode"
OPTION = SETTING.rpartition(".")[2]


def check_static(mode: str | None, name: str = OPTION) -> None:
    """Raises where an overwrite is to replace some partitions: all rows of a table would go.

    Raises:
        UnsupportedFeatureError: it is `dynamic`.
        UsageError: it is no mode.
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
    """As `check_static`, by the setting of a DataFrame's session."""
    check_static(frame.sparkSession.conf.get(SETTING, None), SETTING)

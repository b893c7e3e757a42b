"""The session that queries of the package run in, for tests of what it is given to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ducklake_lab.spark import runtime


@pytest.fixture(scope="module", name="spark")
def own_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with the package's settings, in place of the user's; a module imports it."""
    own = runtime.own_session(spark)
    with runtime.acting(own):
        yield own
    runtime.give_back(own)

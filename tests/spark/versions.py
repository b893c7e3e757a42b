"""Marks of tests that need a newer PySpark than the oldest that is supported."""

from __future__ import annotations

import pyspark
import pytest

#: Major and minor version of PySpark.
SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

#: Sinks of streams get Arrow batches.
writes_streams = pytest.mark.skipif(SPARK < (4, 1), reason="streams are written from PySpark 4.1 on")
#: Sources get limits, and a query with availableNow runs until it has read all.
limits_streams = pytest.mark.skipif(SPARK < (4, 2), reason="batches of streams are limited from PySpark 4.2 on")
#: An INSERT may leave out columns with defaults.
fills_defaults = pytest.mark.skipif(SPARK < (4, 1), reason="INSERT leaves out columns from PySpark 4.1 on")

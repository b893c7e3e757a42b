"""What a task of ours does first in a Python worker of Spark's."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from itertools import count

from ducklake_lab.object_access import S3Access, adopt

#: Tasks of a worker after which its modules are loaded.
_WARM = 2
_tasks = count(1)


def begin_task(accesses: Iterable[S3Access] = ()) -> None:
    """Takes over what the driver granted, and leaves what is loaded out of garbage collection.

    Spark collects garbage after each task. Among our modules that takes longer than most tasks, and several times as
    long where `spark.jars.packages` puts large archives on Python's path.
    """
    adopt(accesses)
    if next(_tasks) <= _WARM:
        gc.freeze()

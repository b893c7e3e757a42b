"""Prepares a Python worker of Spark for a task."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from itertools import count

from ducklake_lab.object_access import S3Access, adopt

#: Number of tasks after which a worker has loaded its modules.
_WARM = 2
_tasks = count(1)


def begin_task(accesses: Iterable[S3Access] = ()) -> None:
    """Adopts the driver's access to object stores, and excludes loaded modules from garbage collection.

    Spark collects garbage after each task. With the package's modules this takes longer than most tasks, and several
    times as long with large archives of `spark.jars.packages` on Python's path.
    """
    adopt(accesses)
    if next(_tasks) <= _WARM:
        gc.freeze()

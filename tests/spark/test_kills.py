"""Streams and statements of Spark that are killed at random steps; `python -m tests.spark.kills` kills a hundred."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.kills import Kills
from tests.spark.versions import writes_streams


@pytest.mark.spark
@pytest.mark.sampled(3, "pipelines")
@pytest.mark.timeout(1500)
@writes_streams
def test_killed_work_is_done_once(
    spark_jar: None, new_catalog: Callable[..., str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--spark") != "local":
        pytest.skip("the processes of a local Spark are killed")
    uris = [new_catalog("sqlite", name) for name in ("source", "target")]
    kills = Kills(tmp_path, uris[0], uris[1], "classic", request.config.getoption("--seed"))
    kills.run(3)
    assert kills.done.total() == 3

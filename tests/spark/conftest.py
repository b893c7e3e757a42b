"""The session that Spark takes for the active one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ducklake_lab.spark import runtime


@pytest.fixture(autouse=True)
def _is_active(request: pytest.FixtureRequest) -> Iterator[None]:
    """Makes the test's session the active one: PySpark leaves the one that made a DataFrame of local rows last."""
    if "spark" not in request.fixturenames:
        yield
        return
    with runtime.acting(request.getfixturevalue("spark")):
        yield

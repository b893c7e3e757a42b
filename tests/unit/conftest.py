"""Fixtures that unit tests of several folders share."""

from __future__ import annotations

from typing import Any

import pytest

from ducklake_lab.engine.in_process.database import Fetched
from ducklake_lab.session.rows.sources import Sources
from ducklake_lab.sql.plan import QueryPlan


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that run in process."""
    found: list[str] = []
    run = Sources.run_in_process

    def noted(self: Sources, plan: QueryPlan, *args: Any) -> Fetched:
        found.append(plan.duckdb_sql)
        return run(self, plan, *args)

    monkeypatch.setattr(Sources, "run_in_process", noted)
    return found

"""Lakes made by the reference, and plans to read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.scan.plan import ScanPlan
from ducklake_lab.scan.planner import plan_scan
from tests.reference import connect


class ReferenceLake:
    """A lake that the reference writes to; it has it open only while it runs statements."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.uri = f"ducklake:{folder / 'm.ducklake'}"
        # a path with everything that has to be quoted somewhere
        self.data = f"{folder}/d a%t[x]ä"

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Runs statements; the rows of the last."""
        with connect() as connection:
            connection.execute(f"ATTACH '{self.uri}' AS l (DATA_PATH '{self.data}')")
            connection.execute("USE l")
            for statement in statements:
                rows = connection.execute(statement).fetchall()
            connection.execute("USE memory; DETACH l")
            return rows

    def plan(self, table: str, at: int | None = None) -> ScanPlan:
        """A plan to read all of a table."""
        lake = open_lake(parse_uri(self.uri), "l")
        with lake.connect() as connection:
            snapshot = lake.snapshot(connection, at) if at is not None else lake.snapshot(connection)
            state = lake.state(connection, snapshot)
            found = state.table("main", table)
            return plan_scan(lake, connection, state, found)


def ordered(rows: Sequence[object]) -> list[str]:
    """Rows as texts in an order of their own, to compare as multisets."""
    return sorted(map(repr, rows))

"""All checks, by family."""

from __future__ import annotations

from ducklake_lab.doctor.check import Check
from ducklake_lab.doctor.checks import (
    contents,
    deletions,
    entries,
    files,
    hygiene,
    inlined,
    places,
    row_ids,
    snapshots,
    statistics,
)

#: In the order in which they are asked.
CHECKS: tuple[Check, ...] = (
    *snapshots.CHECKS,
    *entries.CHECKS,
    *files.CHECKS,
    *deletions.CHECKS,
    *row_ids.CHECKS,
    *statistics.CHECKS,
    *inlined.CHECKS,
    *places.CHECKS,
    *contents.CHECKS,
    *hygiene.CHECKS,
)
BY_NAME = {check.name: check for check in CHECKS}

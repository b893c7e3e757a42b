"""Snapshots at which branches began, as a lake's options say (ADR 96): a merge compares with them, so they do not expire."""

from __future__ import annotations

import json

import sqlalchemy as sa

from ducklake_lab.catalog import tables as t

#: Prefix of options that list branches; the rest of the key is the name.
PREFIX = "ducklake_lab_branch:"
#: Option of a branch's own catalog; its value is the branch's name, a line break, and what its lake lists.
OWN = "ducklake_lab_branch_of"


def read_branch_points(connection: sa.Connection) -> dict[int, str]:
    """Return the names of branches by the snapshots at which they began: those of a lake, or the branch that it is.

    Branches that began on another branch are not those of the lake.
    """
    m = t.lake_metadata
    is_listed = sa.or_(m.c.key.startswith(PREFIX, autoescape=True), m.c.key == OWN)
    points: dict[int, str] = {}
    for key, value in connection.execute(sa.select(m.c.key, m.c.value).where(m.c.scope.is_(None), is_listed)):
        name, text = (str(value).partition("\n")[::2]) if key == OWN else (str(key)[len(PREFIX) :], str(value))
        try:
            given = json.loads(text)
            snapshot_id, parent = int(given["snapshot"]), given["parent"]
        except (ValueError, KeyError, TypeError):
            continue  # another client's option
        if parent is None or key == OWN:
            points[snapshot_id] = name
    return points

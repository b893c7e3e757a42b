"""Changes of a transaction: those that `changes_made` names, and those that another commit may exclude."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ducklake_lab as dl
from ducklake_lab.transaction.own_changes import own_changes

BEFORE = (
    "CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1), (2); CREATE VIEW v AS FROM t; CREATE MACRO m(x) AS x + 1"
)

#: Statements, what `changes_made` names (ids of t, v: 1, 2), and what more may be excluded (+) or less (-).
CASES = {
    "ALTER TABLE t RENAME TO u": ('created_table:"main"."u"', {"+altered_table:1"}),
    "ALTER TABLE t ADD COLUMN j INTEGER": ("altered_table:1", set()),
    "ALTER TABLE t RENAME TO u; COMMENT ON TABLE u IS 'c'": ('created_table:"main"."u",altered_table:1', set()),
    "COMMENT ON COLUMN t.i IS 'c'": ("altered_table:1", set()),
    "ALTER TABLE t SET SORTED BY (i)": ("altered_table:1", set()),
    "ALTER TABLE t SET PARTITIONED BY (i)": ("altered_table:1", set()),
    "ALTER VIEW v RENAME TO w": ('created_view:"main"."w"', {"+altered_view:2"}),
    "COMMENT ON VIEW v IS 'c'": ("altered_view:2", set()),
    "CREATE TABLE a (i INTEGER); ALTER TABLE a RENAME TO b": (
        'created_table:"main"."a",created_table:"main"."b"',
        {'-created_table:"main"."a"'},
    ),
    "DROP VIEW v; DROP TABLE t; DROP MACRO m": ("dropped_table:1,dropped_view:2,dropped_scalar_macro:3", set()),
    "INSERT INTO t VALUES (3); DELETE FROM t WHERE i = 1": ("inlined_insert:1,inlined_delete:1", set()),
    "INSERT INTO t FROM range(100)": ("inserted_into_table:1", set()),
    "CREATE TABLE n AS FROM range(100)": (
        'created_table:"main"."n",inserted_into_table:4',
        {"-inserted_into_table:local"},
    ),
    "CREATE TABLE t2 (i INTEGER); DROP TABLE t2; INSERT INTO t VALUES (4)": ("inlined_insert:1", set()),
}


@pytest.mark.parametrize("sql", CASES)
def test_changes_are_noted_and_checked(sql: str, lake_uri: Callable[..., str], tmp_path: Path):
    noted, differences = CASES[sql]
    with dl.connect(lake_uri(), data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(BEFORE)
        session.sql(f"BEGIN; {sql}")
        assert session._lakes.transaction is not None
        changes = own_changes(session._lakes.transaction)
        session.sql("COMMIT")
        assert session.snapshots()[-1].info.changes_made == noted
    shown = {f"+{own.change}" for own in changes if own.excludes and not own.noted}
    shown |= {f"-{_local(str(own.change))}" for own in changes if own.noted and not own.excludes}
    assert shown == differences


def _local(change: str) -> str:
    kind, _, value = change.partition(":")
    return f"{kind}:local" if value.isdigit() and int(value) > 1_000_000 else change

"""Variants in the change feed and in diffs: values of any type beside each other."""

from __future__ import annotations

from pathlib import Path

import ducklake_lab as dl

_ROWS = "(1, 42, 1), (2, 'x', 1), (3, [1, 2], 1), (4, 4, 1)"


def test_a_value_may_change_its_type(tmp_path: Path) -> None:
    with dl.connect(f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(f"CREATE TABLE t (i INTEGER, v VARIANT, w INTEGER); INSERT INTO t VALUES {_ROWS}")
        session.sql(
            "UPDATE t SET v = 'text' WHERE i = 1; UPDATE t SET v = {'a': 1} WHERE i = 2; "
            "UPDATE t SET v = NULL WHERE i = 3; UPDATE t SET w = 2 WHERE i = 4"
        )
        feed = "SELECT i, v FROM table_changes('t', 0, 6) WHERE change_type = '{}' ORDER BY i"
        assert session.sql(feed.format("update_preimage")).fetchall() == [(1, 42), (2, "x"), (3, [1, 2]), (4, 4)]
        assert session.sql(feed.format("update_postimage")).fetchall() == [
            (1, "text"),
            (2, {"a": 1}),
            (3, None),
            (4, 4),
        ]
        assert [row[4] for row in session.sql("CALL table_changes('t', 2, 2)").fetchall()] == [42, "x", [1, 2], 4]
        rows = session.table("t").diff(2, 6).rows()
        assert [(row.before["v"], row.after["v"], row.changed) for row in rows] == [
            (42, "text", ("v",)),
            ("x", {"a": 1}, ("v",)),
            ([1, 2], None, ("v",)),
            (4, 4, ("w",)),
        ]

"""The reference commits between a transaction's statements and its COMMIT: rows that are apart commit, and both read the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl
from tests.interop.comparing import attach, detach

pytestmark = pytest.mark.sampled(2)

#: Changes of ours and the reference's, and whether ours commit after them.
_CASES = [
    ("DELETE FROM t WHERE day = 1", "INSERT INTO t VALUES (2, 0)", True),
    ("DELETE FROM t WHERE day = 1", "INSERT INTO t SELECT 2, r FROM range(50) s(r)", True),
    ("DELETE FROM t WHERE day = 1", "INSERT INTO t VALUES (1, 0)", False),
    ("DELETE FROM t WHERE day = 1", "INSERT INTO t SELECT 1, r FROM range(50) s(r)", False),
    ("INSERT INTO t VALUES (2, 0)", "DELETE FROM t WHERE day = 1", True),
    ("UPDATE t SET i = -i WHERE day = 1", "UPDATE t SET i = i + 1 WHERE day = 2", True),
    ("UPDATE t SET i = -i WHERE day = 1", "UPDATE t SET i = i + 1 WHERE day = 1 AND i < 60", False),
    ("UPDATE t SET i = -i WHERE day = 1", "UPDATE t SET day = 1 WHERE i = 102", False),
    ("DELETE FROM t WHERE day = 1 AND i < 8", "DELETE FROM t WHERE day = 1 AND i > 70", False),
    ("DELETE FROM t WHERE i = 101", "DELETE FROM t WHERE i = 101", False),
    ("UPDATE t SET i = 7 WHERE i = 101", "UPDATE t SET i = 8 WHERE i = 103", True),
    (
        "MERGE INTO t USING (VALUES (1), (999)) s(i) ON t.i = s.i AND t.day = 1 WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT VALUES (1, s.i)",
        "MERGE INTO t USING (VALUES (2), (998)) s(i) ON t.i = s.i AND t.day = 2 WHEN MATCHED THEN UPDATE SET i = -2 "
        "WHEN NOT MATCHED THEN INSERT VALUES (2, s.i)",
        True,
    ),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize(("ours", "theirs", "commits"), _CASES)
def test_the_reference_commits_in_between(
    kind: str,
    ours: str,
    theirs: str,
    commits: bool,
    new_catalog: Callable[..., str],
    tmp_path: Path,
    reference: duckdb.DuckDBPyConnection,
) -> None:
    uri = new_catalog(kind)
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/d", engine="duckdb") as session:
        session.sql("CREATE TABLE t (day INTEGER, i INTEGER); ALTER TABLE t SET PARTITIONED BY (day)")
        session.sql("INSERT INTO t SELECT r % 4, r FROM range(80) s(r)")
        session.sql("INSERT INTO t VALUES (0, 100), (1, 101), (2, 102), (3, 103)")
        session.sql(f"BEGIN; {ours}")
        attach(reference, uri)
        reference.execute(theirs)
        detach(reference)
        if commits:
            session.sql("COMMIT")
        else:
            with pytest.raises(dl.TransactionConflictError):
                session.sql("COMMIT")
        rows = session.sql("SELECT rowid, day, i FROM t ORDER BY ALL").fetchall()
    assert len({row[0] for row in rows}) == len(rows)
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t AS SELECT (r % 4)::INTEGER AS day, r::INTEGER AS i FROM range(80) s(r)")
        plain.execute("INSERT INTO t VALUES (0, 100), (1, 101), (2, 102), (3, 103)")
        for statement in (theirs, ours) if commits else (theirs,):
            plain.execute(statement)
        assert sorted(row[1:] for row in rows) == plain.execute("FROM t ORDER BY ALL").fetchall()
    attach(reference, uri)
    assert reference.execute("SELECT rowid, day, i FROM t ORDER BY ALL").fetchall() == rows
    detach(reference)

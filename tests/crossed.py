"""A lake that two DuckDBs share, in environments of their own: `python -m tests.crossed FOLDER STEP`.

Each step reads what those before it wrote, writes more, and leaves what it committed last in the log of the catalog's file.
Where the reference is installed, it reads and writes the lake of version 1.0, too.
"""

from __future__ import annotations

import os
import sys

import duckdb

import ducklake_lab as dl
from tests import reference

VERSIONS = ("1.0", "1.1")


def main(folder: str, step: int) -> None:
    for version in VERSIONS:
        uri = f"ducklake:{folder}/{version}.ducklake"
        # of steps before this one: each has ours, and some the reference's
        with dl.connect(uri, alias="lake", ducklake_version=version, engine="duckdb") as session:
            session.sql("CREATE TABLE IF NOT EXISTS t (step INTEGER, i INTEGER, v VARIANT, s VARCHAR DEFAULT 'x')")
            session.sql(f"INSERT INTO t SELECT {step}, i, {{'a': i}}, 'file' FROM range(3000) r(i)")
            session.sql(f"INSERT INTO t (step, i) VALUES ({step}, -1); DELETE FROM t WHERE step = {step} AND i = 7")
            _check(
                session.sql("SELECT step, count(*), sum(i), count(v) FROM t GROUP BY ALL ORDER BY 1").fetchall(), step
            )
        if version == "1.0" and reference.installed("ducklake"):
            with reference.connect() as connection:
                connection.execute(f"ATTACH '{uri}' AS lake")
                query = "SELECT step, count(*), sum(i), count(v) FROM lake.t GROUP BY ALL ORDER BY 1"
                _check(connection.execute(query).fetchall(), step)
                connection.execute(f"UPDATE lake.t SET s = 'theirs' WHERE step = {step} AND i = -1")
        session = dl.connect(uri, alias="lake", engine="duckdb")
        session.sql("UPDATE t SET s = 'ours' WHERE i = -1")
        log = f"{folder}/{version}.ducklake.wal"
        assert os.path.getsize(log) > 0
    print(f"step {step}: DuckDB {duckdb.__version__}", flush=True)
    os._exit(0)  # the log stays


def _check(found: list[tuple[int, ...]], step: int) -> None:
    expected = [(one, 3000, sum(range(3000)) - 7 - 1, 2999) for one in range(step + 1)]
    assert found == expected, found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

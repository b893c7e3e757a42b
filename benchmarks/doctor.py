"""Measures the doctor on a lake of 500,000 data files in 5,000 partitions, whose metadata a script makes; no file is there.

`python -m benchmarks.doctor [files]` prints seconds and megabytes.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

import ducklake_lab as dl

#: Data files, partitions, and data files with a delete file.
FILES, PARTITIONS, DELETED = 500_000, 5_000, 100_000
_ROWS = """
INSERT INTO ducklake_data_file BY NAME SELECT f.* REPLACE (1000000 + k AS data_file_id,
    'p=' || k % {partitions} || '/ducklake-' || k || '.parquet' AS path, 100 + k * 100 AS row_id_start)
FROM ducklake_data_file AS f, range({files}) AS r(k);
INSERT INTO ducklake_file_partition_value
SELECT 1000000 + k, table_id, 0, (k % {partitions})::VARCHAR FROM ducklake_table, range({files}) AS r(k);
INSERT INTO ducklake_file_column_stats BY NAME
SELECT s.* REPLACE (1000000 + k AS data_file_id) FROM ducklake_file_column_stats AS s, range({files}) AS r(k);
INSERT INTO ducklake_delete_file BY NAME SELECT 2000000 + k AS delete_file_id, table_id, begin_snapshot, 1000000 + k AS data_file_id,
    'deletes-' || k || '.parquet' AS path, true AS path_is_relative, 'parquet' AS format, 5 AS delete_count,
    700 AS file_size_bytes, 200 AS footer_size
FROM (SELECT table_id, max(begin_snapshot) AS begin_snapshot FROM ducklake_data_file GROUP BY 1), range({deleted}) AS r(k);
UPDATE ducklake_snapshot SET next_file_id = 3000000;
UPDATE ducklake_table_stats SET next_row_id = 100 * ({files} + 1);
"""


def make(folder: Path, files: int) -> str:
    """Makes the lake, and returns its URI."""
    uri = f"ducklake:{folder}/lake.ducklake"
    with dl.connect(uri, "lake", data_path=f"{folder}/data", engine="duckdb") as session:
        session.sql(
            "CALL lake.set_option('data_inlining_row_limit', 0); CREATE TABLE t (i BIGINT, p INTEGER, s VARCHAR)"
        )
        session.sql("ALTER TABLE t SET PARTITIONED BY (p); INSERT INTO t SELECT i, 0, 'x' FROM range(100) AS r(i)")
    with duckdb.connect(f"{folder}/lake.ducklake") as catalog:
        catalog.execute(_ROWS.format(files=files, partitions=PARTITIONS, deleted=min(DELETED, files)))
    return uri


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with TemporaryDirectory() as name:
        uri = make(Path(name), files)
        with dl.connect(uri, "lake", engine="duckdb") as session:
            began, worked = time.monotonic(), time.process_time()
            found = session.doctor()
            seconds, cpu = time.monotonic() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{files:,} files: {seconds:.1f} s, {cpu:.1f} s of CPU, {peak:,.0f} MB at most; {found.summary}")


if __name__ == "__main__":
    main()

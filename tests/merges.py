"""MERGE statements whose rows are compared with DuckDB's."""

from __future__ import annotations

from typing import Any

import duckdb

TABLES = (
    "CREATE OR REPLACE TABLE t (k INTEGER, v VARCHAR DEFAULT 'd'); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL); "
    "CREATE OR REPLACE TABLE u (k INTEGER, v VARCHAR); INSERT INTO u VALUES (1, '5'), (3, '6'), (4, '8')"
)
MERGES = [
    "USING u USING (k) WHEN NOT MATCHED THEN INSERT VALUES (k, u.v)",
    "USING u USING (k) WHEN MATCHED THEN UPDATE SET v = (SELECT max(w.v) FROM u w WHERE w.k >= t.k) || u.v",
    "USING u ON t.k = u.k WHEN MATCHED AND EXISTS (FROM u w WHERE w.k > t.k) THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = t.v || u.v WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'gone'",
    "USING u ON t.k = u.k WHEN MATCHED AND t.k = 1 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET v = DEFAULT",
    "USING (SELECT k AS t, v FROM u) AS s ON t.k = s.t WHEN MATCHED THEN UPDATE SET v = s.t "
    "WHEN NOT MATCHED THEN INSERT (k) VALUES (s.t * 2)",
    "USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET k = t.k + 0.5, v = 1.50 "
    "WHEN NOT MATCHED THEN INSERT VALUES ('7', u.v)",
    # several source rows for a row that goes
    "USING (VALUES (1), (3), (1), (9), (1)) s(k) USING (k) WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (k) VALUES (k)",
    "USING (FROM u UNION ALL FROM u) s ON t.k >= s.k WHEN MATCHED AND t.k > 1 THEN DELETE WHEN MATCHED THEN DO NOTHING "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'left'",
    "USING (VALUES (1, 1), (1, 2), (2, 1)) s(k, n) ON t.k = s.k WHEN MATCHED AND n = 1 AND s.k = 2 THEN UPDATE SET v = 'x' "
    "WHEN MATCHED THEN DELETE",
]


def duckdb_rows(merge: str) -> list[tuple[Any, ...]]:
    """The count that a MERGE gives in DuckDB, then the rows of table t after it."""
    with duckdb.connect() as plain:
        plain.execute(TABLES)
        count = plain.execute(f"MERGE INTO t {merge}").fetchall()
        return count + plain.execute("SELECT * FROM t ORDER BY ALL").fetchall()

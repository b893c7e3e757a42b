"""Writes a lake's history with the DuckLake client it finds, and prints what it reads at every snapshot.

Runs alone, under an older client, with nothing but that client on its path: see make.py.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

#: What every version can do; `?` marks what only later ones can.
STATEMENTS = [
    "CREATE SCHEMA other",
    # two rows are kept in the catalog
    "CREATE TABLE notes (i INTEGER, s VARCHAR, b BOOLEAN, f DOUBLE, day DATE)",
    "INSERT INTO notes VALUES (1, 'a', true, 1.5, DATE '2024-02-29'), (2, '', NULL, -1e300, NULL)",
    "INSERT INTO notes VALUES (3, NULL, false, NULL, NULL)",
    "DELETE FROM notes WHERE i = 2",
    "UPDATE notes SET s = 'é\"''' WHERE i = 3",
    "ATTACH",
    "CREATE TABLE numbers (i INTEGER, s VARCHAR, d DECIMAL(9,2))",
    "INSERT INTO numbers VALUES (1, 'a', 1.25), (2, 'b', NULL), (3, NULL, -7)",
    "INSERT INTO numbers VALUES (7, 's', 7)",
    "INSERT INTO numbers SELECT range, 'n' || range, range / 4 FROM range(100, 120)",
    "INSERT INTO numbers SELECT range, 'm' || range, NULL FROM range(200, 215)",
    "? CALL ducklake_flush_inlined_data('lake', table_name => 'numbers')",
    "? CALL ducklake_merge_adjacent_files('lake')",
    "DELETE FROM numbers WHERE i IN (2, 105, 210)",
    "UPDATE numbers SET s = upper(s) WHERE i BETWEEN 110 AND 112",
    "ALTER TABLE numbers ADD COLUMN k BIGINT DEFAULT 42",
    "INSERT INTO numbers VALUES (4, 'four', 4, 4), (5, 'five', 5, NULL), (6, NULL, NULL, 6)",
    "ALTER TABLE numbers RENAME COLUMN s TO label",
    "ALTER TABLE numbers DROP COLUMN d",
    "CREATE TABLE other.nested (id INTEGER, st STRUCT(a INTEGER, b VARCHAR), l INTEGER[], day DATE, t TIMESTAMP)",
    "INSERT INTO other.nested VALUES (1, {'a': 1, 'b': 'x'}, [1, 2], DATE '2024-02-29', TIMESTAMP '2024-01-01 12:00:00'),"
    " (2, NULL, NULL, NULL, NULL)",
    "CREATE TABLE parted (part INTEGER, day DATE, v VARCHAR)",
    "ALTER TABLE parted SET PARTITIONED BY (year(day), part)",
    "INSERT INTO parted SELECT range % 2, DATE '2023-06-01' + INTERVAL (range * 30) DAY, 'v' || range FROM range(12)",
    "COMMENT ON TABLE parted IS 'by year and part'",
    "CREATE VIEW labels AS SELECT label FROM numbers WHERE i < 10",
    "? CREATE MACRO twice(x) AS x * 2",
    "CREATE TABLE gone (i INTEGER)",
    "INSERT INTO gone VALUES (1), (2)",
    "DROP TABLE gone",
    "BEGIN",
    "INSERT INTO numbers SELECT range, 'late', range FROM range(300, 304)",
    "DELETE FROM other.nested WHERE id = 2",
    "COMMIT",
    "ALTER TABLE numbers RENAME TO figures",
]


def main(site: Path, kind: str, target: Path) -> None:
    sys.path.insert(0, str(site))
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect()
    for name in ("ducklake", *(["sqlite_scanner"] if kind == "sqlite" else [])):
        (path,) = site.glob(f"**/{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    uri = f"ducklake:{'sqlite:' if kind == 'sqlite' else ''}{target}/{kind}.catalog"
    options = f"DATA_PATH '{target}/{kind}.files', DATA_INLINING_ROW_LIMIT"
    # the clients of 0.2 and 0.3 inline into DuckDB catalogs only
    first = 0 if kind == "sqlite" and duckdb.__version__ < "1.5" else 2
    connection.execute(f"ATTACH '{uri}' AS lake ({options} {first}); USE lake")
    # and they cannot read inlined rows of a table that was altered: later they inline none
    limit = 0 if duckdb.__version__ < "1.5" else first
    attach_again = f"USE memory; DETACH lake; ATTACH '{uri}' AS lake ({options} {limit}); USE lake"
    skipped = []
    for statement in STATEMENTS:
        if statement == "ATTACH":
            connection.execute(attach_again)
            continue
        try:
            connection.execute(statement.removeprefix("? "))
        except duckdb.Error as error:
            if not statement.startswith("?"):
                raise
            skipped.append(f"{statement}: {str(error).splitlines()[0]}")
    (target / f"{kind}.json").write_text(
        json.dumps({"skipped": skipped, "snapshots": _rows(connection)}, indent=1, default=str)
    )
    connection.execute("USE memory; DETACH lake")


def _rows(connection: Any) -> dict[str, dict[str, object]]:
    """Snapshot -> schema.table -> rows, sorted by row id, as text."""
    meta = "__ducklake_metadata_lake"
    ids = [i for (i,) in connection.execute(f"SELECT snapshot_id FROM {meta}.ducklake_snapshot ORDER BY 1").fetchall()]
    found: dict[str, dict[str, object]] = {}
    for snapshot in ids:
        live = f"begin_snapshot <= {snapshot} AND (end_snapshot IS NULL OR end_snapshot > {snapshot})"
        names = connection.execute(
            f"SELECT schema_name, table_name FROM (FROM {meta}.ducklake_table WHERE {live}) "
            f"JOIN (FROM {meta}.ducklake_schema WHERE {live}) USING (schema_id) ORDER BY ALL"
        ).fetchall()
        tables: dict[str, object] = {}
        for schema, table in names:
            result = connection.execute(
                f'SELECT rowid, * FROM lake."{schema}"."{table}" AT (VERSION => {snapshot}) ORDER BY rowid'
            )
            columns = [column[0] for column in result.description]
            tables[f"{schema}.{table}"] = {
                "columns": columns,
                "rows": [[repr(v) for v in r] for r in result.fetchall()],
            }
        found[str(snapshot)] = tables
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

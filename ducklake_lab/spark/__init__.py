"""All that uses PySpark: sessions, reads, writes, and DuckDB in Python workers.

- Starting and watching: `java`, `class_archive`, `runtime`, `progress`, `streams`, `errors`.
- Reading: `reader`, with `listing`, `added_files` and `duckdb_reads` for files that it cannot read; `objects` for S3A.
- Queries: `querying`, `duckdb_expressions`, `row_errors`.
- Writing: `writer`, with `partitions`, `arrow_writer` and `statistics`; `deletes`, `export`, `overwriting`.
- Values: `types`, `frames`. `library` has PySpark's types for annotations elsewhere.
- `workers/` prepares Python workers; `catalog` installs a lake as a catalog of Spark.
"""

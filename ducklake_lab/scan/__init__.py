"""Plans of reading: which files and inlined rows a question needs, from the catalog and footers alone.

- A table at a snapshot: `planner` makes a `plan`; `prefilter` and `pruning` leave files out, by statistics and `partitioned` values.
- Contents of files: `column_history`, `footers`, `paths`, `encryption`, `positions` of deleted rows.
- Two states or a range of snapshots: `changes`, `alterations`, `changed_tables`, `restoring`.
- Numbers without reading rows: `counts`, `visible_counts`, `metadata_aggregates`, `snapshot_volumes`, `file_stats`, `details`.
- Listings and maintenance: `history`, `flushing`, `rewritable_files`.
- `read_cache` keeps footers and delete files for the next statement.
"""

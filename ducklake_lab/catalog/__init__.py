"""One catalog: its database, its metadata tables, and the lake that they describe.

- Opening: `uri`, `attach_options`, `creating`, `engines`, `database`, `duckdb_files`, `postgresql`, `servers`.
- Differences by database or version: `backends`, `below_sqlalchemy`, `races`, `versions/`.
- Clients beside each other: `locks`, `holders`, `file_marks`, `cache`.
- Reading: `lake`, `snapshots`, `columns`, `state`, `attachments`, `files`, `table_facts`, `inlined`, `inlined_deletions`, `projection`, `metadata`, `options`, `snapshot_tags`.
- Rows and names in it: `tables`, `inlined_rows`, `mappings`, `paths`, `indexes`.
- When it fails, or is watched: `damage`, `observing`.
"""

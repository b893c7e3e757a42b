"""Views in notebooks: static HTML that is saved, and widgets over it that need a kernel.

- Static views: `listing`, `tables`, `schema`, `snapshots` with its `timeline`, `files`, `ranges`, `health`, `summary`.
- Results: `result`, `table_view`, `chart_view`, `text`, `values`, `outline`; `grids` and `mounted` make them interactive.
- Changes: `diff`, `diff_rows`, `lake_diff`, `diff_text`, `preview`, `conflicts`, `when`; `lives` says who set a cell.
- Browsers, with a kernel: `schema_browser`, `snapshot_browser`, `file_browser`, `diff_browser`; `browsers` opens those of the current lake.
- `stream` shows a streaming query; `html`, `charts`, `arrow` and `downloads` serve all. The browser's part is in `extensions/widgets`.
"""

/** Names of the commands. */
export namespace CommandIDs {
  export const show = 'ducklake:show';
  export const refresh = 'ducklake:refresh';
  export const newCell = 'ducklake:new-cell';
  export const quickstart = 'ducklake:quickstart';
  export const query = 'ducklake:query-table';
  export const preview = 'ducklake:table-preview';
  export const profile = 'ducklake:table-profile';
  export const health = 'ducklake:table-health';
  export const files = 'ducklake:table-files';
  export const history = 'ducklake:table-history';
  export const diff = 'ducklake:table-diff';
  export const parquet = 'ducklake:table-export-parquet';
  export const csv = 'ducklake:table-export-csv';
  export const restore = 'ducklake:table-restore';
  export const drop = 'ducklake:table-drop';
  export const changes = 'ducklake:snapshot-changes';
  export const newest = 'ducklake:snapshot-newest';
  export const lakeThen = 'ducklake:snapshot-lake';
  export const tag = 'ducklake:snapshot-tag';
  export const copySnapshot = 'ducklake:snapshot-copy';
  export const adopt = 'ducklake:lake-adopt';
  export const forget = 'ducklake:recent-forget';
  export const copy = 'ducklake:copy-name';
  export const runStale = 'ducklake:run-stale';
  export const runChanged = 'ducklake:run-changed';
}

/** Names of the commands. */
export namespace CommandIDs {
  export const show = 'ducklake:show';
  export const refresh = 'ducklake:refresh';
  export const newCell = 'ducklake:new-cell';
  export const quickstart = 'ducklake:quickstart';
  export const query = 'ducklake:query-table';
  export const files = 'ducklake:table-files';
  export const history = 'ducklake:table-history';
  export const copy = 'ducklake:copy-name';
}

/** Sorts by a click on a name: up, down, then no more; with Shift, by further columns as well. */

/** [column, whether it descends], most significant first. */
export type SortKey = [string, boolean];

export function nextSort(sort: SortKey[], name: string, more: boolean): SortKey[] {
  const known = sort.find(([key]) => key === name);
  const rest = more ? sort.filter(([key]) => key !== name) : [];
  if (known?.[1]) return rest;
  return [...rest, [name, Boolean(known)]];
}

export interface Sorted {
  sort: 'none' | 'ascending' | 'descending';
  /** Sign after the name; a column's place among several. */
  mark: string;
}

export function sortedBy(sort: SortKey[], name: string): Sorted {
  const place = sort.findIndex(([key]) => key === name);
  if (place < 0) return { sort: 'none', mark: '' };
  const down = sort[place][1];
  const number = sort.length > 1 ? place + 1 : '';
  return { sort: down ? 'descending' : 'ascending', mark: (down ? '▼' : '▲') + number };
}

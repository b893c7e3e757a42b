/** The entries of a lake as the list of the rows that are unfolded, top to bottom. */

/** [index, name, kind, facts, comment] */
export type EntryNode = [number, string, string, string, string];
/** [name, entries, path, depth]; a schema comes directly before those inside of it. */
export type SchemaNode = [string, EntryNode[], string, number];
/** [depth within its column, name, type, facts, comment] */
export type ColumnNode = [number, string, string, string, string];

export interface SchemaRow {
  key: string;
  level: number;
  name: string;
  facts?: string;
  comment?: string;
  type?: string;
  kind?: string;
  /** Number of an entry; absent for schemas and columns. */
  index?: number;
  /** Path of an entry's schema. */
  schema?: string;
  /** Whether it can be unfolded, and whether it is. */
  folds?: boolean;
  open?: boolean;
  /** Key of the row that it is inside of. */
  parent?: string;
  /** Number of rows beside it, and its place among them, from 1. */
  of: number;
  place: number;
}

interface Tree {
  schemas: SchemaNode[];
  /** Entries that a search has found; null without a search. */
  passing: Set<number> | null;
  /** Keys of the rows that a user has unfolded. */
  open: Set<string>;
  /** Columns of entries that are known. */
  columns: Map<number, ColumnNode[]>;
}

/** Return the visible rows, and the number of entries that a search has found. */
export function schemaRows({ schemas, passing, open, columns }: Tree): { rows: SchemaRow[]; found: number } {
  const rows: SchemaRow[] = [];
  const parents = parentsOf(schemas);
  const shownOf = schemas.map(([, entries]) => (passing ? entries.filter(([index]) => passing.has(index)) : entries));
  const within = shownOf.map(shown => shown.length);
  for (let at = schemas.length - 1; at >= 0; at--) if (parents[at] >= 0) within[parents[at]] += within[at];
  const siblings = new Map<number, number>();
  const places = parents.map(parent => {
    const place = (siblings.get(parent) ?? 0) + 1;
    siblings.set(parent, place);
    return place;
  });
  const unfolds: boolean[] = [];
  schemas.forEach(([name, , path, depth], at) => {
    const key = 's' + at;
    const parent = parents[at];
    const isShown = (parent < 0 || unfolds[parent]) && (!passing || within[at] > 0);
    unfolds[at] = isShown && (open.has(key) || passing !== null);
    if (!isShown) return;
    const size = shownOf[at].length + (passing ? 0 : (siblings.get(at) ?? 0));
    rows.push({
      key,
      level: 1 + depth,
      name,
      facts: `${size} ${size === 1 ? 'entry' : 'entries'}`,
      open: unfolds[at],
      folds: true,
      parent: parent < 0 ? undefined : 's' + parent,
      of: siblings.get(parent) ?? 1,
      place: places[at]
    });
    if (unfolds[at]) rows.push(...entryRows(shownOf[at], key, path, depth, open, columns));
  });
  return { rows, found: shownOf.reduce((sum, shown) => sum + shown.length, 0) };
}

/** Places of the schemas that these are inside of; -1 at the top. */
function parentsOf(schemas: SchemaNode[]): number[] {
  const around: number[] = [];
  return schemas.map(([, , , depth], at) => {
    around.length = depth;
    around.push(at);
    return depth ? around[depth - 1] : -1;
  });
}

function entryRows(
  entries: EntryNode[],
  parent: string,
  schema: string,
  depth: number,
  open: Set<string>,
  columns: Map<number, ColumnNode[]>
): SchemaRow[] {
  return entries.flatMap(([index, name, kind, facts, comment], at) => {
    const key = 'e' + index;
    const isOpen = open.has(key);
    const entry: SchemaRow = {
      key,
      index,
      level: 2 + depth,
      name,
      kind,
      facts,
      comment,
      open: isOpen,
      folds: true,
      parent,
      schema,
      of: entries.length,
      place: at + 1
    };
    return isOpen ? [entry, ...columnRows(columns.get(index), key, 3 + depth)] : [entry];
  });
}

function columnRows(columns: ColumnNode[] | undefined, parent: string, level: number): SchemaRow[] {
  if (!columns) return [{ key: parent + 'w', level, name: '…', parent, of: 1, place: 1 }];
  return columns.map(([deeper, name, type, facts, comment], at) => ({
    key: `${parent}c${at}`,
    level: level + deeper,
    name,
    type,
    facts,
    comment,
    parent,
    of: columns.length,
    place: at + 1
  }));
}

/** The sidebar's tree as the list of the rows that are visible. */

import { argument, isCurrent, literal, quote, tableName } from './names';
import { ILake, ISchema, ITable } from './protocol';
import { IHeld, lakeKey, Shelf } from './shelf';

export type RowKind =
  | 'lake'
  | 'schema'
  | 'table'
  | 'view'
  | 'macro'
  | 'column'
  | 'group'
  | 'snapshot'
  | 'file'
  | 'connection'
  | 'recent'
  | 'note';

export interface IRow {
  key: string;
  level: number;
  kind: RowKind;
  label: string;
  /** Shown in grey at the end. */
  detail?: string;
  /** The catalog's comment on it, on a line of its own. */
  comment?: string;
  /** Details under the pointer. */
  title?: string;
  /** Whether it can be opened, and whether it is. */
  open?: boolean;
  /** Text that a click inserts; absent where there is nothing to insert. */
  insert?: string;
  /** Kind of the inserted text: SQL for a cell, or a magic line of its own. */
  line?: boolean;
  /** Whether the line runs at once. */
  run?: boolean;
  current?: boolean;
  /** For the colour of snapshots. */
  change?: string;
  /** Whether names are bold, as keys of partitions are. */
  marked?: boolean;
  /** `lake.schema.table`, for the context menu, of tables and views. */
  table?: string;
  /** For the context menu, of lakes, and of what is in them. */
  lake?: ILake;
  schema?: ISchema;
  snapshot?: number;
  /** Of a recent lake. */
  uri?: string;
  failed?: boolean;
}

export interface IRowOptions {
  filter: string;
  qualified: boolean;
}

export function rowsOf(shelf: Shelf, options: IRowOptions): IRow[] {
  const rows: IRow[] = [];
  for (const lake of shelf.link.lakes) {
    addLake(rows, shelf, lake, options);
  }
  if (shelf.link.connectionsError) {
    rows.push(note('connections error', 1, shelf.link.connectionsError, true));
  }
  const connections = shelf.link.connections.filter(name => matches(name, options.filter));
  if (connections.length) {
    const key = 'connections';
    const open = shelf.open.has(key);
    rows.push({ key, level: 1, kind: 'group', label: 'Saved connections', detail: `${connections.length}`, open });
    if (open) {
      for (const name of connections) {
        const insert = `%ducklake connect ${argument(name)}`;
        const title = `Insert ${insert}`;
        rows.push({ key: `${key} ${name}`, level: 2, kind: 'connection', label: name, title, insert, line: true });
      }
    }
  }
  return rows;
}

function addLake(rows: IRow[], shelf: Shelf, lake: ILake, options: IRowOptions): void {
  const key = `lake ${lakeKey(lake)}`;
  const open = shelf.open.has(key);
  rows.push({
    key,
    level: 1,
    kind: 'lake',
    label: lake.alias,
    detail: lake.error ? 'cannot be read' : badge(lake),
    title: describeLake(lake),
    open,
    insert: quote(lake.alias),
    current: lake.current,
    lake,
    failed: !!lake.error
  });
  if (!open) {
    return;
  }
  if (lake.error) {
    rows.push(note(`${key} error`, 2, lake.error, true));
    return;
  }
  const held = shelf.tree(lake);
  const schemas = shown(rows, held, key, 2);
  const passing = (schemas ?? []).filter(schema => !options.filter || passes(schema, options.filter));
  // whether the schemas around the next one are open, outermost first
  const around: boolean[] = [];
  for (const schema of schemas ?? []) {
    around.length = Math.min(around.length, schema.path.length - 1);
    const isShown = around.every(isOpen => isOpen) && passing.some(other => isWithin(other, schema));
    const inner = (schemas ?? []).filter(
      other => other.path.length === schema.path.length + 1 && isWithin(other, schema)
    );
    around.push(isShown && addSchema(rows, shelf, lake, schema, key, options, inner.length, schemas?.length === 1));
  }
  if (!options.filter) {
    addHistory(rows, shelf, lake, key);
  }
}

/** Whether a schema is another one, or inside of it. */
function isWithin(schema: ISchema, other: ISchema): boolean {
  return other.path.every((name, place) => schema.path[place] === name);
}

/** Whether a filter leaves something of a schema itself. */
function passes(schema: ISchema, filter: string): boolean {
  return (
    schema.tables.some(table => tablePasses(table, filter)) ||
    schema.views.some(name => viewPasses(schema, name, filter)) ||
    schema.macros.some(name => matches(name, filter))
  );
}

function tablePasses(table: ITable, filter: string): boolean {
  return isNamed(table, filter) || table.columns.some(column => isNamed(column, filter));
}

function viewPasses(schema: ISchema, name: string, filter: string): boolean {
  const { comment, columns } = schema.view_comments[name] ?? { comment: null, columns: {} };
  return isNamed({ name, comment }, filter) || Object.entries(columns).some(texts => matches(texts.join('\n'), filter));
}

/** Whether a filter is in the name or the comment of an entry. */
function isNamed(entry: { name: string; comment: string | null }, filter: string): boolean {
  return matches(entry.name, filter) || matches(entry.comment ?? '', filter);
}

/** Adds the rows of a schema without those inside of it; whether it is open. */
function addSchema(
  rows: IRow[],
  shelf: Shelf,
  lake: ILake,
  schema: ISchema,
  parent: string,
  options: IRowOptions,
  inner: number,
  only: boolean
): boolean {
  const key = `${parent} schema ${schema.key}`;
  const level = schema.path.length + 1;
  const filtered = !!options.filter;
  const tables = schema.tables.filter(table => tablePasses(table, options.filter));
  const views = schema.views.filter(name => viewPasses(schema, name, options.filter));
  const macros = schema.macros.filter(name => matches(name, options.filter));
  // A lake with one schema opens it, until it is closed by hand.
  const open = filtered || shelf.open.has(key) !== only;
  const count = schema.tables.length + schema.views.length + inner;
  rows.push({
    key,
    level,
    kind: 'schema',
    label: schema.name,
    detail: count ? `${count}` : 'empty',
    title: `Schema ${schema.path.join('.')}: ${plural(schema.tables.length, 'table')}, ${plural(schema.views.length, 'view')}`,
    open,
    insert: schema.path.map(quote).join('.'),
    current: isCurrent(lake, schema.path)
  });
  if (!open) {
    return false;
  }
  for (const table of tables) {
    addTable(rows, shelf, lake, schema, table, key, options);
  }
  for (const [kind, names] of [
    ['view', views],
    ['macro', macros]
  ] as const) {
    for (const name of names) {
      const insert = tableName(lake, schema.path, name, options.qualified);
      const told = kind === 'view' ? schema.view_comments[name] : undefined;
      const comments = Object.entries(told?.columns ?? {}).map(([column, comment]) => `${column}: ${comment}`);
      rows.push({
        key: `${key} ${kind} ${name}`,
        level: level + 1,
        kind,
        label: name,
        detail: kind,
        comment: brief(told?.comment),
        title: [told?.comment ?? '', ...comments, `Insert ${insert}`].filter(text => text).join('\n'),
        insert: kind === 'macro' ? `${insert}()` : insert,
        table: kind === 'view' ? tableName(lake, schema.path, name, true) : undefined,
        lake
      });
    }
  }
  return true;
}

function addTable(
  rows: IRow[],
  shelf: Shelf,
  lake: ILake,
  schema: ISchema,
  table: ITable,
  parent: string,
  options: IRowOptions
): void {
  const key = `${parent} table ${table.name}`;
  const level = schema.path.length + 2;
  const byColumn = !!options.filter && !isNamed(table, options.filter);
  const open = byColumn || shelf.open.has(key);
  const insert = tableName(lake, schema.path, table.name, options.qualified);
  const facts = [
    `${plural(table.rows, 'row')} · ${plural(table.files, 'file')} · ${size(table.bytes)}`,
    table.partitioned_by.length ? `partitioned by ${table.partitioned_by.join(', ')}` : '',
    table.comment ?? ''
  ].filter(text => text);
  rows.push({
    key,
    level,
    kind: 'table',
    label: table.name,
    detail: count(table.rows),
    comment: brief(table.comment),
    title: [[...schema.path, table.name].join('.'), ...facts, `Click inserts ${insert}`].join('\n'),
    open,
    insert,
    table: tableName(lake, schema.path, table.name, true),
    lake,
    schema
  });
  if (!open) {
    return;
  }
  for (const column of table.columns) {
    if (byColumn && !isNamed(column, options.filter)) {
      continue;
    }
    rows.push({
      key: `${key} column ${column.name}`,
      level: level + 1,
      kind: 'column',
      label: column.name,
      detail: `${column.type.toLowerCase()}${column.required ? ' not null' : ''}`,
      title: [`${column.name} ${column.type}${column.required ? ' NOT NULL' : ''}`, column.comment ?? '']
        .filter(text => text)
        .join('\n'),
      comment: brief(column.comment),
      insert: quote(column.name),
      marked: table.partitioned_by.includes(column.name)
    });
  }
  if (table.files && !byColumn) {
    addFiles(rows, shelf, lake, schema, table, key);
  }
}

function addFiles(rows: IRow[], shelf: Shelf, lake: ILake, schema: ISchema, table: ITable, parent: string): void {
  const level = schema.path.length + 3;
  const key = `${parent} files`;
  const open = shelf.open.has(key);
  const detail = `${count(table.files)} · ${size(table.bytes)}`;
  rows.push({ key, level, kind: 'group', label: 'Files', detail, open });
  if (!open) {
    return;
  }
  const listing = shown(rows, shelf.files(lake, schema.key, table.name), key, level + 1);
  for (const file of listing?.files ?? []) {
    const name = file.path.slice(file.path.lastIndexOf('/') + 1);
    rows.push({
      key: `${key} ${file.path}`,
      level: level + 1,
      kind: 'file',
      label: file.partition.length ? file.partition.join(', ') : name,
      detail: `${count(file.rows)} · ${size(file.bytes)}`,
      title: [
        file.path,
        `${plural(file.rows, 'row')} · ${size(file.bytes)}`,
        file.deleted ? `${plural(file.deleted, 'row')} deleted` : ''
      ]
        .filter(text => text)
        .join('\n'),
      insert: literal(file.path)
    });
  }
  if (listing && listing.count > listing.files.length) {
    rows.push(note(`${key} more`, level + 1, `and ${count(listing.count - listing.files.length)} more`));
  }
}

function addHistory(rows: IRow[], shelf: Shelf, lake: ILake, parent: string): void {
  const key = `${parent} snapshots`;
  const open = shelf.open.has(key);
  const detail = lake.snapshot === undefined ? '' : `at ${lake.snapshot}`;
  rows.push({ key, level: 2, kind: 'group', label: 'Snapshots', detail, open });
  if (!open) {
    return;
  }
  const history = shown(rows, shelf.history(lake), key, 3);
  for (const snapshot of history ?? []) {
    const what = snapshot.message || snapshot.changes.join(', ') || 'nothing changed';
    rows.push({
      key: `${key} ${snapshot.id}`,
      level: 3,
      kind: 'snapshot',
      label: `${snapshot.id}`,
      detail: what,
      title: [
        `Snapshot ${snapshot.id}, ${snapshot.time}`,
        snapshot.author ? `by ${snapshot.author}` : '',
        snapshot.message ?? '',
        ...snapshot.changes,
        `Click inserts AT (VERSION => ${snapshot.id})`
      ]
        .filter(text => text)
        .join('\n'),
      insert: `AT (VERSION => ${snapshot.id})`,
      change: snapshot.kind,
      current: snapshot.id === lake.snapshot,
      snapshot: snapshot.id,
      lake
    });
  }
}

/** The value, or undefined after a row that says why there is none. */
function shown<T>(rows: IRow[], held: IHeld<T> | undefined, key: string, level: number): T | undefined {
  if (held?.error) {
    rows.push(note(`${key} error`, level, held.error, true));
  } else if (!held) {
    rows.push(note(`${key} wait`, level, 'reading …'));
  }
  return held?.value;
}

function note(key: string, level: number, label: string, failed = false): IRow {
  return { key, level, kind: 'note', label, title: label, failed };
}

function badge(lake: ILake): string {
  const state = lake.travelling ? ' · time travel' : lake.in_transaction && lake.current ? ' · transaction' : '';
  return `snapshot ${lake.snapshot}${state}`;
}

export function describeLake(lake: ILake): string {
  return [
    `${lake.catalog} (${lake.backend})`,
    lake.time ? `Snapshot ${lake.snapshot} of ${lake.time}` : '',
    lake.travelling ? 'Time travelling: attached as of this snapshot, read-only' : lake.read_only ? 'Read-only' : '',
    lake.in_transaction && lake.current ? 'A transaction is open: COMMIT or ROLLBACK ends it' : '',
    lake.session ? `Attached by the session ${lake.session}` : '',
    lake.error ?? ''
  ]
    .filter(text => text)
    .join('\n');
}

/** As much of a comment as a line can hold. */
function brief(comment: string | null | undefined): string | undefined {
  return comment ? comment.slice(0, 300) : undefined;
}

function matches(text: string, filter: string): boolean {
  return !filter || text.toLowerCase().includes(filter.toLowerCase());
}

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Bytes as the notebook's views write them: 84 kB, 2.6 MB. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

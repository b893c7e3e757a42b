/**
 * Actions of the context menu on tables and snapshots: each action is the text of cells, which the user sees.
 *
 * What only reads runs at once; what writes is inserted with `--preview`, and runs when the user runs it.
 */

import { ICell } from './cells';
import { CommandIDs } from './commands';
import { KernelLink } from './link';
import { argument, isOneLine, literal, quote, tableName } from './names';
import { ILake, ITouched } from './protocol';
import { IRow } from './rows';

/** Tables of a snapshot that get a cell each. */
const TABLES = 5;

/** Cells to insert, or the reason that there are none. */
export type Cells = ICell[] | string;

export interface IAction {
  id: string;
  label: string;
  /** Whether it makes a snapshot, which a lake that is read-only does not take. */
  writes?: boolean;
  /** Whether it is for lakes of sessions in variables, which %ducklake does not work with yet; else for the others. */
  adopts?: boolean;
  /** Whether the kernel is asked first. */
  asks?: boolean;
  /** The cells of it; undefined where a name could not be written on a line. */
  cells: (row: IPlaced, link: KernelLink) => Cells | undefined | Promise<Cells>;
}

/** A row of a table or a snapshot. */
export type IPlaced = IRow & { lake: ILake };

export const ACTIONS: IAction[] = [
  {
    id: CommandIDs.query,
    label: 'Query in a New Cell',
    cells: row => [{ text: `%%ducklake\nSELECT *\nFROM ${row.table}\nLIMIT 50` }]
  },
  { id: CommandIDs.preview, label: 'Preview Rows', cells: row => ofTable('preview', row) },
  { id: CommandIDs.profile, label: 'Profile Columns', cells: row => ofTable('stats', row) },
  { id: CommandIDs.health, label: 'Check Health', cells: row => ofTable('maintain', row) },
  { id: CommandIDs.files, label: 'Show Files and Statistics', cells: row => ofTable('files', row) },
  { id: CommandIDs.history, label: 'Show History', cells: row => ofTable('history', row) },
  { id: CommandIDs.diff, label: 'Diff with the Previous Snapshot', asks: true, cells: diffLast },
  { id: CommandIDs.parquet, label: 'Export to Parquet…', cells: row => exported(row, 'parquet', 'FORMAT parquet') },
  { id: CommandIDs.csv, label: 'Export to CSV…', cells: row => exported(row, 'csv', 'FORMAT csv, HEADER') },
  { id: CommandIDs.restore, label: 'Restore…', writes: true, asks: true, cells: restored },
  {
    id: CommandIDs.drop,
    label: 'Drop…',
    writes: true,
    cells: row => [{ text: `%%ducklake --preview\nDROP TABLE ${row.table}` }]
  },
  {
    id: CommandIDs.changes,
    label: 'Show What It Changed',
    asks: true,
    cells: (row, link) => compared(link, row.lake, { end: row.snapshot! })
  },
  {
    id: CommandIDs.newest,
    label: 'Diff with the Newest',
    asks: true,
    cells: (row, link) => compared(link, row.lake, { start: row.snapshot!, end: row.lake.snapshot! })
  },
  {
    id: CommandIDs.lakeThen,
    label: 'Show the Lake as It Was',
    cells: row => onLine(`%ducklake ${lakeOption(row.lake)}schema --at ${row.snapshot}`)
  },
  { id: CommandIDs.tag, label: 'Tag…', writes: true, cells: tagged },
  {
    id: CommandIDs.adopt,
    label: 'Use in %ducklake Cells',
    adopts: true,
    cells: row => onLine(`%ducklake connect ${argument(row.lake.session)}`)
  }
];

/** A cell of one line that runs at once; undefined where the line would not stay one. */
export function onLine(text: string): ICell[] | undefined {
  return isOneLine(text) ? [{ text, run: true }] : undefined;
}

function ofTable(command: string, row: IPlaced): ICell[] | undefined {
  return onLine(`%ducklake ${command} ${argument(row.table!)}`);
}

async function diffLast(row: IPlaced, link: KernelLink): Promise<Cells> {
  const { start, end } = await lastChange(row, link);
  if (start === null) {
    return `${row.label} has no snapshot before ${end}, which made it.`;
  }
  return onLine(`%ducklake diff ${argument(row.table!)} ${start} ${end}`) ?? unwritable(row.label);
}

async function restored(row: IPlaced, link: KernelLink): Promise<Cells> {
  const { start, end } = await lastChange(row, link);
  if (start === null) {
    return `${row.label} has no snapshot before ${end}, which made it.`;
  }
  const path = row.schema!.path.map(quote).join('.');
  const before = `%%ducklake --preview\nCALL ${quote(row.lake.alias)}.restore(${literal(row.label)}, `;
  const text = `${before}${start}, schema => ${literal(path)})`;
  return [{ text, select: [before.length, before.length + `${start}`.length] }];
}

function lastChange(row: IPlaced, link: KernelLink): Promise<{ start: number | null; end: number }> {
  const { alias, session } = row.lake;
  return link.ask('last_change', { alias, session, schema: row.schema!.key, table: row.label });
}

function exported(row: IPlaced, suffix: string, options: string): ICell[] {
  const name = row.label.replace(/[^\p{L}\p{N}-]+/gu, '_').replace(/^_+|_+$/g, '') || 'table';
  const file = `${name}.${suffix}`;
  const before = `%%ducklake\nCOPY ${row.table} TO '`;
  return [{ text: `${before}${file}' (${options})`, select: [before.length, before.length + file.length] }];
}

function tagged(row: IPlaced): ICell[] {
  const before = `%ducklake ${lakeOption(row.lake)}tag `;
  const name = 'NAME';
  return [{ text: `${before}${name} ${row.snapshot}`, select: [before.length, before.length + name.length] }];
}

/** A cell for each table that was touched: its diff, or its rows where it was not there before or is gone. */
async function compared(link: KernelLink, lake: ILake, range: { start?: number; end: number }): Promise<Cells> {
  const { alias, session } = lake;
  const { start, end, tables } = await link.ask('changed', { alias, session, start: null, ...range });
  const cells = tables.slice(0, TABLES).flatMap(table => touched(lake, table, start, end) ?? []);
  const left = tables.length - cells.length;
  if (!cells.length) {
    const which = range.start === undefined ? `Snapshot ${end} touched` : `The snapshots after ${start} touched`;
    return left ? unwritable(`${left} tables`) : `${which} no table.`;
  }
  if (left) {
    // without the names: a comment ends where a line does
    cells[cells.length - 1].text += `\n# ${left} more tables differ`;
  }
  return cells;
}

function touched(lake: ILake, table: ITouched, start: number | null, end: number): ICell[] | undefined {
  const name = argument(tableName(lake, table.path, table.name, true));
  return onLine(
    table.at === undefined ? `%ducklake diff ${name} ${start} ${end}` : `%ducklake preview ${name} --at ${table.at}`
  );
}

/** Names the lake to a subcommand that works in the one that is in use. */
function lakeOption(lake: ILake): string {
  return lake.current ? '' : `--lake ${argument(quote(lake.alias))} `;
}

function unwritable(what: string): string {
  return `${what}: a name with a line break cannot stand in a %ducklake line; write it in SQL.`;
}

/**
 * The record that an output keeps of its data (`ducklake_lab/widgets/recorded.py` writes it).
 *
 * It comes from a notebook, which anybody may have written: what has another form counts as none.
 */

import { CodeCell } from '@jupyterlab/cells';
import { ReadonlyJSONObject, ReadonlyJSONValue } from '@lumino/coreutils';

const KEY = 'ducklake';
const FORM = 1;
const KINDS = ['view', 'macro'];
/** Keys that say which part of a table was read. */
const PARTS = ['columns', 'names', 'where', 'by_place'];

export interface IRecordedTable {
  schema: string[];
  name: string;
  /** Null for a table that no commit had made. */
  id: number | null;
  /** What was read of it, for the kernel, which alone knows the forms; left out where it is all. */
  columns?: ReadonlyJSONValue;
  names?: ReadonlyJSONValue;
  where?: ReadonlyJSONValue;
  by_place?: ReadonlyJSONValue;
}

/** A view or macro that was expanded. */
export interface IRecordedDefinition extends IRecordedTable {
  kind: string;
}

/** Tables of a lake as they were read, and the views and macros in between. */
export interface IRecorded {
  /** The lake's identity. */
  lake: string;
  alias: string;
  snapshot: number;
  time: string;
  tables: IRecordedTable[];
  definitions: IRecordedDefinition[];
}

/** What an output shows. */
export interface IRecord {
  reads: (IRecorded & {
    /** A snapshot was named, so that a second run reads the same. */
    fixed: boolean;
    /** Changes of a transaction that was open. */
    uncommitted: boolean;
  })[];
  /** Another statement of the cell may have changed something. */
  wrote: boolean;
}

/** The records of a cell's outputs. */
export function recordsOf(cell: CodeCell): IRecord[] {
  const found: IRecord[] = [];
  const { outputs } = cell.model;
  for (let at = 0; at < outputs.length; at++) {
    const record = read(outputs.get(at).metadata?.[KEY]);
    if (record) {
      found.push(record);
    }
  }
  return found;
}

/** A text that is the same for the same state. */
export function keyOf(read: IRecorded): string {
  return JSON.stringify(stateOf(read));
}

/** The state alone, as the kernel is asked about it. */
export function stateOf({ lake, alias, snapshot, time, tables, definitions }: IRecorded): IRecorded {
  return { lake, alias, snapshot, time, tables, definitions };
}

function read(value: any): IRecord | null {
  if (value?.form !== FORM || !Array.isArray(value.reads) || !value.reads.every(isRead)) {
    return null;
  }
  return {
    reads: value.reads.map((one: any) => ({
      lake: one.lake,
      alias: one.alias,
      snapshot: one.snapshot,
      time: one.time,
      tables: one.tables.map((table: any) => ({
        schema: table.schema,
        name: table.name,
        id: table.id,
        ...partOf(table)
      })),
      definitions: (one.definitions ?? []).map(({ kind, schema, name, id }: any) => ({ kind, schema, name, id })),
      fixed: one.fixed === true,
      uncommitted: one.uncommitted === true
    })),
    wrote: value.wrote === true
  };
}

function partOf(table: any): ReadonlyJSONObject {
  return Object.fromEntries(PARTS.filter(key => table[key] !== undefined).map(key => [key, table[key]]));
}

function isRead(one: any): boolean {
  return (
    [one?.lake, one?.alias, one?.time].every(isText) &&
    isNumber(one.snapshot) &&
    Array.isArray(one.tables) &&
    one.tables.every(isEntry) &&
    (one.definitions === undefined ||
      (Array.isArray(one.definitions) &&
        one.definitions.every((entry: any) => isEntry(entry) && KINDS.includes(entry.kind))))
  );
}

function isEntry(entry: any): boolean {
  return (
    isText(entry?.name) &&
    Array.isArray(entry.schema) &&
    entry.schema.every(isText) &&
    (entry.id === null || isNumber(entry.id))
  );
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isNumber(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

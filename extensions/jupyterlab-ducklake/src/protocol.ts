/**
 * Messages over the comm between JupyterLab and a kernel (`ducklake_lab/magics/sidebar.py` is the other end).
 *
 * The kernel answers a fixed set of questions about its lakes. No SQL goes over it.
 */

import { JSONObject } from '@lumino/coreutils';

export const TARGET = 'ducklake-lab';
export const PROTOCOL = 4;

/** A lake that a session of the kernel has attached. */
export interface ILake {
  /** The variable that holds the session; empty for that of the magics. */
  session: string;
  alias: string;
  catalog: string;
  /** Without passwords; null where a saved connection leads to the lake, or no URI does. */
  uri: string | null;
  /** Whether the alias is another than the URI gives. */
  named: boolean;
  backend: string;
  current: boolean;
  schema: string;
  read_only: boolean;
  /** Attached as of an older snapshot. */
  travelling: boolean;
  in_transaction: boolean;
  snapshot?: number;
  time?: string;
  schema_version?: number;
  error?: string;
  /** Names the lake wherever its catalog is; left out where it is not known. */
  id?: string;
  /** What the kernel did about the notebook's pin of the lake; null for nothing. `at` is null where it unpinned the lake. */
  pin?: { at: string | null; origin: 'kernel' | 'notebook' | 'left out' } | null;
}

export interface IColumn {
  name: string;
  type: string;
  required: boolean;
  comment: string | null;
}

export interface ITable {
  name: string;
  comment: string | null;
  rows: number;
  bytes: number;
  files: number;
  partitioned_by: string[];
  columns: IColumn[];
}

/** A schema; in the tree it comes directly before those inside of it. */
export interface ISchema {
  name: string;
  /** The names from the outermost schema to it. */
  path: string[];
  /** The name by which the kernel knows it. */
  key: string;
  tables: ITable[];
  views: string[];
  /** By the view's name; of its columns those that have one. */
  view_comments: { [view: string]: { comment: string | null; columns: { [column: string]: string } } };
  macros: string[];
}

export interface ISnapshot {
  id: number;
  time: string;
  kind: 'insert' | 'update' | 'delete' | 'restore' | 'schema' | 'maintenance' | 'none';
  message: string | null;
  author: string | null;
  changes: string[];
}

export interface IFile {
  path: string;
  rows: number;
  bytes: number;
  deleted: number;
  partition: string[];
}

/** A statement that runs; the kernel sends it while it does. */
export interface IRunning {
  /** Its first line; empty where it may hold a secret. */
  statement: string;
  text: string;
  /** Of its tasks, those that are done, from 0 to 1; null where that is not known. */
  share: number | null;
}

/** A table that differs between two snapshots, under its name of now, or with `at` of that snapshot. */
export interface ITouched {
  path: string[];
  name: string;
  diff?: true;
  /** A snapshot at which it can be looked at, where it cannot be compared. */
  at?: number;
}

/** A table of a record, as it is now. */
export interface IMovedTable {
  id: number | null;
  state: 'same' | 'ahead' | 'renamed' | 'dropped' | 'replaced' | 'unknown';
  /** Snapshots that changed it. */
  ahead: number;
  /** Others may have, which have expired. */
  at_least: boolean;
  /** Its schema and name now; left out where it is gone. */
  path?: string[];
  name?: string;
  /** Whether the two states can be compared. */
  diff?: boolean;
}

/** A recorded state of a lake, compared with its newest snapshot; unknown where the lake is not found. */
export type IMovedOn =
  | { known: false; reason: string }
  | {
      known: true;
      alias: string;
      session: string;
      newest: number;
      expired: boolean;
      tables: IMovedTable[];
      definitions: { state: IMovedTable['state'] }[];
    };

/** Cells that read other values of variables than there are now, by their ids. */
export interface IChangedCells {
  [id: string]: {
    /** By the name of a variable: the id of the cell after which it had its value of now. */
    variables: { [name: string]: string };
    /** Its SQL may have changed something. */
    wrote: boolean;
  };
}

/** Each question with its arguments and its answer. */
export interface IQuestions {
  lakes: {
    given: JSONObject;
    answer: {
      lakes: ILake[];
      connections: string[];
      connections_error?: string;
      changed_cells?: IChangedCells;
      /** The ids of the cells of SQL that this kernel has run, and knows the reads of. */
      followed_cells?: string[];
    };
  };
  tree: { given: { alias: string; session: string }; answer: { snapshot: number; schemas: ISchema[] } };
  snapshots: { given: { alias: string; session: string; limit: number }; answer: { snapshots: ISnapshot[] } };
  files: {
    given: { alias: string; session: string; schema: string; table: string };
    answer: { count: number; files: IFile[] };
  };
  changed: {
    given: { alias: string; session: string; start: number | null; end: number };
    answer: { start: number | null; end: number; tables: ITouched[] };
  };
  last_change: {
    given: { alias: string; session: string; schema: string; table: string };
    answer: { start: number | null; end: number };
  };
  moved_on: { given: JSONObject; answer: { reads: IMovedOn[] } };
  /** Pins a lake as the notebook says, which was not saved before the kernel connected. */
  pin: { given: { alias: string; at: string }; answer: { pinned: string } };
  /** From then on the kernel sends `moved` when a lake may have changed, for some seconds. */
  watch: { given: { seconds: number }; answer: { watching: boolean } };
}

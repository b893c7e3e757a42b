import type { ShownColumn } from '../diff/changed-grid';
import type { RowKind } from '../diff/changed-rows';
import type { MountedState } from '../kit/model';

export type Side = 'branch' | 'lake';
export type RemarkKind = 'comment' | 'approval' | 'request';

/** What a side did to a table. */
export interface Deeds {
  kind: 'created' | 'dropped' | 'altered' | 'changed';
  deleted: number;
  inserted: number;
  updated: number;
  cells: number;
  /** Changes of columns in words. */
  columns: string[];
  /** The earlier name; empty for the same. */
  was: string;
}

export interface TableFacts {
  name: string;
  /** null where the side did nothing. */
  branch: Deeds | null;
  lake: Deeds | null;
  conflicts: number;
  remarks: number;
}

export interface Remark {
  id: string;
  kind: RemarkKind;
  /** What its author did, in words. */
  deed: string;
  author: string;
  time: string;
  /** What it is about, in words; empty for the branch as a whole. */
  about: string;
  text: string;
  /** Place of its table in the list; null for none. */
  table: number | null;
  row: string | null;
  column: string | null;
  /** Whether the branch is as its author saw it. */
  is_current: boolean;
}

/** The traits of `ReviewView` in Python. */
export interface ReviewState extends MountedState {
  title: string;
  branch: string;
  facts: string;
  verdict: '' | 'approved' | 'approved earlier' | 'changes asked for';
  listed: TableFacts[];
  /** Number of tables that are not listed. */
  more: number;
  /** [snapshot, time, author, message] */
  commits: [number, string, string, string][];
  options: string[];
  /** Expectations that failed, each with its table, definition and first rows. */
  checks: string[];
  zone: string;
  remarks: Remark[];
  /** Number of earlier remarks that are not listed. */
  earlier: number;
}

/** The changed rows of a table on one side. */
export interface TableAnswer {
  columns: ShownColumn[];
  passing: number;
  note: string;
  has_row_ids: boolean;
  kinds: [RowKind, number][];
  wide: number;
  schema: string[];
}

/** A change of a row, and the answers to the question of who set a cell, as the kernel sends them. */

export type ChangeKind = 'insert' | 'update' | 'delete' | 'alter';

/** [column, the value before, the value after]; null for NULL, and where there is none. */
export type ChangedValue = [string, string | null, string | null];

export interface RowChange {
  snapshot: number;
  kind: ChangeKind;
  /** Empty for a snapshot that has expired, as the texts below. */
  time: string;
  author: string;
  message: string;
  statement: string;
  /** The notebook and the number of the cell's execution. */
  origin: string;
  /** The cell that was asked about stands first. */
  cells: ChangedValue[];
  /** Number of cells that are left out. */
  more: number;
}

export interface Life {
  table: string;
  row: string;
  /** Snapshot up to which changes are listed. */
  at: number;
  column: string | null;
  /** The change that set the cell; null where it is not known. */
  set: RowChange | null;
  /** A remark; may be empty. */
  sentence: string;
  /** The newest changes, oldest first. */
  changes: RowChange[];
  /** Place of the change that set the cell. */
  setter: number | null;
  /** Number of earlier changes that are left out. */
  earlier: number;
  known_from: number | null;
}

/** Rows that show the same values; none where no snapshot has the cell. */
export interface Choice {
  sentence: string;
  rows?: string[];
}

export function isLife(answer: Life | Choice): answer is Life {
  return 'changes' in answer;
}

import type { Child } from '../kit/dom';

export type Content = Child | Child[] | null | undefined;

export interface GridColumn {
  name: string;
  /** Width as CSS. */
  width?: string;
  /** Whether values stand to the right. */
  right?: boolean;
  /** Head of the column, in place of its name. */
  head?: Child | Child[];
  /** Text of the head under the pointer. */
  title?: string;
  sort?: 'none' | 'ascending' | 'descending';
}

export interface GridOptions<Row> {
  label: string;
  columns?: GridColumn[];
  /** Largest height in pixels. */
  height?: number;
  /** Height of a row in pixels. */
  size?: number;
  /** Whether two rows can be selected. */
  multiple?: boolean;
  /** Whether the cursor is on a cell, and goes sideways too. */
  byCell?: boolean;
  /** Rows from a place on. */
  fetch(start: number, count: number): Row[] | Promise<Row[]>;
  /** Contents of the cells of a row. */
  cells(row: Row, at: number): Content[];
  /** Whether a row is selected; without it, the row of the cursor is. */
  selected?(at: number): boolean;
  /** Class of a row. */
  mark?(row: Row): string;
  /** Brings the rows after the last one. */
  more?(): Promise<unknown>;
  onSelect?(at: number, event: GridEvent | undefined, column: number): void;
  onEnter?(at: number): void;
  onError?(error: unknown): void;
}

export type GridEvent = MouseEvent | KeyboardEvent;

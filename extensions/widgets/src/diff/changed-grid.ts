/** A grid of changed rows: a mark, the row id, and cells with both values. */

import './changed-grid.css';
import { ArrowStream } from '../arrow/arrow-stream';
import { ColumnWidths, type Fitted } from '../grid/column-widths';
import { Grid } from '../grid/grid';
import type { GridColumn, GridEvent } from '../grid/grid-options';
import { type Child, element } from '../kit/dom';
import { type ChangedRow, type RowKind, cellNode, letters, readRows } from './changed-rows';

/** [name, type, whether it stands to the right] */
export type ShownColumn = [string, string, boolean];

/** The head of a column: its text, which makes the room, and what is shown. */
export interface Head {
  text: string;
  content: Child;
  sort?: GridColumn['sort'];
}

export interface ChangedGridOptions {
  label: string;
  height: number;
  /** Rows from a place on, as the kernel packs them. */
  ask(start: number, count: number): Promise<DataView>;
  head(name: string, type: string): Head;
  /** Whether the cursor is on a cell. */
  byCell: boolean;
  /** Adds to a cell of a row, by the place of its column. */
  mark?(row: ChangedRow, column: number, cell: Child): Child;
  /** `column` is the place of a column; that of the first one for the mark and the id of a row. */
  onSelect?(row: number, column: number, event: GridEvent | undefined): void;
  onEnter?(row: number, column: number): void;
  onError(error: unknown): void;
}

/** Pixels around a text. */
const SLACK = 2;
/** Most rows, from the first on, whose marks make room when they change. */
const MARKED = 500;
/** Key of the column of row ids, and beginning of the others: a column may have its name. */
const ROW_ID = 'row id';
const COLUMN = 'column ';
export const MARKS: Record<RowKind, string> = { deleted: '−', inserted: '+', updated: '→' };

export class ChangedGrid {
  readonly root: HTMLElement;
  readonly grid: Grid<ChangedRow>;

  private readonly widths = new ColumnWidths();
  private columns: ShownColumn[] = [];
  private hasIds = true;

  constructor(private readonly options: ChangedGridOptions) {
    this.grid = new Grid<ChangedRow>({
      label: options.label,
      height: options.height,
      fetch: async (start, count) => {
        const shown = this.columns.length;
        const rows = readRows(new ArrowStream(await options.ask(start, count)), shown);
        this.widen(rows);
        return rows;
      },
      cells: row => this.contents(row),
      mark: row => 'dlk-df-' + row.kind,
      byCell: options.byCell,
      onSelect: (at, event, column) => options.onSelect?.(at, this.place(column), event),
      onEnter: at => options.onEnter?.(Math.max(0, at), this.place(this.grid.column)),
      onError: error => options.onError(error)
    });
    this.root = element('div', { class: 'dlk-cg' }, this.grid.root, this.widths.rule);
  }

  /** Show rows of these columns; `hasIds` is false for rows of answers, and those paired by a key. */
  show(columns: ShownColumn[], hasIds: boolean, passing: number): void {
    this.columns = columns;
    this.hasIds = hasIds;
    this.setHeads();
    this.grid.reset(passing);
  }

  setHeads(): void {
    const heads = this.columns.map(([name, type, right]) => ({
      name,
      right,
      ...this.options.head(name, type)
    }));
    const fitted = (key: string, text: string, canCut: boolean) => ({
      key,
      content: element('b', {}, text),
      canCut,
      around: SLACK
    });
    const ids = this.hasIds ? [fitted(ROW_ID, ROW_ID, false)] : [];
    this.widths.fit([...ids, ...heads.map(({ name, text }) => fitted(COLUMN + name, text, true))]);
    this.grid.setColumns([
      { name: '' },
      ...(this.hasIds ? [{ name: ROW_ID, right: true }] : []),
      ...heads.map(({ name, right, content, sort }) => ({ name, right, sort, head: content }))
    ]);
    this.lay();
    this.grid.draw();
  }

  private place(column: number): number {
    return Math.max(0, column - (this.hasIds ? 2 : 1));
  }

  private contents(row: ChangedRow): Child[] {
    const { kind, id, cells } = row;
    const changed = this.columns.map(([name]) => name).filter((_, at) => cells[at]?.differs);
    const title = changed.length ? `${kind}: ${changed.join(', ')}` : kind;
    const mark = element('b', { title, 'aria-label': kind }, MARKS[kind]);
    const shownId = this.hasIds ? [element('span', { class: 'dlk-soft' }, id)] : [];
    const shown = cells.map((cell, at) => {
      const node = cellNode(cell);
      return this.options.mark ? this.options.mark(row, at, node) : node;
    });
    return [mark, ...shownId, ...shown];
  }

  private lay(): void {
    const names = this.columns.map(([name]) => this.widths.of(COLUMN + name));
    this.grid.setWidths(['1.2em', ...(this.hasIds ? [this.widths.of(ROW_ID)] : []), ...names]);
  }

  /** Show the rows anew, after the marks of cells have changed. */
  refresh(): void {
    const rows = Array.from({ length: Math.min(this.grid.count, MARKED) }, (_, at) => this.grid.row(at));
    this.widen(rows.filter(row => row !== undefined));
    this.setHeads();
  }

  /** Cells with marks, which need more room. */
  private marked(rows: ChangedRow[]): Fitted[] {
    const { mark } = this.options;
    if (!mark) return [];
    return rows.flatMap(row =>
      row.cells.flatMap((cell, at) => {
        const node = cellNode(cell);
        const content = mark(row, at, node);
        const [name, , right] = this.columns[at];
        return content === node ? [] : [{ key: COLUMN + name, content, canCut: !right, around: SLACK }];
      })
    );
  }

  /** Make columns wider where values, earlier ones included, have no room. */
  private widen(rows: ChangedRow[]): void {
    if (!rows.length) return;
    const longest = (length: (row: ChangedRow) => number) =>
      rows.reduce((most, row) => (length(row) > length(most) ? row : most));
    const columns = this.columns.map(([name, , right], at) => {
      const cell = longest(row => letters(row.cells[at])).cells[at];
      return { key: COLUMN + name, content: cellNode(cell), canCut: !right, around: SLACK };
    });
    const id = { key: ROW_ID, content: longest(row => row.id.length).id, canCut: false, around: SLACK };
    const marked = this.marked(rows);
    if (this.widths.fit(this.hasIds ? [id, ...columns, ...marked] : [...columns, ...marked])) this.lay();
  }
}

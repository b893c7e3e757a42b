import { element } from '../kit/dom';
import type { Content, GridColumn } from './grid-options';

/** Text length from which a cell shows its text under the pointer: it may have no room. */
const LONG = 12;

/** The place of a row, and the state that its attributes show. */
export interface RowState {
  /** Id of the row in the page. */
  id: string;
  at: number;
  /** Pixels from the top of the rows. */
  top: number;
  classes: string;
  isSelected: boolean;
  /** Column of the cursor, if it is on a cell of this row; -1 if it is not. */
  cursor: number;
}

/** The elements of a row, which show another row once theirs has left the view. */
export class GridRow<Row> {
  readonly node = element('div', { role: 'row', class: 'dlk-g-row' });
  at = -1;

  private readonly cells: HTMLElement[] = [];
  private row: Row | undefined;
  private version = -1;
  private cursor = -1;
  private isByCell = false;

  /** Draw the state of a row; what has not changed stays as it is, with what a user has selected there. */
  draw({ id, at, top, classes, isSelected, cursor }: RowState): void {
    const { node } = this;
    if (this.at !== at) {
      this.at = at;
      // its cells are those of another row
      this.version = -1;
      node.id = id;
      node.setAttribute('aria-rowindex', String(at + 2));
    }
    const place = `${top}px`;
    if (node.style.top !== place) node.style.top = place;
    if (node.className !== classes) node.className = classes;
    const selected = String(isSelected);
    if (node.getAttribute('aria-selected') !== selected) node.setAttribute('aria-selected', selected);
    if (this.cursor === cursor) return;
    this.cells[this.cursor]?.classList.remove('dlk-g-at');
    this.cells[cursor]?.classList.add('dlk-g-at');
    this.cursor = cursor;
  }

  /** Whether the cells show a row, undefined for one that is not here yet, under a version of the columns. */
  shows(row: Row | undefined, version: number): boolean {
    return this.version === version && this.row === row;
  }

  fill(
    row: Row | undefined,
    version: number,
    contents: Content[],
    columns: readonly GridColumn[],
    isByCell: boolean
  ): void {
    this.row = row;
    this.version = version;
    this.isByCell = isByCell;
    while (this.cells.length > contents.length) this.cells.pop()!.remove();
    contents.forEach((content, index) => this.fillCell(index, content, Boolean(columns[index]?.right)));
  }

  /** The column of a cell, or of what is within it; -1 if it is none of this row. */
  columnOf(node: Node): number {
    return this.cells.findIndex(cell => cell.contains(node));
  }

  private fillCell(index: number, content: Content, isRight: boolean): void {
    let cell = this.cells[index];
    if (!cell) {
      cell = element('span', { role: 'gridcell' });
      this.cells.push(cell);
      this.node.append(cell);
    }
    if (this.isByCell) {
      cell.id = `${this.node.id}-${index}`;
      cell.setAttribute('aria-colindex', String(index + 1));
    }
    cell.classList.toggle('dlk-right', isRight);
    cell.classList.toggle('dlk-g-at', index === this.cursor);
    cell.replaceChildren(...[content ?? ''].flat());
    const text = cell.textContent ?? '';
    if (text.length > LONG) cell.title = text;
    else cell.removeAttribute('title');
  }
}

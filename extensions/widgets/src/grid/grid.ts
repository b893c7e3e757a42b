/** A grid of any number of rows: only those in view are in the page, and their data comes by page from the kernel. */

import '../kit/live.css';
import './grid.css';
import { element } from '../kit/dom';
import type { GridColumn, GridEvent, GridOptions } from './grid-options';
import { GridRow } from './grid-row';
import { RowPages } from './row-pages';

/** Height of a row in pixels. */
const ROW = 26;
/** Rows that are drawn above and below those in view. */
const ABOVE = 6;
const BELOW = 8;
/** Browsers cannot scroll further than some thirty million pixels. */
export const MOST = 1_000_000;

export class Grid<Row> {
  readonly root: HTMLElement;
  readonly heads = element('div', { role: 'row', class: 'dlk-g-row', 'aria-rowindex': 1 });
  /** Number of rows that can be reached by scrolling. */
  count = 0;
  /** Place of the row with the cursor; -1 at first. */
  cursor = -1;
  /** Column of the cursor. */
  column = 0;

  private readonly id = 'dlk-g' + Math.random().toString(36).slice(2, 8);
  private readonly size: number;
  private readonly body: HTMLElement;
  private readonly pages: RowPages<Row>;
  private columns: GridColumn[] = [];
  private hasMore = false;
  // what cells show depends on the rows, the columns, and nothing else
  private version = 0;
  /** The rows in the page, from the top down. */
  private drawn: GridRow<Row>[] = [];

  constructor(private readonly options: GridOptions<Row>) {
    this.size = options.size || ROW;
    this.pages = new RowPages(
      (start, count) => options.fetch(start, count),
      () => this.draw(),
      error => options.onError?.(error)
    );
    this.body = element('div', { role: 'rowgroup', class: 'dlk-g-rows', onclick: event => this.click(event) });
    this.root = element(
      'div',
      {
        role: 'grid',
        tabindex: '0',
        'aria-label': options.label,
        class: 'dlk-g',
        'aria-multiselectable': options.multiple ? 'true' : null,
        onscroll: () => {
          this.draw();
          this.reach();
        },
        onkeydown: event => this.key(event)
      },
      element('div', { role: 'rowgroup', class: 'dlk-g-heads' }, this.heads),
      this.body
    );
    if (options.size) this.root.style.setProperty('--dlk-row', `${options.size}px`);
    if (options.height) this.root.style.maxHeight = options.height + 'px';
    this.setColumns(options.columns ?? []);
  }

  setColumns(columns: GridColumn[]): void {
    this.columns = columns;
    this.version++;
    this.setWidths(columns.map(column => column.width || 'minmax(6em, 1fr)'));
    this.root.setAttribute('aria-colcount', String(columns.length));
    this.heads.replaceChildren(
      ...columns.map(({ name, head, right, sort, title }) =>
        element(
          'span',
          { role: 'columnheader', class: right ? 'dlk-right' : null, 'aria-sort': sort || null, title },
          ...[head || name].flat()
        )
      )
    );
  }

  /** Set the widths of all columns, as CSS. */
  setWidths(widths: string[]): void {
    this.root.style.setProperty('--dlk-columns', widths.join(' '));
  }

  /**
   * Forget all rows and show the first ones of a new set.
   *
   * @param keep - whether the cursor and the place stay: more of the same rows are known.
   * @param hasMore - whether there are others, which are not counted yet.
   */
  reset(count: number, keep = false, hasMore = false): void {
    this.count = Math.min(count, MOST);
    this.hasMore = hasMore;
    this.pages.reset(this.count);
    this.version++;
    if (!keep) {
      this.cursor = -1;
      this.root.scrollTop = 0;
    }
    this.root.setAttribute('aria-rowcount', String(hasMore ? -1 : count + 1));
    this.body.style.height = this.count * this.size + 'px';
    this.draw();
  }

  /** The row at a place, if it is here. */
  row(at: number): Row | undefined {
    return this.pages.row(at);
  }

  /** The row at a place, fetched if need be. */
  need(at: number): Promise<Row | undefined> {
    return this.pages.need(at);
  }

  /** Draw the rows in view. Elements of rows that have left it show those that came. */
  draw(): void {
    const first = Math.max(0, Math.floor(this.root.scrollTop / this.size) - ABOVE);
    const inView = Math.ceil((this.root.clientHeight || 320) / this.size);
    const last = Math.min(this.count, first + inView + ABOVE + BELOW);
    this.recycle(first, last);
    for (const [index, drawn] of this.drawn.entries()) this.drawRow(drawn, first + index);
    const place = this.options.byCell ? `${this.cursor}-${this.column}` : this.cursor;
    if (this.cursor >= first && this.cursor < last) {
      this.root.setAttribute('aria-activedescendant', `${this.id}-${place}`);
    } else this.root.removeAttribute('aria-activedescendant');
  }

  choose(at: number, event?: GridEvent): void {
    this.cursor = at;
    this.options.onSelect?.(at, event, this.column);
    this.draw();
  }

  /** Put the cursor on a row and bring it into view; select nothing. */
  reveal(at: number): void {
    this.cursor = at;
    const room = this.root.clientHeight - this.heads.offsetHeight;
    if (at * this.size < this.root.scrollTop) this.root.scrollTop = at * this.size;
    else if (room > 0 && (at + 1) * this.size > this.root.scrollTop + room) {
      this.root.scrollTop = (at + 1) * this.size - room;
    }
    this.draw();
  }

  /** Bring the column of the cursor into view. */
  revealColumn(): void {
    const head = this.heads.children[this.column] as HTMLElement | undefined;
    if (!head) return;
    const { scrollLeft, clientWidth } = this.root;
    const end = head.offsetLeft + head.offsetWidth;
    if (head.offsetLeft < scrollLeft) this.root.scrollLeft = head.offsetLeft - 8;
    else if (end > scrollLeft + clientWidth) this.root.scrollLeft = end - clientWidth + 8;
  }

  /** Let the elements stand for the rows from `first` to before `last`, in the order of the rows. */
  private recycle(first: number, last: number): void {
    const stays = (drawn: GridRow<Row>) => drawn.at >= first && drawn.at < last;
    const kept = this.drawn.filter(stays);
    const spare = this.drawn.filter(drawn => !stays(drawn));
    const start = kept.length ? kept[0].at : last;
    const end = kept.length ? start + kept.length : last;
    const take = (count: number) => Array.from({ length: Math.max(0, count) }, () => spare.pop() ?? new GridRow<Row>());
    const before = take(start - first);
    const after = take(last - end);
    for (const { node } of spare) node.remove();
    this.body.prepend(...before.map(({ node }) => node));
    this.body.append(...after.map(({ node }) => node));
    this.drawn = [...before, ...kept, ...after];
  }

  private drawRow(drawn: GridRow<Row>, at: number): void {
    const { options } = this;
    this.pages.ask(at);
    const row = this.row(at);
    const classes = ['dlk-g-row'];
    if (row !== undefined && options.mark) classes.push(options.mark(row));
    if (at === this.count - 1) classes.push('dlk-g-last');
    drawn.draw({
      id: `${this.id}-${at}`,
      at,
      top: at * this.size,
      classes: classes.join(' '),
      isSelected: options.selected ? options.selected(at) : at === this.cursor,
      cursor: options.byCell && at === this.cursor ? this.column : -1
    });
    if (drawn.shows(row, this.version)) return;
    const contents = row === undefined ? this.columns.map(() => '…') : options.cells(row, at);
    drawn.fill(row, this.version, contents, this.columns, Boolean(options.byCell));
  }

  /** Scrolling to the end of the rows fetches the next ones. */
  private reach(): void {
    const end = this.root.scrollTop + this.root.clientHeight - this.heads.offsetHeight;
    if (this.hasMore && this.root.scrollTop > 0 && end > this.count * this.size - 2) void this.options.more?.();
  }

  private click(event: MouseEvent): void {
    const target = event.target as Node;
    const drawn = this.drawn.find(({ node }) => node.contains(target));
    if (!drawn) return;
    const column = drawn.columnOf(target);
    if (this.options.byCell && column >= 0) this.column = column;
    this.choose(drawn.at, event);
  }

  private key(event: KeyboardEvent): void {
    if (!this.count || event.target !== this.root) return;
    if (this.options.byCell && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
      this.goSideways(event);
    } else if (!this.goUpOrDown(event)) {
      if (event.key !== 'Enter' || !this.options.onEnter) return;
      this.options.onEnter(this.cursor);
    }
    event.preventDefault();
  }

  private goSideways(event: KeyboardEvent): void {
    const by = (event.key === 'ArrowLeft' ? -1 : 1) * (event.ctrlKey || event.metaKey ? this.columns.length : 1);
    this.column = Math.min(this.columns.length - 1, Math.max(0, this.column + by));
    this.revealColumn();
    this.choose(Math.max(0, this.cursor), event);
  }

  private goUpOrDown(event: KeyboardEvent): boolean {
    const page = Math.max(1, Math.floor((this.root.clientHeight - this.size) / this.size) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.count,
      End: Infinity
    };
    if (!(event.key in steps)) return false;
    const wanted = Math.max(0, this.cursor + steps[event.key]);
    const go = () => {
      const next = Math.min(this.count - 1, wanted);
      this.reveal(next);
      this.choose(next, event);
    };
    if (this.hasMore && wanted >= this.count && this.options.more) void this.options.more().then(go);
    else go();
    return true;
  }
}

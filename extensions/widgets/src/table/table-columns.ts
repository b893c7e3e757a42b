/** The columns of a table that are in the page: their heads, filters and widths. */

import { ColumnWidths } from '../grid/column-widths';
import type { GridColumn } from '../grid/grid-options';
import { nextSort, sortedBy } from '../grid/sorting';
import { element } from '../kit/dom';
import type { Model } from '../kit/model';
import { WIDE } from './column-places';
import type { StaticView } from './static-view';
import type { Part, TableState } from './table-state';

/** Texts of a row; null for NULL. */
export type Texts = (string | null)[];
type TableColumn = TableState['columns'][number];

/** Pixels between columns. */
const GAP = 14;
/** The smallest width of columns while a part is unfolded. */
const ROOM: [Part, number][] = [
  ['filter', 84],
  ['profile', 112]
];
/** Letters of a text that are measured. */
const MEASURED = 200;

export interface ColumnsOptions {
  model: Model<TableState>;
  still: StaticView;
  /** Returns the element that will show a column's profile. */
  profile(name: string): HTMLElement;
  /** Takes another order or another filter; `values` is asked when it is set. */
  look(values: () => Partial<TableState>): void;
  /** Does something once nobody types there any more. */
  later(where: string, act: () => void): void;
}

export class TableColumns {
  /** All columns, in the page or not. */
  readonly all: TableColumn[];
  /** The first column in the page. */
  first = 0;
  /** Measures texts, in the page. */
  readonly rule: HTMLElement;

  private readonly model: Model<TableState>;
  private readonly widths = new ColumnWidths();
  private inputs = new Map<string, HTMLInputElement>();

  constructor(private readonly options: ColumnsOptions) {
    this.model = options.model;
    this.all = this.model.get('columns');
    this.rule = this.widths.rule;
  }

  /** The columns that are in the page. */
  shown(): TableColumn[] {
    return this.all.slice(this.first, this.first + WIDE);
  }

  /** Put other columns into the page. */
  turn(first: number): void {
    this.first = Math.max(0, Math.min(first, this.all.length - WIDE));
  }

  heads(): GridColumn[] {
    this.inputs = new Map();
    this.measure();
    return this.shown().map(column => this.head(column));
  }

  /** Make columns wider whose values have no room; return whether one is. */
  widen(rows: Texts[]): boolean {
    const contents = this.shown().map(([name, , , right], at) => {
      const longest = rows.reduce((most, row) => {
        const text = row[at] ?? 'NULL';
        return text.length > most.length ? text : most;
      }, '');
      return { key: name, content: longest.slice(0, MEASURED), canCut: !right, around: GAP + (at ? 0.02 : 2.02) };
    });
    return this.widths.fit(contents);
  }

  /** Widths of the columns in the page, as CSS. */
  widthsShown(): string[] {
    return this.shown().map(([name]) => this.width(name));
  }

  /** Write the filters that Python has set, except where somebody types. */
  fillFilters(): void {
    for (const [name, input] of this.inputs) {
      if (document.activeElement !== input) input.value = this.model.get('filters')[name] || '';
    }
  }

  private head([name, label, type, right]: TableColumn): GridColumn {
    const { sort, mark } = sortedBy(this.model.get('sort'), name);
    const input: HTMLInputElement = element('input', {
      type: 'text',
      class: 'dlk-tb-filter',
      'aria-label': `Filter ${label}`,
      placeholder: right ? '> 5, null' : 'part, = x',
      value: this.model.get('filters')[name] || '',
      oninput: () => this.filter(name, input.value)
    });
    this.inputs.set(name, input);
    const button = element(
      'button',
      {
        type: 'button',
        class: 'dlk-tb-sort',
        title: 'Sort; with Shift, sort by this as well',
        onclick: event => this.order(name, event.shiftKey)
      },
      label
    );
    return {
      name,
      right,
      sort,
      title: `${label} ${type}`,
      width: this.width(name),
      head: [
        button,
        element('span', { class: 'dlk-tb-mark', 'aria-hidden': 'true' }, mark),
        element('span', { class: 'dlk-tb-type' }, element('small', { class: 'dlk-soft' }, type)),
        this.options.profile(name),
        input
      ]
    };
  }

  /** Take each column's width from the static view, or from the texts that are known. */
  private measure(): void {
    const fresh = this.shown().filter(([name]) => !this.widths.has(name));
    if (!fresh.length) return;
    const still = this.first === 0 ? this.options.still.widths : [];
    const around = GAP + 2;
    this.widths.fit(
      fresh.flatMap(([name, label, type]) => [
        { key: name, content: element('b', {}, label), canCut: true, around },
        { key: name, content: element('small', {}, type), canCut: true, around }
      ])
    );
    fresh.forEach(([name], at) => {
      if (still[at]) this.widths.set(name, still[at]);
    });
  }

  private width(name: string): string {
    const shows = this.model.get('shows');
    return this.widths.of(name, Math.max(0, ...ROOM.map(([part, room]) => (shows.includes(part) ? room : 0))));
  }

  private order(name: string, more: boolean): void {
    this.options.look(() => ({ sort: nextSort(this.model.get('sort'), name, more) }));
  }

  private filter(name: string, text: string): void {
    this.options.later(`filter ${name}`, () =>
      this.options.look(() => {
        const filters = { ...this.model.get('filters'), [name]: text };
        if (!text) delete filters[name];
        return { filters };
      })
    );
  }
}

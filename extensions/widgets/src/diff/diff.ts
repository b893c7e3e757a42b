/** The rows of a diff: filtered by kind and by the column whose cells changed, sorted by a click on a name. */

import { type SortKey, nextSort, sortedBy } from '../grid/sorting';
import { Browsing } from '../kit/browsing';
import { element } from '../kit/dom';
import { counted, number } from '../kit/figures';
import { reason } from '../kit/line';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { LifePanel } from '../life/life-panel';
import { ChangedGrid, type Head, MARKS, type ShownColumn } from './changed-grid';
import type { RowKind } from './changed-rows';
import './diff.css';
import { GroupCharts } from './group-charts';
import { SourcesPanel } from './sources-panel';

/** The traits of `DiffBrowser` in Python. */
interface DiffState extends MountedState {
  kind: RowKind | '';
  /** Column whose cells have changed; empty for any. */
  changed: string;
  sort: SortKey[];
  /** Whether unchanged columns are shown. */
  every: boolean;
  /** Number of all columns. */
  wide: number;
  kinds: [RowKind, number][];
  /** Columns by the number of their changed cells. */
  cells: [string, number][];
  columns: ShownColumn[];
  passing: number;
  look: number;
  problem: string;
  can_copy: boolean;
  /** Whether the kernel can say who set a cell. */
  has_lives: boolean;
  /** Whether the kernel can compare the rows behind a row. */
  has_sources: boolean;
  /** Whether rows have ids; those of answers, and those paired by a key, have none to show. */
  has_row_ids: boolean;
  note: string;
}

const COPY = 'Copy as SQL';

class Changes extends Browsing<DiffState> {
  readonly root: HTMLElement;

  /** Parts of the static view that these rows replace. */
  private readonly replaced: HTMLElement[];
  private readonly status = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly problem = element('span', { role: 'alert' });
  private readonly kinds = element('span', {
    role: 'group',
    'aria-label': 'Kinds of change',
    class: 'dlk-df-kinds'
  });
  private readonly cells: HTMLSelectElement = element('select', {
    'aria-label': 'Changed column',
    onchange: () => this.choose(this.cells.value ? 'updated' : '', this.cells.value)
  });
  private readonly all = element('button', {
    type: 'button',
    onclick: () => this.set({ every: !this.model.get('every') })
  });
  private readonly copy = element(
    'button',
    { type: 'button', class: 'dlk-df-copy', onclick: () => this.copySql() },
    COPY
  );
  private readonly sql = element('pre', {
    class: 'dlk-df-sql',
    tabindex: '0',
    'aria-label': 'These rows as SQL',
    style: 'display:none'
  });
  private readonly changed = new ChangedGrid({
    label: 'Changed rows',
    height: 420,
    ask: async (start, count) => (await this.line.ask('page', { start, count })).buffers[0],
    head: (name, type) => this.head(name, type),
    byCell: this.model.get('has_lives'),
    onSelect: (row, column, event) => this.ask(row, column, event instanceof MouseEvent),
    onEnter: (row, column) => this.ask(row, column, true),
    onError: error => {
      this.problem.textContent = reason(error);
    }
  });

  private readonly life = new LifePanel(this.line, () => this.changed.grid.root.focus());
  private readonly sources = new SourcesPanel(this.line);
  private readonly charts: GroupCharts;

  constructor(model: Model<DiffState>, host: HTMLElement, still: HTMLElement[]) {
    super(model);
    // The rest of the static view stays, the charts too; only its rows make way.
    for (const child of still) child.style.display = '';
    const place = still.map(child => child.querySelector('.dlk-changes')).find(Boolean);
    this.replaced = place ? ([...place.children] as HTMLElement[]) : [];
    for (const child of this.replaced) child.style.display = 'none';
    const bar = element(
      'div',
      { class: 'dlk-df-bar' },
      element('strong', {}, 'Rows'),
      this.kinds,
      this.cells,
      this.status,
      this.all,
      this.problem,
      model.get('can_copy') ? this.copy : ''
    );
    this.root = element(
      'div',
      { class: 'dlk-live dlk-df', 'data-lm-suppress-shortcuts': 'true' },
      bar,
      this.changed.root,
      this.life.root,
      this.sources.root,
      this.sql
    );
    this.start(place ?? host, {
      'change:look': () => this.reload(),
      'change:problem': () => this.report(),
      'change:kind': () => this.fillBar(),
      'change:changed': () => this.fillBar(),
      'change:sort': () => this.changed.setHeads()
    });
    this.charts = new GroupCharts(
      still,
      model.get('has_sources') ? (chart, bar) => this.askBar(chart, bar) : undefined
    );
    this.fillBar();
    this.reload();
  }

  override close(): void {
    super.close();
    this.charts.close();
    for (const child of this.replaced) child.style.display = '';
  }

  private ask(row: number, column: number, isClick: boolean): void {
    if (this.model.get('has_lives')) this.life.show({ row, column }, isClick);
    if (this.model.get('has_sources')) this.sources.show({ row }, isClick, () => this.changed.grid.root.focus());
  }

  private askBar(chart: number, bar: number): void {
    const cell = document.activeElement;
    this.sources.show({ chart, bar }, true, () => cell instanceof HTMLElement && cell.focus());
    this.sources.root.scrollIntoView({ block: 'nearest' });
  }

  private choose(kind: RowKind | '', changed: string): void {
    this.set({ kind, changed });
  }

  private fillBar(): void {
    const kind = this.model.get('kind');
    const changed = this.model.get('changed');
    const kinds = this.model.get('kinds');
    const choice = (name: RowKind | '', text: string) => {
      const isPressed = kind === name || (name === 'updated' && Boolean(changed));
      const choose = () => this.choose(name, '');
      return element('button', { type: 'button', 'aria-pressed': String(isPressed), onclick: choose }, text);
    };
    const choices = kinds.map(([name, count]) => choice(name, `${MARKS[name]} ${number.format(count)} ${name}`));
    this.kinds.replaceChildren(...(kinds.length > 1 ? [choice('', 'all'), ...choices] : []));
    const cells = this.model.get('cells');
    this.cells.replaceChildren(
      element('option', { value: '' }, 'any column changed'),
      ...cells.map(([name, count]) =>
        element('option', { value: name, selected: name === changed }, `${name} changed in ${number.format(count)}`)
      )
    );
    this.cells.value = changed;
    this.cells.style.display = cells.length ? '' : 'none';
  }

  private head(name: string, type: string): Head {
    const sorted = sortedBy(this.model.get('sort'), name);
    const text = sorted.mark ? `${name} ${sorted.mark}` : name;
    const content = element(
      'button',
      {
        type: 'button',
        class: 'dlk-df-sort',
        title: `${type || 'dropped'}; sort, with Shift by this as well`,
        onclick: event => this.set({ sort: nextSort(this.model.get('sort'), name, event.shiftKey) })
      },
      text
    );
    return { text, content, sort: sorted.sort };
  }

  private reload(): void {
    this.sql.textContent = '';
    this.sql.style.display = 'none';
    const { model } = this;
    const passing = model.get('passing');
    this.status.textContent = [counted(passing, 'row'), model.get('note')].filter(Boolean).join(' · ');
    const isEvery = model.get('every');
    const wide = model.get('wide');
    this.all.textContent = isEvery ? 'Show changed columns' : `Show all ${number.format(wide)} columns`;
    this.all.style.display = isEvery || model.get('columns').length < wide ? '' : 'none';
    this.life.close();
    this.sources.close();
    this.changed.show(model.get('columns'), model.get('has_row_ids'), passing);
    this.report();
  }

  /** The clipboard may be out of reach: the statement is shown and selected then. */
  private async copySql(): Promise<void> {
    try {
      const { content } = await this.line.ask<{ sql: string }>('sql');
      this.sql.textContent = content.sql;
      await navigator.clipboard.writeText(content.sql);
      this.copy.textContent = 'Copied';
    } catch (error) {
      if (!this.sql.textContent) {
        this.problem.textContent = reason(error);
        return;
      }
      this.sql.style.display = '';
      getSelection()?.selectAllChildren(this.sql);
      this.copy.textContent = 'Selected';
    }
    setTimeout(() => {
      this.copy.textContent = COPY;
    }, 1500);
  }

  private report(): void {
    this.problem.textContent = this.model.get('problem');
  }
}

export default mounted(Changes);

/**
 * The rows of a table: sorted by a click on a name; searched, filtered, profiled and drawn where that is unfolded.
 *
 * At first only the rows of the static view may be known. Functions that need the others ask for them first: see all().
 */

import { ArrowStream } from '../arrow/arrow-stream';
import { Grid, MOST } from '../grid/grid';
import { Covering } from '../kit/browsing';
import { copying } from '../kit/copying';
import { element, nullMark } from '../kit/dom';
import { counted, number } from '../kit/figures';
import { reason } from '../kit/line';
import type { Model } from '../kit/model';
import { mounted } from '../kit/mounted';
import { rewrite } from '../kit/saved-output';
import { CellDetail } from './cell-detail';
import { Chart } from './chart/chart';
import { ColumnPlaces, WIDE } from './column-places';
import type { Profile } from './column-profile';
import { ColumnProfiles } from './column-profiles';
import { downloads } from './downloads';
import { StaticView } from './static-view';
import { TableColumns, type Texts } from './table-columns';
import type { Part, TableState } from './table-state';
import './table.css';

const PARTS: [Part, string][] = [
  ['filter', 'Filter'],
  ['profile', 'Profile'],
  ['chart', 'Chart'],
  ['sql', 'SQL'],
  ['download', 'Download']
];
/** Parts that one row needs not. */
const OF_MANY: Part[] = ['filter', 'profile', 'chart'];
/** Milliseconds without typing after which a text is used. */
const PAUSE = 200;

class Table extends Covering<TableState> {
  readonly root: HTMLElement;

  private held: Element | null = null;
  /** Whether the saved output has the chart. */
  private isKept = false;
  private reading: Promise<unknown> | undefined;
  private readonly typing = new Map<string, ReturnType<typeof setTimeout>>();
  private readonly still: StaticView;

  private readonly status = element('span', { role: 'status' });
  private readonly facts = element('span');
  private readonly problem = element('span', { role: 'alert' });
  private readonly heading = element('strong', {}, this.model.get('heading'));
  private readonly search = element('input', {
    type: 'search',
    placeholder: 'Search all columns',
    'aria-label': 'Search all columns',
    value: this.model.get('search'),
    oninput: () => this.later('search', () => this.look(() => ({ search: this.search.value })))
  });
  private readonly above = element('div', { class: 'dlk-bar' }, this.heading, this.search);
  private readonly sql = element('code', {
    class: 'dlk-tb-sql',
    tabindex: '0',
    'aria-label': 'What is shown, as SQL'
  });
  private readonly statement = element(
    'div',
    { class: 'dlk-bar dlk-tb-statement' },
    this.sql,
    copying('Copy SQL', () => this.model.get('sql'), this.sql)
  );
  private readonly more = element(
    'button',
    { type: 'button', title: 'Compute the rows after these', onclick: () => this.whole() },
    'More rows'
  );
  private readonly buttons = new Map(
    PARTS.map(([part, name]) => [part, element('button', { type: 'button', onclick: () => this.toggle(part) }, name)])
  );
  private readonly columns: TableColumns;
  private readonly grid: Grid<Texts>;
  private readonly detail: CellDetail;
  private readonly chart: Chart;
  private readonly profiles: ColumnProfiles;
  private readonly places: ColumnPlaces | undefined;
  private readonly files: HTMLElement;

  /** `still`: the static view, which stays until the first rows are here. */
  constructor(model: Model<TableState>, host: HTMLElement, still: HTMLElement[]) {
    super(model);
    this.still = new StaticView(still);
    this.columns = new TableColumns({
      model,
      still: this.still,
      profile: name => this.profiles.place(name),
      look: values => this.look(values),
      later: (where, act) => this.later(where, act)
    });
    this.grid = this.newGrid();
    this.detail = new CellDetail({
      line: this.line,
      columns: this.columns.all,
      hasLives: model.get('has_lives'),
      look: () => model.get('look'),
      values: async row => (await this.rows(row, 1, 0, this.columns.all.length))[0] ?? [],
      go: column => this.goTo(column),
      leave: () => this.grid.root.focus()
    });
    this.chart = new Chart({
      model,
      line: this.line,
      all: () => this.all(),
      isShown: () => this.is('chart'),
      onChosen: drawn => {
        this.set({ drawn });
        this.isKept = true;
      },
      keep: html => this.keep(html)
    });
    this.profiles = new ColumnProfiles(
      this.grid.root,
      name => this.profile(name),
      () => model.get('note') !== '',
      error => this.fail(error)
    );
    this.observers.push(this.profiles);
    if (this.columns.all.length > WIDE) {
      const names = this.columns.all.map(([name]) => name);
      this.places = new ColumnPlaces(
        names,
        () => this.columns.first,
        first => this.turn(first)
      );
    }
    this.files = downloads(
      model.get('kinds'),
      async kind => {
        await this.all();
        return this.line.ask('download', { kind });
      },
      problem => {
        this.problem.textContent = problem;
      }
    );
    this.root = this.assembled();
    this.start(host, {
      'change:look': () => this.reload(),
      'change:whole': () => this.reload(true),
      'change:problem': () => this.report(),
      'change:sort': () => this.setHeads(),
      'change:filters': () => this.fill(),
      'change:search': () => this.fill(),
      'change:shows': () => this.unfold()
    });
    this.resize(this.chart.root, () => {
      if (this.is('chart')) this.chart.draw();
    });
    this.unfold();
    this.reload();
    this.appear();
  }

  override adopt(host: HTMLElement, still: HTMLElement[]): void {
    super.adopt(host, still);
    if (this.held instanceof HTMLElement && this.root.contains(this.held)) this.held.focus({ preventScroll: true });
  }

  private newGrid(): Grid<Texts> {
    const grid: Grid<Texts> = new Grid<Texts>({
      byCell: true,
      label: `Rows of ${this.model.get('title')}`,
      height: 430,
      size: this.still.row,
      more: () => this.whole(),
      fetch: async (start, count) => {
        const rows = await this.rows(start, count, this.columns.first, this.columns.shown().length);
        if (this.columns.widen(rows)) grid.setWidths(this.columns.widthsShown());
        return rows;
      },
      cells: row => row.map(value => value ?? nullMark()),
      onSelect: (at, event) => {
        this.set({ place: at });
        void this.show(event instanceof MouseEvent);
      },
      onEnter: async () => {
        if (grid.cursor < 0) grid.choose(0);
        await this.show();
        this.detail.focus();
      },
      onError: error => this.fail(error)
    });
    grid.root.classList.add('dlk-tb-grid');
    grid.root.addEventListener('keydown', event => {
      if (event.target !== grid.root) return;
      if (event.key === 'Escape') this.detail.close();
      // the browser copies a selection by the mouse
      const isCopied = event.key === 'c' && (event.ctrlKey || event.metaKey) && getSelection()?.isCollapsed;
      if (isCopied && this.detail.isOpen) this.detail.copied.click();
    });
    return grid;
  }

  private assembled(): HTMLElement {
    const foot = element(
      'div',
      { class: 'dlk-bar dlk-tb-foot' },
      element('span', {}, this.status, this.facts),
      this.problem,
      this.places?.root ?? '',
      element(
        'span',
        { role: 'group', 'aria-label': 'Tools', class: 'dlk-tb-parts' },
        this.more,
        ...this.buttons.values()
      ),
      this.files
    );
    return element(
      'div',
      { class: 'dlk-live dlk-tb', 'data-lm-suppress-shortcuts': 'true' },
      this.above,
      this.grid.root,
      this.chart.root,
      foot,
      this.statement,
      this.detail.root,
      this.columns.rule
    );
  }

  /** Replace the static view once there are rows to show, so that nothing blinks or jumps. */
  private appear(): void {
    const { box } = this.still;
    if (!box) return;
    this.root.classList.add('dlk-tb-unseen');
    const first = this.model.get('passing') ? this.grid.need(0) : Promise.resolve(undefined);
    void first.then(() => {
      // without its rows the grid is less than the static view
      if (this.closed || (this.grid.count && !this.grid.row(0))) return;
      const { scrollTop, scrollLeft } = box;
      const isFocused = box === document.activeElement;
      this.still.hide();
      this.root.classList.remove('dlk-tb-unseen');
      Object.assign(this.grid.root, { scrollTop, scrollLeft });
      if (isFocused) this.grid.root.focus({ preventScroll: true });
      this.grid.draw();
    });
  }

  private is(part: Part): boolean {
    return this.model.get('shows').includes(part);
  }

  private toggle(part: Part): void {
    const shows = this.model.get('shows');
    this.set({ shows: this.is(part) ? shows.filter(one => one !== part) : [...shows, part] });
    if (part === 'chart') this.isKept = true;
  }

  /** Write the saved output anew. The page makes another host for it, into which this view moves. */
  private keep(html: string): void {
    this.held = document.activeElement;
    rewrite(this.model, () => html);
  }

  /** Show the parts that are unfolded, and no others. */
  private unfold(): void {
    // One row needs no search and no chart.
    const isOne = this.model.get('whole') && this.model.get('total') === 1;
    for (const [part, button] of this.buttons) {
      button.setAttribute('aria-pressed', String(this.is(part)));
      button.hidden = isOne && OF_MANY.includes(part) && !this.is(part);
      this.root.classList.toggle(`dlk-tb-has-${part}`, this.is(part));
    }
    this.search.hidden = !this.is('filter');
    this.heading.hidden = !this.model.get('heading');
    this.above.hidden = this.search.hidden && this.heading.hidden;
    this.statement.hidden = !this.is('sql');
    this.files.hidden = !this.is('download');
    const isChart = this.is('chart');
    this.grid.root.hidden = isChart;
    this.chart.root.hidden = !isChart;
    if (this.places) this.places.root.hidden = isChart;
    if (isChart) this.detail.close();
    const drawn = isChart ? this.chart.refresh() : Promise.resolve();
    if (this.isKept) void drawn.then(() => this.chart.keep());
    this.setHeads();
  }

  /** Bring the rows that are not here yet. No figure is shown until then: it would cover some rows only. */
  private all(): Promise<unknown> {
    if (this.model.get('whole')) return Promise.resolve();
    this.reading ??= this.line.ask('all').finally(() => {
      this.reading = undefined;
      this.report();
    });
    this.report();
    return this.reading;
  }

  /** Bring all rows for a user's action: an error is shown and ends the action. */
  private async whole(act: () => void = () => {}): Promise<void> {
    try {
      await this.all();
    } catch (error) {
      this.fail(error);
      return;
    }
    act();
  }

  /** Sort, filter or search: values() is asked when the rows are here, as more may be clicked until then. */
  private look(values: () => Partial<TableState>): void {
    void this.whole(() => this.set(values()));
  }

  private turn(first: number): void {
    this.columns.turn(first);
    this.setHeads();
    this.grid.root.scrollLeft = 0;
    this.grid.reset(this.model.get('passing'), true, !this.model.get('whole'));
  }

  /** Texts of some columns of some rows, row by row. */
  private async rows(start: number, count: number, first: number, wide: number): Promise<Texts[]> {
    const look = this.model.get('look');
    const { buffers } = await this.line.ask('page', { start, count, first, wide, look });
    const stream = new ArrowStream(buffers[0]);
    const lists = Array.from({ length: wide }, (_, at) => stream.texts('c' + (first + at)));
    return Array.from({ length: stream.length }, (_, row) => lists.map(list => list[row]));
  }

  private setHeads(): void {
    this.places?.show(this.columns.shown().length);
    this.profiles.clearPlaces();
    this.grid.setColumns(this.columns.heads());
    this.grid.heads.style.minHeight = this.still.head ? `${this.still.head}px` : '';
    this.grid.draw();
  }

  /** Do something once nobody types there any more. */
  private later(where: string, act: () => void): void {
    clearTimeout(this.typing.get(where));
    this.typing.set(where, setTimeout(act, PAUSE));
  }

  private fill(): void {
    if (document.activeElement !== this.search) this.search.value = this.model.get('search');
    this.columns.fillFilters();
  }

  /** Show other rows; `isKept`: the same rows, with more of them known. */
  private reload(isKept = false): void {
    this.sql.textContent = this.model.get('sql');
    if (!isKept) {
      this.profiles.reset();
      this.chart.isStale = true;
      if (this.is('chart')) {
        void this.chart.refresh().then(() => {
          if (this.isKept) void this.chart.keep();
        });
      }
      this.detail.close();
    }
    this.grid.reset(this.model.get('passing'), isKept, !this.model.get('whole'));
    if (isKept && this.detail.isOpen) void this.show();
    this.report();
  }

  /** Write the line below the rows. */
  private report(): void {
    const { model } = this;
    const passing = model.get('passing');
    const isWhole = model.get('whole');
    const isChosen = Object.keys(model.get('filters')).length > 0 || model.get('search').trim();
    const seen = counted(passing, 'row');
    const rows = !isWhole
      ? `first ${seen}`
      : isChosen
        ? `${number.format(passing)} of ${counted(model.get('total'), 'row')}`
        : seen;
    const more = isWhole ? '' : this.reading ? 'computing the rest…' : 'more exist';
    const end = passing > MOST ? `scrolls to row ${number.format(MOST)}` : '';
    this.status.textContent = [rows, more, model.get('note'), end].filter(Boolean).join(' · ');
    this.more.hidden = isWhole;
    this.facts.textContent = model.get('facts') && ` · ${model.get('facts')}`;
    this.problem.textContent = model.get('problem');
    this.grid.root.setAttribute('aria-busy', String(Boolean(this.reading)));
  }

  private fail(error: unknown): void {
    this.problem.textContent = reason(error);
  }

  private async profile(name: string): Promise<Profile | undefined> {
    await this.all();
    const look = this.model.get('look');
    const { content } = await this.line.ask<{ profile: Profile }>('profile', { column: name });
    return look === this.model.get('look') ? content.profile : undefined;
  }

  /** Show the cell of the cursor in full. */
  private async show(isClick = false): Promise<void> {
    try {
      await this.detail.show(this.grid.cursor, this.columns.first + this.grid.column, isClick);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Put the cursor on another cell of its row, whichever columns are in the page. */
  private goTo(column: number): void {
    const { first } = this.columns;
    if (column < first || column >= first + WIDE) this.turn(column);
    this.grid.column = column - this.columns.first;
    this.grid.revealColumn();
    this.grid.choose(this.grid.cursor);
  }
}

export default mounted(Table);

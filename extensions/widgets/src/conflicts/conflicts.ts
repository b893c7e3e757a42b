/** Conflicts of a revert or a merge: three values side by side, and what holds. Nothing is written before Apply. */

import { ArrowStream, known } from '../arrow/arrow-stream';
import { ColumnWidths } from '../grid/column-widths';
import { Grid } from '../grid/grid';
import { Covering } from '../kit/browsing';
import { type Child, element, nullMark } from '../kit/dom';
import { counted, number } from '../kit/figures';
import { reason } from '../kit/line';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import './conflicts.css';

/** A rule, what its button says, and the place of the value that it takes among the three. */
type Rule = [name: string, title: string, place: number];

/** The traits of `ConflictsView` in Python. */
interface ConflictsState extends MountedState {
  heading: string;
  /** Names of the three values. */
  heads: string[];
  rules: Rule[];
  /** Number of the listed conflicts. */
  passing: number;
  /** Number of all conflicts. */
  total: number;
  unsettled: number;
  look: number;
  state: 'open' | 'settled';
  /** What became of it; empty while it is open. */
  outcome: string;
}

interface Conflict {
  table: string;
  row: string;
  column: string;
  /** The three values; null for NULL. */
  values: (string | null)[];
  why: string;
  rule: string | null;
}

const SCOPES: [string, string][] = [
  ['row', 'this row'],
  ['column', 'this column'],
  ['table', 'this table'],
  ['all', 'all']
];
/** Pixels around a text. */
const SLACK = 2;
/** Pixels of the two buttons of a conflict. */
const BUTTONS = '124px';

class Conflicts extends Covering<ConflictsState> {
  readonly root: HTMLElement;

  private readonly widths = new ColumnWidths();
  private readonly status = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly problem = element('span', { role: 'alert' });
  private readonly result = element('div');
  private readonly scope = element(
    'select',
    { 'aria-label': 'Conflicts to settle' },
    ...SCOPES.map(([value, name]) => element('option', { value, selected: value === 'all' }, name))
  );
  private readonly many: HTMLButtonElement[];
  private readonly preview = element('button', { type: 'button', onclick: () => this.end('preview') }, 'Preview');
  private readonly apply = element(
    'button',
    { type: 'button', class: 'dlk-cf-apply', onclick: () => this.end('apply') },
    'Apply'
  );
  private readonly grid = new Grid<Conflict>({
    label: 'Conflicts',
    height: 420,
    fetch: async (start, count) => {
      const rows = await this.rows(start, count);
      this.widen(rows);
      return rows;
    },
    cells: (conflict, at) => this.contents(conflict, at),
    onError: error => this.fail(error)
  });

  private readonly heads: string[];

  constructor(model: Model<ConflictsState>, host: HTMLElement, still: HTMLElement[]) {
    super(model);
    this.heads = ['holds', 'table', 'row', 'column', ...model.get('heads'), 'why'];
    this.many = model
      .get('rules')
      .map(([rule, title]) =>
        element('button', { type: 'button', title, onclick: () => this.settle(rule, this.scope.value) }, rule)
      );
    for (const node of still) node.style.display = 'none';
    this.root = element(
      'div',
      { class: 'dlk-live dlk-cf', 'data-lm-suppress-shortcuts': 'true' },
      element('div', { class: 'dlk-bar' }, element('strong', {}, model.get('heading')), this.status),
      this.grid.root,
      element(
        'div',
        { class: 'dlk-bar dlk-cf-foot', role: 'group', 'aria-label': 'Settle' },
        element('span', { class: 'dlk-soft' }, 'settle'),
        this.scope,
        ...this.many,
        this.preview,
        this.apply,
        this.problem
      ),
      this.result,
      this.widths.rule
    );
    this.start(host, {
      'change:look': () => this.reload(),
      'change:state': () => this.report()
    });
    this.widths.fit(this.heads.map(key => ({ key, content: element('b', {}, key), canCut: false, around: SLACK })));
    this.grid.setColumns(this.heads.map(name => ({ name, right: name === 'row' })));
    this.lay();
    this.grid.reset(model.get('passing'));
    this.report();
  }

  private async rows(start: number, count: number): Promise<Conflict[]> {
    const { buffers } = await this.line.ask('page', { start, count });
    const stream = new ArrowStream(buffers[0]);
    if (!stream.length) return [];
    const [tables, rows, columns, why] = ['table', 'row', 'column', 'why'].map(name => known(stream.texts(name)));
    const values = this.model.get('heads').map(name => stream.texts(name));
    const rules = stream.texts('rule');
    return tables.map((table, at) => ({
      table,
      row: rows[at],
      column: columns[at],
      values: values.map(list => list[at]),
      why: why[at],
      rule: rules[at]
    }));
  }

  private contents(conflict: Conflict, at: number): (Child | Child[])[] {
    const isOpen = this.model.get('state') === 'open';
    const buttons = this.model.get('rules').map(([rule, title]) =>
      element(
        'button',
        {
          type: 'button',
          title,
          disabled: !isOpen,
          'aria-pressed': String(conflict.rule === rule),
          onclick: () => this.settle(rule, 'cell', at)
        },
        rule
      )
    );
    return [buttons, ...this.texts(conflict)];
  }

  private texts({ table, row, column, values, why, rule }: Conflict): Child[] {
    const taken = this.model.get('rules').find(([name]) => name === rule)?.[2];
    const shown = values.map((value, at) => {
      const content = value ?? nullMark();
      return at === taken ? element('ins', {}, content) : content;
    });
    return [table, row, column, ...shown, why];
  }

  /** Make columns wider where values have no room. */
  private widen(rows: Conflict[]): void {
    const contents = rows.flatMap(row =>
      this.texts(row).map((content, at) => ({
        key: this.heads[at + 1],
        content: element('b', {}, content),
        canCut: true,
        around: SLACK
      }))
    );
    if (this.widths.fit(contents)) this.lay();
  }

  private lay(): void {
    this.grid.setWidths([BUTTONS, ...this.heads.slice(1).map(name => this.widths.of(name))]);
  }

  private reload(): void {
    this.grid.reset(this.model.get('passing'), true);
    this.report();
  }

  private async settle(rule: string, scope: string, place = Math.max(0, this.grid.cursor)): Promise<void> {
    this.problem.textContent = '';
    this.result.replaceChildren();
    try {
      await this.line.ask('settle', { rule, scope, place });
    } catch (error) {
      this.fail(error);
    }
  }

  private async end(how: 'preview' | 'apply'): Promise<void> {
    this.problem.textContent = '';
    this.disable(true);
    try {
      const { content } = await this.line.ask<{ html: string }>(how);
      // Made by the kernel's own static view, which escapes everything that comes from the catalog.
      this.result.innerHTML = content.html;
    } catch (error) {
      this.fail(error);
    }
    this.report();
  }

  private disable(isDisabled: boolean): void {
    for (const button of [...this.many, this.preview, this.apply]) button.disabled = isDisabled;
  }

  private report(): void {
    const { model } = this;
    const isOpen = model.get('state') === 'open';
    const left = model.get('unsettled');
    const all = model.get('total');
    this.status.textContent = isOpen
      ? `${counted(all, 'conflict')} · ${left ? `${number.format(left)} not settled` : 'all settled'} · nothing is written`
      : model.get('outcome');
    this.disable(!isOpen);
    this.scope.disabled = !isOpen;
    this.preview.disabled = this.apply.disabled = !isOpen || left > 0;
    this.grid.draw();
  }

  private fail(error: unknown): void {
    this.problem.textContent = reason(error);
  }
}

export default mounted(Conflicts);

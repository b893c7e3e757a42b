/** One table of a review: the rows that each side changed, and the conflicts. */

import { ArrowStream, known } from '../arrow/arrow-stream';
import { ChangedGrid, MARKS } from '../diff/changed-grid';
import type { ChangedRow, RowKind } from '../diff/changed-rows';
import { ColumnWidths } from '../grid/column-widths';
import { Grid } from '../grid/grid';
import { type Child, element, nullMark } from '../kit/dom';
import { counted, number } from '../kit/figures';
import { type Line, reason } from '../kit/line';
import type { Place } from './review-remarks';
import type { Remark, Side, TableAnswer, TableFacts } from './review-state';

interface ConflictRow {
  row: string;
  column: string;
  values: (string | null)[];
  why: string;
}

type Tab = Side | 'conflicts';

const HEADS = ['row', 'column', 'base', 'lake', 'branch', 'why'];
const TITLES: Record<Tab, string> = { branch: 'on the branch', lake: 'in the lake meanwhile', conflicts: 'conflicts' };

export class TableChanges {
  readonly root: HTMLElement;

  private table = 0;
  private facts: TableFacts | undefined;
  private tab: Tab = 'branch';
  private kind: RowKind | '' = '';
  private every = false;
  private remarks: Remark[] = [];
  private shown: TableAnswer | undefined;
  private readonly tabs = element('span', { class: 'dlk-rv-tabs', role: 'group', 'aria-label': 'Side' });
  private readonly kinds = element('span', { class: 'dlk-rv-tabs', role: 'group', 'aria-label': 'Kinds of change' });
  private readonly status = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly problem = element('span', { role: 'alert' });
  private readonly all = element('button', { type: 'button', onclick: () => this.showAll() });
  private readonly schema = element('p', { class: 'dlk-soft' });
  private readonly whole = element('div');
  private readonly details = element(
    'details',
    { ontoggle: () => void this.unfold() },
    element('summary', {}, 'Distributions and files'),
    this.whole
  );
  private readonly rows: ChangedGrid;
  private readonly widths = new ColumnWidths();
  private readonly conflicts: Grid<ConflictRow>;

  constructor(
    private readonly line: Line,
    private readonly choose: (place: Place) => void
  ) {
    this.rows = new ChangedGrid({
      label: 'Changed rows',
      height: 340,
      ask: async (start, count) => (await line.ask('page', { ...this.question, start, count })).buffers[0],
      head: name => ({ text: name, content: name }),
      byCell: true,
      mark: (row, column, cell) => this.marked(row, column, cell),
      onSelect: (row, column) => this.pick(row, column),
      onError: error => this.fail(error)
    });
    this.conflicts = new Grid<ConflictRow>({
      label: 'Conflicts',
      height: 340,
      fetch: (start, count) => this.conflictRows(start, count),
      cells: row => this.texts(row),
      onSelect: at => this.pickConflict(at),
      onError: error => this.fail(error)
    });
    this.root = element(
      'section',
      { 'aria-label': 'Changes of a table', class: 'dlk-rv-table' },
      element('div', { class: 'dlk-bar' }, this.tabs, this.kinds, this.status, this.all, this.problem),
      this.schema,
      this.rows.root,
      this.conflicts.root,
      this.widths.rule,
      this.details
    );
  }

  /** The table and the rows that are shown, as the kernel takes them. */
  private get question(): { table: number; side: Side; kind: string; every: boolean } {
    const side = this.tab === 'conflicts' ? 'branch' : this.tab;
    return { table: this.table, side, kind: this.kind, every: this.every };
  }

  async show(table: number, facts: TableFacts): Promise<void> {
    this.table = table;
    this.facts = facts;
    await this.open(facts.conflicts ? 'conflicts' : facts.branch ? 'branch' : 'lake');
  }

  /** Mark the cells that remarks are about. */
  mark(remarks: Remark[], facts: TableFacts): void {
    this.remarks = remarks.filter(one => one.table === this.table);
    this.facts = facts;
    if (this.shown) this.rows.refresh();
  }

  private async open(tab: Tab): Promise<void> {
    const { facts } = this;
    if (!facts) return;
    this.tab = tab;
    this.kind = '';
    this.every = false;
    const counts: [Tab, number | null][] = [
      ['branch', facts.branch && facts.branch.deleted + facts.branch.inserted + facts.branch.updated],
      ['lake', facts.lake && facts.lake.deleted + facts.lake.inserted + facts.lake.updated],
      ['conflicts', facts.conflicts || null]
    ];
    const button = ([name, count]: [Tab, number | null]) =>
      element(
        'button',
        { type: 'button', 'aria-pressed': String(name === tab), onclick: () => this.open(name) },
        name === 'conflicts' ? counted(count ?? 0, 'conflict') : `${number.format(count ?? 0)} ${TITLES[name]}`
      );
    this.tabs.replaceChildren(
      element('strong', {}, facts.name),
      ...counts.filter(([, count]) => count !== null).map(button)
    );
    await this.reload();
  }

  private async reload(): Promise<void> {
    const isConflicts = this.tab === 'conflicts';
    this.problem.textContent = '';
    this.rows.root.hidden = isConflicts;
    this.conflicts.root.hidden = !isConflicts;
    this.details.hidden = isConflicts;
    this.details.open = false;
    this.whole.replaceChildren();
    if (isConflicts) {
      this.shown = undefined;
      this.kinds.replaceChildren();
      this.schema.textContent = '';
      this.all.hidden = true;
      this.status.textContent = 'a merge needs a rule for each';
      this.conflicts.setColumns(HEADS.map(name => ({ name, right: name === 'row' })));
      this.conflicts.reset(this.facts?.conflicts ?? 0);
      return;
    }
    const asked = this.question;
    try {
      const { content } = await this.line.ask<TableAnswer>('table', asked);
      if (JSON.stringify(asked) === JSON.stringify(this.question)) this.draw(content);
    } catch (error) {
      this.fail(error);
    }
  }

  private draw(answer: TableAnswer): void {
    this.shown = answer;
    const choice = (name: RowKind | '', text: string) =>
      element(
        'button',
        { type: 'button', 'aria-pressed': String(this.kind === name), onclick: () => this.filter(name) },
        text
      );
    const kinds = answer.kinds.map(([name, count]) => choice(name, `${MARKS[name]} ${number.format(count)} ${name}`));
    this.kinds.replaceChildren(...(kinds.length > 1 ? [choice('', 'all'), ...kinds] : []));
    this.status.textContent = [counted(answer.passing, 'row'), answer.note].filter(Boolean).join(' · ');
    this.schema.textContent = answer.schema.length ? `columns: ${answer.schema.join(' · ')}` : '';
    this.all.hidden = !this.every && answer.columns.length >= answer.wide;
    this.all.textContent = this.every ? 'Show changed columns' : `Show all ${number.format(answer.wide)} columns`;
    this.rows.show(answer.columns, answer.has_row_ids, answer.passing);
  }

  private filter(kind: RowKind | ''): void {
    this.kind = kind;
    void this.reload();
  }

  private showAll(): void {
    this.every = !this.every;
    void this.reload();
  }

  private marked(row: ChangedRow, column: number, cell: Child): Child {
    // a row of the lake may have the id of another row of the branch
    if (this.tab !== 'branch') return cell;
    const name = this.shown?.columns[column]?.[0];
    const about = this.remarks.filter(
      one => one.row === row.id && (one.column === name || (one.column === null && column === 0))
    );
    if (!about.length) return cell;
    const title = about.map(one => `${one.author}: ${one.text}`).join('\n');
    return element('span', {}, cell, element('i', { class: 'dlk-rv-noted', title }, ` ${about.length} ✎`));
  }

  private pick(at: number, column: number): void {
    const row = this.rows.grid.row(at);
    const shown = this.shown?.columns[column]?.[0];
    if (!row || !this.facts) return;
    if (this.tab !== 'branch' || shown === undefined) {
      this.choose({ words: this.facts.name, sent: this.question });
      return;
    }
    // the mark and the id stand for the row
    const isRow = this.rows.grid.column < 2;
    this.choose({
      words: `${this.facts.name} row ${row.id}${isRow ? '' : ` ${shown}`}`,
      sent: { ...this.question, row: row.id, column: isRow ? null : column }
    });
  }

  private pickConflict(at: number): void {
    const row = this.conflicts.row(at);
    if (!row || !this.facts) return;
    const words = [this.facts.name, row.row && `row ${row.row}`, row.column].filter(Boolean).join(' ');
    this.choose({ words, sent: { ...this.question, conflict: at } });
  }

  private async conflictRows(start: number, count: number): Promise<ConflictRow[]> {
    const { buffers } = await this.line.ask('conflicts', { table: this.table, start, count });
    const stream = new ArrowStream(buffers[0]);
    if (!stream.length) return [];
    const [rows, columns, why] = ['row', 'column', 'why'].map(name => known(stream.texts(name)));
    const values = ['base', 'lake', 'branch'].map(name => stream.texts(name));
    const found = rows.map((row, at) => ({
      row,
      column: columns[at],
      values: values.map(list => list[at]),
      why: why[at]
    }));
    this.widen(found);
    return found;
  }

  private texts({ row, column, values, why }: ConflictRow): Child[] {
    return [row, column, ...values.map(value => value ?? nullMark()), why];
  }

  private widen(rows: ConflictRow[]): void {
    const fitted = (key: string, content: Child) => ({ key, content, canCut: true, around: 2 });
    const heads = HEADS.map(key => fitted(key, element('b', {}, key)));
    const cells = rows.flatMap(row => this.texts(row).map((content, at) => fitted(HEADS[at], content)));
    this.widths.fit([...heads, ...cells]);
    this.conflicts.setWidths(HEADS.map(name => this.widths.of(name)));
  }

  private async unfold(): Promise<void> {
    if (!this.details.open || this.whole.childElementCount) return;
    try {
      const { content } = await this.line.ask<{ html: string }>('whole', this.question);
      // Made by the kernel's own static view, which escapes everything that comes from the catalog.
      this.whole.innerHTML = content.html;
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.problem.textContent = reason(error);
  }
}

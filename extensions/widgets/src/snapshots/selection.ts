/** What is known of the selected snapshot, or of the two that are compared, and what can be asked about them. */

import { element } from '../kit/dom';
import { type Line, reason } from '../kit/line';
import { type SnapshotNumbers, bytesOf, rowsOf } from './snapshot-numbers';

/** A snapshot's texts. */
export interface SnapshotTexts {
  author: string;
  message: string;
  /** One change a line. */
  changes: string;
  origin: string;
  statement: string;
}

export interface SelectionOptions {
  line: Line;
  zone: string;
  /** Whether there is a lake to look into, and one to compare snapshots of. */
  canLook: boolean;
  canDiff: boolean;
  stamp(time: number, isPrecise: boolean): string;
  /** Texts of the snapshot at a place. */
  texts(at: number): Promise<SnapshotTexts | undefined>;
}

/** Changes that are listed. */
const LISTED = 50;

export class Selection {
  readonly detail = element('div', { class: 'dlk-sb-detail', 'aria-live': 'polite' });
  readonly result = element('div', { class: 'dlk-sb-result' });

  /** What Enter presses. */
  private button: HTMLButtonElement | undefined;
  private describing: object | undefined;
  private asked: object | undefined;

  constructor(private readonly options: SelectionOptions) {}

  press(): void {
    this.button?.click();
  }

  describeNone(): void {
    this.button = undefined;
    // an answer that is still to come describes a snapshot of before
    this.describing = undefined;
    const hint = 'Select a snapshot; shift-click or Shift+↑↓ a second one to compare.';
    this.detail.replaceChildren(element('span', { class: 'dlk-soft' }, hint));
  }

  async describeOne(data: SnapshotNumbers, at: number): Promise<void> {
    this.button = undefined;
    const token = (this.describing = {});
    const row = await this.options.texts(at);
    if (token !== this.describing || !row) return;
    const { zone, stamp, canLook, canDiff } = this.options;
    const id = data.id[at];
    const snapshot = data.key[at];
    const changed = rowsOf(data, at);
    const facts = [
      `${stamp(data.time[at], true)} ${zone}`,
      row.author,
      row.origin,
      changed && changed + ' rows',
      bytesOf(data, at),
      `schema version ${data.version[at]}`
    ];
    this.detail.replaceChildren(
      element('b', {}, `Snapshot ${id}`),
      ' ',
      row.message,
      ' ',
      element('span', { class: 'dlk-soft' }, facts.filter(Boolean).join(' · ')),
      ' '
    );
    if (canLook) {
      const look = () => this.request('lake', { snapshot }, `Reading the catalog at ${id} …`);
      this.button = element('button', { type: 'button', onclick: look }, 'The lake as it was');
      this.detail.append(this.button, ' ');
    }
    if (canDiff && snapshot > 0) {
      const compare = () => this.request('diffs', { snapshot }, `Comparing what ${id} changed …`);
      this.detail.append(element('button', { type: 'button', onclick: compare }, 'What it changed'));
    }
    if (row.statement) this.detail.append(element('pre', { class: 'dlk-sb-sql' }, row.statement));
    const changes = row.changes.split('\n').slice(0, LISTED);
    this.detail.append(element('ul', {}, ...changes.map(change => element('li', {}, change))));
  }

  async describePair(start: number, end: number): Promise<void> {
    this.button = undefined;
    const token = (this.describing = {});
    this.detail.replaceChildren(element('b', {}, `Snapshot ${start} → ${end}`), ' ');
    const { content } = await this.options.line.ask<{ tables: string[] }>('between', { start, end });
    if (token !== this.describing) return;
    if (!content.tables.length) {
      this.detail.append(element('span', { class: 'dlk-soft' }, 'no table changed in between'));
      return;
    }
    const code = element('code');
    const show = () => {
      const name = /^[\w.]+$/.test(choice.value) ? choice.value : JSON.stringify(choice.value);
      code.textContent = `%ducklake diff ${name} ${start} ${end}`;
    };
    const choice = element(
      'select',
      { 'aria-label': 'Table to compare', onchange: show },
      ...content.tables.map(name => element('option', {}, name))
    );
    show();
    this.detail.append(choice, ' ');
    if (this.options.canDiff) {
      const compare = () => {
        const table = choice.value;
        return this.request('diff', { table, start, end }, `Comparing ${table} at ${start} and ${end} …`);
      };
      this.button = element('button', { type: 'button', onclick: compare }, 'Show diff');
      this.detail.append(this.button, ' ');
    }
    this.detail.append(code);
  }

  fail(error: unknown): void {
    this.result.replaceChildren(element('p', { role: 'alert' }, reason(error)));
  }

  private async request(type: string, question: object, progress: string): Promise<void> {
    this.result.replaceChildren(element('p', { class: 'dlk-soft', role: 'status' }, progress));
    const asked = (this.asked = {});
    try {
      const { content } = await this.options.line.ask<{ html: string }>(type, question);
      // Made by the kernel's own static view, which escapes everything that comes from the catalog.
      if (asked === this.asked) this.result.innerHTML = content.html;
    } catch (error) {
      if (asked === this.asked) this.fail(error);
    }
  }
}

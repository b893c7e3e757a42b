/** Who set a cell, and what changed its row: a panel in which the changes unfold as a timeline. */

import '../kit/change-kinds.css';
import '../kit/live.css';
import './life.css';
import { type Child, element, nullMark } from '../kit/dom';
import { counted } from '../kit/figures';
import { type Line, reason } from '../kit/line';
import { type ChangeKind, type ChangedValue, type Choice, type Life, type RowChange, isLife } from './row-life';

/** Milliseconds after which a cell that was reached by the keyboard is asked about. */
const PAUSE = 200;
const COLORS: Record<ChangeKind, string> = { insert: 'insert', update: 'update', delete: 'delete', alter: 'schema' };
const DEEDS: Record<ChangeKind, string> = {
  insert: 'inserted with its row',
  update: 'updated',
  delete: 'deleted',
  alter: 'added with its column'
};
const NAMES: Record<ChangeKind, string> = {
  insert: 'insert',
  update: 'update',
  delete: 'delete',
  alter: 'column added'
};

export class LifePanel {
  readonly root = element('div', {
    class: 'dlk-live dlk-lf',
    role: 'region',
    'aria-label': 'Who set the value',
    hidden: true
  });

  private readonly title = element('span', { class: 'dlk-lf-title' });
  private readonly body = element('div');
  private readonly list = element('ol', { class: 'dlk-lf-life', 'aria-label': 'Life of the row', hidden: true });
  private readonly button = element('button', { type: 'button', hidden: true, onclick: () => this.toggle() });
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The question whose answer is shown or awaited. */
  private asked = '';
  private isUnfolded = false;

  /** @param leave - takes the focus back when the panel is closed; without it, another view closes the panel. */
  constructor(
    private readonly line: Line,
    private readonly leave?: () => void
  ) {
    // a view around it has a status of its own
    if (leave) this.title.role = 'status';
    else this.title.ariaLive = 'polite';
    const close = element('button', { type: 'button', onclick: () => this.close() }, 'Close');
    this.root.append(
      element('div', { class: 'dlk-bar' }, this.title, this.button, leave ? close : ''),
      this.body,
      this.list
    );
    this.root.addEventListener('keydown', event => {
      if (event.key === 'Escape' && leave) this.close();
    });
  }

  get isOpen(): boolean {
    return !this.root.hidden;
  }

  /**
   * Show who set a cell.
   *
   * @param place - of the cell, as the kernel takes it.
   * @param isClick - a second click on a cell unfolds the life of its row.
   */
  show(place: object, isClick: boolean): void {
    const asked = JSON.stringify(place);
    if (this.isOpen && asked === this.asked) {
      if (isClick) this.unfold(true);
      return;
    }
    this.asked = asked;
    this.root.hidden = false;
    this.isUnfolded = false;
    this.later(place, isClick ? 0 : PAUSE);
  }

  unfold(isUnfolded: boolean): void {
    this.isUnfolded = isUnfolded;
    this.list.hidden = !isUnfolded || !this.list.childElementCount;
    this.button.setAttribute('aria-expanded', String(isUnfolded));
  }

  close(): void {
    clearTimeout(this.timer);
    const isInside = this.root.contains(document.activeElement);
    this.asked = '';
    this.root.hidden = true;
    if (isInside) this.leave?.();
  }

  private toggle(): void {
    this.unfold(!this.isUnfolded);
  }

  private later(place: object, pause: number): void {
    clearTimeout(this.timer);
    this.root.setAttribute('aria-busy', 'true');
    this.timer = setTimeout(() => void this.ask(place), pause);
  }

  private async ask(place: object): Promise<void> {
    const { asked } = this;
    try {
      const { content } = await this.line.ask<Life | Choice>('life', place);
      if (asked !== this.asked) return;
      if (isLife(content)) this.draw(content);
      else this.choose(content, place);
    } catch (error) {
      if (asked === this.asked) this.say(reason(error));
    }
  }

  /** Show a sentence in place of a life. */
  private say(sentence: string, ...more: Child[]): void {
    this.root.setAttribute('aria-busy', 'false');
    this.title.replaceChildren(element('span', { class: 'dlk-soft' }, sentence), ...more);
    this.body.replaceChildren();
    this.list.replaceChildren();
    this.list.hidden = this.button.hidden = true;
  }

  private choose({ sentence, rows }: Choice, place: object): void {
    const pick = (row: string) =>
      element('button', { type: 'button', onclick: () => this.later({ ...place, chosen: row }, 0) }, `row id ${row}`);
    this.say(sentence, element('span', { class: 'dlk-lf-rows' }, ...(rows ?? []).map(pick)));
  }

  private draw(life: Life): void {
    this.root.setAttribute('aria-busy', 'false');
    const { changes, setter, earlier, set } = life;
    this.title.replaceChildren(
      ...(life.column === null ? [] : [element('b', {}, life.column), ' ']),
      element('span', { class: 'dlk-soft' }, `row id ${life.row} of ${life.table}, as of snapshot ${life.at}`)
    );
    const remark = life.sentence ? [element('p', { class: 'dlk-soft' }, life.sentence)] : [];
    this.body.replaceChildren(...(set ? deed(set) : []), ...remark);
    const known = life.known_from;
    const cut = earlier
      ? `${counted(earlier, 'earlier change')} not listed`
      : known === null
        ? ''
        : `known from snapshot ${known} on: earlier ones have expired`;
    this.list.replaceChildren(
      ...(cut ? [element('li', { class: 'dlk-soft' }, cut)] : []),
      ...changes.map((change, at) => entry(change, at === setter))
    );
    this.button.textContent = `Life of the row (${counted(changes.length + earlier, 'change')})`;
    this.button.hidden = false;
    this.unfold(this.isUnfolded || life.column === null);
  }
}

/** The change that set the cell: its value before and after, and the commit. */
function deed(change: RowChange): HTMLElement[] {
  const [cell] = change.cells;
  const values = cell ? [element('span', { class: 'dlk-lf-value' }, ...step(cell, change.kind)), ' '] : [];
  const line = element('p', {}, ...values, mark(change.kind), DEEDS[change.kind], ' in ', ...commit(change));
  return [line, ...statement(change)];
}

/** A change in the life of a row. */
function entry(change: RowChange, isSetter: boolean): HTMLElement {
  const cells = change.cells.map(cell =>
    element('span', { class: 'dlk-lf-cell' }, element('b', {}, cell[0]), ' ', ...step(cell, change.kind))
  );
  const more = change.more ? [element('span', { class: 'dlk-soft' }, counted(change.more, 'more cell'))] : [];
  return element(
    'li',
    { 'aria-current': isSetter ? 'true' : null },
    element('div', {}, mark(change.kind), element('b', {}, NAMES[change.kind]), ' in ', ...commit(change)),
    element('div', { class: 'dlk-lf-cells' }, ...cells, ...more),
    ...statement(change)
  );
}

function mark(kind: ChangeKind): HTMLElement {
  return element('i', { class: `dlk-k-${COLORS[kind]}`, 'aria-hidden': 'true' });
}

function commit({ snapshot, time, author, message, origin }: RowChange): Child[] {
  const facts = [time || 'expired', author, origin].filter(Boolean).join(' · ');
  const said = message ? [' ', message] : [];
  return [element('b', {}, `snapshot ${snapshot}`), ...said, ' ', element('span', { class: 'dlk-soft' }, facts)];
}

function statement(change: RowChange): HTMLElement[] {
  return change.statement
    ? [element('pre', { class: 'dlk-lf-sql dlk-mono', tabindex: '0', 'aria-label': 'Statement' }, change.statement)]
    : [];
}

/** A value, or its step from one to the other. */
function step([, before, after]: ChangedValue, kind: ChangeKind): Child[] {
  const text = (value: string | null) => value ?? nullMark();
  if (kind === 'delete') return [element('del', {}, text(before))];
  if (kind === 'update') return [element('del', {}, text(before)), ' → ', element('ins', {}, text(after))];
  return [element('ins', {}, text(after))];
}

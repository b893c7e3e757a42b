/** The bar over an uncommitted change: Commit, Roll back, and its end. */

import { element } from '../kit/dom';
import { Line, reason } from '../kit/line';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { rewrite } from '../kit/saved-output';
import { choosable } from '../life/choosable-cells';
import { LifePanel } from '../life/life-panel';
import './preview.css';

/** The traits of `Preview` in Python. */
interface PreviewState extends MountedState {
  state: string;
  message: string;
  /** Snapshot that the change became. */
  snapshot: number | null;
}

type End = 'commit' | 'rollback';

class Preview {
  readonly line: Line;
  readonly root: HTMLElement;

  private isGone = false;
  private readonly life: LifePanel;
  private readonly undo: (() => void)[];
  private ending: End | undefined;
  private readonly message: HTMLInputElement;
  private readonly commit = element(
    'button',
    { type: 'button', class: 'dlk-pv-commit', onclick: () => this.end('commit') },
    'Commit'
  );
  private readonly drop = element('button', { type: 'button', onclick: () => this.end('rollback') }, 'Roll back');
  private readonly status = element('span', { role: 'status' });
  private readonly bar = element('div', {
    class: 'dlk-pv-bar',
    role: 'toolbar',
    'aria-label': 'Uncommitted change'
  });

  constructor(
    private readonly model: Model<PreviewState>,
    host: HTMLElement,
    private readonly still: HTMLElement[]
  ) {
    this.line = new Line(model);
    this.message = element('input', {
      type: 'text',
      placeholder: 'Commit message',
      'aria-label': 'Commit message',
      value: model.get('message'),
      onkeydown: event => {
        if (event.key === 'Enter') void this.end('commit');
      }
    });
    // Without this attribute JupyterLab takes letters for its own commands.
    this.root = element('div', { class: 'dlk-pv', 'data-lm-suppress-shortcuts': 'true' }, this.bar);
    this.root.addEventListener('keydown', event => event.stopPropagation());
    host.prepend(this.root);
    // The diffs below stay as they are; only the line about ending the change goes.
    for (const child of still) {
      child.style.display = '';
      const hint = child.querySelector<HTMLElement>('.dlk-pv-told');
      if (hint) hint.style.display = 'none';
    }
    this.life = new LifePanel(this.line, () => this.held?.focus());
    const tables = still.flatMap(child => [...child.querySelectorAll<HTMLTableElement>('table.dlk-rows')]);
    this.undo = tables.map((table, at) => choosable(table, (row, cell) => this.ask(table, { table: at, row, cell })));
    model.on('change:state', this.onState);
    this.show();
  }

  private get held(): HTMLElement | null {
    return this.life.root.parentElement?.querySelector<HTMLElement>('td[tabindex]') ?? null;
  }

  /** Ask who set a cell of a diff; the answer stands below the rows. */
  private ask(table: HTMLTableElement, place: object): void {
    if (this.isGone) return;
    const box = table.closest('.dlk-scroll');
    if (box?.nextSibling !== this.life.root) box?.after(this.life.root);
    this.life.show(place, true);
  }

  /** The kernel is gone, and with it the uncommitted change. */
  stop(sentence: string): void {
    this.isGone = true;
    this.leaveCells();
    if (this.model.get('state') !== 'open') return;
    this.disable(true);
    this.message.disabled = true;
    this.status.textContent =
      this.ending === 'commit'
        ? 'The kernel ended during the commit; %ducklake snapshots shows whether the change is in the lake.'
        : `Not committed. ${sentence}`;
    this.showControls();
  }

  close(): void {
    this.leaveCells();
    this.line.close();
    this.model.off('change:state', this.onState);
    this.root.remove();
  }

  private leaveCells(): void {
    this.life.close();
    this.life.root.remove();
    for (const undo of this.undo) undo();
  }

  private readonly onState = (): void => {
    this.show();
    void this.keep();
  };

  private show(): void {
    const state = this.model.get('state');
    if (state === 'open') {
      this.status.textContent = 'Not committed: nothing is in the lake yet.';
      this.showControls();
      return;
    }
    const isCommitted = state === 'committed';
    const snapshot = this.model.get('snapshot');
    const became = isCommitted ? `${snapshot ?? state}` : state;
    for (const child of this.still) {
      for (const end of child.querySelectorAll('.dlk-pv-state')) end.textContent = became;
    }
    this.bar.replaceChildren(element('b', {}, isCommitted ? 'Committed' : 'Rolled back'), this.status);
    const committed = snapshot === null ? '' : `as snapshot ${snapshot}`;
    this.status.textContent = isCommitted ? committed : 'the lake is as it was';
  }

  private showControls(): void {
    this.bar.replaceChildren(element('b', {}, 'Preview'), this.message, this.commit, this.drop, this.status);
  }

  /** Let the saved output show how the change ended. */
  private async keep(): Promise<void> {
    try {
      const { content } = await this.line.ask<{ html: string }>('still');
      rewrite(this.model, () => content.html);
    } catch {
      // the kernel is gone: the page says so
    }
  }

  private async end(how: End): Promise<void> {
    this.disable(true);
    this.status.textContent = how === 'commit' ? 'Committing …' : 'Rolling back …';
    this.ending = how;
    try {
      await this.line.ask(how, { message: this.message.value });
    } catch (error) {
      if (this.isGone) return;
      this.bar.replaceChildren(element('span', { role: 'alert' }, reason(error)));
      return;
    }
    this.disable(false);
    this.show();
  }

  private disable(isDisabled: boolean): void {
    this.commit.disabled = isDisabled;
    this.drop.disabled = isDisabled;
  }
}

export default mounted(Preview);

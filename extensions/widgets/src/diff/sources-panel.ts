/** The rows behind a row of an answer: those of its group that differ at the two snapshots. */

import { element } from '../kit/dom';
import { type Line, reason } from '../kit/line';

/** Milliseconds after which a row that was reached by the keyboard is asked about. */
const PAUSE = 200;

/** A row by its place, or a bar of a chart. */
export type Group = { row: number } | { chart: number; bar: number };

export class SourcesPanel {
  readonly root: HTMLElement;

  private readonly status = element('span', { role: 'status' });
  private readonly diff = element('div');
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = '';
  private leave = () => {};

  constructor(private readonly line: Line) {
    const close = element('button', { type: 'button', onclick: () => this.close() }, 'Close');
    this.root = element(
      'div',
      { class: 'dlk-df-sources', role: 'region', 'aria-label': 'Rows behind the row', hidden: true },
      element('div', { class: 'dlk-df-bar' }, this.status, close),
      this.diff
    );
    this.root.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.close();
    });
  }

  /**
   * Show the rows behind a row.
   *
   * @param leave - takes the focus back when the panel is closed.
   */
  show(group: Group, isClick: boolean, leave: () => void): void {
    const asked = JSON.stringify(group);
    if (!this.root.hidden && asked === this.asked) return;
    this.asked = asked;
    this.leave = leave;
    this.root.hidden = false;
    this.root.setAttribute('aria-busy', 'true');
    this.status.textContent = 'Comparing the rows behind it …';
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(group, asked), isClick ? 0 : PAUSE);
  }

  close(): void {
    clearTimeout(this.timer);
    const isInside = this.root.contains(document.activeElement);
    this.asked = '';
    this.root.hidden = true;
    if (isInside) this.leave();
  }

  private async ask(group: Group, asked: string): Promise<void> {
    let sentence: string;
    let html = '';
    try {
      ({ sentence, html } = (await this.line.ask<{ sentence: string; html: string }>('sources', group)).content);
    } catch (error) {
      sentence = reason(error);
    }
    if (asked !== this.asked) return;
    this.root.setAttribute('aria-busy', 'false');
    this.status.textContent = sentence;
    // Made by the kernel's own static view, which escapes everything that comes from the catalog.
    this.diff.innerHTML = html;
  }
}

/** The changes of an answer: a click on a point of the chart, or on a line of the table, shows the diff of that change. */

import '../kit/live.css';
import './when.css';
import { element } from '../kit/dom';
import { Line, reason } from '../kit/line';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { choosable } from '../life/choosable-cells';

/** The traits of `WhenView` in Python. */
interface WhenState extends MountedState {
  /** Line of the first point. */
  first: number;
}

class When {
  readonly line: Line;
  readonly root: HTMLElement;

  private readonly status = element('div', { role: 'status' });
  private readonly diff = element('div');
  private readonly points: SVGGElement[];
  private readonly undo: (() => void)[];
  private asked = -1;

  /** The chart and the table stay as they are; only the diff comes below them. */
  constructor(
    private readonly model: Model<WhenState>,
    host: HTMLElement,
    still: HTMLElement[]
  ) {
    this.line = new Line(model);
    for (const child of still) child.style.display = '';
    this.root = element('div', { class: 'dlk-live dlk-wn', hidden: true }, this.status, this.diff);
    this.root.addEventListener('keydown', event => event.stopPropagation());
    host.append(this.root);
    this.points = still.flatMap(child => [...child.querySelectorAll<SVGGElement>('.dlk-wn-point')]);
    const tables = still.flatMap(child => [...child.querySelectorAll('table')]);
    this.undo = [
      ...tables.map(table => choosable(table, row => void this.show(row))),
      ...this.points.map((point, at) => this.listen(point, at))
    ];
  }

  close(): void {
    for (const undo of this.undo) undo();
    this.line.close();
    this.root.remove();
  }

  private listen(point: SVGGElement, at: number): () => void {
    const click = () => void this.show(this.model.get('first') + at);
    const svg = point.ownerSVGElement;
    svg?.classList.add('dlk-wn-choosable');
    point.addEventListener('click', click);
    return () => {
      svg?.classList.remove('dlk-wn-choosable');
      point.removeAttribute('aria-current');
      point.removeEventListener('click', click);
    };
  }

  private async show(line: number): Promise<void> {
    this.asked = line;
    this.root.hidden = false;
    this.status.textContent = 'Comparing …';
    this.points.forEach((point, at) => {
      if (at + this.model.get('first') === line) point.setAttribute('aria-current', 'true');
      else point.removeAttribute('aria-current');
    });
    try {
      const { content } = await this.line.ask<{ html: string; sentence: string }>('diff', { line });
      if (this.asked !== line) return;
      this.status.textContent = content.sentence;
      // Made by the kernel's own static view, which escapes everything that comes from the catalog.
      this.diff.innerHTML = content.html;
    } catch (error) {
      if (this.asked !== line) return;
      this.status.textContent = reason(error);
      this.diff.replaceChildren();
    }
  }
}

export default mounted(When);

/** A chart of the visible rows. The kernel counts and sums; this draws, and lists the same numbers as a table. */

import { ArrowStream } from '../../arrow/arrow-stream';
import { Grid } from '../../grid/grid';
import type { Content } from '../../grid/grid-options';
import { copying } from '../../kit/copying';
import { element, nullMark } from '../../kit/dom';
import { counted, number } from '../../kit/figures';
import { type Line, reason } from '../../kit/line';
import type { Model } from '../../kit/model';
import type { TableState } from '../table-state';
import { drawBars } from './bars';
import type { ChartAnswer, Choice, Point } from './chart-answer';
import { ChartChoices } from './chart-choices';
import { Drawing } from './drawing';
import { legend } from './legend';
import { drawPlane } from './plane';
import { readPoints } from './points';
import { named } from './scales';

export interface ChartOptions {
  model: Model<TableState>;
  line: Line;
  /** Brings all rows. */
  all(): Promise<unknown>;
  /** Whether the chart is unfolded. */
  isShown(): boolean;
  /** Takes a user's choice. */
  onChosen(choice: Choice): void;
  /** Writes the saved output anew. */
  keep(html: string): void;
}

type Listed = 'label' | 'until' | 'series' | 'value' | 'value_until' | 'rows';

export class Chart {
  readonly root: HTMLElement;
  /** Whether other rows are visible than those that are drawn. */
  isStale = true;

  /** The last question; the next change builds on it before its answer is here. */
  private asked: Choice;
  private choice: Choice = {};
  private answer: ChartAnswer | undefined;
  private points: Point[] = [];
  private series: string[] = [];
  private listed: [Listed, string][] = [];

  private readonly choices: ChartChoices;
  private readonly title = element('strong');
  private readonly note = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly drawing = element('div', { class: 'dlk-tb-drawing' });
  private readonly problem = element('span', { role: 'alert' });
  private readonly grid = new Grid<Point>({
    label: 'Points',
    height: 260,
    fetch: (start, count) => this.points.slice(start, start + count),
    cells: point => this.cells(point)
  });

  constructor(private readonly options: ChartOptions) {
    this.asked = options.model.get('drawn');
    this.choices = new ChartChoices(
      () => this.asked,
      choice => this.choose(choice)
    );
    const code = async () => (await options.line.ask<{ text: string }>('code', this.choice)).content.text;
    const controls = element(
      'div',
      { class: 'dlk-bar' },
      ...this.choices.nodes,
      copying('Copy Plotly code', code),
      copying('Copy SQL', () => this.answer?.sql ?? ''),
      this.problem
    );
    const numbers = element(
      'details',
      { ontoggle: () => this.grid.draw() },
      element('summary', {}, 'Numbers'),
      this.grid.root
    );
    const caption = element('div', { class: 'dlk-tb-caption' }, this.title, ' ', this.note);
    this.root = element('div', { role: 'region', 'aria-label': 'Chart' }, controls, caption, this.drawing, numbers);
  }

  /** Draw the visible rows, unless they are drawn already. */
  async refresh(): Promise<void> {
    if (this.isStale) await this.ask(this.asked);
    else this.draw();
  }

  /** Write the picture into the saved output, or take it out where the chart is closed. */
  async keep(): Promise<void> {
    const drawn = this.options.isShown() ? this.drawing.querySelector('svg') : null;
    try {
      const chart = drawn ? this.choice : null;
      const { content } = await this.options.line.ask<{ html: string; place: string }>('still', { chart });
      if (!drawn) {
        this.options.keep(content.html);
        return;
      }
      const picture = drawn.cloneNode(true) as SVGSVGElement;
      picture.setAttribute('viewBox', `0 0 ${picture.getAttribute('width')} ${picture.getAttribute('height')}`);
      picture.setAttribute('style', 'max-width:100%;height:auto');
      this.options.keep(content.html.replace(content.place, () => picture.outerHTML));
    } catch {
      // the kernel is gone: the page says so
    }
  }

  draw(): void {
    const width = this.drawing.clientWidth;
    if (!width || !this.answer) return;
    const points = this.points.filter(point => Number.isFinite(point.y));
    if (!points.length) {
      this.drawing.replaceChildren(element('p', { class: 'dlk-soft' }, 'There is nothing to draw.'));
      return;
    }
    const names = legend(this.series, this.answer.palette, width);
    const drawing = new Drawing(this.answer, points, this.points, this.series, width, names.high);
    if (this.choice.kind === 'bar') drawBars(drawing);
    else drawPlane(drawing);
    const { svg } = drawing;
    svg.prepend(...names.shapes);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', `${this.answer.title}; ${this.note.textContent}`);
    this.drawing.replaceChildren(svg);
  }

  /** Draw a user's choice, which stays, and is saved in the notebook. */
  private async choose(choice: Choice): Promise<void> {
    await this.ask(choice);
    if (this.problem.textContent) return;
    this.options.onChosen(this.choice);
    await this.keep();
  }

  private async ask(choice: Choice): Promise<void> {
    const { model, line } = this.options;
    this.asked = choice;
    this.isStale = false;
    try {
      await this.options.all();
      const look = model.get('look');
      const { content, buffers } = await line.ask<ChartAnswer>('chart', choice);
      if (this.asked !== choice || look !== model.get('look')) return;
      this.problem.textContent = '';
      this.points = readPoints(new ArrowStream(buffers[0]));
      this.answer = content;
      this.choice = this.asked = content.choice;
      this.fill(content);
      this.draw();
    } catch (error) {
      if (this.asked !== choice) return;
      this.problem.textContent = reason(error);
      if (!this.answer) return;
      this.asked = this.choice;
      this.fill(this.answer);
    }
  }

  private fill(answer: ChartAnswer): void {
    const { title, notes, x_title, y_title, colors, choice } = answer;
    this.choices.fill(answer);
    this.title.textContent = title;
    this.note.textContent = [counted(this.points.length, 'point'), ...notes].join(' · ');
    this.series = [];
    for (const { color, series } of this.points) if (color !== null) this.series[color] = named(series);
    const columns: [Listed, string][] = [
      ['label', x_title],
      ['until', 'until'],
      ['series', colors.find(([name]) => name === choice.color)?.[1] ?? ''],
      ['value', y_title],
      ['value_until', 'until'],
      ['rows', 'rows']
    ];
    this.listed = columns.filter(([name]) => this.isListed(name, y_title));
    this.grid.setColumns(
      this.listed.map(([name, text]) => ({ name: text, right: name !== 'label' && name !== 'series' }))
    );
    this.grid.reset(this.points.length);
  }

  /** Whether a column of the list says something that no other says. */
  private isListed(name: Listed, yTitle: string): boolean {
    if (name === 'label') return true;
    if (name === 'rows' && yTitle === 'rows') return false;
    if (name === 'series' && this.series.length) return true;
    return this.points.some(point => point[name] !== null);
  }

  private cells(point: Point): Content[] {
    return this.listed.map(([name]) => {
      const value = point[name];
      return value === null ? nullMark() : typeof value === 'number' ? number.format(value) : value;
    });
  }
}

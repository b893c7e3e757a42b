/** The intervals of a column over the files, one line each. */

import { ArrowStream, known } from '../arrow/arrow-stream';
import { element, shape } from '../kit/dom';
import { counted, percent } from '../kit/figures';
import type { Line } from '../kit/line';

/** The answer about a column; its ends and depth are absent where files have no ranges. */
interface RangesAnswer {
  /** Share of NULL; null where it is not known. */
  nulls: number | null;
  nan: boolean;
  files: number;
  low?: string;
  high?: string;
  /** Files that a filter on one value reads, on average. */
  depth?: number;
}

export class ColumnRanges {
  readonly bar: HTMLElement;
  readonly strip = element('div', { class: 'dlk-fb-strip' });

  private readonly choice: HTMLSelectElement;
  private readonly facts = element('span', { class: 'dlk-soft' });
  private asking: object | undefined;
  private column = '';
  private ends: [string, string] = ['', ''];
  /** Ends of the intervals, from 0 to 1. */
  private lows: number[] = [];
  private highs: number[] = [];

  /** `choose` takes another column. */
  constructor(
    private readonly line: Line,
    columns: string[],
    choose: (column: string) => void
  ) {
    this.choice = element(
      'select',
      { 'aria-label': 'Column whose intervals are drawn', onchange: () => choose(this.choice.value) },
      ...columns.map(name => element('option', {}, name))
    );
    const label = element('b', {}, 'Range per file of');
    this.bar = element('div', { class: 'dlk-bar dlk-fb-ranges' }, label, this.choice, this.facts);
  }

  async show(column: string): Promise<void> {
    if (!column) return;
    this.choice.value = column;
    const asked = (this.asking = {});
    const { content, buffers } = await this.line.ask<RangesAnswer>('ranges', { column });
    if (asked !== this.asking) return;
    const stream = new ArrowStream(buffers[0]);
    this.column = column;
    this.lows = known(stream.numbers('low'));
    this.highs = known(stream.numbers('high'));
    this.ends = [content.low ?? '', content.high ?? ''];
    this.facts.textContent = [reads(content, stream.length), nulls(content)].filter(Boolean).join(' · ');
    this.draw();
  }

  draw(): void {
    const width = this.strip.clientWidth;
    const { length } = this.lows;
    if (!length) {
      this.strip.replaceChildren();
      return;
    }
    if (!width) return;
    const step = Math.max(1.2, Math.min(7, 120 / length));
    const label = `Ranges of ${this.column}: ${this.facts.textContent}`;
    const svg = shape('svg', { width, height: step * length + 4, role: 'img', 'aria-label': label });
    const line = {
      'stroke-width': Math.max(0.9, step - 1.4),
      'stroke-linecap': 'round',
      class: 'dlk-fb-line'
    };
    this.lows.forEach((low, at) => {
      const x1 = 2 + low * (width - 4);
      const x2 = Math.max(2 + this.highs[at] * (width - 4), x1 + 1);
      const y = 2 + step * (at + 0.5);
      svg.append(shape('line', { x1, x2, y1: y, y2: y, ...line }));
    });
    const ends = this.ends.map(end => element('span', {}, end));
    this.strip.replaceChildren(svg, element('div', { class: 'dlk-fb-ends dlk-soft' }, ...ends));
  }
}

function reads({ depth, files }: RangesAnswer, count: number): string {
  if (!count || depth === undefined) return 'no ranges to compare';
  return `a filter on one value reads ${depth.toFixed(1)} of ${counted(files, 'file')} on average`;
}

function nulls({ nulls, nan }: RangesAnswer): string {
  return nulls === null ? '' : `${percent(nulls)} null${nan ? ', has NaN' : ''}`;
}

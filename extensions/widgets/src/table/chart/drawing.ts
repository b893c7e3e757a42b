/** What all drawings of a chart share: its points, their fills, and the texts under the pointer. */

import { shape } from '../../kit/dom';
import { counted } from '../../kit/figures';
import type { ChartAnswer, Point } from './chart-answer';

export class Drawing {
  readonly svg = shape('svg', {});

  /**
   * @param points - those that can be drawn.
   * @param all - the others as well, in order.
   * @param series - names of the colours; empty where there is one only.
   * @param above - pixels that the legend takes.
   */
  constructor(
    readonly answer: ChartAnswer,
    readonly points: Point[],
    readonly all: Point[],
    readonly series: string[],
    readonly width: number,
    readonly above: number
  ) {}

  /** Set the height of the drawing in pixels. */
  size(height: number): void {
    this.svg.setAttribute('width', String(this.width));
    this.svg.setAttribute('height', String(height));
  }

  /** Fill of a point: that of its value of the column of colours. */
  fill({ color }: { color: number | null }): string {
    return this.answer.palette[color ?? 0];
  }

  mark(tag: 'rect' | 'circle', attributes: Record<string, string | number>, point: Point): void {
    const node = shape(tag, attributes);
    node.append(shape('title', {}, this.description(point)));
    this.svg.append(node);
  }

  /** Text of a point, shown under the pointer. */
  private description({ label, until, value, value_until, rows, series, color }: Point): string {
    const { x_title, y_title, choice } = this.answer;
    const span = (from: string | null, to: string | null) =>
      from === null ? 'NULL' : to === null ? from : `${from} to ${to}`;
    return [
      `${x_title}: ${span(label, until)}`,
      ...(color === null ? [] : [`${choice.color}: ${series === null ? 'NULL' : series}`]),
      `${y_title}: ${span(value, value_until)}`,
      ...(y_title === 'rows' ? [] : [counted(rows, 'row')])
    ].join('\n');
  }
}

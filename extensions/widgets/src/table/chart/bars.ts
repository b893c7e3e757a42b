import { shape } from '../../kit/dom';
import type { Point } from './chart-answer';
import type { Drawing } from './drawing';
import { LETTER, grouped, named, part, shortTime } from './scales';

interface Measures {
  /** Pixels of a bar. */
  thick: number;
  /** Pixels from a bar to the next one, and from a group to the next one. */
  next: number;
  gap: number;
  /** Pixels over the first bar. */
  start: number;
}

const ONE_COLOUR: Measures = { thick: 16, next: 22, gap: 0, start: 3 };
const COLOURS: Measures = { thick: 9, next: 11, gap: 8, start: 4 };
/** Pixels of a letter of a name beside the bars. */
const NAME = 6.6;

/** Draw a bar for each point; those of one value of x stand together. */
export function drawBars(drawing: Drawing): void {
  const { points, svg, width, above } = drawing;
  const groups = new Map<number | null, Point[]>();
  for (const point of points) groups.set(point.place, [...(groups.get(point.place) ?? []), point]);
  const isOne = !drawing.series.length;
  const { thick, next, gap, start } = isOne ? ONE_COLOUR : COLOURS;
  const height = points.length * next + groups.size * gap;
  drawing.size(above + height + 8);
  const span = ({ label, until }: Point) => (until === null ? named(label) : shortTime(label));
  const longest = Math.max(...points.map(point => span(point).length));
  const left = Math.min(230, Math.max(40, longest * NAME + 10));
  const texts = points.map(({ value }) => grouped(value ?? '').length);
  const numbers = Math.max(...texts) * LETTER + 10;
  const low = Math.min(0, ...points.map(({ y }) => y));
  const high = Math.max(0, ...points.map(({ y }) => y));
  const below = low < 0 ? numbers : 0;
  const scale = (y: number) => left + below + (width - left - below - numbers) * part(y, low, high);
  const most = Math.round((left - 10) / NAME);
  let top = above + start;
  for (const group of groups.values()) {
    const [{ label }] = group;
    const name = span(group[0]);
    const middle = top + (isOne ? thick : group.length * next - 2) / 2 + 4;
    const style = label === null ? 'italic' : 'normal';
    const attributes = { x: left - 6, y: middle, 'text-anchor': 'end', 'font-style': style };
    const text = shape('text', attributes, name.length > most ? name.slice(0, most - 1) + '…' : name);
    text.append(shape('title', {}, name));
    svg.append(text);
    for (const point of group) {
      const from = scale(0);
      const to = scale(point.y);
      const wide = Math.max(1, Math.abs(to - from));
      const box = { x: Math.min(from, to), y: top, width: wide, height: thick, rx: 2, fill: drawing.fill(point) };
      drawing.mark('rect', box, point);
      const at = { y: top + thick / 2 + 4, ...(isOne ? {} : { style: 'font-size:10px' }) };
      const place = point.y < 0 ? { x: to - 5, ...at, 'text-anchor': 'end' } : { x: to + 5, ...at };
      svg.append(shape('text', place, grouped(point.value ?? '')));
      top += next;
    }
    top += gap;
  }
  svg.append(shape('line', { x1: scale(0), x2: scale(0), y1: above, y2: above + height, class: 'dlk-tb-axis' }));
}

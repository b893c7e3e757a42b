/** Draws points, lines, fields and histograms over two axes. */

import { shape } from '../../kit/dom';
import type { Point } from './chart-answer';
import type { Drawing } from './drawing';
import { LETTER, part, shortTime, tick, ticks } from './scales';

const HEIGHT = 300;
const TOP = 12;
const BOTTOM = 40;
const RIGHT = 14;

type Scale = (value: number) => number;

export function drawPlane(drawing: Drawing): void {
  const { points, svg, width, above, answer } = drawing;
  const top = TOP + above;
  const height = HEIGHT + above;
  const base = height - BOTTOM;
  drawing.size(height);
  const isHistogram = answer.choice.kind === 'histogram';
  const feet = isHistogram ? stacked(points) : null;
  const ys = feet ? points.map(point => feet.get(point)! + point.y) : ends(points, 'y', 'y_end');
  const up = ticks(Math.min(...ys, ...(isHistogram ? [0] : [])), Math.max(...ys), 5);
  const left = Math.max(...up.map(one => tick(one).length)) * LETTER + 12;
  const xs = ends(points, 'x', 'x_end');
  const isRound = answer.x_role !== 'time' && !isHistogram;
  const along = isRound ? ticks(Math.min(...xs), Math.max(...xs), Math.max(2, width / 110)) : null;
  const [first, last] = along ? [along[0], along[along.length - 1]] : [Math.min(...xs), Math.max(...xs)];
  const x: Scale = value => left + (width - left - RIGHT) * (last > first ? part(value, first, last) : 0.5);
  const y: Scale = value => base - (base - top) * part(value, up[0], up[up.length - 1]);
  for (const one of up) {
    svg.append(
      shape('line', { x1: left, x2: width - RIGHT, y1: y(one), y2: y(one), class: 'dlk-tb-axis' }),
      shape('text', { x: left - 6, y: y(one) + 4, 'text-anchor': 'end' }, tick(one))
    );
  }
  drawTicks(drawing, along ? along.map(one => [x(one), tick(one)]) : labels(drawing, x), base);
  const middle = { x: (left + width - RIGHT) / 2, y: height - 4, 'text-anchor': 'middle', class: 'dlk-tb-name' };
  svg.append(shape('text', middle, answer.x_title));
  if (answer.choice.kind === 'line') drawLines(drawing, x, y);
  drawPoints(drawing, feet, x, y);
}

/** Ends of the points along an axis: one number, or two of an interval. */
function ends(points: Point[], name: 'x' | 'y', end: 'x_end' | 'y_end'): number[] {
  return points.flatMap(point => {
    const last = point[end];
    return last === null ? [point[name]] : [point[name], last];
  });
}

/** Feet of the points: counts of the colours of an interval stand on each other. */
function stacked(points: Point[]): Map<Point, number> {
  const feet = new Map<Point, number>();
  const tops = new Map<number | null, number>();
  for (const point of points) {
    const foot = tops.get(point.place) ?? 0;
    feet.set(point, foot);
    tops.set(point.place, foot + point.y);
  }
  return feet;
}

function drawPoints(drawing: Drawing, feet: Map<Point, number> | null, x: Scale, y: Scale): void {
  const { points, answer } = drawing;
  const isLine = answer.choice.kind === 'line';
  const most = Math.max(...points.map(({ rows }) => rows));
  for (const point of points) {
    const fill = drawing.fill(point);
    const foot = feet?.get(point);
    if (foot !== undefined || point.y_end !== null) {
      const [low, high] = foot !== undefined ? [foot, foot + point.y] : [point.y, point.y_end ?? 0];
      const box = {
        x: x(point.x) + 0.5,
        width: Math.max(1, x(point.x_end ?? 0) - x(point.x) - 1),
        y: y(high),
        height: Math.max(1, y(low) - y(high) - (feet ? 0 : 1))
      };
      drawing.mark('rect', { ...box, fill, 'fill-opacity': feet ? 1 : 0.15 + (0.85 * point.rows) / most }, point);
    } else {
      const r = isLine ? (points.length > 150 ? 1.5 : 3) : 3 + 5 * Math.sqrt((point.rows - 1) / most);
      drawing.mark('circle', { cx: x(point.x), cy: y(point.y), r, fill, 'fill-opacity': isLine ? 1 : 0.6 }, point);
    }
  }
}

/** Join points of one colour that follow each other, over none that has no number. */
function drawLines(drawing: Drawing, x: Scale, y: Scale): void {
  const drawn = new Set(drawing.points);
  const paths = new Map<number | null, { text: string; isJoined: boolean }>();
  for (const point of drawing.all) {
    const path = paths.get(point.color) ?? { text: '', isJoined: false };
    if (drawn.has(point)) path.text += `${path.isJoined ? 'L' : 'M'}${x(point.x)} ${y(point.y)}`;
    path.isJoined = drawn.has(point);
    paths.set(point.color, path);
  }
  for (const [color, { text }] of paths) {
    drawing.svg.append(shape('path', { d: text, stroke: drawing.fill({ color }), class: 'dlk-tb-line' }));
  }
}

/** Round times that the kernel writes, in the zone of the session; of one time alone, or of numbers, those of the points. */
function labels({ answer, points }: Drawing, x: Scale): [number, string][] {
  if (answer.ticks.length) return answer.ticks.map(([at, text]) => [x(at), text]);
  const places = points.map((point): [number, string] => [x(point.x), shortTime(point.label)]);
  const end = points[points.length - 1];
  if (end.until !== null) places.push([x(end.x_end ?? 0), shortTime(end.until)]);
  return places;
}

/** Write the ticks below the drawing that have room. */
function drawTicks({ svg, width }: Drawing, places: [number, string][], base: number): void {
  let free = 0;
  for (const [at, text] of places) {
    const wide = text.length * LETTER;
    const from = Math.min(Math.max(0, at - wide / 2), width - wide);
    if (from < free) continue;
    svg.append(
      shape('line', { x1: at, x2: at, y1: base, y2: base + 4, class: 'dlk-tb-axis' }),
      shape('text', { x: from + wide / 2, y: base + 17, 'text-anchor': 'middle' }, text)
    );
    free = from + wide + 24;
  }
}

import { shape } from '../../kit/dom';
import { LETTER } from './scales';

/** Height of a line in pixels. */
const LINE = 18;
/** Longest name. */
const MOST = 40;

/** The names of the colours over the drawing, in as many lines as they need. */
export function legend(series: string[], palette: string[], width: number): { shapes: SVGElement[]; high: number } {
  const shapes: SVGElement[] = [];
  let left = 0;
  let line = 0;
  series.forEach((name, at) => {
    const text = name.length > MOST ? name.slice(0, MOST - 1) + '…' : name;
    const wide = text.length * LETTER + 34;
    if (left && left + wide > width) {
      left = 0;
      line += 1;
    }
    const top = line * LINE + 3;
    const label = shape('text', { x: left + 15, y: top + 9 }, text);
    label.append(shape('title', {}, name));
    shapes.push(shape('rect', { x: left, y: top, width: 10, height: 10, rx: 2, fill: palette[at] }), label);
    left += wide;
  });
  return { shapes, high: shapes.length ? (line + 1) * LINE + 6 : 0 };
}

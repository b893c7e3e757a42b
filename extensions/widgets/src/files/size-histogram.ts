import { shape } from '../kit/dom';
import { compact, counted, number, size } from '../kit/figures';

const HEIGHT = 150;
/** Bars for each power of ten. */
const STEPS = 4;
/** Arguments that a function takes at most. */
const LISTED = 50_000;

/** A histogram of file sizes in bytes, over a logarithmic axis. */
export function sizeHistogram(sizes: number[], largest: number, width: number): SVGElement {
  const base = HEIGHT - 18;
  const svg = shape('svg', { width, height: HEIGHT, role: 'img' });
  const logs = sizes.map(one => Math.log10(Math.max(one, 1)));
  const least = Math.min(...logs.slice(0, LISTED));
  const low = Math.floor(least * 2) / 2;
  const bins = new Map<number, number>();
  for (const one of logs) {
    const bin = Math.max(0, Math.floor((one - low) * STEPS));
    bins.set(bin, (bins.get(bin) ?? 0) + 1);
  }
  const count = Math.max(...bins.keys()) + 1;
  const most = Math.max(...bins.values());
  const slot = width / Math.max(count, 6);
  const edge = (bin: number) => size(10 ** (low + bin / STEPS));
  for (const [bin, files] of bins) {
    const tall = Math.max(2, (base - 16) * (files / most));
    const bar = { x: bin * slot + 1, y: base - tall, width: Math.max(1, slot - 2), height: tall, rx: 1.5 };
    const group = shape('g', {});
    group.append(shape('rect', { ...bar, class: 'dlk-fb-even' }));
    if (slot > 26) {
      const place = { x: (bin + 0.5) * slot, y: base - tall - 4, 'text-anchor': 'middle', class: 'dlk-soft' };
      group.append(shape('text', place, compact(files)));
    }
    group.append(shape('title', {}, `${counted(files, 'file')} of ${edge(bin)} to ${edge(bin + 1)}`));
    svg.append(group);
  }
  const every = Math.max(1, Math.ceil(64 / slot));
  for (let bin = 0; bin * slot + 50 < width; bin += every) {
    svg.append(shape('text', { x: bin * slot, y: HEIGHT - 4, class: 'dlk-soft' }, edge(bin)));
  }
  const axis = { x1: 0, x2: width, y1: base, y2: base, stroke: 'currentColor', 'stroke-opacity': 0.3 };
  svg.append(shape('line', axis));
  const extent = `from ${size(10 ** least)} to ${size(largest)}`;
  svg.setAttribute('aria-label', `Sizes of ${number.format(sizes.length)} files, ${extent}`);
  return svg;
}

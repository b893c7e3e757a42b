/** The timeline of the snapshots: a bar for each one in view, and an overview of all of them, which moves the view. */

import { element, shape } from '../kit/dom';
import { compact } from '../kit/figures';
import { OverviewStrip } from './overview-strip';
import { type SnapshotNumbers, kindName, kindOf, rowsOf } from './snapshot-numbers';

/** Height of the highest bar in pixels. */
const HIGH = 58;
/** Milliseconds in which snapshots that lie together differ by seconds. */
const SHORT = 600_000;
/** Pixels of a snapshot in the view at first. */
const SLOT = 7;
/** Fewest snapshots in the view. */
const FEWEST = 8;

export interface TimelineOptions {
  zone: string;
  /** Writes a time in the session's zone, with seconds or without. */
  stamp(time: number, isPrecise: boolean): string;
  /** The selected snapshots: one, or the two that are compared. */
  marked(): number[];
  select(key: number, extend: boolean): void;
  /** The view has another length. */
  onZoom(): void;
}

export class Timeline {
  readonly root = element('div', { class: 'dlk-sb-time', 'aria-hidden': 'true' });
  /** Says the scale of the bars. */
  readonly scale = element('span', { class: 'dlk-soft' }, 'bar height: square root of the rows');
  readonly strip: OverviewStrip;
  /** Number of snapshots in view, from the place of the newest one on. */
  size = 0;
  offset = 0;

  private data: SnapshotNumbers | undefined;

  constructor(private readonly options: TimelineOptions) {
    this.root.addEventListener('wheel', event => this.wheel(event), { passive: false });
    this.strip = new OverviewStrip({
      move: offset => this.move(offset),
      zoom: factor => this.zoom(factor),
      show: (offset, size) => {
        const { length } = this.data!;
        this.size = Math.max(Math.min(FEWEST, length), Math.min(this.capacity() * 3, Math.round(size)));
        this.move(offset);
      },
      view: () => ({ offset: this.offset, size: this.size }),
      onEnd: () => options.onZoom()
    });
  }

  /** Show other snapshots, the newest ones in view. */
  reset(data: SnapshotNumbers): void {
    this.data = data;
    this.size = Math.min(data.length, this.capacity());
    this.offset = 0;
  }

  /** Bring a snapshot into view. */
  reveal(at: number): void {
    if (at < this.offset || at >= this.offset + this.size) this.move(at - Math.floor(this.size / 2));
  }

  draw(): void {
    const width = this.root.clientWidth;
    if (!width || !this.data) return;
    this.drawBars(this.data, width);
    this.strip.draw(this.data, width);
  }

  private capacity(): number {
    return Math.max(FEWEST, Math.floor((this.root.clientWidth || 900) / SLOT));
  }

  private move(offset: number): void {
    this.offset = Math.max(0, Math.min(Math.round(offset), this.data!.length - this.size));
    this.draw();
  }

  private zoom(factor: number): void {
    const { length } = this.data!;
    const middle = this.offset + this.size / 2;
    const wanted = Math.min(length, this.capacity() * 3, Math.round(this.size * factor));
    this.size = Math.max(Math.min(FEWEST, length), wanted);
    this.move(middle - this.size / 2);
    this.options.onZoom();
  }

  private wheel(event: WheelEvent): void {
    const { length } = this.data!;
    if (length <= FEWEST) return;
    if (!event.ctrlKey && length <= this.size) return;
    event.preventDefault();
    if (event.ctrlKey) this.zoom(event.deltaY > 0 ? 1.25 : 0.8);
    else this.move(this.offset - Math.sign(event.deltaX || event.deltaY) * Math.max(1, Math.floor(this.size / 12)));
  }

  private drawBars(data: SnapshotNumbers, width: number): void {
    const { up, down, time } = data;
    const visible: number[] = [];
    for (let at = Math.min(data.length, this.offset + this.size) - 1; at >= this.offset; at--) visible.push(at);
    const base = HIGH + 26;
    const largest = visible.reduce((most, at) => Math.max(most, up[at], down[at]), 1);
    this.scale.hidden = !visible.some(at => up[at] || down[at]);
    const below = HIGH * Math.sqrt(visible.reduce((most, at) => Math.max(most, down[at]), 0) / largest) + 8;
    const slot = width / Math.max(visible.length, 1);
    const svg = shape('svg', { width, height: base + below + 34 });
    svg.append(shape('line', { x1: 0, x2: width, y1: base, y2: base, class: 'dlk-sb-base' }));
    // clocks of snapshots that were made within minutes differ in their seconds
    const isShort = visible.length > 1 && time[visible[visible.length - 1]] - time[visible[0]] < SHORT;
    const dates = new Dates(width);
    visible.forEach((at, index) => {
      const x = slot * (index + 0.5);
      const group = this.bar(data, at, { x, slot, base, below, largest });
      const moment = this.options.stamp(time[at], isShort);
      const label = dates.at(x, moment);
      if (label) group.append(shape('text', { x, y: base + below + 28, class: 'dlk-soft' }, label));
      const rows = rowsOf(data, at);
      const facts = [
        data.id[at],
        `${moment} ${this.options.zone}`,
        kindName(kindOf(data, at)),
        rows && `${rows} rows`,
        `schema version ${data.version[at]}`
      ];
      group.append(shape('title', {}, facts.filter(fact => fact !== '').join(' · ')));
      group.addEventListener('click', event => this.options.select(data.key[at], event.shiftKey));
      svg.append(group);
    });
    this.root.replaceChildren(svg);
  }

  private bar(
    data: SnapshotNumbers,
    at: number,
    { x, slot, base, below, largest }: { x: number; slot: number; base: number; below: number; largest: number }
  ): SVGGElement {
    const { id, key, version, up, down } = data;
    const width = Math.min(16, Math.max(1.5, slot * 0.6));
    const group = shape('g', { class: 'dlk-sb-mark' });
    const marked = this.options.marked();
    const isChosen = marked.includes(key[at]);
    const isInside = marked.length === 2 && key[at] > marked[0] && key[at] < marked[1];
    const band = isChosen ? ' dlk-sb-chosen' : isInside ? ' dlk-sb-inside' : '';
    const place = { x: x - slot / 2, width: slot, y: 0, height: base + below + 16, rx: Math.min(3, slot / 3) };
    group.append(shape('rect', { ...place, class: 'dlk-sb-band' + band }));
    const isAfter = at + 1 < data.length && id[at] === id[at + 1] + 1n;
    if (isAfter && version[at] !== version[at + 1]) {
      const d = `M${x - 3.5} 3 l3.5 -3.5 l3.5 3.5 l-3.5 3.5 z`;
      group.append(shape('path', { d, class: 'dlk-k-schema' }));
    }
    const high = up[at] ? Math.max(2, HIGH * Math.sqrt(up[at] / largest)) : 0;
    const deep = down[at] ? Math.max(2, HIGH * Math.sqrt(down[at] / largest)) : 0;
    const fill = { class: 'dlk-k-' + kindOf(data, at) };
    if (high + deep)
      group.append(shape('rect', { x: x - width / 2, y: base - high, width, height: high + deep, ...fill }));
    else group.append(shape('circle', { cx: x, cy: base, r: Math.min(4.5, width / 2), ...fill }));
    if (slot >= 34 && high + deep) {
      const count = high ? compact(up[at]) : '\u2212' + compact(down[at]);
      const text = (data.atMost[at] ? '≤' : '') + count;
      group.append(shape('text', { x, y: base - high - 5, class: 'dlk-soft' }, text));
    }
    const name = String(id[at]);
    if (slot >= 9 + 6 * name.length) group.append(shape('text', { x, y: base + below + 11 }, name));
    return group;
  }
}

/** Dates below the bars, and clocks of one date, where there is room for them. */
class Dates {
  private free = 0;
  private day = '';
  private previous = '';

  constructor(private readonly width: number) {}

  /** Return the label of a moment at a place, if it gets one. */
  at(x: number, moment: string): string | undefined {
    const day = moment.slice(0, 10);
    const label = day !== this.day ? day : moment.slice(11);
    if (label === this.previous || x - 34 < this.free || x + 34 > this.width) return undefined;
    this.previous = label;
    this.day = day;
    this.free = x + 64;
    return label;
  }
}

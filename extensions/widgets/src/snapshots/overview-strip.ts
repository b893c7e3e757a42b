/** All snapshots in one thin strip, the part that the timeline shows framed. */

import { element, shape } from '../kit/dom';
import type { SnapshotNumbers } from './snapshot-numbers';

const HEIGHT = 26;
/** Pixels from which a movement of the pointer chooses a part. */
const DRAGGED = 5;

export interface StripOptions {
  /** Shows the snapshots from a place on. */
  move(offset: number): void;
  zoom(factor: number): void;
  /** Shows a number of snapshots from a place on. */
  show(offset: number, size: number): void;
  /** The part that the timeline shows. */
  view(): { offset: number; size: number };
  /** A part was chosen. */
  onEnd(): void;
}

export class OverviewStrip {
  readonly root = element('div', {
    class: 'dlk-sb-map',
    role: 'slider',
    tabindex: '0',
    'aria-label': 'Snapshots in the timeline; arrows move, plus and minus zoom',
    onkeydown: event => this.key(event),
    onpointerdown: event => this.brush(event)
  });
  /** Says the scale. */
  readonly scale = element('div', { class: 'dlk-soft dlk-sb-mapped' });

  private length = 0;

  constructor(private readonly options: StripOptions) {}

  draw(data: SnapshotNumbers, width: number): void {
    this.length = data.length;
    const { offset, size } = this.options.view();
    const isNeeded = data.length > size;
    this.root.style.display = isNeeded ? '' : 'none';
    this.scale.hidden = !isNeeded;
    if (!isNeeded) return;
    const sums = this.sums(data, Math.min(data.length, Math.floor(width / 3)));
    const largest = Math.max(...sums);
    const bar = width / sums.length;
    let path = '';
    sums.forEach((sum, index) => {
      path += `M${(index + 0.5) * bar} ${HEIGHT}V${HEIGHT - 24 * Math.sqrt(sum / largest)}`;
    });
    const svg = shape('svg', { width, height: HEIGHT, 'aria-hidden': 'true' });
    svg.append(shape('path', { d: path, class: 'dlk-sb-strip', 'stroke-width': Math.max(1, bar - 1) }));
    const x = (width * (data.length - offset - size)) / data.length;
    const frame = { x, y: 0.5, width: Math.max(4, (width * size) / data.length), height: HEIGHT - 1, rx: 3 };
    svg.append(shape('rect', { ...frame, class: 'dlk-sb-window' }));
    this.root.replaceChildren(svg);
    this.scale.textContent = 'overview height: square root of rows added, rows removed and snapshots, summed';
    const newest = data.id[offset];
    const oldest = data.id[Math.min(data.length, offset + size) - 1];
    const values = {
      min: data.id[data.length - 1],
      max: data.id[0],
      now: newest,
      text: `snapshots ${oldest} to ${newest}`
    };
    for (const [name, value] of Object.entries(values)) this.root.setAttribute('aria-value' + name, String(value));
  }

  /** Rows and snapshots of equal parts of the history, oldest first. */
  private sums({ length, up, down }: SnapshotNumbers, bins: number): Float64Array {
    const sums = new Float64Array(bins);
    for (let at = 0; at < length; at++) {
      sums[Math.floor(((length - 1 - at) / length) * bins)] += up[at] + down[at] + 1;
    }
    return sums;
  }

  private key(event: KeyboardEvent): void {
    const { offset, size } = this.options.view();
    const steps: Record<string, number> = {
      ArrowLeft: size / 4,
      ArrowRight: -size / 4,
      PageUp: size,
      PageDown: -size,
      Home: this.length,
      End: -this.length
    };
    if (event.key in steps) this.options.move(offset + steps[event.key]);
    else if (event.key === '+') this.options.zoom(0.5);
    else if (event.key === '-') this.options.zoom(2);
    else return;
    event.preventDefault();
  }

  /** Dragging over the strip chooses what the timeline shows. */
  private brush(event: PointerEvent): void {
    const box = this.root.getBoundingClientRect();
    const at = (x: number) => this.length * (1 - Math.max(0, Math.min(1, (x - box.left) / box.width)));
    const from = at(event.clientX);
    this.root.setPointerCapture(event.pointerId);
    const drag = (moved: PointerEvent) => {
      if (Math.abs(moved.clientX - event.clientX) < DRAGGED) {
        this.options.move(from - this.options.view().size / 2);
        return;
      }
      const to = at(moved.clientX);
      this.options.show(Math.min(from, to), Math.abs(from - to));
    };
    const stop = (moved: PointerEvent) => {
      drag(moved);
      this.root.removeEventListener('pointermove', drag);
      this.root.removeEventListener('pointerup', stop);
      this.options.onEnd();
    };
    this.root.addEventListener('pointermove', drag);
    this.root.addEventListener('pointerup', stop);
  }
}

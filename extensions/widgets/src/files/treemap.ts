/** A treemap: squares of files, or of partitions where there are too many files, their area the size. */

import { shape } from '../kit/dom';
import { number, percent, size } from '../kit/figures';
import type { FileNumbers } from './file-numbers';

/** Most squares. */
const DRAWN = 1500;
const HEIGHT = 150;
/** Pixels of a letter. */
const LETTER = 6.4;

interface Box {
  value: number;
  /** Place of the partition. */
  group: number;
  name: string;
  /** Share of the rows that are deleted. */
  share: number;
  /** Place of the file; absent for a partition, which has a count of files. */
  at?: number;
  count?: number;
}

interface Placed {
  box: Box;
  x: number;
  y: number;
  w: number;
  h: number;
}

/**
 * @param names - of the partitions.
 * @param choose - takes the place of a file that was clicked.
 */
export function treemap(files: FileNumbers, names: string[], width: number, choose: (at: number) => void): SVGElement {
  const label = `${number.format(files.length)} files by size; the list below tells each`;
  const svg = shape('svg', { width, height: HEIGHT, role: 'img', 'aria-label': label });
  const boxes = files.length <= DRAWN ? fileBoxes(files, names) : partitionBoxes(files, names);
  const sorted = boxes.filter(box => box.value > 0).sort((a, b) => a.group - b.group || b.value - a.value);
  for (const placed of squarified(sorted, width, HEIGHT)) {
    const node = drawBox(placed);
    const { at } = placed.box;
    if (at !== undefined) node.addEventListener('click', () => choose(at));
    svg.append(node);
  }
  return svg;
}

function fileBoxes({ sizes, shares, partition }: FileNumbers, names: string[]): Box[] {
  return sizes.map((value, at) => {
    const group = partition[at];
    return { value, at, group, share: shares[at], name: names[group] };
  });
}

function partitionBoxes({ sizes, rows, deleted, partition }: FileNumbers, names: string[]): Box[] {
  const groups = names.map(name => ({ value: 0, rows: 0, deleted: 0, count: 0, name }));
  partition.forEach((group, at) => {
    const one = groups[group];
    one.value += sizes[at];
    one.rows += Number(rows[at]);
    one.deleted += Number(deleted[at]);
    one.count += 1;
  });
  const boxes = groups.map((one, group) => ({ ...one, group, share: one.rows ? one.deleted / one.rows : 0 }));
  return boxes.sort((a, b) => b.value - a.value).slice(0, DRAWN);
}

function drawBox({ box, x, y, w, h }: Placed): SVGElement {
  const group = shape('g', { class: 'dlk-fb-box' });
  const inner = { x: x + 0.5, width: Math.max(0.5, w - 1) };
  const fill = box.group % 2 ? 'dlk-fb-odd' : 'dlk-fb-even';
  group.append(shape('rect', { ...inner, y: y + 0.5, height: Math.max(0.5, h - 1), rx: 1.5, class: fill }));
  if (box.share) {
    const tall = Math.max(1, (h - 1) * box.share);
    group.append(shape('rect', { ...inner, y: y + h - tall - 0.5, height: tall, class: 'dlk-fb-gone' }));
  }
  if (w > 74 && h > 18 && box.name) {
    const isCut = box.name.length * LETTER > w - 8;
    const name = isCut ? box.name.slice(0, Math.floor((w - 14) / LETTER)) + '…' : box.name;
    group.append(shape('text', { x: x + 5, y: y + 14, class: 'dlk-fb-name' }, name));
  }
  const facts = [
    box.name,
    box.count ? `${number.format(box.count)} files` : null,
    size(box.value),
    box.share ? `${percent(box.share)} deleted` : null
  ];
  group.append(shape('title', {}, facts.filter(Boolean).join(' · ')));
  return group;
}

/** Place boxes in rows, as near to squares as they get, in the order given. */
function squarified(boxes: Box[], width: number, height: number): Placed[] {
  const found: Placed[] = [];
  let x = 0;
  let y = 0;
  let w = width;
  let h = height;
  let left = boxes.reduce((sum, box) => sum + box.value, 0);
  let row: Box[] = [];
  let sum = 0;
  const worst = (values: Box[], of: number, side: number) => {
    const strip = ((of / left) * (w * h)) / side;
    const ratios = values.map(box => {
      const long = (box.value / of) * side;
      return Math.max(long / strip, strip / long);
    });
    return Math.max(...ratios);
  };
  const place = () => {
    const isDown = w >= h;
    const side = isDown ? h : w;
    const strip = ((sum / left) * w * h) / side || 0;
    let at = 0;
    for (const box of row) {
      const long = (box.value / sum) * side;
      found.push(isDown ? { box, x, y: y + at, w: strip, h: long } : { box, x: x + at, y, w: long, h: strip });
      at += long;
    }
    if (isDown) {
      x += strip;
      w -= strip;
    } else {
      y += strip;
      h -= strip;
    }
    left -= sum;
    row = [];
    sum = 0;
  };
  for (const box of boxes) {
    const side = Math.min(w, h);
    if (row.length && worst([...row, box], sum + box.value, side) > worst(row, sum, side)) place();
    row.push(box);
    sum += box.value;
  }
  if (row.length) place();
  return found;
}

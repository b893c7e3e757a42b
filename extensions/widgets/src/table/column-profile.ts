/** The picture and the facts of a column's values, below its name. */

import { element, shape } from '../kit/dom';
import { counted, number, share } from '../kit/figures';

/** A column's profile, as the kernel sends it. */
export interface Profile {
  rows: number;
  nulls: number;
  distinct: number;
  low: string;
  high: string;
  /** Counts of equal intervals from `low` to `high`; empty where values are no numbers. */
  bins: number[];
  /** The most frequent values. */
  top: [string | null, number][];
}

const WIDTH = 96;
const HEIGHT = 26;

/** `isPart`: the first rows of many, so that there may be more different values, and other shares. */
export function drawProfile(profile: Profile, isPart: boolean): HTMLElement {
  const { rows, nulls, distinct, low, high, bins, top } = profile;
  const facts = [
    `${isPart ? '≥' : ''}${number.format(distinct)} distinct`,
    nulls ? `${share(nulls, rows, isPart)} null` : 'no nulls'
  ];
  const values = bins.length
    ? [`${low} to ${high}`]
    : top.map(([text, count]) => `${text === null ? 'NULL' : text}: ${number.format(count)}`);
  const details = [
    ...(nulls ? [`NULL in ${counted(nulls, 'row')}`] : []),
    ...values,
    ...(isPart ? [`of the first ${counted(rows, 'row')} that pass`] : [])
  ].join('\n');
  const svg = histogram(bins.length ? bins : top.map(([, count]) => count));
  svg.setAttribute('aria-label', `${facts.join(', ')}; ${details}`);
  svg.append(shape('title', {}, `${facts.join(', ')}\n${details}`));
  return element('span', {}, svg, ...facts.map(fact => element('div', { class: 'dlk-soft' }, fact)));
}

function histogram(counts: number[]): SVGSVGElement {
  const svg = shape('svg', { width: WIDTH, height: HEIGHT, role: 'img' });
  const largest = Math.max(1, ...counts);
  const step = WIDTH / counts.length;
  counts.forEach((count, at) => {
    const tall = count ? Math.max(1.5, ((HEIGHT - 2) * count) / largest) : 0;
    const width = Math.max(1, step - 1);
    svg.append(shape('rect', { x: at * step + 0.5, y: HEIGHT - tall, width, height: tall, class: 'dlk-tb-fill' }));
  });
  return svg;
}

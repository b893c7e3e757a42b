/** Numbers, names and ticks along an axis. */

const exact = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 12 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 3 });

/** Pixels of a letter of a drawing, roughly. */
export const LETTER = 6.8;

/** Return the text of a tick. */
export function tick(value: number): string {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e15)) return value.toExponential().replace('e+', 'e');
  return size >= 1e4 ? short.format(value) : exact.format(value);
}

/** Return a number as it was written, by thousands. */
export function grouped(text: string): string {
  const byThousands = (_: string, sign: string, digits: string) => sign + digits.replace(/\B(?=(\d{3})+$)/g, ',');
  return text.replace(/^(-?)(\d+)(?=\.\d+$|$)/, byThousands);
}

/** Return round numbers from the first below the low end to the first above the high one, some `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low)) [low, high] = [low - (Math.abs(low) || 1), high + (Math.abs(high) || 1)];
  const rough = high / count - low / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 5, 10].map(digit => digit * power);
  const step = steps.find(one => one >= rough * 0.999) ?? steps[3];
  const first = Math.floor(low / step);
  const last = Math.ceil(high / step);
  // dividing by a whole number gives the number that is written 0.3, multiplying by 0.1 another one
  return Array.from({ length: last - first + 1 }, (_, at) =>
    step < 1 ? (first + at) / Math.round(1 / step) : (first + at) * step
  );
}

/**
 * Return how far a value is from the low end to the high one.
 *
 * It computes with halves, as the difference of two numbers may be infinite.
 */
export function part(value: number, low: number, high: number): number {
  return (value / 2 - low / 2) / (high / 2 - low / 2 || 1);
}

/** Return a label as `model/labels.py` does: texts that could be taken for NULL, or for none, stand in quotes. */
export function named(label: string | null): string {
  if (label === null) return 'NULL';
  return label === 'NULL' || label === '' || /^'(.*')?$/s.test(label) ? `'${label}'` : label;
}

/** Return a time without its clock, where that is midnight. */
export function shortTime(text: string | null): string {
  return text === null ? 'NULL' : text.replace(/ 00:00:00([+-]\d\d(:\d\d)?)?$/, '');
}

/** Numbers as they read: counts, sizes, shares. */

/** Writes whole numbers by thousands; a bigint keeps all its digits. */
export const number = new Intl.NumberFormat('en-US');

/** Return a rough number in few letters, such as 1.2k. */
export function compact(value: number): string {
  const units: [number, string][] = [
    [1e9, 'B'],
    [1e6, 'M'],
    [1e3, 'k']
  ];
  for (const [limit, letter] of units) {
    if (value >= limit) {
      const scaled = value / limit;
      return (scaled < 10 ? scaled.toFixed(1).replace(/\.0$/, '') : scaled.toFixed(0)) + letter;
    }
  }
  return String(value);
}

export function size(bytes: number): string {
  let value = bytes;
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (value < 999.5) return `${value.toFixed(unit !== 'B' && value < 9.95 ? 1 : 0)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

/** Return a share as a whole percentage; it never rounds to all or nothing when it is not. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return '<1%';
  if (share > 0.99 && share < 1) return '>99%';
  return `${Math.round(share * 100)}%`;
}

/** Return a share of a whole as `percent` writes it, marked where that is not exact. */
export function share(part: number, whole: number, isRough: boolean): string {
  const text = percent(part / whole);
  return (isRough || (100 * part) % whole) && /^\d/.test(text) ? '≈' + text : text;
}

export function counted(value: number | bigint, noun: string): string {
  return `${number.format(value)} ${Number(value) === 1 ? noun : noun + 's'}`;
}

/** Return the width of a column of numbers or names: that of the longest, whatever the font. */
export function room(texts: string[], more = 0): string {
  return `${texts.reduce((most, text) => Math.max(most, text.length), 4) * 0.66 + more}em`;
}

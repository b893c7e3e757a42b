/** SQL names as they are inserted into cells. */

import { ILake } from './protocol';

/** Words that cannot be names without quotes; DuckDB's reserved ones. */
const RESERVED = new Set(
  (
    'all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default ' +
    'deferrable desc describe distinct do else end except false fetch for foreign from group having in initially ' +
    'intersect into lambda lateral leading limit not null offset on only or order pivot placing primary qualify ' +
    'references returning select show some summarize symmetric table then to trailing true union unique unpivot using ' +
    'variadic when where window with'
  ).split(' ')
);

/** A name as SQL needs it: quoted unless it is a plain one. */
export function quote(name: string): string {
  return /^[a-z_][a-z0-9_]*$/i.test(name) && !RESERVED.has(name.toLowerCase()) ? name : `"${name.replace(/"/g, '""')}"`;
}

/** A text as SQL needs it. */
export function literal(text: string): string {
  return `'${text.replace(/'/g, "''")}'`;
}

/** The shortest name of a table that finds it: without the schema, or the lake, that is current. */
export function tableName(lake: ILake, schema: string[], table: string, always = false): string {
  const parts = [lake.alias, ...schema, table].map(quote);
  if (always || !lake.current) {
    return parts.join('.');
  }
  return isCurrent(lake, schema) ? parts[parts.length - 1] : parts.slice(1).join('.');
}

/** Whether a schema of a lake, by its path, is in use; nested ones never are. */
export function isCurrent(lake: ILake, schema: string[]): boolean {
  return lake.current && schema.length === 1 && schema[0].toLowerCase() === lake.schema.toLowerCase();
}

/** An argument of a `%ducklake` line. */
export function argument(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replace(/'/g, `'"'"'`)}'`;
}

/** A text of a lake for a line: a sign stands for each character that hides or reorders others. */
export function readable(text: string): string {
  const signs = text.replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    '\u2423'
  );
  return signs.length > 80 ? `${signs.slice(0, 79)}…` : signs;
}

/** Whether a text stays on one line in a cell; Python and IPython end lines at more than line breaks. */
export function isOneLine(text: string): boolean {
  return !/[\u0000-\u001f\u007f\u0085\u2028\u2029]/.test(text);
}

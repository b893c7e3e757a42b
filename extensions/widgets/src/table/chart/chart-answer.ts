/** A chart, as the kernel sends it (`ducklake_lab/widgets/chart_view.py`). */

export type Kind = 'bar' | 'line' | 'scatter' | 'histogram';

/** The choices that make a chart; what is left out follows from the types of the columns. */
export interface Choice {
  kind?: string;
  x?: string;
  y?: string | null;
  aggregate?: string | null;
  color?: string | null;
  bins?: string | null;
}

/** [name, the name as it reads] */
export type Named = [string, string];

export interface ChartAnswer {
  choice: Choice;
  kinds: string[];
  xs: Named[];
  ys: Named[];
  colors: Named[];
  /** Fills, by the number of a point's colour. */
  palette: string[];
  bins: string[];
  is_time: boolean;
  /** [place along x, text] */
  ticks: [number, string][];
  aggregates: string[];
  title: string;
  notes: string[];
  x_title: string;
  y_title: string;
  x_role: string;
  sql: string;
}

/** A point: texts to read, numbers to draw. */
export interface Point {
  label: string | null;
  /** End of an interval; null for a value of its own. */
  until: string | null;
  series: string | null;
  value: string | null;
  value_until: string | null;
  rows: number;
  /** Place of its value of x among the others. */
  place: number | null;
  x: number;
  x_end: number | null;
  y: number;
  y_end: number | null;
  /** Number of its colour; null where there is one only. */
  color: number | null;
}

/** Charts whose values are aggregated. */
export const AGGREGATED = new Set<string | undefined>(['bar', 'line']);

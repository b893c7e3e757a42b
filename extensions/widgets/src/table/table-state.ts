import type { SortKey } from '../grid/sorting';
import type { MountedState } from '../kit/model';
import type { Choice } from './chart/chart-answer';

/** Sections that can be unfolded. */
export type Part = 'filter' | 'profile' | 'chart' | 'sql' | 'download';

/** The traits of `TableBrowser` in Python. */
export interface TableState extends MountedState {
  /** [name, the name as it reads, type, whether it stands to the right] */
  columns: [string, string, string, boolean][];
  sort: SortKey[];
  filters: Record<string, string>;
  search: string;
  sql: string;
  /** Number of rows that pass the filters. */
  passing: number;
  /** Number of the view: it changes with the rows that are shown, or their order. */
  look: number;
  problem: string;
  note: string;
  /** Whether all rows are here. */
  whole: boolean;
  total: number;
  facts: string;
  title: string;
  heading: string;
  shows: Part[];
  /** Kinds of files to save the rows as, with their names. */
  kinds: [string, string][];
  drawn: Choice;
  place: number | null;
  /** Whether the kernel knows the table whose rows these are, and can say who set a cell. */
  has_lives: boolean;
}

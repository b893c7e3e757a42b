import { type ArrowStream, known } from '../arrow/arrow-stream';
import { type Child, element, nullMark } from '../kit/dom';

export type RowKind = 'deleted' | 'inserted' | 'updated';

/** A cell with its earlier and its later value, as texts; null for NULL. */
export interface ChangedCell {
  before: string | null;
  after: string | null;
  differs: boolean;
  /** Whether there is no later value. */
  lost: boolean;
}

export interface ChangedRow {
  kind: RowKind;
  id: string;
  cells: ChangedCell[];
}

/** Read rows with a number of columns; one that the kernel does not show any more has no values. */
export function readRows(stream: ArrowStream, shown: number): ChangedRow[] {
  const kinds = known(stream.texts('kind')) as RowKind[];
  const ids = known(stream.texts('id'));
  const columns = Array.from({ length: shown }, (_, at) =>
    stream.has('b' + at)
      ? {
          before: stream.texts('b' + at),
          after: stream.texts('a' + at),
          differs: stream.booleans('d' + at),
          lost: stream.booleans('l' + at)
        }
      : null
  );
  return kinds.map((kind, row) => ({
    kind,
    id: ids[row],
    cells: columns.map(column => ({
      before: column?.before[row] ?? null,
      after: column?.after[row] ?? null,
      differs: Boolean(column?.differs[row]),
      lost: Boolean(column?.lost[row])
    }))
  }));
}

/** Return what a cell shows: one value, or the change from one to the other. */
export function cellNode({ before, after, differs, lost }: ChangedCell): Child {
  const text = (value: string | null) => value ?? nullMark();
  if (!differs) return text(lost ? before : after);
  const edit = { class: 'dlk-df-edit' };
  return element('span', edit, element('del', {}, text(before)), ' → ', element('ins', {}, text(after)));
}

/** Number of letters that a cell shows. */
export function letters({ before, after, differs, lost }: ChangedCell): number {
  if (differs) return `${before ?? 'NULL'} → ${after ?? 'NULL'}`.length;
  return ((lost ? before : after) ?? 'NULL').length;
}

/** Texts about a cell's outputs, from their records and the kernel's answers. */

import { CodeCell } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';

import { onLine } from './actions';
import { ICell } from './cells';
import { IMark } from './mark';
import { argument, quote, readable } from './names';
import { ILake, IMovedOn, IMovedTable } from './protocol';
import { IRecord, IRecorded, IRecordedTable, keyOf } from './recorded';

/** Tables that get a diff each. */
const TABLES = 5;

/** Answers by the key of the state. */
export type Answers = ReadonlyMap<string, IMovedOn>;

/** What has moved on, the cells that show it, and the reads of which nothing is known. */
export interface ICompared {
  texts: string[];
  diffs: ICell[];
  unknown: IRecorded[];
}

/** Compares the records of a cell's outputs; reads of a snapshot that was named stay as they are. */
export function compared(
  records: readonly IRecord[],
  answers: Answers,
  lakes: readonly ILake[],
  trans: TranslationBundle
): ICompared {
  const texts = new Set<string>();
  const diffs = new Map<string, ICell>();
  const unknown: IRecorded[] = [];
  for (const read of records.flatMap(record => record.reads).filter(one => !one.fixed)) {
    const answer = answers.get(keyOf(read));
    if (!answer) {
      continue; // it is still asked for
    }
    if (!answer.known) {
      unknown.push(read);
      continue;
    }
    if (read.uncommitted) {
      if (!lakes.some(lake => lake.alias === answer.alias && lake.in_transaction)) {
        texts.add(trans.__('shows changes of a transaction that has ended'));
      }
      continue;
    }
    read.definitions.forEach((entry, at) => {
      const text = gone(title(entry.schema, entry.name), answer.definitions[at].state, trans);
      if (text) {
        texts.add(text);
      }
    });
    read.tables.forEach((table, at) => {
      const moved = answer.tables[at];
      const text = said(table, moved, trans);
      if (text) {
        texts.add(text);
      } else if (moved.state === 'unknown') {
        unknown.push(read);
      }
      if (moved.diff && moved.ahead && !answer.session) {
        const name = argument([answer.alias, ...moved.path!, moved.name!].map(quote).join('.'));
        const [cell] = onLine(`%ducklake diff ${name} ${read.snapshot} ${answer.newest}`) ?? [];
        if (cell) {
          diffs.set(cell.text, cell);
        }
      }
    });
  }
  return { texts: [...texts], diffs: [...diffs.values()].slice(0, TABLES), unknown };
}

/** The quiet line: the snapshots that outputs show. */
export function asOf(reads: readonly IRecorded[], answers: Answers, trans: TranslationBundle): IMark {
  const aliases = new Set(reads.map(read => read.alias));
  const states = reads.map(({ alias, snapshot }) =>
    aliases.size > 1 ? `${readable(alias)} ${snapshot}` : `${snapshot}`
  );
  const reasons = reads.map(read => {
    const answer = answers.get(keyOf(read));
    if (!answer) {
      return trans.__('Connect the lake to see whether it has moved on');
    }
    return answer.known ? trans.__('snapshots have expired') : answer.reason;
  });
  const listed = [...new Set(states)];
  return {
    moved: false,
    text: trans._n('as of snapshot %2', 'as of snapshots %2', listed.length, listed.join(', ')),
    title: [...new Set(reasons)].filter(text => text).join('\n'),
    buttons: []
  };
}

function said(
  table: IRecordedTable,
  { state, ahead, at_least, path, name }: IMovedTable,
  trans: TranslationBundle
): string {
  const then = title(table.schema, table.name);
  switch (state) {
    case 'ahead': {
      const now = title(path!, name!);
      const label = now === then ? then : trans.__('%1, now %2,', then, now);
      return at_least
        ? trans._n('%2 is at least %1 snapshot ahead', '%2 is at least %1 snapshots ahead', ahead, label)
        : trans._n('%2 is %1 snapshot ahead', '%2 is %1 snapshots ahead', ahead, label);
    }
    case 'renamed':
      return trans.__('%1 is %2 now', then, title(path!, name!));
    default:
      return gone(then, state, trans);
  }
}

function gone(name: string, state: IMovedTable['state'], trans: TranslationBundle): string {
  switch (state) {
    case 'renamed':
      return trans.__('%1 was renamed', name);
    case 'dropped':
      return trans.__('%1 was dropped', name);
    case 'replaced':
      return trans.__('%1 was replaced', name);
    default:
      return '';
  }
}

function title(schema: string[], name: string): string {
  return readable(schema.length === 1 && schema[0] === 'main' ? name : [...schema, name].join('.'));
}

/** Whether a cell is one magic, which does nothing that its record does not say. */
export function isOneMagic(cell: CodeCell): boolean {
  const source = cell.model.sharedModel.getSource().trim();
  return /^%%ducklake(?![\w-])/.test(source) || (/^%ducklake(?![\w-])/.test(source) && !source.includes('\n'));
}

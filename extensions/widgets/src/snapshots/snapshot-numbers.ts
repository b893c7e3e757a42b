/** Numbers of all snapshots that pass the filters, newest first. */

import { type ArrowStream, known, rough } from '../arrow/arrow-stream';
import { number, size } from '../kit/figures';

export interface SnapshotNumbers {
  length: number;
  /** Ids with all their digits, to write them, and as numbers, as the model's traits have them. */
  id: bigint[];
  key: number[];
  /** Milliseconds since 1970. */
  time: number[];
  /** Kind of change, by its place in KINDS. */
  kind: number[];
  /** Schema version. */
  version: bigint[];
  /** Rows; null where the snapshot before has expired. */
  added: (bigint | null)[];
  removed: (bigint | null)[];
  /** The same, roughly, to draw them. */
  up: number[];
  down: number[];
  /** Whether rows are upper bounds. */
  atMost: boolean[];
  bytesAdded: (bigint | null)[];
  bytesRemoved: (bigint | null)[];
}

const KINDS = ['insert', 'update', 'delete', 'restore', 'schema', 'maintenance', 'none'];

export function readNumbers(stream: ArrowStream): SnapshotNumbers {
  const id = known(stream.longs('id'));
  const added = stream.longs('added');
  const removed = stream.longs('removed');
  return {
    length: stream.length,
    id,
    key: rough(id),
    time: known(stream.numbers('time')),
    kind: known(stream.numbers('kind')),
    version: known(stream.longs('version')),
    added,
    removed,
    up: rough(added),
    down: rough(removed),
    atMost: stream.numbers('at_most').map(Boolean),
    bytesAdded: stream.longs('bytes_added'),
    bytesRemoved: stream.longs('bytes_removed')
  };
}

export function kindOf({ kind }: SnapshotNumbers, at: number): string {
  return KINDS[kind[at]];
}

/** Return the name of a kind as it reads. */
export function kindName(kind: string): string {
  return kind === 'none' ? 'no change' : kind;
}

/** Return the rows that a snapshot added and removed; an empty text for none. */
export function rowsOf({ added, removed, atMost }: SnapshotNumbers, at: number): string {
  const text = amount(added[at], removed[at], count => number.format(count));
  return text && atMost[at] && (added[at] || removed[at]) ? `at most ${text}` : text;
}

export function bytesOf({ bytesAdded, bytesRemoved }: SnapshotNumbers, at: number): string {
  return amount(bytesAdded[at], bytesRemoved[at], bytes => size(Number(bytes)));
}

function amount(added: bigint | null, removed: bigint | null, write: (count: bigint) => string): string {
  const parts = [];
  if (added) parts.push('+' + write(added));
  if (removed === null)
    parts.push('\u2212?'); // the snapshot before has expired
  else if (removed) parts.push('\u2212' + write(removed));
  return parts.join(' ');
}

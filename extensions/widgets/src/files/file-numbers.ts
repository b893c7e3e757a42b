import { type ArrowStream, known, rough } from '../arrow/arrow-stream';

/** Numbers of all files, in the order of the list; the roughly known ones are drawn, the others written. */
export interface FileNumbers {
  length: number;
  sizes: number[];
  rows: bigint[];
  deleted: bigint[];
  /** Share of the rows of each file that are deleted. */
  shares: number[];
  /** Partition of each file, by its place among their names. */
  partition: number[];
  snapshot: bigint[];
}

export function readNumbers(stream: ArrowStream): FileNumbers {
  const rows = known(stream.longs('rows'));
  const deleted = known(stream.longs('deleted'));
  const shares = rough(deleted).map((count, at) => (rows[at] ? count / Number(rows[at]) : 0));
  return {
    length: stream.length,
    sizes: rough(stream.longs('size')),
    rows,
    deleted,
    shares,
    partition: known(stream.numbers('partition')),
    snapshot: known(stream.longs('snapshot'))
  };
}

export function total(counts: bigint[]): bigint {
  return counts.reduce((sum, count) => sum + count, 0n);
}

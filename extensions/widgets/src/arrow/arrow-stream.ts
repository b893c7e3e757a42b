/**
 * Reads the kernel's Arrow streams: whole numbers, floats, texts and booleans, each with nulls.
 *
 * The kernel sends no other type (`ducklake_lab/widgets/arrow.py`): values of a lake come as texts in DuckDB's form. Another type
 * is an error here, as reading it could round a value.
 */

import { type Column, type DataType, Precision, type Table, tableFromIPC, Type } from '@uwdata/flechette';
import type { Bytes } from '../kit/model';

export class ArrowStream {
  /** Number of rows. */
  readonly length: number;
  private readonly table: Table;

  constructor(bytes: Bytes | null | undefined) {
    this.table = tableFromIPC(bytes ? aligned(bytes) : [], { useBigInt: true });
    this.length = this.table.numRows;
  }

  has(name: string): boolean {
    return this.table.names.includes(name);
  }

  texts(name: string): (string | null)[] {
    return this.values(name, type => type.typeId === Type.Utf8);
  }

  /** Values of a column of integers of 32 bits or of doubles. */
  numbers(name: string): (number | null)[] {
    return this.values(name, type =>
      type.typeId === Type.Int
        ? type.bitWidth === 32 && type.signed
        : type.typeId === Type.Float && type.precision === Precision.DOUBLE
    );
  }

  /** Values of a column of integers of 64 bits, with all their digits. */
  longs(name: string): (bigint | null)[] {
    return this.values(name, type => type.typeId === Type.Int && type.bitWidth === 64 && type.signed);
  }

  booleans(name: string): (boolean | null)[] {
    return this.values(name, type => type.typeId === Type.Bool);
  }

  private values<Value>(name: string, isRead: (type: DataType) => boolean): (Value | null)[] {
    const column = this.table.getChild(name) as Column<Value> | undefined;
    if (!column) throw new Error(`The kernel sent no column ${name}; run the cell again.`);
    if (!isRead(column.type)) throw new Error(`The kernel sent column ${name} in another type; run the cell again.`);
    return Array.from(column);
  }
}

/** Values of a column that never holds null. */
export function known<Value>(values: (Value | null)[]): Value[] {
  return values as Value[];
}

/** Return integers as numbers, which round from 2^53 on: to draw and compare with, never to show. */
export function rough(values: (bigint | null)[]): number[] {
  return values.map(Number);
}

/** Buffers of a column start at multiples of eight bytes, if the stream does. */
function aligned(bytes: Bytes): Uint8Array {
  return ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).slice()
    : new Uint8Array(bytes);
}

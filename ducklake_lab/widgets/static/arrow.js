// Reads Arrow IPC streams of plain columns: whole numbers, floats, texts, booleans, each with nulls.
//
// The kernel sends nothing else (see widgets/arrow.py), so this is all of the format that is needed, and no library.

class Flat {
  constructor(view, position) {
    this.view = view;
    this.position = position;
    this.vtable = position - view.getInt32(position, true);
  }

  // The place of a field, or 0 where it has its default value.
  at(field) {
    const place = 4 + 2 * field;
    if (place >= this.view.getUint16(this.vtable, true)) return 0;
    const offset = this.view.getUint16(this.vtable + place, true);
    return offset ? this.position + offset : 0;
  }

  int(field, bytes, otherwise = 0) {
    const at = this.at(field);
    if (!at) return otherwise;
    if (bytes === 1) return this.view.getUint8(at);
    if (bytes === 2) return this.view.getInt16(at, true);
    return bytes === 4 ? this.view.getInt32(at, true) : Number(this.view.getBigInt64(at, true));
  }

  table(field) {
    const at = this.at(field);
    return at ? new Flat(this.view, at + this.view.getUint32(at, true)) : null;
  }

  text(field) {
    const at = this.at(field);
    if (!at) return "";
    const start = at + this.view.getUint32(at, true);
    return decoder.decode(new Uint8Array(this.view.buffer, this.view.byteOffset + start + 4, this.view.getUint32(start, true)));
  }

  // [first place, length] of a vector.
  vector(field) {
    const at = this.at(field);
    if (!at) return [0, 0];
    const start = at + this.view.getUint32(at, true);
    return [start + 4, this.view.getUint32(start, true)];
  }
}

const decoder = new TextDecoder();
const SCHEMA = 1, BATCH = 3;
const INT = 2, FLOAT = 3, UTF8 = 5, BOOL = 6;

// { length, columns: { name: array of values, null where there is none } } of a stream in a DataView or buffer.
function readArrow(data) {
  if (!data) return { length: 0, columns: {} };
  const bytes = data.buffer
    ? new Uint8Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength))
    : new Uint8Array(data);
  const view = new DataView(bytes.buffer);
  let position = 0;
  let fields = [];
  const result = { length: 0, columns: {} };
  while (position + 8 <= view.byteLength) {
    let size = view.getInt32(position, true);
    position += 4;
    if (size === -1) { size = view.getInt32(position, true); position += 4; }
    if (!size) break;
    const meta = new DataView(bytes.buffer, position, size);
    const message = new Flat(meta, meta.getUint32(0, true));
    const body = position + size;
    position = body + message.int(3, 8);
    const kind = message.int(1, 1);
    if (kind === SCHEMA) {
      fields = readFields(message.table(2));
      for (const field of fields) result.columns[field.name] = [];
    } else if (kind === BATCH) {
      result.length += readBatch(message.table(2), meta, view, body, fields, result.columns);
    }
  }
  return result;
}

function readFields(schema) {
  const [start, count] = schema.vector(1);
  return Array.from({ length: count }, (_, at) => {
    const place = start + 4 * at;
    const field = new Flat(schema.view, place + schema.view.getUint32(place, true));
    const type = field.table(3);
    const kind = field.int(2, 1);
    return { name: field.text(0), kind, bits: kind === INT ? type.int(0, 4) : 0, precision: kind === FLOAT ? type.int(0, 2) : 0 };
  });
}

function readBatch(batch, meta, view, body, fields, columns) {
  const length = batch.int(0, 8);
  const [nodes] = batch.vector(1);
  const [buffers] = batch.vector(2);
  let next = 0;
  const buffer = () => {
    const place = buffers + 16 * next++;
    return [body + Number(meta.getBigInt64(place, true)), Number(meta.getBigInt64(place + 8, true))];
  };
  fields.forEach((field, at) => {
    const nulls = Number(meta.getBigInt64(nodes + 16 * at + 8, true));
    const [validity, known] = buffer();
    const valid = nulls && known ? (row) => (view.getUint8(validity + (row >> 3)) >> (row & 7)) & 1 : () => 1;
    const values = columns[field.name];
    if (field.kind === UTF8) {
      const [offsets] = buffer();
      const [texts] = buffer();
      for (let row = 0; row < length; row++) {
        const from = view.getInt32(offsets + 4 * row, true);
        const to = view.getInt32(offsets + 4 * row + 4, true);
        values.push(valid(row) ? decoder.decode(new Uint8Array(view.buffer, texts + from, to - from)) : null);
      }
      return;
    }
    const [start] = buffer();
    const read =
      field.kind === BOOL ? (row) => Boolean((view.getUint8(start + (row >> 3)) >> (row & 7)) & 1)
      : field.kind === FLOAT ? (row) => view.getFloat64(start + 8 * row, true)
      : field.bits === 64 ? (row) => Number(view.getBigInt64(start + 8 * row, true))
      : (row) => view.getInt32(start + 4 * row, true);
    for (let row = 0; row < length; row++) values.push(valid(row) ? read(row) : null);
  });
  return length;
}

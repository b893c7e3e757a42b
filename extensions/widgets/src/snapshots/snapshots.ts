/**
 * The interactive snapshot browser: a timeline with an overview of all of it, a list and a detail panel.
 *
 * Numbers of all snapshots that pass the filters come at once, as Arrow; their texts come by page.
 */

import { ArrowStream } from '../arrow/arrow-stream';
import { Grid } from '../grid/grid';
import type { Content, GridColumn } from '../grid/grid-options';
import { Covering } from '../kit/browsing';
import '../kit/change-kinds.css';
import { element } from '../kit/dom';
import { number, room } from '../kit/figures';
import type { Bytes, Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { Selection, type SnapshotTexts } from './selection';
import { type SnapshotNumbers, bytesOf, kindName, kindOf, readNumbers, rowsOf } from './snapshot-numbers';
import { Timeline } from './timeline';
import './snapshots.css';

/** The traits of `SnapshotBrowser` in Python. */
interface SnapshotsState extends MountedState {
  overview: Bytes;
  /** Number of the filter: it changes with the snapshots that pass. */
  filter: number;
  query: string;
  kinds: string[];
  /** Kinds that are left out. */
  hidden: string[];
  /** Ends of a span of time in milliseconds; empty for all of it. */
  between: number[];
  selected: number | null;
  /** Two snapshots, or none. */
  compare: number[];
  title: string;
  zone: string;
  total: number;
  can_look: boolean;
  can_diff: boolean;
}

/** Pixels from which the list has a column for what changed. */
const WIDE = 1000;
/** Pixels below which it has none for sizes. */
const NARROW = 760;

class Snapshots extends Covering<SnapshotsState> {
  readonly root: HTMLElement;

  private data!: SnapshotNumbers;
  /** Places of the snapshots by id. */
  private places = new Map<number, number>();
  /** Letters of the longest text of each column of words. */
  private longest = { author: 0, message: 0, changes: 0 };
  private anchor: number | undefined;
  private isWide = false;
  private isNarrow = false;
  private typing: ReturnType<typeof setTimeout> | undefined;

  private readonly zone = this.model.get('zone');
  private readonly clock = new Intl.DateTimeFormat('sv-SE', {
    timeZone: this.zone,
    dateStyle: 'short',
    timeStyle: 'medium'
  });
  private readonly search = element('input', {
    type: 'search',
    placeholder: 'Filter: text, author:, kind:',
    'aria-label': 'Filter snapshots',
    value: this.model.get('query'),
    oninput: () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.set({ query: this.search.value }), 120);
    }
  });
  private readonly summary = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly kinds = element('span', {
    class: 'dlk-sb-kinds',
    role: 'group',
    'aria-label': 'Kinds of change'
  });
  private readonly zoom = element('span', { class: 'dlk-sb-zoom' });
  private readonly timeline = new Timeline({
    zone: this.zone,
    stamp: (time, isPrecise) => this.stamp(time, isPrecise),
    marked: () => this.marked(),
    select: (key, extend) => {
      this.select(key, extend);
      this.grid.root.focus({ preventScroll: true });
    },
    onZoom: () => this.fillBar()
  });
  private readonly grid = new Grid<SnapshotTexts>({
    label: 'Snapshots, newest first',
    multiple: true,
    fetch: (start, count) => this.rows(start, count),
    cells: (row, at) => this.cells(row, at),
    selected: at => this.marked().includes(this.data.key[at]),
    onSelect: (at, event) => this.select(this.data.key[at], Boolean(event?.shiftKey)),
    onEnter: () => this.selection.press(),
    onError: error => this.selection.fail(error)
  });
  private readonly selection = new Selection({
    line: this.line,
    zone: this.zone,
    canLook: this.model.get('can_look'),
    canDiff: this.model.get('can_diff'),
    stamp: (time, isPrecise) => this.stamp(time, isPrecise),
    texts: at => this.grid.need(at)
  });

  constructor(model: Model<SnapshotsState>, host: HTMLElement) {
    super(model);
    this.grid.root.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.set({ compare: [] });
    });
    const bar = element(
      'div',
      { class: 'dlk-bar' },
      element('strong', {}, model.get('title')),
      this.summary,
      this.kinds,
      this.timeline.scale,
      this.zoom,
      this.search
    );
    // Without this attribute JupyterLab takes arrow keys and letters for its own commands.
    this.root = element(
      'div',
      { class: 'dlk-live dlk-sb', 'data-lm-suppress-shortcuts': 'true' },
      bar,
      this.timeline.root,
      this.timeline.strip.root,
      this.timeline.strip.scale,
      this.grid.root,
      this.selection.detail,
      this.selection.result
    );
    this.start(host, {
      'change:overview': () => this.load(),
      'change:query': () => {
        if (document.activeElement !== this.search) this.search.value = model.get('query');
      },
      'change:hidden': () => this.fillBar(),
      'change:selected': () => this.refresh(true),
      'change:compare': () => this.refresh(false)
    });
    this.resize(this.timeline.root, () => {
      this.lay();
      this.grid.draw();
      this.timeline.draw();
    });
    this.load();
  }

  /** Write a time in the session's zone, as 2024-11-03 01:30, or with seconds. */
  private stamp(time: number, isPrecise = false): string {
    return this.clock.format(time).slice(0, isPrecise ? 19 : 16);
  }

  private async rows(start: number, count: number): Promise<SnapshotTexts[]> {
    const { buffers } = await this.line.ask('page', { start, count, filter: this.model.get('filter') });
    const stream = new ArrowStream(buffers[0]);
    const list = (name: keyof SnapshotTexts) => stream.texts(name).map(text => text ?? '');
    const [messages, changes, origins, statements] = [
      list('message'),
      list('changes'),
      list('origin'),
      list('statement')
    ];
    const rows = list('author').map((author, at) => ({
      author,
      message: messages[at],
      changes: changes[at],
      origin: origins[at],
      statement: statements[at]
    }));
    this.widen(rows);
    return rows;
  }

  private cells(row: SnapshotTexts, at: number): Content[] {
    const { data } = this;
    const kind = kindOf(data, at);
    const changes = element('span', { class: 'dlk-soft' }, row.changes.replaceAll('\n', ', '));
    const words = this.isWide ? [row.message, changes] : [row.message || changes];
    return [
      String(data.id[at]),
      this.stamp(data.time[at]),
      [element('i', { class: 'dlk-k-' + kind }), kindName(kind)],
      row.author,
      ...words,
      rowsOf(data, at) || '–',
      ...(this.isNarrow ? [] : [bytesOf(data, at)])
    ];
  }

  /** Columns of words share the room by their longest known text; true widths are not needed for that. */
  private widen(rows: SnapshotTexts[]): void {
    const { longest } = this;
    let isWider = false;
    for (const name of ['author', 'message', 'changes'] as const) {
      const length = rows.reduce((most, row) => Math.max(most, row[name].length), 0);
      if (length <= longest[name]) continue;
      longest[name] = length;
      isWider = true;
    }
    if (isWider) this.lay();
  }

  /**
   * Give the columns their room.
   *
   * Numbers take the room that the longest of them needs, then authors, and other words the rest. In a narrow place what changed is
   * left out where there is a message, and listed below when the snapshot is selected.
   */
  private lay(): void {
    const { data } = this;
    const width = this.grid.root.clientWidth;
    this.isWide = width >= WIDE;
    this.isNarrow = width < NARROW;
    const all = (write: (at: number) => string) => room(data.key.map((_, at) => write(at)));
    const time = `time (${this.zone})`;
    const column = (name: string, width: string, right = false): GridColumn => ({ name, width, right });
    const { author, message, changes } = this.longest;
    this.grid.setColumns([
      column(
        'id',
        all(at => String(data.id[at])),
        true
      ),
      column(time, room([time, '2000-01-01 00:00'])),
      column('kind', room(this.model.get('kinds').map(kindName), 1.4)),
      column('author', needed(4.5, 22, author)),
      column('message', this.messageWidth(message)),
      ...(this.isWide ? [column('what changed', shared(9, changes))] : []),
      column(
        'rows',
        all(at => rowsOf(data, at)),
        true
      ),
      ...(this.isNarrow
        ? []
        : [
            column(
              'size',
              all(at => bytesOf(data, at)),
              true
            )
          ])
    ]);
  }

  /** A message that is no paragraph is seen whole; what changed takes the rest. */
  private messageWidth(length: number): string {
    if (!this.isWide) return 'minmax(7em, 1fr)';
    return length > 40 ? shared(7, length) : needed(length ? 7 : 6, 25, length);
  }

  private load(): void {
    this.data = readNumbers(new ArrowStream(this.model.get('overview')));
    const { length, key } = this.data;
    this.longest = { author: 0, message: 0, changes: 0 };
    this.places = new Map(key.map((id, at) => [id, at]));
    this.timeline.reset(this.data);
    const total = number.format(this.model.get('total'));
    const isAll = length === this.model.get('total');
    this.summary.textContent = isAll ? `${total} snapshots` : `${number.format(length)} of ${total} snapshots`;
    this.fillBar();
    this.lay();
    this.grid.reset(length);
    this.refresh(true);
  }

  private fillBar(): void {
    const hidden = this.model.get('hidden');
    const toggle = (kind: string) =>
      this.set({ hidden: hidden.includes(kind) ? hidden.filter(one => one !== kind) : [...hidden, kind] });
    this.kinds.replaceChildren(
      ...this.model
        .get('kinds')
        .map(kind =>
          element(
            'button',
            { type: 'button', 'aria-pressed': String(!hidden.includes(kind)), onclick: () => toggle(kind) },
            element('i', { class: 'dlk-k-' + kind }),
            kindName(kind)
          )
        )
    );
    const [from, to] = this.model.get('between');
    this.zoom.replaceChildren();
    if (to !== undefined) {
      const all = () => this.set({ between: [] });
      const text = `${this.stamp(from)} – ${this.stamp(to)} ✕`;
      this.zoom.append(element('button', { type: 'button', onclick: all }, text));
    } else if (this.data.length > this.timeline.size) {
      const title = 'List only the snapshots that the timeline shows';
      this.zoom.append(element('button', { type: 'button', title, onclick: () => this.narrow() }, 'Only these'));
    }
  }

  private narrow(): void {
    const { offset, size } = this.timeline;
    const last = Math.min(this.data.length, offset + size) - 1;
    this.set({ between: [this.data.time[last], this.data.time[offset]] });
  }

  /** The selected snapshots: one, or the two that are compared. */
  private marked(): number[] {
    const compare = this.model.get('compare');
    const selected = this.model.get('selected');
    return compare.length === 2 ? compare : selected === null ? [] : [selected];
  }

  private select(id: number, extend: boolean): void {
    const anchor = this.anchor ?? this.model.get('selected');
    const isPair = extend && anchor !== null && anchor !== id;
    this.anchor = isPair ? anchor : id;
    this.set({ compare: isPair ? [Math.min(anchor, id), Math.max(anchor, id)] : [], selected: id });
  }

  private refresh(follow: boolean): void {
    const at = this.places.get(this.model.get('selected') ?? -1);
    if (follow && at !== undefined) {
      this.grid.reveal(at);
      this.timeline.reveal(at);
    } else this.grid.draw();
    this.timeline.draw();
    this.describe();
  }

  private describe(): void {
    const [start, end] = this.model.get('compare');
    const at = this.places.get(this.model.get('selected') ?? -1);
    if (end !== undefined) void this.selection.describePair(start, end);
    else if (at !== undefined) void this.selection.describeOne(this.data, at);
    else this.selection.describeNone();
  }
}

/** Width of a column that takes what its texts need. */
function needed(least: number, most: number, length: number): string {
  return `minmax(${least}em, ${Math.min(most, Math.max(least, length * 0.6 + 0.5))}em)`;
}

/** Width of a column that takes its share of what is left. */
function shared(least: number, length: number): string {
  return `minmax(${least}em, ${Math.min(Math.max(length, least), 200)}fr)`;
}

export default mounted(Snapshots);

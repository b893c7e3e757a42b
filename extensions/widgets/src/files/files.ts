/** The files of a table: a treemap, a histogram of sizes, the intervals of a column, advice, and a list. */

import { ArrowStream } from '../arrow/arrow-stream';
import { Grid } from '../grid/grid';
import type { Content } from '../grid/grid-options';
import type { SortKey } from '../grid/sorting';
import { Covering } from '../kit/browsing';
import { element } from '../kit/dom';
import { counted, number, percent, room, size } from '../kit/figures';
import { reason } from '../kit/line';
import type { Bytes, Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { ColumnRanges } from './column-ranges';
import { type FileNumbers, readNumbers, total } from './file-numbers';
import { type Finding, findingNodes } from './findings';
import { sizeHistogram } from './size-histogram';
import { treemap } from './treemap';
import './files.css';

/** The traits of `FileBrowser` in Python. */
interface FilesState extends MountedState {
  overview: Bytes;
  /** Names of the partitions. */
  partitions: string[];
  columns: string[];
  /** Column whose intervals are drawn. */
  column: string;
  sort: SortKey;
  /** The file that was chosen, by its place in the list. */
  place: number | null;
  findings: Finding[];
  title: string;
  note: string;
  /** Rows in the catalog. */
  inlined: number;
  can_mend: boolean;
}

/** A file's texts. */
interface FileTexts {
  name: string | null;
  path: string | null;
  age: string | null;
}

/** Columns of words, which a click sorts up first. */
const WORDS = ['file', 'partition'];
/** Pixels below which bars of sizes and ages make way. */
const NARROW = 760;

class Files extends Covering<FilesState> {
  readonly root: HTMLElement;

  private numbers!: FileNumbers;
  private largest = 1;
  private isPartitioned = false;
  private isNarrow = false;

  private readonly facts = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly caption = element('span');
  private readonly map = element('div', { class: 'dlk-fb-map' });
  private readonly sizes = element('div', { class: 'dlk-fb-sizes' });
  private readonly care = element('div', { class: 'dlk-fb-care' });
  private readonly detail = element('div', { class: 'dlk-fb-detail', 'aria-live': 'polite' });
  private readonly ranges = new ColumnRanges(this.line, this.model.get('columns'), column => this.set({ column }));
  private readonly pictures = element(
    'div',
    { class: 'dlk-fb-two' },
    element(
      'figure',
      {},
      element(
        'figcaption',
        {},
        this.caption,
        ' ',
        element('span', { class: 'dlk-soft' }, 'red: share of rows deleted')
      ),
      this.map
    ),
    element('figure', {}, element('figcaption', {}, 'File sizes'), this.sizes)
  );
  private readonly grid = new Grid<FileTexts>({
    label: `Data files of ${this.model.get('title')}`,
    height: 260,
    fetch: (start, count) => this.rows(start, count),
    cells: (row, at) => this.cells(row, at),
    onSelect: at => this.set({ place: at }),
    onError: error => this.detail.replaceChildren(element('p', { role: 'alert' }, reason(error)))
  });

  constructor(model: Model<FilesState>, host: HTMLElement) {
    super(model);
    this.root = element(
      'div',
      { class: 'dlk-live dlk-fb', 'data-lm-suppress-shortcuts': 'true' },
      element('div', { class: 'dlk-bar' }, element('strong', {}, model.get('title')), this.facts),
      this.pictures,
      this.care,
      this.ranges.bar,
      this.ranges.strip,
      this.grid.root,
      this.detail
    );
    this.start(host, {
      'change:overview': () => this.load(),
      'change:column': () => this.showRanges(),
      'change:place': () => this.follow(),
      'change:findings': () => this.mend()
    });
    this.resize(this.map, () => {
      if (this.isNarrow !== this.root.clientWidth < NARROW) this.lay();
      this.draw();
    });
    this.resize(this.ranges.strip, () => this.ranges.draw());
    this.load();
    this.showRanges();
    this.mend();
  }

  private async rows(start: number, count: number): Promise<FileTexts[]> {
    const { buffers } = await this.line.ask('page', { start, count });
    const stream = new ArrowStream(buffers[0]);
    const paths = stream.texts('path');
    const ages = stream.texts('age');
    return stream.texts('name').map((name, at) => ({ name, path: paths[at], age: ages[at] }));
  }

  private cells(row: FileTexts, at: number): Content[] {
    const { sizes, rows, partition, snapshot } = this.numbers;
    const width = `width:${(100 * sizes[at]) / this.largest}%`;
    const bar = element('span', { class: 'dlk-fb-bar', 'aria-hidden': 'true' }, element('i', { style: width }));
    return [
      element('span', { class: 'dlk-mono', title: row.path }, row.name ?? ''),
      ...(this.isPartitioned ? [this.model.get('partitions')[partition[at]]] : []),
      String(snapshot[at]),
      ...(this.isNarrow ? [] : [row.age]),
      number.format(rows[at]),
      this.deletedOf(at),
      [size(sizes[at]), bar]
    ];
  }

  private deletedOf(at: number): string {
    const { rows, deleted } = this.numbers;
    if (!deleted[at]) return '–';
    return `${number.format(deleted[at])} (${percent(Number(deleted[at]) / Math.max(Number(rows[at]), 1))})`;
  }

  private load(): void {
    this.numbers = readNumbers(new ArrowStream(this.model.get('overview')));
    const { length, sizes, rows, deleted } = this.numbers;
    this.largest = sizes.reduce((most, one) => Math.max(most, one), 1);
    const inlined = this.model.get('inlined');
    const gone = total(deleted);
    const facts = [
      this.model.get('note'),
      counted(length, 'file'),
      size(sizes.reduce((sum, one) => sum + one, 0)),
      counted(total(rows), 'row'),
      inlined ? `${counted(inlined, 'more row')} in the catalog` : null,
      gone ? `${number.format(gone)} deleted` : null
    ];
    this.facts.textContent = facts.filter(Boolean).join(' · ');
    this.isPartitioned = this.model.get('partitions').some(name => name);
    this.caption.textContent = this.isPartitioned ? 'Size by partition' : 'Size by file';
    this.lay();
    this.grid.reset(length);
    for (const part of [this.pictures, this.ranges.bar, this.ranges.strip, this.grid.root]) {
      part.style.display = length ? '' : 'none';
    }
    if (length) this.draw();
  }

  private lay(): void {
    const [sorted, isDown] = this.model.get('sort');
    this.isNarrow = this.root.clientWidth < NARROW;
    this.root.classList.toggle('dlk-fb-narrow', this.isNarrow);
    const sign = isDown ? ' ▼' : ' ▲';
    this.grid.setColumns(
      Object.entries(this.widths()).map(([name, width]) => {
        const isSorted = name === sorted;
        const sort = () => this.set({ sort: [name, isSorted ? !isDown : !WORDS.includes(name)] });
        const text = isSorted ? name + sign : name;
        return {
          name,
          width,
          right: !WORDS.includes(name),
          sort: isSorted ? (isDown ? 'descending' : 'ascending') : 'none',
          head: name === 'age' ? name : element('button', { type: 'button', class: 'dlk-fb-sort', onclick: sort }, text)
        };
      })
    );
    this.grid.draw();
  }

  /** Widths of the columns by name, in order. */
  private widths(): Record<string, string> {
    const isNarrow = this.isNarrow;
    return {
      file: `minmax(${isNarrow ? 8 : 11}em, 1.6fr)`,
      ...(this.isPartitioned ? { partition: `minmax(${isNarrow ? 6 : 7}em, 1.2fr)` } : {}),
      snapshot: '5.6em',
      ...(isNarrow ? {} : { age: '4.5em' }),
      rows: room(this.numbers.rows.map(one => number.format(one))),
      deleted: room(
        this.numbers.rows.map((_, at) => this.deletedOf(at)),
        0.4
      ),
      size: isNarrow ? '4.5em' : '10.6em'
    };
  }

  private draw(): void {
    const width = this.map.clientWidth;
    if (!width) return;
    const names = this.model.get('partitions');
    this.map.replaceChildren(treemap(this.numbers, names, width, at => this.set({ place: at })));
    this.sizes.replaceChildren(sizeHistogram(this.numbers.sizes, this.largest, this.sizes.clientWidth || 300));
  }

  private showRanges(): void {
    void this.ranges.show(this.model.get('column'));
  }

  private mend(): void {
    const run = (index: number) => this.line.ask('mend', { index });
    const findings = findingNodes(this.model.get('findings'), this.model.get('can_mend') ? run : undefined);
    this.care.replaceChildren(...findings);
  }

  private async follow(): Promise<void> {
    const at = this.model.get('place');
    if (at === null) {
      this.detail.replaceChildren();
      return;
    }
    if (this.grid.cursor !== at) this.grid.reveal(at);
    const { content } = await this.line.ask<{ html: string }>('stats', { place: at });
    // The kernel's own static view, which escapes everything that comes from the catalog.
    if (this.model.get('place') === at) this.detail.innerHTML = content.html;
  }
}

export default mounted(Files);

/**
 * The entries of a lake as an ARIA tree: folding, searching, and writing a query into the notebook.
 *
 * Only the rows in view are in the page: a lake may have many thousands of tables.
 */

import { Covering } from '../kit/browsing';
import { element } from '../kit/dom';
import { number } from '../kit/figures';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { reason } from '../kit/line';
import { rewrite } from '../kit/saved-output';
import { LineagePanel } from './lineage';
import { writeIntoNextCell } from './next-cell';
import { type ColumnNode, type SchemaNode, type SchemaRow, schemaRows } from './schema-rows';
import './schema.css';

/** The traits of `SchemaBrowser` in Python. */
interface SchemaState extends MountedState {
  nodes: SchemaNode[];
  /** Entries that the search has found; null without a search. */
  matches: number[] | null;
  query: string;
  /** [path of the schema, name] of the entry that was chosen last; empty at first. */
  selected: string[];
  title: string;
  note: string;
  /** Whether lineage can be asked for. */
  traces: boolean;
  /** The lineage that was asked for last, as HTML. */
  picture: string;
}

/** Height of a row in pixels. */
const HEIGHT = 24;

class Schema extends Covering<SchemaState> {
  readonly root: HTMLElement;

  private readonly id = 'dlk-t' + Math.random().toString(36).slice(2, 8);
  private readonly open = new Set<string>();
  private readonly columns = new Map<number, ColumnNode[]>();
  private rows: SchemaRow[] = [];
  private cursor = 0;
  private typing: ReturnType<typeof setTimeout> | undefined;

  private readonly search = element('input', {
    type: 'search',
    placeholder: 'Search names, comments',
    'aria-label': 'Search names and comments',
    value: this.model.get('query'),
    oninput: () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.set({ query: this.search.value }), 120);
    }
  });
  private readonly status = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly tree = element('div', {
    role: 'tree',
    tabindex: '0',
    'aria-label': `Entries of ${this.model.get('title')}`,
    class: 'dlk-sc-tree',
    onkeydown: event => this.key(event)
  });
  private readonly scroll = element('div', { class: 'dlk-sc-scroll', onscroll: () => this.draw() }, this.tree);
  private readonly outcome = element('div', { class: 'dlk-soft', role: 'status' });
  private readonly lineage = new LineagePanel(() => {
    this.set({ picture: '' });
    this.tree.focus();
  });

  constructor(model: Model<SchemaState>, host: HTMLElement) {
    super(model);
    const bar = element(
      'div',
      { class: 'dlk-bar' },
      element('strong', {}, model.get('title')),
      element('span', { class: 'dlk-soft' }, model.get('note')),
      this.status,
      this.search
    );
    this.root = element(
      'div',
      { class: 'dlk-live dlk-sc', 'data-lm-suppress-shortcuts': 'true' },
      bar,
      this.scroll,
      this.outcome,
      this.lineage.root
    );
    this.start(host, {
      'change:nodes': () => this.lay(),
      'change:matches': () => {
        this.scroll.scrollTop = 0;
        this.lay();
      },
      'change:query': () => {
        if (document.activeElement !== this.search) this.search.value = model.get('query');
      },
      'change:selected': () => this.draw(),
      'change:picture': () => {
        this.lineage.show(model.get('picture'));
        void this.keep();
      }
    });
    this.lineage.show(model.get('picture'));
    model.get('nodes').forEach((_, at) => this.open.add('s' + at));
    this.lay();
  }

  private lay(): void {
    const matches = this.model.get('matches');
    const passing = matches === null ? null : new Set(matches);
    const { rows, found } = schemaRows({
      schemas: this.model.get('nodes'),
      passing,
      open: this.open,
      columns: this.columns
    });
    this.rows = rows;
    this.status.textContent = passing ? `${number.format(found)} found` : '';
    this.cursor = Math.max(0, Math.min(this.cursor, rows.length - 1));
    this.tree.style.height = rows.length * HEIGHT + 'px';
    this.draw();
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / HEIGHT) - 5);
    const inView = Math.ceil((this.scroll.clientHeight || 360) / HEIGHT);
    const last = Math.min(this.rows.length, first + inView + 12);
    const shown = this.rows.slice(first, last);
    this.tree.replaceChildren(...shown.map((row, index) => this.node(row, first + index)));
    const active = this.rows[this.cursor];
    if (active && this.cursor >= first && this.cursor < last) {
      this.tree.setAttribute('aria-activedescendant', `${this.id}-${active.key}`);
    } else this.tree.removeAttribute('aria-activedescendant');
  }

  private node(row: SchemaRow, at: number): HTMLElement {
    const isEntry = row.index !== undefined;
    const [schema, name] = this.model.get('selected');
    const isChosen = isEntry && row.schema === schema && row.name === name;
    const fold = row.folds ? (row.open ? '▾' : '▸') : '';
    const kind = isEntry ? '' : row.folds ? 'dlk-sc-schema' : 'dlk-sc-column';
    const node = element(
      'div',
      {
        role: 'treeitem',
        id: `${this.id}-${row.key}`,
        class: 'dlk-sc-row' + (at === this.cursor ? ' dlk-sc-cursor' : ''),
        'aria-level': row.level,
        'aria-setsize': row.of,
        'aria-posinset': row.place,
        'aria-expanded': row.folds ? String(Boolean(row.open)) : null,
        'aria-selected': String(isChosen),
        style: `top:${at * HEIGHT}px;padding-left:${(row.level - 1) * 18 + 4}px`,
        onclick: () => {
          this.cursor = at;
          if (row.folds) void this.fold(at);
          else this.draw();
        }
      },
      element('span', { class: 'dlk-sc-fold', 'aria-hidden': 'true' }, fold),
      element('span', { class: kind }, row.name)
    );
    if (row.kind && row.kind !== 'table') node.append(element('span', { class: 'dlk-sc-kind' }, row.kind));
    if (row.type) node.append(element('span', { class: 'dlk-mono dlk-soft' }, row.type));
    if (row.facts) node.append(element('span', { class: 'dlk-soft' }, row.facts));
    if (row.comment) {
      node.append(element('span', { class: 'dlk-soft dlk-sc-comment', title: row.comment }, row.comment));
    }
    if (isEntry) node.append(this.offers(row, at));
    return node;
  }

  /** The keyboard's way to these is Enter, and L, on the row. */
  private offers(row: SchemaRow, at: number): HTMLElement {
    const offer = (name: string, title: string, act: () => Promise<void>) => {
      const run = (event: MouseEvent) => {
        event.stopPropagation();
        this.cursor = at;
        void act();
      };
      return element('span', { class: 'dlk-sc-offer', title, onclick: run }, name);
    };
    const found = [offer('query', 'Write a query of it (Enter)', () => this.insert(row))];
    if (this.isTraced(row)) found.unshift(offer('lineage', 'Show its lineage (L)', () => this.trace(row)));
    return element('span', { class: 'dlk-sc-offers' }, ...found);
  }

  private isTraced(row: SchemaRow): boolean {
    return row.index !== undefined && this.model.get('traces') && !row.kind?.endsWith('macro');
  }

  /** Show what an entry comes from, and what depends on it. */
  private async trace(row: SchemaRow): Promise<void> {
    this.outcome.textContent = `Tracing ${row.name} …`;
    try {
      await this.line.ask('lineage', { index: row.index });
      this.outcome.textContent = '';
      this.lineage.focus();
    } catch (error) {
      this.outcome.replaceChildren(element('span', { role: 'alert' }, reason(error)));
    }
  }

  /** Let the saved output show the lineage that is here. */
  private async keep(): Promise<void> {
    try {
      const { content } = await this.line.ask<{ html: string }>('still');
      rewrite(this.model, () => content.html);
    } catch {
      // the kernel is gone: the page says so
    }
  }

  private async fold(at: number, open?: boolean): Promise<void> {
    const row = this.rows[at];
    const isUnfolded = open ?? !this.open.has(row.key);
    if (isUnfolded) this.open.add(row.key);
    else this.open.delete(row.key);
    if (row.index !== undefined) {
      void this.line.ask('choose', { index: row.index });
      if (isUnfolded && !this.columns.has(row.index)) {
        this.lay();
        const { content } = await this.line.ask<{ rows: ColumnNode[] }>('columns', { index: row.index });
        this.columns.set(row.index, content.rows);
      }
    }
    this.lay();
  }

  private reveal(at: number): void {
    this.cursor = Math.max(0, Math.min(at, this.rows.length - 1));
    const top = this.cursor * HEIGHT;
    const { clientHeight, scrollTop } = this.scroll;
    if (top < scrollTop) this.scroll.scrollTop = top;
    else if (top + HEIGHT > scrollTop + clientHeight) this.scroll.scrollTop = top + HEIGHT - clientHeight;
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    const row = this.rows[this.cursor];
    if (!row) return;
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / HEIGHT) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.rows.length,
      End: this.rows.length
    };
    if (event.key in steps) this.reveal(this.cursor + steps[event.key]);
    else if (event.key === 'ArrowRight' && row.folds) {
      if (row.open) this.reveal(this.cursor + 1);
      else void this.fold(this.cursor, true);
    } else if (event.key === 'ArrowLeft') {
      if (row.folds && row.open && !this.model.get('matches')) void this.fold(this.cursor, false);
      else if (row.parent) this.reveal(this.rows.findIndex(one => one.key === row.parent));
    } else if (event.key.toLowerCase() === 'l' && !event.ctrlKey && !event.metaKey && this.isTraced(row)) {
      void this.trace(row).then(() => this.lineage.focus());
    } else if (event.key === 'Enter' && row.index !== undefined) void this.insert(row);
    else if ((event.key === ' ' || event.key === 'Enter') && row.folds) void this.fold(this.cursor);
    else return;
    event.preventDefault();
  }

  /** Write a query into the next empty cell; where there is none, into the clipboard. */
  private async insert(row: SchemaRow): Promise<void> {
    const { content } = await this.line.ask<{ sql: string }>('choose', { index: row.index, insert: true });
    const code = content.sql;
    // a host may write it itself
    const offer = new CustomEvent('ducklake-insert', { bubbles: true, cancelable: true, detail: { code } });
    if (!this.root.dispatchEvent(offer) || writeIntoNextCell(this.root, code)) {
      this.outcome.textContent = `A query of ${row.name} is in the next cell.`;
      return;
    }
    try {
      await navigator.clipboard.writeText(code);
      this.outcome.textContent = `A query of ${row.name} is in the clipboard.`;
    } catch {
      this.outcome.replaceChildren(element('code', {}, code));
    }
  }
}

export default mounted(Schema);

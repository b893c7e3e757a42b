/**
 * The page of `ducklake-lab open`: a heading, tabs, and the widgets of a notebook, each a model over one socket.
 *
 * A widget's module gets what anywidget gives it in a notebook: { model, el }. Texts from the lake become text nodes
 * here; HTML is drawn by the widgets alone.
 */

import { Child, element } from '../kit/dom';
import { PageSocket } from './page-socket';
import { Head, PageView, Table } from './page-view';

interface Tab {
  name: string;
  title: string;
  /** The view shows one table. */
  ofTable?: boolean;
}

const TABS: Tab[] = [
  { name: 'snapshots', title: 'Snapshots' },
  { name: 'schema', title: 'Schema' },
  { name: 'rows', title: 'Rows', ofTable: true },
  { name: 'files', title: 'Files', ofTable: true }
];

function byId<Node extends HTMLElement = HTMLElement>(id: string): Node {
  return document.getElementById(id) as Node;
}

function isSame([schema, name]: Table, table?: Table): boolean {
  return table !== undefined && schema === table[0] && name === table[1];
}

class Page {
  private readonly open = new Map<string, { key: string; view: PageView }>();
  /** Times that each view was asked for: a view that opens late is not shown. */
  private readonly turns = new Map<string, number>();
  private readonly notice = byId('notice');
  private readonly tables = byId<HTMLSelectElement>('table');
  private readonly socket: PageSocket;
  private view = TABS[0].name;
  private head?: Head;
  private chosen?: Table;
  private ended = false;

  constructor() {
    const address = new URL('socket', location.href).href.replace(/^http/, 'ws').split('#')[0];
    this.socket = new PageSocket(address, () => this.end());
    for (const tab of TABS) this.build(tab);
    byId('tabs').addEventListener('keydown', event => this.onKey(event));
    this.tables.addEventListener('change', () => this.go(this.view, this.head?.tables[this.tables.selectedIndex]));
    addEventListener('hashchange', () => this.follow());
    addEventListener('focus', () => void this.look());
    this.follow();
  }

  private build({ name, title }: Tab): void {
    document.head.append(element('link', { rel: 'stylesheet', href: `widgets/${name}.css` }));
    const onclick = () => this.go(name, this.chosen);
    const controls = { role: 'tab', id: `tab-${name}`, 'aria-controls': `view-${name}` };
    byId('tabs').append(element('button', { type: 'button', ...controls, onclick }, title));
    const labelled = { id: `view-${name}`, 'aria-labelledby': `tab-${name}` };
    byId('views').append(element('section', { role: 'tabpanel', ...labelled, hidden: true }));
  }

  /** Go to a view; the address names it, so that it stays when the page is loaded again: #rows/main/flights */
  private go(name: string, table?: Table): void {
    const ofTable = TABS.find(tab => tab.name === name)?.ofTable;
    const parts = [name, ...(ofTable && table ? table.slice(0, 2) : [])];
    const hash = '#' + parts.map(encodeURIComponent).join('/');
    if (location.hash === hash) this.follow();
    else location.hash = hash;
  }

  private follow(): void {
    const [name, schema, table] = location.hash.slice(1).split('/').map(decodeURIComponent);
    if (table !== undefined) this.chosen = [schema, table, ''];
    void this.show(TABS.find(tab => tab.name === name) ?? TABS[0]);
  }

  private onKey(event: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
    const step = steps[event.key];
    if (!step) return;
    const at = TABS.findIndex(({ name }) => name === this.view);
    const next = TABS[(at + step + TABS.length) % TABS.length].name;
    this.go(next, this.chosen);
    byId(`tab-${next}`).focus();
  }

  private async show({ name, ofTable }: Tab): Promise<void> {
    this.view = name;
    for (const { name: other } of TABS) {
      byId(`view-${other}`).hidden = other !== name;
      const tab = byId(`tab-${other}`);
      tab.setAttribute('aria-selected', String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
    }
    byId('which').hidden = !ofTable;
    const panel = byId(`view-${name}`);
    const turn = (this.turns.get(name) ?? 0) + 1;
    this.turns.set(name, turn);
    if (ofTable && !this.chosen) {
      if (!this.head) this.take((await this.socket.ask<{ head: Head }>('head')).head);
      this.chosen = this.head?.tables[0];
      if (!this.chosen) {
        panel.replaceChildren(element('p', { class: 'wait' }, 'The lake has no table.'));
        return;
      }
    }
    const key = ofTable ? JSON.stringify(this.chosen?.slice(0, 2)) : '';
    const live = this.open.get(name);
    if (live?.key === key) {
      void this.look();
      return;
    }
    if (live) {
      live.view.close();
      this.open.delete(name);
    }
    panel.replaceChildren(element('p', { class: 'wait', role: 'status' }, 'reading …'));
    try {
      const view = await PageView.open(this.socket, name, (ofTable && this.chosen) || null);
      if (this.turns.get(name) !== turn) {
        view.close();
        return;
      }
      this.take(view.head);
      this.open.set(name, { key, view });
      panel.replaceChildren(view.el);
      if (name === 'schema') this.lead(view, panel);
    } catch (error) {
      if (this.turns.get(name) !== turn) return;
      panel.replaceChildren(element('p', { class: 'wrong', role: 'alert' }, (error as Error).message));
    }
  }

  /** Show the heading of the newest view; close views of another snapshot, which open anew when they are shown. */
  private take(head: Head): void {
    if (this.head && this.head.snapshot !== head.snapshot) {
      for (const [name, { view }] of this.open) {
        view.close();
        byId(`view-${name}`).replaceChildren();
      }
      this.open.clear();
    }
    this.head = head;
    byId('facts').textContent = head.facts;
    this.tables.replaceChildren(...head.tables.map(([, , title], at) => element('option', { value: at }, title)));
    this.tables.selectedIndex = head.tables.findIndex(table => isSame(table, this.chosen));
    this.notice.hidden = true;
  }

  /** Link the table selected in the schema to its rows and files. */
  private lead(view: PageView, panel: HTMLElement): void {
    const acts = element('div', { class: 'acts' });
    panel.append(acts);
    const show = () => {
      const [schema, name] = view.model.get('selected') as [string, string];
      const tables = this.head?.tables ?? [];
      const table = tables.find(one => isSame(one, [schema, name, '']));
      acts.replaceChildren();
      if (!table) return;
      acts.append(
        element('b', {}, table[2]),
        element('button', { type: 'button', onclick: () => this.go('rows', table) }, 'Rows'),
        element('button', { type: 'button', onclick: () => this.go('files', table) }, 'Files')
      );
      this.chosen = table;
      this.tables.selectedIndex = tables.indexOf(table);
    };
    view.model.on('change:selected', show);
    show();
  }

  /** Ask whether the lake has a newer snapshot than the views. */
  private async look(): Promise<void> {
    if (!this.head || this.ended) return;
    let snapshot: number;
    try {
      ({ snapshot } = await this.socket.ask<{ snapshot: number }>('newest'));
    } catch (error) {
      if (!this.ended) this.tell('alert', (error as Error).message);
      return;
    }
    if (snapshot === this.head.snapshot) return;
    this.tell(
      'status',
      `The lake is at snapshot ${snapshot} now; this is snapshot ${this.head.snapshot}.`,
      element('button', { type: 'button', onclick: () => this.again() }, 'Show it as it is now')
    );
  }

  private tell(role: string, ...words: Child[]): void {
    this.notice.setAttribute('role', role);
    this.notice.replaceChildren(...words);
    this.notice.hidden = false;
  }

  private again(): void {
    for (const { view } of this.open.values()) view.close();
    this.open.clear();
    this.follow();
  }

  private end(): void {
    this.ended = true;
    this.tell(
      'alert',
      'The connection to ducklake-lab has ended. Load the page again, or run ducklake-lab open for a new one.'
    );
  }
}

new Page();

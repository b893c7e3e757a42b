/** The sidebar: the lakes of the kernel of the notebook in front. */

import { ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { CommandToolbarButtonComponent } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { Message } from '@lumino/messaging';
import * as React from 'react';

import { insertCell, insertText } from './cells';
import { CommandIDs } from './commands';
import { duckLakeIcon } from './icons';
import { LinkState } from './link';
import { Links } from './links';
import { RecentLakes, recentRows } from './recent';
import { IRow, rowsOf } from './rows';
import { Running } from './running';
import { lakeKey, Shelf } from './shelf';
import { Tree } from './tree';

const LOAD = '%load_ext ducklake_lab';

export interface ISidebarSettings {
  qualified: boolean;
  snapshots: number;
}

export class Sidebar extends ReactWidget {
  constructor(links: Links, recent: RecentLakes, commands: CommandRegistry, trans: TranslationBundle) {
    super();
    this._links = links;
    this._recent = recent;
    this._commands = commands;
    this._trans = trans;
    this.id = 'jp-ducklake-sidebar';
    this.title.icon = duckLakeIcon;
    this.title.caption = trans.__('DuckLake');
    this.addClass('jp-DuckLake');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', trans.__('DuckLake'));
    links.changed.connect(this._onChanged, this);
    recent.changed.connect(this._onChanged, this);
  }

  /** What the user has chosen in the settings. */
  set settings(settings: ISidebarSettings) {
    this._settings = settings;
    if (this._shelf && this._shelf.snapshots !== settings.snapshots) {
      this._shelf.snapshots = settings.snapshots;
      void this._shelf.link.refresh(true);
    }
    this.update();
  }

  /** The row under the context menu, or with the focus. */
  row(node: HTMLElement | undefined): IRow | null {
    const key = (node ?? this.node.querySelector<HTMLElement>('[role=treeitem]:focus'))?.dataset.key;
    return this._rows.find(row => row.key === key) ?? null;
  }

  protected onAfterShow(message: Message): void {
    super.onAfterShow(message);
    // Others may have committed while it was hidden.
    void this._links.current?.refresh();
  }

  protected onActivateRequest(message: Message): void {
    super.onActivateRequest(message);
    const first = this.node.querySelector<HTMLElement>('[role=treeitem][tabindex="0"], input, button');
    first?.focus();
  }

  protected render(): JSX.Element {
    const link = this._links.current;
    const shelf = this._shelfOf();
    const notebook = this._links.notebook;
    const state = link?.state ?? null;
    const lakes = link?.lakes ?? [];
    const filter = this._filter;
    this._rows = [];
    if (shelf && state === 'ready') {
      this._rows.push(...rowsOf(shelf, { filter, qualified: this._settings.qualified }));
    }
    if (shelf && (state === 'ready' || state === 'not-loaded')) {
      this._rows.push(...recentRows(this._recent.all, lakes, shelf.open, filter));
    }
    return (
      <>
        <div className="jp-DuckLake-header">
          <h2>{this._trans.__('DuckLake')}</h2>
          <span className="jp-DuckLake-notebook" title={notebook?.context.path}>
            {notebook?.title.label ?? ''}
          </span>
          <CommandToolbarButtonComponent commands={this._commands} id={CommandIDs.newCell} label="" />
          <CommandToolbarButtonComponent commands={this._commands} id={CommandIDs.refresh} label="" />
        </div>
        {lakes.length > 0 && (
          <input
            className="jp-DuckLake-filter"
            type="search"
            placeholder={this._trans.__('Filter names and comments')}
            aria-label={this._trans.__('Filter names and comments')}
            value={filter}
            onChange={event => {
              this._filter = event.target.value;
              this.update();
            }}
          />
        )}
        {state === 'ready' && lakes.length > 0 ? null : this._advice(state)}
        {this._rows.length > 0 && (
          <Tree
            rows={this._rows}
            label={this._trans.__('Lakes of this notebook')}
            onToggle={(row, open) => this._toggle(row, open)}
            onInsert={row => this._insert(row)}
          />
        )}
        {filter && lakes.length > 0 && !this._rows.some(row => row.level > 1) && (
          <p className="jp-DuckLake-empty" role="status">
            {this._trans.__('No name or comment is like that.')}
          </p>
        )}
        <Running links={this._links} trans={this._trans} />
      </>
    );
  }

  /** What to do where there is nothing to show. */
  private _advice(state: LinkState | null): JSX.Element {
    const button = (label: string, act: () => void) => (
      <button className="jp-mod-styled jp-mod-accept jp-DuckLake-action" onClick={act}>
        {label}
      </button>
    );
    const quickstart = (
      <button
        className="jp-mod-styled jp-DuckLake-action"
        onClick={() => this._commands.execute(CommandIDs.quickstart)}
      >
        {this._trans.__('Open the quickstart')}
      </button>
    );
    const insert = (label: string, text: string) =>
      button(label, () => this._links.notebook && insertCell(this._links.notebook, { text }));
    let text: string;
    let code = '';
    let action: JSX.Element | null = null;
    switch (state) {
      case null:
        text = this._trans.__('Open a notebook to see the lakes it works with.');
        action = quickstart;
        break;
      case 'no-kernel':
        text = this._trans.__('This notebook has no kernel. Choose one in the top right corner of the notebook.');
        action = button(this._trans.__('Choose a kernel'), () => {
          void this._commands.execute('notebook:change-kernel');
        });
        break;
      case 'starting':
        text = this._trans.__('The kernel is starting …');
        break;
      case 'not-loaded':
        text = this._trans.__('DuckLake is not loaded in this kernel. Run this in a cell:');
        code = LOAD;
        action = insert(this._trans.__('Insert it'), `${code}\n`);
        break;
      case 'outdated':
        text = this._trans.__(
          'The kernel has another version of ducklake-lab than JupyterLab. Install the same in both, and start again.'
        );
        break;
      case 'ready':
        text = this._trans.__('No lake is attached. Connect one in a cell; it is made if it does not exist:');
        code = '%ducklake connect ducklake:metadata.ducklake';
        action = insert(this._trans.__('Insert it'), code);
        break;
    }
    return (
      <div className="jp-DuckLake-advice" role="status">
        <p>{text}</p>
        {code && <code>{code}</code>}
        {action}
      </div>
    );
  }

  private _insert(row: IRow): void {
    const panel = this._links.notebook;
    if (!panel || row.insert === undefined) {
      return;
    }
    if (row.line) {
      const load = this._links.current?.state === 'not-loaded' ? `${LOAD}\n` : '';
      void insertCell(panel, { text: load + row.insert, run: row.run });
    } else {
      insertText(panel, row.insert);
    }
  }

  private _toggle(row: IRow, open: boolean): void {
    const shelf = this._shelf;
    if (!shelf || row.open === open) {
      return;
    }
    // The set holds what differs from how a row is by itself.
    if (!shelf.open.delete(row.key)) {
      shelf.open.add(row.key);
    }
    this.update();
  }

  /** What is known of the notebook in front; each link keeps what was open in it. */
  private _shelfOf(): Shelf | null {
    const link = this._links.current;
    if (!link) {
      this._shelf = null;
      return null;
    }
    let shelf = this._shelves.get(link);
    if (!shelf) {
      shelf = new Shelf(link);
      shelf.snapshots = this._settings.snapshots;
      shelf.changed.connect(() => this.update());
      this._shelves.set(link, shelf);
    }
    // A lake is open from the start, and only then: it stays closed once it was closed.
    for (const lake of link.lakes) {
      const key = `lake ${lakeKey(lake)}`;
      if (!this._greeted.has(shelf) || !this._greeted.get(shelf)!.has(key)) {
        const seen = this._greeted.get(shelf) ?? new Set<string>();
        seen.add(key);
        this._greeted.set(shelf, seen);
        shelf.open.add(key);
      }
    }
    this._shelf = shelf;
    return shelf;
  }

  private _onChanged(): void {
    this.update();
  }

  private _links: Links;
  private _recent: RecentLakes;
  private _commands: CommandRegistry;
  private _trans: TranslationBundle;
  private _settings: ISidebarSettings = { qualified: false, snapshots: 50 };
  private _shelves = new WeakMap<object, Shelf>();
  private _greeted = new WeakMap<Shelf, Set<string>>();
  private _shelf: Shelf | null = null;
  private _rows: IRow[] = [];
  private _filter = '';
}

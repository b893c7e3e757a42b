/** The notebook's toolbar says when its lake is read as of an older snapshot. */

import { ReactWidget } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { duckLakeIcon } from './icons';
import { KernelLink } from './link';
import { readable } from './names';
import { describeLake } from './rows';

export class PinnedItem extends ReactWidget {
  constructor(link: KernelLink, open: () => void, trans: TranslationBundle) {
    super();
    this._link = link;
    this._open = open;
    this._trans = trans;
    this.addClass('jp-DuckLake-pinned');
    link.changed.connect(this.update, this);
  }

  protected render(): JSX.Element | null {
    const lake = this._link.current;
    this.setHidden(!lake?.travelling);
    if (!lake?.travelling) {
      return null;
    }
    const label = this._trans.__('%1 as of snapshot %2', readable(lake.alias), lake.snapshot ?? '?');
    return (
      <button
        title={`${describeLake(lake)}\n${this._trans.__('Click opens the sidebar')}`}
        aria-label={this._trans.__('DuckLake: %1', label)}
        onClick={this._open}
      >
        <duckLakeIcon.react tag="span" className="jp-DuckLake-statusIcon" />
        {label}
      </button>
    );
  }

  private _link: KernelLink;
  private _open: () => void;
  private _trans: TranslationBundle;
}

/** Puts the item into a notebook's toolbar, before the name of the kernel. */
export function addPinned(panel: NotebookPanel, link: KernelLink, open: () => void, trans: TranslationBundle): void {
  // before that, the toolbar has no items
  void panel.context.ready.then(() => {
    const item = new PinnedItem(link, open, trans);
    if (!panel.toolbar.insertBefore('kernelName', 'ducklake-pinned', item)) {
      panel.toolbar.addItem('ducklake-pinned', item);
    }
  });
}

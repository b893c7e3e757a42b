/** The notebook's toolbar says when its lake is read as of an older snapshot, and what the notebook pins before it is. */

import { ReactWidget } from '@jupyterlab/apputils';
import { NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { duckLakeIcon } from './icons';
import { KernelLink } from './link';
import { readable } from './names';
import { Pins } from './pins';
import { describeLake } from './rows';

export class PinnedItem extends ReactWidget {
  constructor(link: KernelLink, pins: Pins, open: () => void, trans: TranslationBundle) {
    super();
    this._link = link;
    this._pins = pins;
    this._open = open;
    this._trans = trans;
    this.addClass('jp-DuckLake-pinned');
    link.changed.connect(this.update, this);
    pins.changed.connect(this.update, this);
  }

  protected render(): JSX.Element | null {
    const lake = this._link.current;
    // before a lake is connected, the notebook says what it will be read as of
    const [kept] = lake ? [] : this._pins.all;
    this.setHidden(!lake?.travelling && !kept);
    if (kept) {
      return (
        <span title={this._trans.__('The notebook keeps this pin; %ducklake pin --off takes it away')}>
          <duckLakeIcon.react tag="span" className="jp-DuckLake-statusIcon" />
          {this._trans.__('%1 pinned at %2', readable(kept.alias), readable(kept.at))}
        </span>
      );
    }
    if (!lake?.travelling) {
      return null;
    }
    const name = lake.pin?.at;
    const snapshot = this._trans.__('snapshot %1', lake.snapshot ?? '?');
    const at = !name || /^-?\d+$/.test(name) ? snapshot : `${readable(name)} (${snapshot})`;
    const label = this._trans.__('%1 as of %2', readable(lake.alias), at);
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
  private _pins: Pins;
  private _open: () => void;
  private _trans: TranslationBundle;
}

/** Puts the item into a notebook's toolbar, before the name of the kernel. */
export function addPinned(panel: NotebookPanel, link: KernelLink, open: () => void, trans: TranslationBundle): void {
  const pins = new Pins(panel, link);
  // before that, the toolbar has no items
  void panel.context.ready.then(() => {
    const item = new PinnedItem(link, pins, open, trans);
    if (!panel.toolbar.insertBefore('kernelName', 'ducklake-pinned', item)) {
      panel.toolbar.addItem('ducklake-pinned', item);
    }
  });
}

/**
 * Pins of lakes in a notebook's metadata (`ducklake_lab/magics/pins.py` reads them from its file).
 *
 * A pin that the kernel sets or ends is written there. A kernel that has read a file without the pin gets it from here.
 */

import { NotebookPanel } from '@jupyterlab/notebook';
import { JSONObject } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';

import { KernelLink } from './link';
import { ILake } from './protocol';

/** The key in the notebook's metadata. */
const KEY = 'ducklake';

export interface IPin {
  /** The lake's identity. */
  lake: string;
  alias: string;
  /** The snapshot by its id, a time or a tag. */
  at: string;
}

export class Pins {
  constructor(panel: NotebookPanel, link: KernelLink) {
    this._panel = panel;
    this._link = link;
    link.changed.connect(this._sync, this);
    panel.disposed.connect(() => {
      link.changed.disconnect(this._sync, this);
      Signal.clearData(this);
    });
    void panel.context.ready.then(() => {
      if (!panel.isDisposed) {
        panel.context.model.metadataChanged.connect(() => this._changed.emit());
        this._sync();
      }
    });
  }

  /** The notebook's pins; others than ours, or broken ones, are left out. */
  get all(): IPin[] {
    const pins = this._metadata.pins;
    return Array.isArray(pins) ? (pins as unknown[]).filter(isPin) : [];
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  private get _metadata(): JSONObject {
    const found = this._panel.context.model?.getMetadata(KEY);
    return found && typeof found === 'object' && !Array.isArray(found) ? (found as JSONObject) : {};
  }

  private _sync(): void {
    if (this._panel.isDisposed || !this._panel.context.isReady) {
      return;
    }
    if (this._link.state !== 'ready') {
      this._asked.clear();
      return;
    }
    for (const lake of this._link.lakes) {
      if (lake.session || !lake.id) {
        continue;
      }
      if (lake.pin?.origin === 'kernel') {
        this._keep(lake.id, lake.alias, lake.pin.at);
      } else if (!lake.pin) {
        this._hand(lake, lake.id);
      }
    }
  }

  /** Writes a pin, or its end, into the metadata; the notebook is saved as always. */
  private _keep(id: string, alias: string, at: string | null): void {
    const all = this.all;
    const known = all.find(pin => pin.lake === id);
    if ((known?.at ?? null) === at) {
      return;
    }
    const others = all.filter(pin => pin.lake !== id);
    const pins = at === null ? others : [...others, { lake: id, alias, at }];
    const { pins: _, ...rest } = this._metadata;
    const metadata = pins.length ? { ...rest, pins: pins as unknown as JSONObject[] } : rest;
    const model = this._panel.context.model;
    if (Object.keys(metadata).length) {
      model.setMetadata(KEY, metadata);
    } else {
      model.deleteMetadata(KEY);
    }
  }

  /** Has a kernel pin a lake that this notebook pins, and that it read as of now; once. */
  private _hand(lake: ILake, id: string): void {
    const pin = this.all.find(one => one.lake === id);
    if (!pin || !lake.current || lake.travelling || lake.in_transaction || this._asked.has(id)) {
      return;
    }
    this._asked.add(id);
    this._link.ask('pin', { alias: lake.alias, at: pin.at }).then(
      () => this._link.refresh(true),
      error => console.warn(`DuckLake: ${error.message}`)
    );
  }

  private _panel: NotebookPanel;
  private _link: KernelLink;
  private _asked = new Set<string>();
  private _changed = new Signal<this, void>(this);
}

function isPin(one: unknown): one is IPin {
  const { lake, alias, at } = (one ?? {}) as { [name: string]: unknown };
  return typeof lake === 'string' && typeof alias === 'string' && typeof at === 'string' && at !== '';
}

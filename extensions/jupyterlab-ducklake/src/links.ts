/** The links of all open notebooks, and which of them is in front. */

import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISignal, Signal } from '@lumino/signaling';

import { KernelLink } from './link';

export class Links {
  constructor(notebooks: INotebookTracker) {
    this._notebooks = notebooks;
    notebooks.forEach(panel => this._add(panel));
    notebooks.widgetAdded.connect((_, panel) => this._add(panel));
    notebooks.currentChanged.connect(() => {
      this._changed.emit();
      this._progressed.emit();
    });
  }

  /** The notebook in front, or the one that was last. */
  get notebook(): NotebookPanel | null {
    return this._notebooks.currentWidget;
  }

  get current(): KernelLink | null {
    return this.notebook ? (this._links.get(this.notebook) ?? null) : null;
  }

  /** The link of a notebook. */
  of(panel: NotebookPanel): KernelLink | null {
    return this._links.get(panel) ?? null;
  }

  /** Emitted when another notebook comes to the front, or the lakes of the one in front have changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Emitted when what the kernel of the notebook in front runs has changed. */
  get progressed(): ISignal<this, void> {
    return this._progressed;
  }

  private _add(panel: NotebookPanel): void {
    if (this._links.has(panel)) {
      return;
    }
    const link = new KernelLink(panel.sessionContext);
    this._links.set(panel, link);
    link.changed.connect(() => {
      if (this.current === link) {
        this._changed.emit();
      }
    });
    link.progressed.connect(() => {
      if (this.current === link) {
        this._progressed.emit();
      }
    });
    panel.disposed.connect(() => {
      this._links.delete(panel);
      link.dispose();
      this._changed.emit();
    });
    this._changed.emit();
  }

  private _notebooks: INotebookTracker;
  private _links = new Map<NotebookPanel, KernelLink>();
  private _changed = new Signal<this, void>(this);
  private _progressed = new Signal<this, void>(this);
}

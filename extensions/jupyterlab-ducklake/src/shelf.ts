/** Answers about a kernel's lakes, which the sidebar shows until newer ones are there. */

import { ISignal, Signal } from '@lumino/signaling';

import { KernelLink } from './link';
import { IFile, ILake, ISchema, ISnapshot } from './protocol';

/** An answer, or the reason that there is none. */
export interface IHeld<T> {
  value?: T;
  error?: string;
  /** The link's generation that this was asked at. */
  generation: number;
}

export class Shelf {
  constructor(link: KernelLink) {
    this.link = link;
  }

  readonly link: KernelLink;
  /** Keys of the rows that are open. */
  readonly open = new Set<string>();
  /** How many snapshots are asked for. */
  snapshots = 50;

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  tree(lake: ILake): IHeld<ISchema[]> | undefined {
    return this._get(`tree ${lakeKey(lake)}`, async () => {
      const answer = await this.link.ask('tree', { alias: lake.alias, session: lake.session });
      return answer.schemas;
    });
  }

  history(lake: ILake): IHeld<ISnapshot[]> | undefined {
    return this._get(`history ${lakeKey(lake)}`, async () => {
      const given = { alias: lake.alias, session: lake.session, limit: this.snapshots };
      return (await this.link.ask('snapshots', given)).snapshots;
    });
  }

  files(lake: ILake, schema: string, table: string): IHeld<{ count: number; files: IFile[] }> | undefined {
    const given = { alias: lake.alias, session: lake.session, schema, table };
    return this._get(`files ${JSON.stringify(given)}`, () => this.link.ask('files', given));
  }

  private _get<T>(key: string, ask: () => Promise<T>): IHeld<T> | undefined {
    const generation = this.link.generation;
    const held = this._held.get(key) as IHeld<T> | undefined;
    if (held?.generation === generation || this._asked.get(key) === generation) {
      return held;
    }
    this._asked.set(key, generation);
    ask().then(
      value => this._put(key, { value, generation }),
      (error: Error) => this._put(key, { error: error.message, generation })
    );
    return held;
  }

  private _put(key: string, held: IHeld<unknown>): void {
    // an answer to an older question may come after that to a newer one
    if (held.generation >= (this._held.get(key)?.generation ?? -1)) {
      this._held.set(key, held);
    }
    this._changed.emit();
  }

  private _held = new Map<string, IHeld<unknown>>();
  private _asked = new Map<string, number>();
  private _changed = new Signal<this, void>(this);
}

export function lakeKey(lake: ILake): string {
  return JSON.stringify([lake.session, lake.alias]);
}

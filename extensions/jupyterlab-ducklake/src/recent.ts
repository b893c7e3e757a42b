/** Lakes that were connected before, in JupyterLab's state: by URIs that hold no passwords, newest first. */

import { IStateDB } from '@jupyterlab/statedb';
import { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { ISignal, Signal } from '@lumino/signaling';

import { argument, isOneLine } from './names';
import { ILake } from './protocol';
import { IRow } from './rows';

const KEY = 'jupyterlab-ducklake:recent';
/** Lakes that are kept. */
const KEPT = 20;

/** A lake to come back to; its URI says which one it is. */
export interface IRecentLake extends ReadonlyPartialJSONObject {
  uri: string;
  alias: string;
  /** Whether the alias is another than the URI gives. */
  named: boolean;
  readOnly: boolean;
}

export class RecentLakes {
  constructor(state: IStateDB | null) {
    this._state = state;
    this._loaded = this._load();
  }

  get all(): readonly IRecentLake[] {
    return this._lakes;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Takes the lakes that a kernel has; those that it has not had before come first. */
  note(kernel: object, lakes: readonly ILake[]): void {
    const before = this._had.get(kernel) ?? new Set<string>();
    const now = lakes.flatMap(lake => recentOf(lake) ?? []);
    this._had.set(kernel, new Set(now.map(lake => lake.uri)));
    const fresh = now.filter(lake => !before.has(lake.uri));
    if (fresh.length) {
      this._set(withFirst(fresh, this._lakes));
    }
  }

  forget(uri: string): void {
    this._set(this._lakes.filter(lake => lake.uri !== uri));
  }

  private async _load(): Promise<void> {
    let kept: unknown;
    try {
      kept = await this._state?.fetch(KEY);
    } catch (error) {
      console.warn(`DuckLake: recent lakes cannot be read: ${(error as Error).message}`);
    }
    const lakes = Array.isArray(kept) ? kept.filter(isRecentLake) : [];
    // lakes that a kernel had meanwhile are newer
    this._lakes = withFirst(this._lakes, lakes);
    this._changed.emit();
  }

  private _set(lakes: readonly IRecentLake[]): void {
    this._lakes = lakes;
    this._changed.emit();
    this._loaded
      .then(() => this._state?.save(KEY, [...this._lakes]))
      .catch((error: Error) => console.warn(`DuckLake: recent lakes are not kept: ${error.message}`));
  }

  private _state: IStateDB | null;
  private _lakes: readonly IRecentLake[] = [];
  private _loaded: Promise<void>;
  private _had = new WeakMap<object, Set<string>>();
  private _changed = new Signal<this, void>(this);
}

/** The record of a lake; null where it cannot be written on a line, or has no URI. */
function recentOf(lake: ILake): IRecentLake | null {
  const { uri, alias, named } = lake;
  if (!uri || lake.error || !isOneLine(uri + alias)) {
    return null;
  }
  return { uri, alias, named, readOnly: lake.read_only && !lake.travelling };
}

function isRecentLake(value: any): value is IRecentLake {
  return typeof value?.uri === 'string' && typeof value.alias === 'string' && isOneLine(value.uri + value.alias);
}

/** Lakes with some of them, or others, in front; each once. */
function withFirst(first: readonly IRecentLake[], rest: readonly IRecentLake[]): IRecentLake[] {
  const found = new Map<string, IRecentLake>();
  for (const lake of [...first, ...rest]) {
    if (!found.has(lake.uri)) {
      found.set(lake.uri, lake);
    }
  }
  return [...found.values()].slice(0, KEPT);
}

/** The line that connects a lake again; it makes none where that is gone. */
export function connectLine(lake: IRecentLake): string {
  const alias = lake.named ? ` --alias ${argument(lake.alias)}` : '';
  return `%ducklake connect ${argument(lake.uri)}${alias}${lake.readOnly ? ' --read-only' : ''} --existing`;
}

/** The rows of the lakes that a kernel does not have; unfolded where it has none. */
export function recentRows(
  lakes: readonly IRecentLake[],
  attached: readonly ILake[],
  toggled: ReadonlySet<string>,
  filter: string
): IRow[] {
  const has = new Set(attached.map(lake => lake.uri));
  const words = filter.toLowerCase();
  const shown = lakes.filter(lake => !has.has(lake.uri) && `${lake.alias}\n${lake.uri}`.toLowerCase().includes(words));
  if (!shown.length) {
    return [];
  }
  const key = 'recent';
  const open = !!filter || toggled.has(key) !== !attached.length;
  const rows: IRow[] = [{ key, level: 1, kind: 'group', label: 'Recent lakes', detail: `${shown.length}`, open }];
  for (const lake of open ? shown : []) {
    rows.push({
      key: `${key} ${lake.uri}`,
      level: 2,
      kind: 'recent',
      label: lake.alias,
      detail: placeOf(lake.uri),
      title: `${lake.uri}\nClick connects it again`,
      insert: connectLine(lake),
      line: true,
      run: true,
      uri: lake.uri
    });
  }
  return rows;
}

/** The end of a path, or the words about a server. */
function placeOf(uri: string): string {
  const place = uri.replace(/^ducklake:(sqlite:|postgres:|mysql:)?/, '');
  return /^\/|^[A-Z]:\\/i.test(place) ? place.split(/[/\\]/).slice(-2).join('/') : place;
}

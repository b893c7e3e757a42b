/** Marks outputs whose tables have moved on, or whose variables have changed, in one notebook. */

import { Notification } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { TranslationBundle } from '@jupyterlab/translation';
import { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import { PanelLayout } from '@lumino/widgets';

import { ICell, insertCell } from './cells';
import { KernelLink } from './link';
import { IMark, IMarkButton, MarkLine } from './mark';
import { asOf, compared } from './moved';
import { readable } from './names';
import { IMovedOn } from './protocol';
import { IRecord, IRecorded, keyOf, recordsOf, stateOf } from './recorded';
import { allowed, changedAbove, IAgain, IChanged, runBelow, unfollowed } from './rerun';

/** Milliseconds that changes of outputs are gathered for. */
const CALM = 100;
/** Seconds for which the kernel watches its lakes, and after which it is asked again. */
const WATCH = 60;
const AGAIN = 40;

/** A cell whose outputs show tables that have moved on. */
interface IStale extends IAgain {
  records: IRecord[];
  texts: string[];
  diffs: ICell[];
}

export class Marks implements IDisposable {
  constructor(panel: NotebookPanel, link: KernelLink, trans: TranslationBundle) {
    this._panel = panel;
    this._link = link;
    this._trans = trans;
    link.changed.connect(this._onLakes, this);
    link.cellsChanged.connect(this._later, this);
    panel.content.modelChanged.connect(this._follow, this);
    document.addEventListener('visibilitychange', this._onVisibility);
    panel.disposed.connect(() => this.dispose());
    // a notebook that is just opened gets its kernel first
    void panel.sessionContext.ready.then(() => {
      this._isReady = true;
      this._follow();
    });
  }

  /** Whether outputs are marked. */
  get isOn(): boolean {
    return this._isOn;
  }

  set isOn(value: boolean) {
    this._isOn = value;
    this._later();
  }

  /** The stale cells, from the top. */
  get stale(): CodeCell[] {
    return this._stale.map(one => one.cell);
  }

  /** The cells below variables that have changed since they ran, from the top. */
  get changed(): readonly IChanged[] {
    return this._isOn && this._link.state === 'ready'
      ? changedAbove(this._panel.content.widgets, this._link.changedCells)
      : [];
  }

  /** The cells of SQL that another kernel ran, so that nobody knows whether their variables have changed. */
  get unfollowed(): CodeCell[] {
    return this._isOn ? unfollowed(this._panel.content.widgets, this._link.followedCells) : [];
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    if (this._disposed) {
      return;
    }
    this._disposed = true;
    document.removeEventListener('visibilitychange', this._onVisibility);
    Signal.clearData(this);
    window.clearTimeout(this._timer);
    window.clearTimeout(this._watching);
  }

  /** Has the kernel watch its lakes while this notebook can be seen, and has something to compare. */
  listen(): void {
    const wanted = this._wantsToListen();
    if (wanted === this._watching > 0) {
      return;
    }
    window.clearTimeout(this._watching);
    this._watching = 0;
    if (!wanted) {
      return;
    }
    const again = () => {
      if (!this._wantsToListen()) {
        this._watching = 0;
        return;
      }
      this._watching = window.setTimeout(again, AGAIN * 1000);
      this._link.ask('watch', { seconds: WATCH }).catch((error: Error) => this._warn(error));
    };
    again();
    // what happened before it watches
    void this._link.refresh();
  }

  /** Runs stale cells again: all, or those from one on. Asks before it runs more than magics that read. */
  async runStale(from: CodeCell | null = null): Promise<void> {
    const start = from ? this._stale.findIndex(one => one.cell === from) : 0;
    const title = (count: number) => this._trans._n('Run %1 stale cell?', 'Run %1 stale cells?', count);
    await this._run((await allowed(this._stale.slice(Math.max(start, 0)), title, this._trans)) ?? []);
  }

  /** Runs the cells below variables that have changed, with the same question; says where they are unknown. */
  async runChanged(): Promise<void> {
    await this._link.refresh();
    const unknown = this.unfollowed.length;
    if (unknown) {
      const text = this._trans._n(
        'DuckLake: this kernel has not run %1 cell of SQL and does not know the values that it read; run it once, or all cells.',
        'DuckLake: this kernel has not run %1 cells of SQL and does not know the values that they read; run them once, or all cells.',
        unknown
      );
      Notification.info(text, { autoClose: 12000 });
    }
    if (!this.changed.length) {
      return;
    }
    const title = (count: number) =>
      this._trans._n('Run %1 cell below a changed variable?', 'Run %1 cells below a changed variable?', count);
    const chosen = await allowed(this.changed, title, this._trans);
    const changed = async () => {
      await this._link.refresh();
      return [...this.changed];
    };
    const { widgets } = this._panel.content;
    if (chosen?.length) {
      await runBelow(
        chosen,
        changed,
        cell => this._run([cell]),
        cell => widgets.indexOf(cell)
      );
    }
  }

  private async _run(cells: CodeCell[]): Promise<boolean> {
    return !cells.length || NotebookActions.runCells(this._panel.content, cells, this._panel.sessionContext);
  }

  private _wantsToListen(): boolean {
    return (
      this._isOn &&
      !this._disposed &&
      this._link.state === 'ready' &&
      !document.hidden &&
      this._panel.isVisible &&
      this._comparable.size > 0
    );
  }

  private _onVisibility = (): void => this.listen();

  private _onLakes(): void {
    if (this._link.state !== 'ready') {
      this._answers.clear();
      // another kernel does not watch yet
      window.clearTimeout(this._watching);
      this._watching = 0;
    }
    this._isOld = true;
    this._later();
  }

  private _follow(): void {
    if (!this._isReady || this._disposed) {
      return;
    }
    const model = this._panel.content.model;
    if (model && model !== this._model) {
      this._model = model;
      model.cells.changed.connect(this._later, this);
    }
    this._later();
  }

  private _later(): void {
    if (!this._isReady || this._disposed) {
      return;
    }
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => void this._settle(), CALM);
  }

  /** Asks about states that are not known, and draws the lines. */
  private async _settle(): Promise<void> {
    const link = this._link;
    if (link.state === 'starting') {
      return; // what is shown stays until it is known whether there is a kernel
    }
    const cells = this._records();
    this._comparable = new Map(
      [...cells.values()]
        .flat()
        .flatMap(record => record.reads)
        .filter(read => !read.fixed)
        .map(read => [keyOf(read), read])
    );
    this.listen();
    if (link.state === 'ready' && this._isOn && !this._isAsking) {
      await this._ask();
    }
    if (!this._disposed) {
      this._draw(this._records());
    }
  }

  /** Asks the kernel about states without an answer, or about all after a lake has changed; one question at a time. */
  private async _ask(): Promise<void> {
    const asked = this._isOld
      ? [...this._comparable]
      : [...this._comparable].filter(([key]) => !this._answers.has(key));
    if (!asked.length) {
      return;
    }
    this._isAsking = true;
    this._isOld = false;
    try {
      const reads = asked.map(([, read]) => stateOf(read));
      const answer = await this._link.ask('moved_on', { reads: reads as any });
      asked.forEach(([key], at) => this._answers.set(key, answer.reads[at]));
    } catch (error) {
      this._warn(error as Error);
      // what was known may have changed
      asked.forEach(([key]) => this._answers.set(key, { known: false, reason: (error as Error).message }));
      this._isOld = true;
      return;
    } finally {
      this._isAsking = false;
    }
    if (this._isOld || [...this._comparable.keys()].some(key => !this._answers.has(key))) {
      this._later();
    }
  }

  private _warn(error: Error): void {
    // a kernel that is gone changes the link's state
    if (this._link.state === 'ready') {
      console.warn(`DuckLake: ${error.message}`);
    }
  }

  /** The records of each cell, whose outputs are listened to from now on. */
  private _records(): Map<CodeCell, IRecord[]> {
    const found = new Map<CodeCell, IRecord[]>();
    for (const cell of this._panel.content.widgets) {
      if (!(cell instanceof CodeCell)) {
        continue;
      }
      const { outputs } = cell.model;
      if (!this._heard.has(outputs)) {
        this._heard.add(outputs);
        outputs.changed.connect(this._later, this);
      }
      found.set(cell, recordsOf(cell));
    }
    return found;
  }

  private _draw(cells: Map<CodeCell, IRecord[]>): void {
    const trans = this._trans;
    const stale: IStale[] = [];
    const quiet = new Map<CodeCell, IMark>();
    for (const [cell, records] of cells) {
      if (!records.length || !this._isOn) {
        continue;
      }
      if (this._link.state !== 'ready') {
        quiet.set(
          cell,
          asOf(
            records.flatMap(record => record.reads),
            this._answers,
            trans
          )
        );
        continue;
      }
      const { texts, diffs, unknown } = compared(records, this._answers, this._link.lakes, trans);
      if (texts.length) {
        stale.push({ cell, records, texts, diffs, wrote: records.some(record => record.wrote) });
      } else if (unknown.length) {
        quiet.set(cell, asOf(unknown, this._answers, trans));
      }
    }
    this._stale = stale;
    const changed = this.changed;
    for (const cell of [...this._lines.keys()].filter(one => one.isDisposed)) {
      this._lines.delete(cell);
    }
    for (const cell of cells.keys()) {
      const of = changed.find(one => one.cell === cell);
      const at = stale.findIndex(one => one.cell === cell);
      this._put(cell, at >= 0 || of ? this._moved(cell, stale, at, changed, of) : (quiet.get(cell) ?? null));
    }
  }

  /** The line of a cell that is one of the stale ones, or read a variable that has changed. */
  private _moved(
    cell: CodeCell,
    stale: readonly IStale[],
    at: number,
    changed: readonly IChanged[],
    of: IChanged | undefined
  ): IMark {
    const trans = this._trans;
    const { records, texts, diffs } = stale[at] ?? { records: [], texts: [], diffs: [] };
    const buttons: IMarkButton[] = [];
    if (diffs.length) {
      buttons.push({
        label: trans.__('Show the Diff'),
        title: trans.__('Insert a cell below that compares the table then and now'),
        act: () => void this._showDiff(cell, diffs)
      });
    }
    if (!stale[at]?.wrote && !of?.wrote) {
      buttons.push({
        label: trans.__('Run Again'),
        title: trans.__('Run this cell'),
        act: () => void this._run([cell])
      });
    }
    if (of && changed.length > 1) {
      buttons.push({
        label: trans.__('Run %1 Below Changed Variables', changed.length),
        title: trans.__('Run all cells that read variables which have changed above them since, from the top'),
        act: () => void this.runChanged()
      });
    }
    if (at >= 0 && stale.length > 1) {
      buttons.push({
        label: trans.__('Run All %1 Stale', stale.length),
        title: trans.__('Run all cells whose tables have moved on, from the top'),
        act: () => void this.runStale()
      });
    }
    if (at > 0 && at < stale.length - 1) {
      buttons.push({
        label: trans.__('Run %1 From Here', stale.length - at),
        title: trans.__('Run this cell and the stale ones below it'),
        act: () => void this.runStale(cell)
      });
    }
    const reads = records.flatMap(record => record.reads);
    return {
      moved: true,
      text: [...(of?.variables ?? []).map(name => trans.__('%1 has changed', readable(name))), ...texts].join(' · '),
      title: reads.length ? asOf(reads, this._answers, trans).text : '',
      buttons
    };
  }

  private async _showDiff(cell: CodeCell, diffs: ICell[]): Promise<void> {
    const notebook = this._panel.content;
    notebook.activeCellIndex = notebook.widgets.indexOf(cell);
    for (const diff of diffs) {
      await insertCell(this._panel, diff);
    }
  }

  /** Puts a line below the outputs of a cell, or takes it away. */
  private _put(cell: CodeCell, mark: IMark | null): void {
    let line = this._lines.get(cell);
    if (!mark) {
      line?.dispose();
      this._lines.delete(cell);
      return;
    }
    if (!line) {
      line = new MarkLine();
      this._lines.set(cell, line);
      const added = line;
      // a cell out of view has no layout yet
      void cell.ready.then(() => {
        if (!cell.isDisposed && !added.isDisposed) {
          const layout = cell.layout as PanelLayout;
          layout.insertWidget(layout.widgets.length - 1, added);
        }
      });
    }
    line.say(mark);
  }

  private _panel: NotebookPanel;
  private _link: KernelLink;
  private _trans: TranslationBundle;
  private _model: object | null = null;
  private _isOn = true;
  private _isReady = false;
  private _isAsking = false;
  private _isOld = true;
  private _disposed = false;
  private _timer = 0;
  private _watching = 0;
  private _heard = new WeakSet<object>();
  private _comparable = new Map<string, IRecorded>();
  private _answers = new Map<string, IMovedOn>();
  private _lines = new Map<CodeCell, MarkLine>();
  private _stale: IStale[] = [];
}

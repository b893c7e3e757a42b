/** The connection to one notebook's kernel: finds the comm that `%load_ext ducklake_lab` opened, and asks over it. */

import { ISessionContext } from '@jupyterlab/apputils';
import { Kernel, KernelMessage } from '@jupyterlab/services';
import { JSONExt, JSONObject, UUID } from '@lumino/coreutils';
import { IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { IChangedCells, ILake, IQuestions, IRunning, PROTOCOL, TARGET } from './protocol';

/** State of the link: no kernel, one that is starting, one without the extension, or one that answers. */
export type LinkState = 'no-kernel' | 'starting' | 'not-loaded' | 'outdated' | 'ready';

/** Milliseconds between a cell's end, or a commit, and the question what changed. */
const CALM = 150;
/** Milliseconds to wait for an answer of a kernel that is idle. */
const PATIENCE = 20000;

interface IPending {
  resolve: (answer: any) => void;
  reject: (error: Error) => void;
  timer: number;
}

export class KernelLink implements IDisposable {
  constructor(context: ISessionContext) {
    this._context = context;
    context.kernelChanged.connect(this._onKernelChanged, this);
    context.statusChanged.connect(this._onStatus, this);
    this._bind(context.session?.kernel ?? null);
  }

  get state(): LinkState {
    return this._state;
  }

  get lakes(): readonly ILake[] {
    return this._lakes;
  }

  /** Names of saved connections. */
  get connections(): readonly string[] {
    return this._connections;
  }

  /** Reason that saved connections cannot be read. */
  get connectionsError(): string {
    return this._connectionsError;
  }

  /** The lake that unqualified names are looked up in. */
  get current(): ILake | null {
    return this._lakes.find(lake => lake.current && !lake.session) ?? this._lakes.find(lake => lake.current) ?? null;
  }

  /** Counts up whenever what the lakes hold may have changed. */
  get generation(): number {
    return this._generation;
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The cells that read other values of variables than there are now. */
  get changedCells(): IChangedCells {
    return this._changedCells;
  }

  /** The ids of the cells whose reads this kernel knows; none while it does not answer. */
  get followedCells(): ReadonlySet<string> {
    return this._followedCells;
  }

  /** Emitted when `changedCells` has changed. */
  get cellsChanged(): ISignal<this, void> {
    return this._cellsChanged;
  }

  /** The statement that runs; null where none does, or it is done within a blink. */
  get running(): IRunning | null {
    return this._running;
  }

  /** Emitted when `running` has changed. */
  get progressed(): ISignal<this, void> {
    return this._progressed;
  }

  /** Stops what the kernel runs; the notebook shows what comes of it. */
  async interrupt(): Promise<void> {
    await this._kernel?.interrupt();
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** Ask the kernel; a kernel that is running a cell is asked again when it is done. */
  async ask<Q extends keyof IQuestions>(question: Q, given: IQuestions[Q]['given']): Promise<IQuestions[Q]['answer']> {
    for (;;) {
      const reply = await this._send(question, given as JSONObject);
      if (reply.error) {
        throw new Error(reply.error);
      }
      if (!reply.busy) {
        return reply.answer;
      }
      await this._idle();
    }
  }

  /** Ask again what is attached; `force` for reading everything that is shown again. */
  async refresh(force = false): Promise<void> {
    if (!this._comm) {
      return;
    }
    let answer: IQuestions['lakes']['answer'];
    try {
      answer = await this.ask('lakes', {});
    } catch (error) {
      // The kernel went away meanwhile, which changes the state; else the next refresh asks again.
      if (this._comm) {
        console.warn(`DuckLake: ${(error as Error).message}`);
      }
      return;
    }
    const { changed_cells, followed_cells, ...rest } = answer;
    this._followedCells = new Set(followed_cells);
    const text = JSON.stringify(rest);
    this._readAgain(changed_cells ?? {});
    if (force || text !== this._known || answer.lakes.some(lake => lake.in_transaction)) {
      this._known = text;
      this._lakes = answer.lakes;
      this._connections = answer.connections;
      this._connectionsError = answer.connections_error ?? '';
      this._generation += 1;
      this._changed.emit();
    }
  }

  dispose(): void {
    if (this._disposed) {
      return;
    }
    this._disposed = true;
    this._forget();
    window.clearTimeout(this._calm);
    Signal.clearData(this);
  }

  private _onKernelChanged(): void {
    this._bind(this._context.session?.kernel ?? null);
  }

  private _onStatus(_: ISessionContext, status: Kernel.Status): void {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead' || status === 'terminating') {
      this._forget();
      this._set(status === 'dead' || status === 'terminating' ? 'no-kernel' : 'starting');
    } else if (this._state === 'starting' && (status === 'idle' || status === 'busy')) {
      void this._find();
    }
    if (status === 'idle') {
      this._run(null);
      const waiting = this._waiting;
      this._waiting = [];
      waiting.forEach(go => go());
    }
  }

  private _bind(kernel: Kernel.IKernelConnection | null): void {
    this._forget();
    this._kernel = kernel;
    if (!kernel) {
      this._set('no-kernel');
      return;
    }
    this._set('starting');
    kernel.registerCommTarget(TARGET, (comm, message) => this._adopt(comm, message.content.data));
    void this._find();
  }

  /** Look for a comm that was opened before this page was. */
  private async _find(): Promise<void> {
    const kernel = this._kernel;
    if (!kernel) {
      return;
    }
    let comms: string[] = [];
    try {
      await kernel.info;
      const reply = await kernel.requestCommInfo({ target_name: TARGET });
      comms = reply.content.status === 'ok' ? Object.keys(reply.content.comms) : [];
    } catch {
      return; // the kernel was shut down or restarted meanwhile, as its status shows
    }
    if (kernel !== this._kernel || this._comm || this.isDisposed) {
      return;
    }
    const known = comms[comms.length - 1];
    if (known === undefined) {
      this._set('not-loaded');
    } else if (!kernel.hasComm(known)) {
      this._adopt(kernel.createComm(TARGET, known), { protocol: PROTOCOL });
    }
  }

  private _adopt(comm: Kernel.IComm, data: any): void {
    this._forget();
    if (data?.protocol !== PROTOCOL) {
      this._set('outdated');
      return;
    }
    this._comm = comm;
    comm.onMsg = message => this._onMessage(message);
    comm.onClose = () => {
      if (this._comm === comm) {
        this._forget();
        this._set('not-loaded');
      }
    };
    this._set('ready');
    void this.refresh(true);
  }

  private _onMessage(message: KernelMessage.ICommMsgMsg): void {
    const data = message.content.data as any;
    if (data.event === 'running' || data.event === 'done') {
      this._run(data.event === 'running' ? data : null);
      return;
    }
    if (data.event === 'ran' || data.event === 'moved') {
      window.clearTimeout(this._calm);
      this._calm = window.setTimeout(() => void this.refresh(), CALM);
      return;
    }
    // Answers reach every window of the kernel; those to others are not known here.
    const pending = this._pending.get(data.id);
    if (pending) {
      this._pending.delete(data.id);
      window.clearTimeout(pending.timer);
      pending.resolve(data);
    }
  }

  private _send(question: string, given: JSONObject): Promise<any> {
    const comm = this._comm;
    if (!comm) {
      return Promise.reject(new Error('The kernel is gone.'));
    }
    const id = UUID.uuid4();
    return new Promise((resolve, reject) => {
      const expire = () => {
        if (this._kernel?.status === 'busy') {
          pending.timer = window.setTimeout(expire, PATIENCE);
          return;
        }
        this._pending.delete(id);
        reject(new Error('The kernel does not answer.'));
      };
      const pending: IPending = { resolve, reject, timer: window.setTimeout(expire, PATIENCE) };
      this._pending.set(id, pending);
      comm.send({ id, question, given });
    });
  }

  private _idle(): Promise<void> {
    if (this._kernel?.status === 'idle') {
      return new Promise(resolve => window.setTimeout(resolve, CALM));
    }
    return new Promise(resolve => this._waiting.push(resolve));
  }

  private _run(running: IRunning | null): void {
    if (running !== this._running) {
      this._running = running;
      this._progressed.emit();
    }
  }

  private _forget(): void {
    this._comm = null;
    this._run(null);
    this._known = '';
    this._lakes = [];
    this._connections = [];
    this._connectionsError = '';
    this._readAgain({});
    const pending = [...this._pending.values()];
    this._pending.clear();
    for (const { reject, timer } of pending) {
      window.clearTimeout(timer);
      reject(new Error('The kernel is gone.'));
    }
    const waiting = this._waiting;
    this._waiting = [];
    waiting.forEach(go => go());
  }

  private _readAgain(cells: IChangedCells): void {
    if (!JSONExt.deepEqual(cells as any, this._changedCells as any)) {
      this._changedCells = cells;
      this._cellsChanged.emit();
    }
  }

  private _set(state: LinkState): void {
    this._state = state;
    if (state !== 'ready') {
      this._followedCells = new Set();
    }
    this._generation += 1;
    this._changed.emit();
  }

  private _context: ISessionContext;
  private _kernel: Kernel.IKernelConnection | null = null;
  private _comm: Kernel.IComm | null = null;
  private _state: LinkState = 'no-kernel';
  private _lakes: readonly ILake[] = [];
  private _connections: readonly string[] = [];
  private _connectionsError = '';
  private _running: IRunning | null = null;
  private _known = '';
  private _generation = 0;
  private _calm = 0;
  private _pending = new Map<string, IPending>();
  private _waiting: (() => void)[] = [];
  private _changed = new Signal<this, void>(this);
  private _changedCells: IChangedCells = {};
  private _followedCells: ReadonlySet<string> = new Set();
  private _cellsChanged = new Signal<this, void>(this);
  private _progressed = new Signal<this, void>(this);
  private _disposed = false;
}

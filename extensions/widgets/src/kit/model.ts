/** The model of a widget, as anywidget and the page of `ducklake-lab open` give it to a module. */

/** Bytes from the kernel, in the forms in which hosts hand them on. */
export type Bytes = ArrayBuffer | DataView | Uint8Array;

/** A message of the kernel to a view: the answer to a request, or its error. */
export interface Message {
  request?: string;
  error?: string;
}

/** The messages of a model. */
export interface Channel {
  send(content: object): void;
  on(event: 'msg:custom', listener: (content: Message, buffers?: Bytes[]) => void): void;
  on(event: string, listener: () => void): void;
  off(event: 'msg:custom', listener: (content: Message, buffers?: Bytes[]) => void): void;
  off(event: string, listener: () => void): void;
  /** Present in JupyterLab alone. */
  widget_manager?: Manager;
}

/** A model whose state both sides change; `State` has the traits of the widget in Python. */
export interface Model<State extends object> extends Channel {
  get<Name extends keyof State>(name: Name): State[Name];
  set<Name extends keyof State>(name: Name, value: State[Name]): void;
  save_changes(): void;
}

/** The traits of `Mounted` in Python. */
export interface MountedState {
  /** Id of the element that holds the static view. */
  mount: string;
}

interface Signal<Value> {
  connect(slot: (sender: unknown, value: Value) => void): void;
  disconnect(slot: (sender: unknown, value: Value) => void): void;
}

/** An output of a cell, as a notebook stores it. */
export interface Output {
  data?: Record<string, unknown>;
}

interface Outputs {
  length: number;
  get(at: number): { toJSON(): Output };
  set(at: number, output: Output): void;
}

/** The parts of JupyterLab's widget manager that views use. */
interface Manager {
  kernel?: { statusChanged?: Signal<string>; disposed?: Signal<void> };
  context?: { model?: { cells?: Iterable<{ outputs?: Outputs }> } };
}

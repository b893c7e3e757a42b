import type { Bytes, Message } from '../kit/model';
import type { PageSocket } from './page-socket';

type Listener = (...values: unknown[]) => void;

/** A message of the widget in Python. */
export type WidgetMessage =
  | { method: 'custom'; content: Message }
  | { method: 'update'; state: Record<string, unknown>; buffer_paths: (string | number)[][] }
  | { method: 'echo_update' };

/** The state of a widget in the page: changes go to Python when they are saved, and come from it as they happen. */
export class PageModel {
  private readonly state: Record<string, unknown> = {};
  private readonly unsaved = new Set<string>();
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(
    private readonly socket: PageSocket,
    private readonly id: string
  ) {}

  get(name: string): unknown {
    return this.state[name];
  }

  set(name: string, value: unknown): void {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.unsaved.add(name);
    this.emit(`change:${name}`, this, value);
    this.emit('change', this);
  }

  save_changes(): void {
    if (!this.unsaved.size) return;
    const state = Object.fromEntries([...this.unsaved].map(name => [name, this.state[name]]));
    this.unsaved.clear();
    this.tell({ method: 'update', state, buffer_paths: [] });
  }

  send(content: object): void {
    this.tell({ method: 'custom', content });
  }

  on(event: string, listener: Listener): void {
    const listeners = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, listeners.add(listener));
  }

  off(event?: string, listener?: Listener): void {
    if (event === undefined) this.listeners.clear();
    else if (listener === undefined) this.listeners.delete(event);
    else this.listeners.get(event)?.delete(listener);
  }

  /** Take a message of the widget in Python; an echo of the page's own message changes nothing. */
  receive(message: WidgetMessage, buffers: Bytes[]): void {
    if (message.method === 'custom') this.emit('msg:custom', message.content, buffers);
    if (message.method !== 'update') return;
    const changed = { ...message.state };
    message.buffer_paths.forEach((path, at) => {
      const inside = path.slice(0, -1).reduce<any>((part, key) => part[key], changed);
      inside[path[path.length - 1]] = buffers[at];
    });
    Object.assign(this.state, changed);
    for (const name of Object.keys(changed)) this.emit(`change:${name}`, this, changed[name]);
    this.emit('change', this);
  }

  private tell(data: object): void {
    this.socket.send({ type: 'comm_msg', comm: this.id, data });
  }

  private emit(event: string, ...values: unknown[]): void {
    for (const listener of [...(this.listeners.get(event) ?? [])]) listener(...values);
  }
}

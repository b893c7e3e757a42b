import './live.css';
import { Line } from './line';
import type { Model, MountedState } from './model';

/**
 * Base of the browsers: they draw a model that may change from either side, until they are closed.
 *
 * A browser calls start(host, listeners) when its own parts are there.
 */
export abstract class Browsing<State extends MountedState> {
  readonly line: Line;
  abstract readonly root: HTMLElement;

  protected closed = false;
  protected readonly observers: { disconnect(): void }[] = [];
  private listeners: [string, () => void][] = [];

  constructor(readonly model: Model<State>) {
    this.line = new Line(model);
  }

  /** Show the browser; `listeners` are by event of the model, such as `change:sort`. */
  protected start(host: Element, listeners: Record<string, () => void>): void {
    this.root.addEventListener('keydown', event => event.stopPropagation());
    host.append(this.root);
    // A host may set the values of one message one by one, with an event after each: they are read when all are set.
    const later = (listener: () => void) => () =>
      queueMicrotask(() => {
        if (!this.closed) listener();
      });
    this.listeners = Object.entries(listeners).map(([event, listener]) => [event, later(listener)]);
    for (const [event, listener] of this.listeners) this.model.on(event, listener);
  }

  /** Draw again when a part has another size. */
  protected resize(node: Element, draw: () => void): void {
    const observer = new ResizeObserver(draw);
    observer.observe(node);
    this.observers.push(observer);
  }

  set(values: Partial<State>): void {
    for (const name of Object.keys(values) as (keyof State)[]) this.model.set(name, values[name] as State[keyof State]);
    this.model.save_changes();
  }

  close(): void {
    this.closed = true;
    for (const [event, listener] of this.listeners) this.model.off(event, listener);
    for (const observer of this.observers) observer.disconnect();
    this.line.close();
    this.root.remove();
  }
}

/** A browser that covers its static form, and goes on in another host when its output is written anew. */
export abstract class Covering<State extends MountedState> extends Browsing<State> {
  private focused: HTMLElement | undefined;

  protected override start(host: Element, listeners: Record<string, () => void>): void {
    this.root.addEventListener('focusin', event => {
      this.focused = event.target instanceof Element ? (event.target as HTMLElement) : undefined;
    });
    this.root.addEventListener('focusout', () => {
      queueMicrotask(() => {
        if (this.root.isConnected && !this.root.contains(document.activeElement)) this.focused = undefined;
      });
    });
    super.start(host, listeners);
  }

  /** Go on in another host. A node that is moved loses the focus, and gets it back. */
  adopt(host: HTMLElement, still: HTMLElement[]): void {
    for (const node of still) node.style.display = 'none';
    const focused = this.focused;
    host.append(this.root);
    if (focused && this.root.contains(focused) && document.activeElement === document.body) {
      focused.focus({ preventScroll: true });
    }
  }
}

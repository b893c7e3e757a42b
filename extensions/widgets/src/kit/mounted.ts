/**
 * A view shows itself where the static one is, whose element id is the model's `mount`.
 *
 * That output is plain HTML, so a notebook opened without a kernel still has it, and a live kernel makes it interactive
 * again.
 */

import { notice, whenGone } from './kernel-end';
import { GONE, Line } from './line';
import type { Model, MountedState } from './model';

export interface View {
  readonly line: Line;
  readonly root: HTMLElement;
  close(): void;
  /** Goes on without its kernel; a view without this makes way for its static form. */
  stop?(sentence: string): void;
  /** Goes on in another host. */
  adopt?(host: HTMLElement, still: HTMLElement[]): void;
}

/** `still` holds the elements of the static view. */
type ViewClass<State extends MountedState> = new (model: Model<State>, host: HTMLElement, still: HTMLElement[]) => View;

interface Entry {
  still: HTMLElement[];
  view: View | null;
  notice?: HTMLElement;
}

/** Milliseconds that a view waits for another host, when its notebook's output was written anew, on a busy machine too. */
const HOMELESS = 30_000;

/** Return the module of a widget: it mounts a view where its static form is, or where a host puts it. */
export function mounted<State extends MountedState>(ViewOf: ViewClass<State>) {
  return {
    initialize: ({ model }: { model: Model<State> }) => {
      const mounts = new Mounts(model, ViewOf);
      return () => mounts.close();
    },
    render: ({ model, el }: { model: Model<State>; el: HTMLElement }) => {
      const view = new ViewOf(model, el, []);
      const lose = (sentence = GONE) => {
        unwatch();
        view.line.fail(sentence);
        if (view.stop) {
          view.stop(sentence);
          return;
        }
        // there is no static view in a box
        view.root.inert = true;
        el.prepend(notice(sentence));
      };
      const unwatch = whenGone(model, lose);
      view.line.onGone = lose;
      return () => {
        unwatch();
        view.close();
      };
    }
  };
}

/** The views of a model, one for each place where the page shows its static form. */
class Mounts<State extends MountedState> {
  private readonly live = new Map<HTMLElement, Entry>();
  private readonly homeless = new Map<View, ReturnType<typeof setTimeout>>();
  private readonly line: Line;
  private readonly unwatch: () => void;
  private readonly observer = new MutationObserver(() => this.find());
  private isAlive = false;
  private gone = '';

  constructor(
    private readonly model: Model<State>,
    private readonly ViewOf: ViewClass<State>
  ) {
    this.line = new Line(model);
    this.unwatch = whenGone(model, sentence => this.lose(sentence));
    this.observer.observe(document.body, { childList: true, subtree: true });
    // A notebook may keep the model of a kernel that is gone: the static view stays until a kernel answers.
    this.line.ask('here').then(
      () => {
        this.isAlive = true;
        this.find();
      },
      () => {}
    );
  }

  close(): void {
    this.observer.disconnect();
    this.unwatch();
    this.line.close();
    for (const entry of this.live.values()) this.end(entry);
    this.live.clear();
    for (const [view, timer] of this.homeless) {
      clearTimeout(timer);
      view.close();
    }
    this.homeless.clear();
  }

  private find(): void {
    if (!this.isAlive) return;
    for (const [host, entry] of this.live) if (!host.isConnected) this.leave(host, entry);
    // each view of the output has one; browsers find them by the id alone at once
    for (const host of document.querySelectorAll<HTMLElement>(`#${CSS.escape(this.model.get('mount'))}`)) {
      if (!this.live.has(host)) this.enter(host);
    }
  }

  private leave(host: HTMLElement, { view }: Entry): void {
    this.live.delete(host);
    if (!view?.adopt) {
      view?.close();
      return;
    }
    const end = () => {
      this.homeless.delete(view);
      view.close();
    };
    this.homeless.set(view, setTimeout(end, HOMELESS));
  }

  private enter(host: HTMLElement): void {
    const still = [...host.children] as HTMLElement[];
    const entry: Entry = { still, view: null };
    this.live.set(host, entry);
    if (this.gone) {
      this.stop(host, entry);
      return;
    }
    const [waiting] = this.homeless;
    if (waiting) {
      const [view, timer] = waiting;
      clearTimeout(timer);
      this.homeless.delete(view);
      view.adopt?.(host, still);
      entry.view = view;
      return;
    }
    for (const child of still) child.style.display = 'none';
    entry.view = new this.ViewOf(this.model, host, still);
    entry.view.line.onGone = () => this.lose(GONE);
  }

  private lose(sentence: string): void {
    if (this.gone) return;
    this.gone = sentence;
    this.unwatch();
    for (const [host, entry] of this.live) this.stop(host, entry);
  }

  /** Without its kernel a view makes way for the static one, under a sentence that says what to do. */
  private stop(host: HTMLElement, entry: Entry): void {
    entry.view?.line.fail(this.gone);
    if (entry.view?.stop) {
      entry.view.stop(this.gone);
      return;
    }
    this.end(entry);
    entry.view = null;
    entry.notice = notice(this.gone);
    host.prepend(entry.notice);
  }

  private end(entry: Entry): void {
    entry.view?.close();
    entry.notice?.remove();
    for (const child of entry.still) child.style.display = '';
  }
}

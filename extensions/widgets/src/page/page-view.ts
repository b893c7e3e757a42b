import { element } from '../kit/dom';
import type { PageModel } from './page-model';
import type { PageSocket } from './page-socket';

/** A table of the lake: its schema, its name, and both as SQL reads them. */
export type Table = [schema: string, name: string, title: string];

/** The heading of the page. */
export interface Head {
  name: string;
  facts: string;
  snapshot: number;
  tables: Table[];
}

type Cleanup = () => void;

/** The module of a widget, as anywidget calls it in a notebook. */
interface Widget {
  initialize?(context: { model: PageModel }): Cleanup | void | Promise<Cleanup | void>;
  render?(context: { model: PageModel; el: HTMLElement }): Cleanup | void | Promise<Cleanup | void>;
}

/** A widget in its panel. */
export class PageView {
  static async open(socket: PageSocket, name: string, table: Table | null): Promise<PageView> {
    const el = element('div');
    const { comm, head } = await socket.ask<{ comm: string; head: Head }>('open', {
      view: name,
      ...(table ? { schema: table[0], table: table[1] } : {})
    });
    const model = socket.model(comm);
    // the server has the modules; the build must not take them in
    const address = new URL(`widgets/${name}.js`, document.baseURI).href;
    const { default: widget } = (await import(address)) as { default: Widget };
    const cleanups = [await widget.initialize?.({ model }), await widget.render?.({ model, el })];
    return new PageView(socket, comm, model, el, head, cleanups.filter(Boolean) as Cleanup[]);
  }

  private constructor(
    private readonly socket: PageSocket,
    private readonly comm: string,
    readonly model: PageModel,
    readonly el: HTMLElement,
    readonly head: Head,
    private readonly cleanups: Cleanup[]
  ) {}

  close(): void {
    for (const cleanup of this.cleanups) cleanup();
    this.model.off();
    // it fails where the socket has closed, and all views with it
    this.socket.ask('close', { comm: this.comm }).catch(() => {});
  }
}

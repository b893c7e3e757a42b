/** A streaming query: its state, batches and rows, as its kernel sees them. */

import '../kit/live.css';
import { element } from '../kit/dom';
import { Line } from '../kit/line';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import './stream.css';

/** The traits of `StreamView` in Python. */
interface StreamState extends MountedState {
  name: string;
  state: string;
  facts: string;
  error: string;
}

const CHANGES = 'change:state change:facts change:error';

class Stream {
  readonly line: Line;
  readonly root = element('div', { class: 'dlk-live dlk-st', role: 'status' });

  constructor(
    private readonly model: Model<StreamState>,
    host: HTMLElement,
    still: HTMLElement[]
  ) {
    this.line = new Line(model);
    model.on(CHANGES, this.show);
    this.show();
    this.adopt(host, still);
  }

  /** Goes on in another host. */
  adopt(host: HTMLElement, still: HTMLElement[]): void {
    for (const node of still) node.style.display = 'none';
    host.append(this.root);
  }

  close(): void {
    this.line.close();
    this.model.off(CHANGES, this.show);
    this.root.remove();
  }

  private readonly show = (): void => {
    const state = this.model.get('state');
    const error = this.model.get('error');
    const line = element(
      'p',
      {},
      element('i', { class: 'dlk-st-' + state, 'aria-hidden': 'true' }),
      element('b', {}, `Stream ${this.model.get('name')}`),
      ` ${state} `,
      element('span', { class: 'dlk-soft' }, this.model.get('facts'))
    );
    this.root.replaceChildren(line, ...(error ? [element('p', { class: 'dlk-st-error' }, error)] : []));
  };
}

export default mounted(Stream);

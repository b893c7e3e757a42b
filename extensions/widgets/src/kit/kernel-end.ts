/** The end of a view's kernel: how it is noticed, and the sentence that a view shows then. */

import './notice.css';
import { element } from './dom';
import { GONE, Line } from './line';
import type { Channel } from './model';

const STOPPED = 'The kernel has stopped; run the cell again.';
/** States of a kernel that end its variables. */
const ENDS: Record<string, string> = { restarting: GONE, autorestarting: GONE, terminating: STOPPED, dead: STOPPED };

/**
 * Call back once when the kernel of a model is gone; the answer stops watching.
 *
 * JupyterLab signals changes of a kernel and of its connection; elsewhere the next question fails.
 */
export function whenGone(channel: Channel, act: (sentence: string) => void): () => void {
  const kernel = channel.widget_manager?.kernel;
  const line = new Line(channel);
  const lose = (sentence: string) => {
    stop();
    act(sentence);
  };
  const probe = () => {
    setTimeout(() => {
      line.ask('here').catch(() => {});
    }, 50);
  };
  const onStatus = (_: unknown, state: string) => {
    if (state in ENDS) lose(ENDS[state]);
  };
  const onDisposed = () => lose(STOPPED);
  const stop = () => {
    kernel?.statusChanged?.disconnect(onStatus);
    kernel?.disposed?.disconnect(onDisposed);
    channel.off('comm_live_update', probe);
    line.close();
  };
  line.onGone = () => lose(GONE);
  kernel?.statusChanged?.connect(onStatus);
  kernel?.disposed?.connect(onDisposed);
  channel.on('comm_live_update', probe);
  return stop;
}

export function notice(sentence: string): HTMLElement {
  return element('p', { class: 'dlk-live dlk-gone', role: 'status' }, sentence);
}

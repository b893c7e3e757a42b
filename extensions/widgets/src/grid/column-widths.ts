/** Widths of a grid's columns in pixels, by their widest contents. A column becomes wider, never narrower. */

import '../kit/live.css';
import './column-widths.css';
import { type Child, element } from '../kit/dom';

/** The widest text that makes its column wider; a number is never cut. */
const MOST_TEXT = 420;
/** Width of a letter where nothing is drawn, as in a hidden page, and so nothing can be measured. */
const LETTER = 7.5;

export interface Fitted {
  /** Key of the column. */
  key: string;
  content: Child;
  /** Whether it may be cut. */
  canCut: boolean;
  /** Pixels around it. */
  around: number;
}

export class ColumnWidths {
  /** Stands in the owner's page, so that fonts are the same. */
  readonly rule = element('div', { class: 'dlk-rule', 'aria-hidden': 'true' });

  private readonly known = new Map<string, number>();

  has(key: string): boolean {
    return this.known.has(key);
  }

  set(key: string, width: number): void {
    this.known.set(key, width);
  }

  /** The width of a column as CSS. */
  of(key: string, least = 0): string {
    return `${Math.max(least, this.known.get(key) || 0)}px`;
  }

  /** Make room for contents, with one layout for all of them; true where a column became wider. */
  fit(contents: Fitted[]): boolean {
    const nodes = contents.map(({ content }) => element('span', {}, content));
    this.rule.replaceChildren(...nodes);
    const wide = nodes.map(node => node.getBoundingClientRect().width || (node.textContent ?? '').length * LETTER);
    this.rule.replaceChildren();
    let isWider = false;
    contents.forEach(({ key, canCut, around }, at) => {
      const needed = (canCut ? Math.min(MOST_TEXT, wide[at]) : wide[at]) + around;
      if (needed <= (this.known.get(key) || 0) + 0.5) return;
      this.known.set(key, needed);
      isWider = true;
    });
    return isWider;
  }
}

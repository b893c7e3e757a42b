import { element } from '../kit/dom';
import { number } from '../kit/figures';

/** Columns in the page at once. */
export const WIDE = 100;

/** Leads to the other columns, where there are more than the page has at once. */
export class ColumnPlaces {
  readonly root: HTMLElement;
  private readonly range = element('span', { class: 'dlk-soft' });

  /**
   * @param names - of all columns, as they read.
   * @param first - the first column in the page.
   * @param turn - shows the columns from another one on.
   */
  constructor(
    private readonly names: string[],
    private readonly first: () => number,
    private readonly turn: (first: number) => void
  ) {
    const step = (by: number, text: string, label: string) =>
      element('button', { type: 'button', 'aria-label': label, onclick: () => turn(first() + by) }, text);
    const go: HTMLInputElement = element('input', {
      type: 'search',
      placeholder: 'Go to column',
      'aria-label': 'Go to column',
      onchange: () => this.go(go.value)
    });
    this.root = element(
      'span',
      { class: 'dlk-tb-places' },
      step(-WIDE, '‹', 'Earlier columns'),
      this.range,
      step(WIDE, '›', 'Later columns'),
      go
    );
  }

  /** Say which columns are in the page. */
  show(count: number): void {
    const first = this.first();
    const last = number.format(first + count);
    this.range.textContent = `columns ${number.format(first + 1)} to ${last} of ${number.format(this.names.length)}`;
  }

  private go(text: string): void {
    const names = this.names.map(name => name.toLowerCase());
    const word = text.toLowerCase();
    const at = names.includes(word) ? names.indexOf(word) : names.findIndex(name => name.includes(word));
    if (word && at >= 0) this.turn(at);
  }
}

/** The value of a cell in full, beside all values of its row. Texts of a lake are text here, never HTML. */

import { copying } from '../kit/copying';
import { element, nullMark } from '../kit/dom';
import { counted, number } from '../kit/figures';
import type { Line } from '../kit/line';
import { LifePanel } from '../life/life-panel';
import type { TableState } from './table-state';

/** A value, as the kernel sends it. */
interface CellValue {
  /** At most so much of it as a page can hold; null for NULL. */
  text: string | null;
  /** The text with signs for characters that hide; absent where it is the same. */
  shown?: string;
  /** Characters of the whole value. */
  length: number;
  type: string;
}

export interface DetailOptions {
  line: Line;
  columns: TableState['columns'];
  /** Whether to say who set the value. */
  hasLives: boolean;
  /** Number of the view of the rows. */
  look(): number;
  /** All values of a row. */
  values(row: number): Promise<(string | null)[]>;
  /** Moves to another value of the row. */
  go(column: number): void;
  /** Takes the focus back when the detail is closed. */
  leave(): void;
}

export class CellDetail {
  readonly root: HTMLElement;
  readonly copied: HTMLButtonElement;

  private readonly title = element('span', { role: 'status' });
  private readonly value = element('pre', {
    class: 'dlk-tb-value dlk-mono',
    tabindex: '0',
    role: 'region',
    'aria-label': 'Value'
  });
  private readonly row = element('dl', { tabindex: '0', 'aria-label': 'Values of the row' });
  private readonly life: LifePanel | undefined;
  private text: string | null = null;
  private at = 0;
  /** The question whose answer is shown. */
  private shown: string | undefined;

  constructor(private readonly options: DetailOptions) {
    this.copied = copying('Copy value', () => this.text ?? '', this.value);
    const copyRow = copying('Copy row', async () => {
      const { content } = await options.line.ask<{ text: string }>('row', { row: this.at });
      return content.text;
    });
    copyRow.title = 'The whole row for a spreadsheet, separated by tabs';
    const close = element('button', { type: 'button', onclick: () => this.close() }, 'Close');
    this.root = element(
      'div',
      { class: 'dlk-tb-detail', role: 'region', 'aria-label': 'Cell', hidden: true },
      element('div', { class: 'dlk-bar' }, this.title, this.copied, copyRow, close),
      element('div', { class: 'dlk-tb-two' }, this.value, this.row)
    );
    if (options.hasLives) {
      this.life = new LifePanel(options.line);
      this.root.append(this.life.root);
    }
    this.root.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.close();
    });
  }

  get isOpen(): boolean {
    return !this.root.hidden;
  }

  close(): void {
    const isInside = this.root.contains(document.activeElement);
    this.root.hidden = true;
    this.shown = undefined;
    this.life?.close();
    if (isInside) this.options.leave();
  }

  focus(): void {
    this.value.focus();
  }

  /** Show a value; `row` is its place among the visible ones. A second click shows the life of its row. */
  async show(row: number, column: number, isClick = false): Promise<void> {
    this.root.hidden = false;
    this.life?.show({ row, column }, isClick);
    const asked = (this.shown = `${row} ${column} ${this.options.look()}`);
    const [{ content }, values] = await Promise.all([
      this.options.line.ask<CellValue>('cell', { row, column }),
      this.options.values(row)
    ]);
    if (this.shown !== asked) return;
    this.text = content.text;
    this.at = row;
    this.copied.disabled = content.text === null;
    const [, name, ,] = this.options.columns[column];
    this.title.replaceChildren(
      element('b', {}, `Row ${number.format(row + 1)} · ${name}`),
      ' ',
      element('span', { class: 'dlk-soft' }, content.type + extent(content))
    );
    this.value.replaceChildren(content.text === null ? nullMark() : (content.shown ?? content.text));
    this.value.scrollTop = 0;
    this.list(values, column);
  }

  /** List all values of the row, one below the other; a name leads to its value in full. */
  private list(values: (string | null)[], chosen: number): void {
    const items = this.options.columns.flatMap(([, name], column) => {
      const value = values[column];
      const current = column === chosen ? 'true' : null;
      const go = () => this.options.go(column);
      const lead = element('button', { type: 'button', 'aria-current': current, title: name, onclick: go }, name);
      return [element('dt', {}, lead), element('dd', { title: value }, value === null ? nullMark() : (value ?? ''))];
    });
    this.row.replaceChildren(...items);
  }
}

/** How much of the value is shown. */
function extent({ text, length }: CellValue): string {
  if (text === null) return '';
  if (text.length >= length) return ` · ${counted(length, 'character')}`;
  return ` · first ${number.format(text.length)} of ${number.format(length)} characters`;
}

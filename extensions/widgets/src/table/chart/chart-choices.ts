import { element } from '../../kit/dom';
import { AGGREGATED, type ChartAnswer, type Choice, type Named } from './chart-answer';

/** The lists from which a chart is chosen. */
export class ChartChoices {
  readonly nodes: HTMLElement[];

  private readonly kind: HTMLSelectElement;
  private readonly x: HTMLSelectElement;
  private readonly bins: HTMLSelectElement;
  private readonly y: HTMLSelectElement;
  private readonly aggregate: HTMLSelectElement;
  private readonly color: HTMLSelectElement;

  /**
   * @param asked - the last choice.
   * @param choose - takes another one.
   */
  constructor(asked: () => Choice, choose: (choice: Choice) => void) {
    this.nodes = [];
    const select = (label: string, changed: (value: string) => Choice): HTMLSelectElement => {
      const node: HTMLSelectElement = element('select', {
        'aria-label': label,
        onchange: () => choose(changed(node.value))
      });
      const name = element('span', { class: 'dlk-soft', 'aria-hidden': 'true' }, label);
      this.nodes.push(element('span', { class: 'dlk-tb-choice' }, name, node));
      return node;
    };
    this.kind = select('Chart', kind => ({ kind, color: asked().color }));
    this.x = select('X', x => ({ ...asked(), x, bins: null }));
    this.bins = select('Bins', bins => ({ ...asked(), bins: bins || null }));
    this.y = select('Y', y => ({ ...asked(), y: y || null, aggregate: aggregateOf(asked(), y) }));
    this.aggregate = select('Of', aggregate => ({ ...asked(), aggregate }));
    this.color = select('Colour', color => ({ ...asked(), color: color || null }));
  }

  fill({ kinds, xs, ys, colors, aggregates, bins, is_time, choice }: ChartAnswer): void {
    const isAggregated = AGGREGATED.has(choice.kind);
    offer(this.kind, plain(kinds), choice.kind);
    offer(this.x, xs, choice.x);
    offer(this.y, [...(isAggregated ? [['', 'rows'] satisfies Named] : []), ...ys], choice.y ?? '');
    offer(this.aggregate, plain(aggregates), choice.aggregate);
    offer(this.color, [['', 'one'], ...colors], choice.color ?? '');
    offer(this.bins, [['', 'by the span'], ...plain(bins)], choice.bins ?? '');
    hide(this.bins, !is_time);
    hide(this.y, choice.kind === 'histogram');
    hide(this.aggregate, !isAggregated || choice.y === null);
  }
}

/** Return how the values of a y are aggregated; rows are counted. */
function aggregateOf({ kind, y: before, aggregate }: Choice, y: string): string | null | undefined {
  if (!AGGREGATED.has(kind)) return null;
  if (!y) return 'count';
  return before === null ? 'sum' : aggregate;
}

function plain(list: string[]): Named[] {
  return list.map(one => [one, one]);
}

function offer(node: HTMLSelectElement, list: Named[], chosen: string | null | undefined): void {
  node.replaceChildren(...list.map(([value, text]) => element('option', { value, selected: value === chosen }, text)));
}

function hide(node: HTMLSelectElement, isHidden: boolean): void {
  node.parentElement!.hidden = isHidden;
}

/** The charts of the change by group, as the kernel has drawn them: one number at a time, with bars to click. */

import { element } from '../kit/dom';
import { choosable } from '../life/choosable-cells';

export class GroupCharts {
  private readonly undo: (() => void)[];

  /**
   * @param still - elements of the static view.
   * @param choose - shows the rows behind a bar, by the place of its chart.
   */
  constructor(still: HTMLElement[], choose?: (chart: number, bar: number) => void) {
    const all = <Tag extends 'table' | 'details'>(tag: Tag) =>
      still.flatMap(child => [...child.querySelectorAll<HTMLElementTagNameMap[Tag]>(`.dlk-gs ${tag}`)]);
    const folded = all('details');
    this.undo = [
      ...(choose ? all('table').map((table, chart) => choosable(table, bar => choose(chart, bar))) : []),
      ...(folded.length ? [oneOf(folded)] : [])
    ];
  }

  close(): void {
    for (const undo of this.undo) undo();
  }
}

/**
 * Let one of several folded parts be chosen by the text of its summary, in place of unfolding each.
 *
 * @returns what undoes it.
 */
function oneOf(folded: HTMLDetailsElement[]): () => void {
  const summaries = folded.map(part => part.querySelector('summary')!);
  const before = folded.map(part => part.open);
  const choice: HTMLSelectElement = element(
    'select',
    { 'aria-label': 'Number that changed', onchange: () => show(choice.selectedIndex) },
    ...summaries.map(summary => element('option', {}, summary.textContent!))
  );
  const show = (chosen: number) =>
    folded.forEach((part, at) => {
      part.open = at === chosen;
      part.style.display = part.open ? '' : 'none';
    });
  const bar = element('div', { class: 'dlk-live', 'data-lm-suppress-shortcuts': 'true' }, choice);
  bar.addEventListener('keydown', event => event.stopPropagation());
  folded[0].before(bar);
  for (const summary of summaries) summary.style.display = 'none';
  show(0);
  return () => {
    bar.remove();
    for (const shown of [...summaries, ...folded]) shown.style.display = '';
    folded.forEach((part, at) => {
      part.open = before[at];
    });
  };
}

import { element } from '../kit/dom';
import { reason } from '../kit/line';

/** [problem, effect of the call, call] */
export type Finding = [string, string, string];

/** Return advice on the files; `run` calls what a finding advises, and is absent where nothing can be changed. */
export function findingNodes(findings: Finding[], run?: (index: number) => Promise<unknown>): HTMLElement[] {
  return findings.map(([problem, effect, call], index) => {
    const facts = [element('span', {}, '⚠ ' + problem), element('code', {}, call)];
    const acts = run ? actsOf(effect, () => run(index)) : [element('span', { class: 'dlk-soft' }, effect)];
    return element('div', { class: 'dlk-fb-finding' }, ...facts, ...acts);
  });
}

/** A call runs after its dry run was shown. */
function actsOf(effect: string, act: () => Promise<unknown>): HTMLElement[] {
  const outcome = element('span', { class: 'dlk-soft', role: 'status' });
  const mend = async () => {
    run.disabled = true;
    outcome.textContent = 'Running …';
    try {
      await act();
      outcome.textContent = 'Done; run %ducklake files again to see the files as they are now.';
    } catch (error) {
      outcome.replaceChildren(element('span', { role: 'alert' }, reason(error)));
    }
  };
  const show = () => {
    outcome.textContent = effect;
    run.disabled = false;
  };
  const run = element('button', { type: 'button', disabled: true, onclick: mend }, 'Run it');
  const dry = element('button', { type: 'button', onclick: show }, 'Dry run');
  return [element('span', { class: 'dlk-fb-acts' }, dry, run), outcome];
}

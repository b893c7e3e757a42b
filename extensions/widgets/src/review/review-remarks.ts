/** The remarks on a branch, and the form for another one. */

import { element } from '../kit/dom';
import { counted } from '../kit/figures';
import { type Line, reason } from '../kit/line';
import type { Remark, RemarkKind } from './review-state';

/** Where the next remark goes. */
export interface Place {
  /** In words. */
  words: string;
  /** As the kernel takes it. */
  sent: object;
}

const PLACEHOLDER = 'A comment, or what should change';

export class Remarks {
  readonly root: HTMLElement;

  private place: Place | null = null;
  private readonly list = element('ol', { class: 'dlk-rv-remarks', 'aria-label': 'Remarks' });
  private readonly where = element('span', { class: 'dlk-rv-place', role: 'status' });
  private readonly clear = element(
    'button',
    { type: 'button', hidden: true, onclick: () => this.choose(null) },
    'on the whole branch instead'
  );
  private readonly text = element('textarea', { rows: 2, 'aria-label': 'Remark', placeholder: PLACEHOLDER });
  private readonly problem = element('span', { role: 'alert' });
  private readonly buttons: HTMLButtonElement[];

  /**
   * @param kept - called with the view's static form after a change.
   * @param go - shows the place that a remark is about.
   */
  constructor(
    private readonly line: Line,
    private readonly kept: (html: string) => void,
    private readonly go: (remark: Remark) => void
  ) {
    const button = (kind: RemarkKind, text: string) =>
      element('button', { type: 'button', class: `dlk-rv-${kind}`, onclick: () => this.send(kind) }, text);
    this.buttons = [
      button('comment', 'Comment'),
      button('request', 'Ask for changes'),
      button('approval', 'Approve the branch')
    ];
    this.root = element(
      'section',
      { 'aria-label': 'Remarks on the branch' },
      element('h4', {}, 'Remarks'),
      this.list,
      element(
        'div',
        { class: 'dlk-rv-form', role: 'group', 'aria-label': 'Add a remark' },
        element('div', { class: 'dlk-bar dlk-rv-on' }, this.where, this.clear),
        this.text,
        element('div', { class: 'dlk-bar' }, ...this.buttons, this.problem)
      )
    );
    this.choose(null);
  }

  /** Let the next remark be about a place; null for the whole branch. */
  choose(place: Place | null): void {
    this.place = place;
    this.where.replaceChildren('on ', element('b', {}, place?.words ?? 'the whole branch'));
    this.clear.hidden = !place;
  }

  show(remarks: Remark[], earlier: number): void {
    const more = earlier ? [element('li', { class: 'dlk-soft' }, `${counted(earlier, 'earlier remark')}`)] : [];
    const none = element('li', { class: 'dlk-soft' }, 'Nobody has said anything yet.');
    this.list.replaceChildren(...more, ...(remarks.length ? remarks.map(one => this.entry(one)) : [none]));
  }

  private entry(remark: Remark): HTMLElement {
    const about = !remark.about
      ? ''
      : remark.table === null
        ? element('span', {}, remark.about)
        : element('button', { type: 'button', class: 'dlk-rv-about', onclick: () => this.go(remark) }, remark.about);
    const deed = element('b', { class: `dlk-rv-said dlk-rv-${remark.kind}` }, remark.deed);
    const earlier = remark.kind !== 'comment' && !remark.is_current ? 'before later changes' : '';
    const remove = element(
      'button',
      { type: 'button', class: 'dlk-rv-remove', title: 'Remove this remark', onclick: () => this.remove(remark) },
      'Remove'
    );
    return element(
      'li',
      {},
      element(
        'div',
        { class: 'dlk-bar' },
        element('b', {}, remark.author),
        remark.kind === 'comment' ? '' : deed,
        about,
        element('span', { class: 'dlk-soft' }, [remark.time, earlier].filter(Boolean).join(' · ')),
        remove
      ),
      remark.text ? element('div', { class: 'dlk-rv-text' }, remark.text) : ''
    );
  }

  private async send(kind: RemarkKind): Promise<void> {
    // an approval has no place
    const place = kind === 'approval' ? {} : (this.place?.sent ?? {});
    if (await this.ask('remark', { ...place, said: kind, text: this.text.value })) this.text.value = '';
  }

  private async remove({ id }: Remark): Promise<void> {
    await this.ask('remove', { id });
  }

  private async ask(type: string, message: object): Promise<boolean> {
    this.problem.textContent = '';
    for (const button of this.buttons) button.disabled = true;
    try {
      const { content } = await this.line.ask<{ html: string }>(type, message);
      this.kept(content.html);
      return true;
    } catch (error) {
      this.problem.textContent = reason(error);
      return false;
    } finally {
      for (const button of this.buttons) button.disabled = false;
    }
  }
}

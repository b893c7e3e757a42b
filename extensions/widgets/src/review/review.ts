/** A branch for those who decide over its merge: tables of both sides, rows, conflicts, and remarks. */

import { Covering } from '../kit/browsing';
import { type Child, element } from '../kit/dom';
import { counted, number } from '../kit/figures';
import type { Model } from '../kit/model';
import { mounted } from '../kit/mounted';
import { rewrite } from '../kit/saved-output';
import { Remarks } from './review-remarks';
import type { Deeds, Remark, ReviewState, TableFacts } from './review-state';
import { TableChanges } from './table-changes';
import '../kit/change-kinds.css';
import './review.css';

const VERDICTS: Record<ReviewState['verdict'], string> = {
  '': '',
  approved: 'insert',
  'approved earlier': 'update',
  'changes asked for': 'delete'
};

class Review extends Covering<ReviewState> {
  readonly root: HTMLElement;

  private chosen = -1;
  private readonly verdict = element('span', { class: 'dlk-rv-verdict', role: 'status' });
  private readonly tables = element('tbody');
  private readonly changes: TableChanges;
  private readonly remarks: Remarks;

  constructor(model: Model<ReviewState>, host: HTMLElement, still: HTMLElement[]) {
    super(model);
    for (const node of still) node.style.display = 'none';
    this.changes = new TableChanges(this.line, place => this.remarks.choose(place));
    this.remarks = new Remarks(
      this.line,
      html => rewrite(model, () => html),
      remark => this.go(remark)
    );
    this.root = element(
      'div',
      { class: 'dlk-live dlk-rv', 'data-lm-suppress-shortcuts': 'true' },
      element(
        'div',
        { class: 'dlk-bar' },
        element('strong', {}, model.get('title')),
        element('span', {}, 'branch ', element('b', {}, model.get('branch'))),
        element('span', { class: 'dlk-soft' }, model.get('facts')),
        this.verdict
      ),
      this.commits(),
      this.checks(),
      this.options(),
      this.list(),
      this.changes.root,
      this.remarks.root
    );
    this.start(host, {
      'change:remarks': () => this.report(),
      'change:verdict': () => this.report(),
      'change:listed': () => this.report()
    });
    this.report();
    if (model.get('listed').length) this.choose(0);
    else this.changes.root.hidden = true;
  }

  private get listed(): TableFacts[] {
    return this.model.get('listed');
  }

  private commits(): Child {
    const commits = this.model.get('commits');
    if (!commits.length) return '';
    const row = ([id, time, author, message]: [number, string, string, string]) =>
      element(
        'tr',
        {},
        element('td', { class: 'dlk-right' }, String(id)),
        element('td', {}, time),
        element('td', {}, author),
        element('td', {}, message)
      );
    const heads = ['snapshot', `time, ${this.model.get('zone')}`, 'author', 'message'];
    return element(
      'details',
      {},
      element('summary', {}, counted(commits.length, 'snapshot')),
      element(
        'table',
        {},
        element('thead', {}, element('tr', {}, ...heads.map(head => element('th', { scope: 'col' }, head)))),
        element('tbody', {}, ...commits.map(row))
      )
    );
  }

  private checks(): Child {
    const checks = this.model.get('checks');
    if (!checks.length) return '';
    return element(
      'details',
      { open: '' },
      element('summary', {}, `${counted(checks.length, 'expectation')} failed`),
      element('ul', {}, ...checks.map(check => element('li', {}, check)))
    );
  }

  private options(): Child {
    const options = this.model.get('options');
    if (!options.length) return '';
    return element(
      'details',
      {},
      element('summary', {}, `${counted(options.length, 'option')} that a merge leaves as in the lake`),
      element('ul', {}, ...options.map(option => element('li', {}, option)))
    );
  }

  private list(): HTMLElement {
    const heads: [string, string][] = [
      ['table', ''],
      ['on the branch', ''],
      ['columns', ''],
      ['in the lake meanwhile', ''],
      ['conflicts', 'dlk-right'],
      ['remarks', 'dlk-right']
    ];
    const head = heads.map(([name, kind]) => element('th', { scope: 'col', class: kind || null }, name));
    const table = element('table', {}, element('thead', {}, element('tr', {}, ...head)), this.tables);
    const more = this.model.get('more');
    return element(
      'div',
      { class: 'dlk-rv-list', role: 'region', 'aria-label': 'Tables that either side changed', tabindex: '0' },
      table,
      more ? element('p', { class: 'dlk-soft' }, `${counted(more, 'more table')}`) : ''
    );
  }

  private report(): void {
    const { model } = this;
    const verdict = model.get('verdict');
    const kind = VERDICTS[verdict];
    this.verdict.replaceChildren(
      ...(verdict ? [element('i', { class: `dlk-k-${kind}`, 'aria-hidden': 'true' }), verdict] : [])
    );
    const listed = this.listed;
    const none = element('td', { colspan: '6', class: 'dlk-soft' }, 'No table differs.');
    this.tables.replaceChildren(
      ...(listed.length ? listed.map((facts, at) => this.row(facts, at)) : [element('tr', {}, none)])
    );
    this.remarks.show(model.get('remarks'), model.get('earlier'));
    if (this.chosen >= 0) this.changes.mark(model.get('remarks'), listed[this.chosen]);
  }

  private row(facts: TableFacts, at: number): HTMLElement {
    const isChosen = at === this.chosen;
    const name = element(
      'button',
      { type: 'button', 'aria-pressed': String(isChosen), onclick: () => this.choose(at) },
      facts.name
    );
    const columns = (facts.branch?.columns ?? []).join(' · ');
    const cell = (content: Child, kind = '') => element('td', { class: kind || null }, content);
    const count = (value: number) => cell(value ? number.format(value) : '–', 'dlk-right');
    return element(
      'tr',
      { class: isChosen ? 'dlk-rv-chosen' : null },
      cell(name),
      cell(deeds(facts.branch)),
      cell(columns || '–'),
      cell(deeds(facts.lake)),
      count(facts.conflicts),
      count(facts.remarks)
    );
  }

  private choose(at: number): void {
    this.chosen = at;
    const facts = this.listed[at];
    void this.changes.show(at, facts);
    this.remarks.choose({ words: facts.name, sent: { table: at, side: 'branch' } });
    this.report();
  }

  private go(remark: Remark): void {
    if (remark.table !== null) this.choose(remark.table);
  }
}

/** What a side did to a table: a mark, the kind, and counts of rows. */
function deeds(side: Deeds | null): Child {
  if (!side) return element('span', { class: 'dlk-soft' }, '–');
  const kinds = { created: 'insert', dropped: 'delete', altered: 'schema', changed: 'update' } as const;
  const counts: [string, number][] = [
    ['−', side.deleted],
    ['+', side.inserted],
    ['→', side.updated]
  ];
  const rows = counts.filter(([, count]) => count).map(([mark, count]) => `${mark}${number.format(count)}`);
  const cells = side.cells ? [`${counted(side.cells, 'cell')}`] : [];
  const was = side.was ? [`was ${side.was}`] : [];
  return element(
    'span',
    {},
    element('i', { class: `dlk-k-${kinds[side.kind]}`, 'aria-hidden': 'true' }),
    [[side.kind, ...was, ...rows].join(' '), ...cells].join(' · ')
  );
}

export default mounted(Review);

/** Work of agents on branches: who did what, when, and the review of each. It stays current while the page is seen. */

import '../kit/change-kinds.css';
import { Covering } from '../kit/browsing';
import { type Child, element } from '../kit/dom';
import { counted } from '../kit/figures';
import { reason } from '../kit/line';
import type { Model, MountedState } from '../kit/model';
import { mounted } from '../kit/mounted';
import { rewrite } from '../kit/saved-output';
import { writeIntoNextCell } from '../schema/next-cell';
import './agents.css';

interface Commit {
  snapshot: number;
  time: string;
  agent: string;
  /** Main kind of its changes, which gives the colour. */
  kind: string;
  changes: string;
  rows: string;
  message: string;
  statement: string;
}

interface AgentBranch {
  name: string;
  facts: string;
  verdict: string;
  problem: string;
  /** Number of earlier commits, which are not listed. */
  earlier: number;
  commits: Commit[];
}

/** The traits of `AgentsView` in Python. */
interface AgentsState extends MountedState {
  heading: string;
  zone: string;
  branches: AgentBranch[];
  /** Number of branches that are not listed. */
  more: number;
}

/** Milliseconds between two looks. */
const PAUSE = 2000;
const HEADS = ['snapshot', 'time', 'agent', 'change', 'rows', 'message', 'statement'];

class Agents extends Covering<AgentsState> {
  readonly root: HTMLElement;

  private isAsking = false;
  private reviewed = '';
  private readonly status = element('span', { class: 'dlk-soft', role: 'status' });
  private readonly problem = element('span', { role: 'alert' });
  private readonly list = element('div');
  private readonly review = element('div', { class: 'dlk-ag-review', role: 'region', 'aria-label': 'Review' });
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(model: Model<AgentsState>, host: HTMLElement, still: HTMLElement[]) {
    super(model);
    for (const node of still) node.style.display = 'none';
    this.root = element(
      'div',
      { class: 'dlk-live dlk-ag', 'data-lm-suppress-shortcuts': 'true' },
      element(
        'div',
        { class: 'dlk-bar' },
        element('strong', {}, model.get('heading')),
        element('b', {}, 'agents'),
        this.status,
        this.problem
      ),
      this.list,
      this.review
    );
    this.start(host, { 'change:branches': () => this.changed() });
    this.draw();
    this.timer = setInterval(() => void this.look(), PAUSE);
  }

  override close(): void {
    clearInterval(this.timer);
    super.close();
  }

  /** Ask whether something has changed; a hidden page, or one that scrolled away, asks nothing. */
  private async look(): Promise<void> {
    if (this.isAsking || document.hidden || !this.root.checkVisibility()) return;
    this.isAsking = true;
    try {
      await this.line.ask('look');
      this.problem.textContent = '';
    } catch (error) {
      this.problem.textContent = reason(error);
    } finally {
      this.isAsking = false;
    }
  }

  private changed(): void {
    this.draw();
    void this.keep();
  }

  /** Let the saved output show what is here. */
  private async keep(): Promise<void> {
    try {
      const { content } = await this.line.ask<{ html: string }>('still');
      rewrite(this.model, () => content.html);
    } catch {
      // the kernel is gone: the page says so
    }
  }

  private draw(): void {
    const branches = this.model.get('branches');
    const more = this.model.get('more');
    this.status.textContent = branches.length
      ? `${branches.length} ${branches.length === 1 ? 'branch' : 'branches'}`
      : 'no branch has commits of agents; ducklake-lab mcp LAKE lets one in';
    this.list.replaceChildren(
      ...branches.map(branch => this.branch(branch)),
      ...(more ? [element('p', { class: 'dlk-soft' }, `${more} more branches`)] : [])
    );
  }

  private branch(branch: AgentBranch): HTMLElement {
    const isOpen = this.reviewed === branch.name;
    const open = element(
      'button',
      { type: 'button', 'aria-expanded': String(isOpen), onclick: () => this.open(branch.name) },
      isOpen ? 'Close the review' : 'Review'
    );
    const head = element(
      'div',
      { class: 'dlk-bar' },
      element('b', {}, branch.name),
      element('span', { class: 'dlk-soft' }, branch.facts),
      open
    );
    const zone = this.model.get('zone');
    const heads = HEADS.map(name =>
      element('th', { scope: 'col', class: right(name) }, name === 'time' && zone ? `time, ${zone}` : name)
    );
    const table = element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...heads)),
      element('tbody', {}, ...branch.commits.map(row))
    );
    const earlier = branch.earlier
      ? element('p', { class: 'dlk-soft' }, counted(branch.earlier, 'earlier commit'))
      : '';
    const box = element(
      'div',
      { class: 'dlk-ag-commits', role: 'region', 'aria-label': `Commits on ${branch.name}`, tabindex: '0' },
      table
    );
    return element(
      'section',
      { 'aria-label': `Branch ${branch.name}` },
      head,
      branch.commits.length ? box : '',
      earlier
    );
  }

  /** Show the review below, and write the command for the one to work with into an empty next cell. */
  private async open(name: string): Promise<void> {
    this.problem.textContent = '';
    this.review.replaceChildren();
    if (this.reviewed === name) {
      this.reviewed = '';
      this.draw();
      return;
    }
    try {
      const { content } = await this.line.ask<{ html: string }>('review', { branch: name });
      // Made by the kernel's own static view, which escapes everything that comes from the catalog.
      this.review.innerHTML = content.html;
      this.reviewed = name;
      const command = `%ducklake review ${name}`;
      if (!writeIntoNextCell(this.root, command)) {
        const code = element('code', {}, command);
        this.review.prepend(element('p', {}, code, ' shows it with remarks and buttons.'));
      }
    } catch (error) {
      this.problem.textContent = reason(error);
    }
    this.draw();
  }
}

function right(name: string): string | null {
  return name === 'snapshot' || name === 'rows' ? 'dlk-right' : null;
}

function row(commit: Commit): HTMLElement {
  const mark = element('i', { class: `dlk-k-${commit.kind}`, 'aria-hidden': 'true' });
  const sql = commit.statement ? element('pre', { class: 'dlk-mono' }, commit.statement) : '–';
  const cells: [string, Child][] = [
    ['snapshot', String(commit.snapshot)],
    ['time', commit.time],
    ['agent', commit.agent],
    ['change', element('span', {}, mark, commit.changes)],
    ['rows', commit.rows || '–'],
    ['message', commit.message || '–'],
    ['statement', sql]
  ];
  return element('tr', {}, ...cells.map(([name, content]) => element('td', { class: right(name) }, content)));
}

export default mounted(Agents);

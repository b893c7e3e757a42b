/** The picture of lineage, as the kernel has drawn it: a column's edges by a click, or by the arrow keys and Enter. */

import { element } from '../kit/dom';

interface Edge {
  path: SVGPathElement;
  from: string;
  to: string;
  isValue: boolean;
}

export class LineagePanel {
  readonly root: HTMLElement;

  private readonly picture = element('div');
  private readonly status = element('p', { class: 'dlk-soft', role: 'status' });
  private readonly end: HTMLElement;
  private edges: Edge[] = [];
  private columns: SVGGElement[] = [];

  /** @param close - is called when the reader has seen enough. */
  constructor(close: () => void) {
    this.end = element('button', { type: 'button', onclick: close }, 'Close');
    this.root = element(
      'section',
      { class: 'dlk-sc-lineage', 'aria-label': 'Lineage' },
      this.picture,
      this.status,
      this.end
    );
    this.root.addEventListener('keydown', event => this.key(event));
    this.root.addEventListener('click', event => {
      const column = this.columnOf(event);
      if (column) this.choose(column);
    });
    this.show('');
  }

  /** @param html - is made by `widgets/lineage.py`, which escapes what comes from the catalog. */
  show(html: string): void {
    this.root.hidden = !html;
    this.picture.innerHTML = html;
    this.status.textContent = '';
    this.edges = [...this.picture.querySelectorAll<SVGPathElement>('path[data-from]')].map(path => ({
      path,
      from: path.dataset.from!,
      to: path.dataset.to!,
      isValue: path.dataset.kind === 'value'
    }));
    const touched = new Set(this.edges.flatMap(({ from, to }) => [from, to]));
    this.columns = [...this.picture.querySelectorAll<SVGGElement>('g[data-column]')].filter(column =>
      touched.has(column.dataset.column!)
    );
    this.columns.forEach((column, at) => {
      column.setAttribute('role', 'button');
      column.setAttribute('aria-pressed', 'false');
      column.setAttribute('aria-label', column.dataset.name!);
      column.setAttribute('tabindex', at ? '-1' : '0');
    });
    if (this.columns.length) this.status.textContent = 'Choose a column to see its edges alone.';
  }

  focus(): void {
    (this.columns[0] ?? this.end).focus();
  }

  private columnOf(event: Event): SVGGElement | undefined {
    return this.columns.find(column => event.target instanceof Node && column.contains(event.target));
  }

  private key(event: KeyboardEvent): void {
    const column = this.columnOf(event);
    if (!column) return;
    const at = this.columns.indexOf(column);
    const number = column.dataset.column;
    if (event.key === 'Enter' || event.key === ' ') this.choose(column);
    else if (event.key === 'Escape') this.clear();
    else if (event.key === 'ArrowDown') this.stand(this.columns[at + 1]);
    else if (event.key === 'ArrowUp') this.stand(this.columns[at - 1]);
    else if (event.key === 'ArrowRight') this.stand(this.numbered(this.edges.find(edge => edge.from === number)?.to));
    else if (event.key === 'ArrowLeft') this.stand(this.numbered(this.edges.find(edge => edge.to === number)?.from));
    else return;
    event.preventDefault();
  }

  private numbered(number?: string): SVGGElement | undefined {
    return this.columns.find(column => column.dataset.column === number);
  }

  private stand(column?: SVGGElement): void {
    if (!column) return;
    for (const other of this.columns) other.setAttribute('tabindex', other === column ? '0' : '-1');
    column.focus();
  }

  private clear(): void {
    this.mark(undefined, new Set());
    this.status.textContent = '';
  }

  private choose(column: SVGGElement): void {
    if (column.getAttribute('aria-pressed') === 'true') {
      this.clear();
      return;
    }
    this.stand(column);
    const number = column.dataset.column!;
    const before = this.reached(number, 'to', 'from');
    const after = this.reached(number, 'from', 'to');
    this.mark(column, new Set([...before, ...after]));
    const count = (edges: Set<Edge>) => `${edges.size} ${edges.size === 1 ? 'edge' : 'edges'}`;
    this.status.textContent = `${column.dataset.name}: ${count(before)} upstream, ${count(after)} downstream`;
  }

  /** Return the edges on the ways from a column; a way goes on where a value does. */
  private reached(number: string, start: 'from' | 'to', end: 'from' | 'to'): Set<Edge> {
    const found = new Set<Edge>();
    let near = new Set([number]);
    while (near.size) {
      const next = this.edges.filter(edge => !found.has(edge) && near.has(edge[start]));
      for (const edge of next) found.add(edge);
      near = new Set(next.filter(edge => edge.isValue).map(edge => edge[end]));
    }
    return found;
  }

  private mark(chosen: SVGGElement | undefined, edges: Set<Edge>): void {
    for (const column of this.columns) column.setAttribute('aria-pressed', String(column === chosen));
    for (const edge of this.edges) edge.path.classList.toggle('dlk-ln-on', edges.has(edge));
    this.picture.querySelector('svg')?.classList.toggle('dlk-ln-chosen', chosen !== undefined);
  }
}

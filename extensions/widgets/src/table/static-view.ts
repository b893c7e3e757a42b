/** Measures of the static view that the grid replaces. */
export class StaticView {
  readonly box: HTMLElement | undefined;
  /** Widths of the columns in pixels. */
  readonly widths: number[] = [];
  /** Height of the heads in pixels. */
  readonly head: number | undefined;
  /** Height of a row in pixels, if a grid can have it. */
  readonly row: number | undefined;

  constructor(private readonly nodes: HTMLElement[]) {
    for (const node of nodes) node.style.display = '';
    const boxes = nodes.map(node => node.querySelector<HTMLElement>('.dlk-scroll'));
    this.box = boxes.find(Boolean) ?? undefined;
    const table = this.box?.querySelector('table');
    if (!table?.tHead) return;
    const [body] = table.tBodies;
    this.widths = [...table.tHead.rows[0].cells].map(cell => cell.getBoundingClientRect().width + 0.02);
    this.head = table.tHead.getBoundingClientRect().height;
    const high = body.rows.length && body.getBoundingClientRect().height / body.rows.length;
    if (high > 17 && high < 34) this.row = high;
  }

  hide(): void {
    for (const node of this.nodes) node.style.display = 'none';
  }
}

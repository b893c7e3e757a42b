/** Rows that are fetched at once. */
const PAGE = 200;

/** The rows of a grid that are here, by page; others are fetched when they come into view. */
export class RowPages<Row> {
  private readonly pages = new Map<number, Row[] | Promise<void>>();
  private count = 0;
  // answers to questions about earlier rows are dropped
  private version = 0;

  constructor(
    private readonly fetch: (start: number, count: number) => Row[] | Promise<Row[]>,
    private readonly onRows: () => void,
    private readonly onError: (error: unknown) => void
  ) {}

  /** Forget all rows: there are `count` others. */
  reset(count: number): void {
    this.count = count;
    this.pages.clear();
    this.version++;
  }

  row(at: number): Row | undefined {
    const page = this.pages.get(Math.floor(at / PAGE));
    return Array.isArray(page) ? page[at % PAGE] : undefined;
  }

  async need(at: number): Promise<Row | undefined> {
    this.ask(at);
    await this.pages.get(Math.floor(at / PAGE));
    return this.row(at);
  }

  /** Fetch the page of a row, unless it is here or on its way. */
  ask(at: number): void {
    const page = Math.floor(at / PAGE);
    if (!this.pages.has(page)) this.pages.set(page, this.load(page));
  }

  private async load(page: number): Promise<void> {
    const { version } = this;
    try {
      const rows = await this.fetch(page * PAGE, Math.min(PAGE, this.count - page * PAGE));
      if (version !== this.version) return;
      this.pages.set(page, rows);
    } catch (error) {
      if (version !== this.version) return;
      this.pages.set(page, []);
      this.onError(error);
      return;
    }
    this.onRows();
  }
}

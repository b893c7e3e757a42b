// A grid of any number of rows: only those in view are in the page, and their data comes by page from the kernel.

const ROW = 26;
const PAGE = 200;
// Browsers cannot scroll further than some thirty million pixels.
const MOST = 1_000_000;

class Grid {
  // options: label, columns [{ name, width, right, head, title }], fetch(start, count) -> rows, cells(row, index) -> nodes or
  // texts, onSelect(index, row, event, column), onEnter(index), selected(index) -> bool, mark(row) -> class, height;
  // byCell: the cursor is on a cell, and goes sideways too; size: of a row; more() brings the rows after the last one
  constructor(options) {
    this.options = options;
    this.size = options.size || ROW;
    this.id = "dlk-g" + Math.random().toString(36).slice(2, 8);
    this.count = 0;
    this.cursor = -1;
    this.column = 0;
    this.pages = new Map();
    this.body = element("div", { role: "rowgroup", class: "dlk-g-rows" });
    this.heads = element("div", { role: "row", class: "dlk-g-row", "aria-rowindex": 1 });
    this.root = element("div", {
      role: "grid", tabindex: "0", "aria-label": options.label, class: "dlk-g", "aria-multiselectable": options.multiple ? "true" : null,
      onscroll: () => { this.draw(); this.reach(); }, onkeydown: (event) => this.key(event),
    }, element("div", { role: "rowgroup", class: "dlk-g-heads" }, this.heads), this.body);
    if (options.size) this.root.style.setProperty("--dlk-row", `${options.size}px`);
    if (options.height) this.root.style.maxHeight = options.height + "px";
    this.setColumns(options.columns);
  }

  setColumns(columns) {
    this.columns = columns;
    this.template = columns.map((column) => column.width || "minmax(6em, 1fr)").join(" ");
    this.root.style.setProperty("--dlk-columns", this.template);
    this.root.setAttribute("aria-colcount", columns.length);
    this.heads.replaceChildren(...columns.map((column) => {
      const head = element("span", { role: "columnheader", class: column.right ? "dlk-right" : null, "aria-sort": column.sort || null, title: column.title });
      head.append(...[].concat(column.head || column.name));
      return head;
    }));
  }

  // Forgets all rows and shows the first ones of a new set; hasMore: there are others, which are not counted yet.
  reset(count, keep, hasMore) {
    this.count = Math.min(count, MOST);
    this.hasMore = Boolean(hasMore);
    this.pages.clear();
    this.version = (this.version || 0) + 1;
    if (!keep) { this.cursor = -1; this.root.scrollTop = 0; }
    this.root.setAttribute("aria-rowcount", this.hasMore ? -1 : count + 1);
    this.body.style.height = this.count * this.size + "px";
    this.draw();
  }

  // Scrolling to the end of the rows fetches the next ones.
  reach() {
    const end = this.root.scrollTop + this.root.clientHeight - this.heads.offsetHeight;
    if (this.hasMore && this.root.scrollTop > 0 && end > this.count * this.size - 2) this.options.more();
  }

  row(index) {
    const page = this.pages.get(Math.floor(index / PAGE));
    return Array.isArray(page) ? page[index % PAGE] : undefined;
  }

  // The row, fetched if need be.
  async need(index) {
    const number = Math.floor(index / PAGE);
    if (!this.pages.has(number)) this.load(number);
    await this.pages.get(number);
    return this.row(index);
  }

  load(number) {
    const version = this.version;
    const loading = Promise.resolve(this.options.fetch(number * PAGE, Math.min(PAGE, this.count - number * PAGE))).then((rows) => {
      if (version !== this.version) return;
      this.pages.set(number, rows);
      this.draw();
    }, (error) => {
      if (version === this.version) { this.pages.set(number, []); if (this.options.onError) this.options.onError(error); }
    });
    this.pages.set(number, loading);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / this.size) - 6);
    const last = Math.min(this.count, first + Math.ceil((this.root.clientHeight || 320) / this.size) + 14);
    const nodes = [];
    for (let at = first; at < last; at++) {
      const number = Math.floor(at / PAGE);
      if (!this.pages.has(number)) this.load(number);
      const row = this.row(at);
      const chosen = this.options.selected ? this.options.selected(at, row) : at === this.cursor;
      const node = element("div", {
        role: "row", class: ["dlk-g-row", ...(row && this.options.mark ? [this.options.mark(row)] : []), ...(at === this.count - 1 ? ["dlk-g-last"] : [])].join(" "), id: `${this.id}-${at}`, "aria-rowindex": at + 2, style: `top:${at * this.size}px`,
        "aria-selected": String(Boolean(chosen)), onclick: (event) => this.choose(at, event),
      });
      const cells = row === undefined ? this.columns.map(() => "…") : this.options.cells(row, at);
      node.append(...cells.map((content, index) => {
        const cell = element("span", { role: "gridcell", class: this.columns[index]?.right ? "dlk-right" : null });
        if (this.options.byCell) {
          cell.id = `${node.id}-${index}`;
          cell.setAttribute("aria-colindex", index + 1);
          cell.addEventListener("click", () => { this.column = index; });
          if (at === this.cursor && index === this.column) cell.classList.add("dlk-g-at");
        }
        cell.append(...[].concat(content ?? ""));
        // a text that has no room is shown under the pointer
        if (cell.textContent.length > 12) cell.title = cell.textContent;
        return cell;
      }));
      nodes.push(node);
    }
    this.body.replaceChildren(...nodes);
    const place = this.options.byCell ? `${this.cursor}-${this.column}` : this.cursor;
    if (this.cursor >= first && this.cursor < last) this.root.setAttribute("aria-activedescendant", `${this.id}-${place}`);
    else this.root.removeAttribute("aria-activedescendant");
  }

  choose(at, event) {
    this.cursor = at;
    if (this.options.onSelect) this.options.onSelect(at, this.row(at), event, this.column);
    this.draw();
  }

  // Puts the cursor on a row and brings it into view; selects nothing.
  reveal(at) {
    this.cursor = at;
    const room = this.root.clientHeight - this.heads.offsetHeight;
    if (at * this.size < this.root.scrollTop) this.root.scrollTop = at * this.size;
    else if (room > 0 && (at + 1) * this.size > this.root.scrollTop + room) this.root.scrollTop = (at + 1) * this.size - room;
    this.draw();
  }

  // Brings the column of the cursor into view.
  revealColumn() {
    const head = this.heads.children[this.column];
    if (!head) return;
    const { scrollLeft, clientWidth } = this.root;
    if (head.offsetLeft < scrollLeft) this.root.scrollLeft = head.offsetLeft - 8;
    else if (head.offsetLeft + head.offsetWidth > scrollLeft + clientWidth) this.root.scrollLeft = head.offsetLeft + head.offsetWidth - clientWidth + 8;
  }

  key(event) {
    if (!this.count || event.target !== this.root) return;
    const sides = this.options.byCell ? { ArrowLeft: -1, ArrowRight: 1 } : {};
    if (event.key in sides) {
      const by = sides[event.key] * (event.ctrlKey || event.metaKey ? this.columns.length : 1);
      this.column = Math.min(this.columns.length - 1, Math.max(0, this.column + by));
      this.revealColumn();
      this.choose(Math.max(0, this.cursor), event);
      event.preventDefault();
      return;
    }
    const page = Math.max(1, Math.floor((this.root.clientHeight - this.size) / this.size) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: Infinity };
    if (event.key in steps) {
      const wanted = Math.max(0, this.cursor + steps[event.key]);
      const go = () => {
        const next = Math.min(this.count - 1, wanted);
        this.reveal(next);
        this.choose(next, event);
      };
      if (this.hasMore && wanted >= this.count) this.options.more().then(go);
      else go();
    } else if (event.key === "Enter" && this.options.onEnter) {
      this.options.onEnter(this.cursor);
    } else return;
    event.preventDefault();
  }
}

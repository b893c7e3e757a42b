// The entries of a lake as an ARIA tree: folding, searching, and writing a query into the notebook.
//
// Only the rows in view are in the page: a lake may have many thousands of tables.

const HEIGHT = 24;

class Schema extends Browsing {
  constructor(model, host) {
    super(model);
    this.id = "dlk-t" + Math.random().toString(36).slice(2, 8);
    this.open = new Set();
    this.columns = new Map();
    this.cursor = 0;
    this.start(host, {
      "change:nodes": () => this.lay(),
      "change:matches": () => { this.scroll.scrollTop = 0; this.lay(); },
      "change:query": () => { if (document.activeElement !== this.search) this.search.value = model.get("query"); },
      "change:selected": () => this.draw(),
    });
    model.get("nodes").forEach((_, at) => this.open.add("s" + at));
    this.lay();
  }

  build() {
    this.search = element("input", {
      type: "search", placeholder: "Search names, comments", "aria-label": "Search names and comments", value: this.model.get("query"),
      oninput: () => { clearTimeout(this.typing); this.typing = setTimeout(() => this.set({ query: this.search.value }), 120); },
    });
    this.status = element("span", { class: "dlk-soft", role: "status" });
    this.tree = element("div", { role: "tree", tabindex: "0", "aria-label": `Entries of ${this.model.get("title")}`, class: "dlk-sc-tree", onkeydown: (event) => this.key(event) });
    this.scroll = element("div", { class: "dlk-sc-scroll", onscroll: () => this.draw() }, this.tree);
    this.told = element("div", { class: "dlk-soft", role: "status" });
    this.root = element("div", { class: "dlk-live dlk-sc", "data-lm-suppress-shortcuts": "true" },
      element("div", { class: "dlk-bar" }, element("strong", {}, this.model.get("title")), element("span", { class: "dlk-soft" }, this.model.get("note")), this.status, this.search),
      this.scroll, this.told);
  }

  // The rows that are unfolded, top to bottom.
  lay() {
    const matches = this.model.get("matches");
    const passing = matches === null ? null : new Set(matches);
    this.rows = [];
    let found = 0;
    const schemas = this.model.get("nodes");
    // A schema comes directly before those inside of it.
    const around = [];
    const parents = schemas.map(([, , , depth], at) => { around.length = depth; around.push(at); return depth ? around[depth - 1] : -1; });
    const shownOf = schemas.map(([, entries]) => (passing ? entries.filter(([index]) => passing.has(index)) : entries));
    const within = shownOf.map((shown) => shown.length);
    for (let at = schemas.length - 1; at >= 0; at--) if (parents[at] >= 0) within[parents[at]] += within[at];
    const siblings = new Map();
    const places = parents.map((parent) => siblings.set(parent, (siblings.get(parent) ?? 0) + 1).get(parent));
    const unfolds = [];
    schemas.forEach(([name, , path, depth], at) => {
      const shown = shownOf[at];
      found += shown.length;
      const key = "s" + at;
      const parent = parents[at];
      const isShown = (parent < 0 || unfolds[parent]) && (!passing || within[at]);
      unfolds[at] = Boolean(isShown && (this.open.has(key) || passing));
      if (!isShown) return;
      const size = shown.length + (passing ? 0 : siblings.get(at) ?? 0);
      this.rows.push({ key, level: 1 + depth, name, facts: `${size} ${size === 1 ? "entry" : "entries"}`, open: unfolds[at], folds: true, parent: parent < 0 ? undefined : "s" + parent, of: siblings.get(parent), place: places[at] });
      if (!unfolds[at]) return;
      shown.forEach(([index, entry, kind, facts, comment], place) => {
        const below = "e" + index;
        const unfolded = this.open.has(below);
        this.rows.push({ key: below, index, level: 2 + depth, name: entry, kind, facts, comment, open: unfolded, folds: true, parent: key, schema: path, of: shown.length, place: place + 1 });
        if (!unfolded) return;
        const columns = this.columns.get(index);
        if (!columns) { this.rows.push({ key: below + "w", level: 3 + depth, name: "…", parent: below, of: 1, place: 1 }); return; }
        columns.forEach(([deeper, column, type, more, told], number_) => this.rows.push({
          key: `${below}c${number_}`, level: 3 + depth + deeper, name: column, type, facts: more, comment: told, parent: below, of: columns.length, place: number_ + 1,
        }));
      });
    });
    this.status.textContent = passing ? `${number.format(found)} found` : "";
    this.cursor = Math.max(0, Math.min(this.cursor, this.rows.length - 1));
    this.tree.style.height = this.rows.length * HEIGHT + "px";
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / HEIGHT) - 5);
    const last = Math.min(this.rows.length, first + Math.ceil((this.scroll.clientHeight || 360) / HEIGHT) + 12);
    const [schema, name] = this.model.get("selected");
    const nodes = [];
    for (let at = first; at < last; at++) {
      const row = this.rows[at];
      const isEntry = row.index !== undefined;
      const chosen = isEntry && row.schema === schema && row.name === name;
      const node = element("div", {
        role: "treeitem", id: `${this.id}-${row.key}`, class: "dlk-sc-row" + (at === this.cursor ? " dlk-sc-cursor" : ""), "aria-level": row.level,
        "aria-setsize": row.of, "aria-posinset": row.place, "aria-expanded": row.folds ? String(Boolean(row.open)) : null,
        "aria-selected": String(chosen), style: `top:${at * HEIGHT}px;padding-left:${(row.level - 1) * 18 + 4}px`,
        onclick: () => { this.cursor = at; if (row.folds) this.fold(at); else this.draw(); },
      }, element("span", { class: "dlk-sc-fold", "aria-hidden": "true" }, row.folds ? (row.open ? "▾" : "▸") : ""),
        element("span", { class: isEntry ? "" : row.folds ? "dlk-sc-schema" : "dlk-sc-column" }, row.name));
      if (row.kind && row.kind !== "table") node.append(element("span", { class: "dlk-sc-kind" }, row.kind));
      if (row.type) node.append(element("span", { class: "dlk-mono dlk-soft" }, row.type));
      if (row.facts) node.append(element("span", { class: "dlk-soft" }, row.facts));
      if (row.comment) node.append(element("span", { class: "dlk-soft dlk-sc-comment", title: row.comment }, row.comment));
      if (isEntry) {
        // The keyboard's way to this is Enter on the row.
        node.append(element("span", { class: "dlk-sc-query", title: "Write a query of it (Enter)", onclick: (event) => { event.stopPropagation(); this.cursor = at; this.insert(row); } }, "query"));
      }
      nodes.push(node);
    }
    this.tree.replaceChildren(...nodes);
    const active = this.rows[this.cursor];
    if (active && this.cursor >= first && this.cursor < last) this.tree.setAttribute("aria-activedescendant", `${this.id}-${active.key}`);
    else this.tree.removeAttribute("aria-activedescendant");
  }

  async fold(at, open) {
    const row = this.rows[at];
    const unfold = open ?? !this.open.has(row.key);
    if (unfold) this.open.add(row.key);
    else this.open.delete(row.key);
    if (row.index !== undefined) {
      this.line.ask("choose", { index: row.index });
      if (unfold && !this.columns.has(row.index)) {
        this.lay();
        const { content } = await this.line.ask("columns", { index: row.index });
        this.columns.set(row.index, content.rows);
      }
    }
    this.lay();
  }

  reveal(at) {
    this.cursor = Math.max(0, Math.min(at, this.rows.length - 1));
    const top = this.cursor * HEIGHT;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + HEIGHT > this.scroll.scrollTop + this.scroll.clientHeight) this.scroll.scrollTop = top + HEIGHT - this.scroll.clientHeight;
    this.draw();
  }

  key(event) {
    const row = this.rows[this.cursor];
    if (!row) return;
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length };
    if (event.key in steps) this.reveal(this.cursor + steps[event.key]);
    else if (event.key === "ArrowRight" && row.folds) row.open ? this.reveal(this.cursor + 1) : this.fold(this.cursor, true);
    else if (event.key === "ArrowLeft") {
      if (row.folds && row.open && !this.model.get("matches")) this.fold(this.cursor, false);
      else if (row.parent) this.reveal(this.rows.findIndex((one) => one.key === row.parent));
    } else if (event.key === "Enter" && row.index !== undefined) this.insert(row);
    else if ((event.key === " " || event.key === "Enter") && row.folds) this.fold(this.cursor);
    else return;
    event.preventDefault();
  }

  // Writes a query into the next empty cell; where there is none, into the clipboard.
  async insert(row) {
    const { content } = await this.line.ask("choose", { index: row.index, insert: true });
    const code = content.sql;
    const taken = !this.root.dispatchEvent(new CustomEvent("ducklake-insert", { bubbles: true, cancelable: true, detail: { code } }));
    if (taken || this.write(code)) { this.told.textContent = `A query of ${row.name} is in the next cell.`; return; }
    try {
      await navigator.clipboard.writeText(code);
      this.told.textContent = `A query of ${row.name} is in the clipboard.`;
    } catch {
      this.told.replaceChildren(element("code", {}, code));
    }
  }

  write(code) {
    const next = this.root.closest(".jp-Cell")?.nextElementSibling;
    const editor = next?.classList.contains("jp-CodeCell") ? next.querySelector(".cm-content") : null;
    const view = editor?.cmTile?.view ?? editor?.cmView?.view;
    if (!view || view.state.doc.length) return false;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: code } });
    view.focus();
    return true;
  }
}

export default mounted(Schema);

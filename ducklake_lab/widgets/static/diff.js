// The rows of a diff: filtered by kind and by the column whose cells changed, sorted by a click on a name.

// Pixels around a text; the key of a column, which may have the name of its row's id.
const SLACK = 2, COLUMN = "column ";
const MARKS = { deleted: "−", inserted: "+", updated: "→" };

class Changes extends Browsing {
  constructor(model, host, still) {
    super(model);
    // The rest of the static view stays; only its rows make way.
    for (const child of still) child.style.display = "";
    const place = still.map((child) => child.querySelector(".dlk-changes")).find(Boolean);
    this.hidden = place ? [...place.children] : [];
    for (const child of this.hidden) child.style.display = "none";
    this.start(place || host, {
      "change:look": () => this.reload(),
      "change:problem": () => this.tell(),
      "change:kind": () => this.bar(),
      "change:changed": () => this.bar(),
      "change:sort": () => this.heads(),
    });
    this.bar();
    this.reload();
  }

  build() {
    this.widths = new Widths();
    this.status = element("span", { class: "dlk-soft", role: "status" });
    this.problem = element("span", { role: "alert" });
    this.kinds = element("span", { role: "group", "aria-label": "Kinds of change", class: "dlk-df-kinds" });
    this.cells = element("select", { "aria-label": "Changed column", onchange: () => this.choose(this.cells.value ? "updated" : "", this.cells.value) });
    this.all = element("button", { type: "button", onclick: () => this.set({ every: !this.model.get("every") }) });
    this.copy = element("button", { type: "button", class: "dlk-df-copy", onclick: () => this.copySql() }, "Copy as SQL");
    this.text = element("pre", { class: "dlk-df-sql", tabindex: "0", "aria-label": "These rows as SQL" });
    this.text.style.display = "none";
    this.grid = new Grid({
      label: "Changed rows", height: 420, columns: [],
      fetch: (start, count) => this.rows(start, count).then((rows) => { this.widen(rows); return rows; }),
      cells: (row) => this.draw(row),
      mark: (row) => "dlk-df-" + row.kind,
      onError: (error) => { this.problem.textContent = error.message; },
    });
    this.root = element("div", { class: "dlk-live dlk-df", "data-lm-suppress-shortcuts": "true" },
      element("div", { class: "dlk-df-bar" }, element("strong", {}, "Rows"), this.kinds, this.cells, this.status, this.all, this.problem, this.model.get("can_copy") ? this.copy : ""), this.grid.root, this.text, this.widths.rule);
  }

  choose(kind, changed) {
    this.set({ kind, changed });
  }

  bar() {
    const kind = this.model.get("kind");
    const changed = this.model.get("changed");
    const kinds = this.model.get("kinds");
    const choice = (name, text) => element("button", {
      type: "button", "aria-pressed": String(kind === name || (name === "updated" && Boolean(changed))), onclick: () => this.choose(name, ""),
    }, text);
    this.kinds.replaceChildren(...(kinds.length > 1
      ? [choice("", "all"), ...kinds.map(([name, count]) => choice(name, `${MARKS[name]} ${number.format(count)} ${name}`))] : []));
    const cells = this.model.get("cells");
    this.cells.replaceChildren(element("option", { value: "" }, "any column changed"),
      ...cells.map(([name, count]) => element("option", { value: name, selected: name === changed }, `${name} changed in ${number.format(count)}`)));
    this.cells.value = changed;
    this.cells.style.display = cells.length ? "" : "none";
  }

  // Some rows: { kind, id, cells }; a cell has its earlier and its later value.
  async rows(start, count) {
    const shown = this.model.get("columns").length;
    const { buffers } = await this.line.ask("page", { start, count });
    const { length, columns } = readArrow(buffers[0]);
    return Array.from({ length }, (_, row) => ({
      kind: columns.kind[row], id: columns.id[row],
      cells: Array.from({ length: shown }, (_, at) => ({
        before: columns["b" + at]?.[row], after: columns["a" + at]?.[row],
        differs: Boolean(columns["d" + at]?.[row]), lost: Boolean(columns["l" + at]?.[row]),
      })),
    }));
  }

  draw({ kind, id, cells }) {
    const changed = this.model.get("columns").filter((_, at) => cells[at].differs).map(([name]) => name);
    const mark = element("b", { title: changed.length ? `${kind}: ${changed.join(", ")}` : kind, "aria-label": kind }, MARKS[kind]);
    return [mark, element("span", { class: "dlk-soft" }, id), ...cells.map((cell) => this.cell(cell))];
  }

  cell({ before, after, differs, lost }) {
    const text = (value) => value === null || value === undefined ? element("i", { class: "dlk-soft" }, "NULL") : value;
    if (differs) return element("span", { class: "dlk-df-edit" }, element("del", {}, text(before)), " → ", element("ins", {}, text(after)));
    return text(lost ? before : after);
  }

  heads() {
    const sort = this.model.get("sort");
    const columns = this.model.get("columns").map(([name, type, right]) => {
      const place = sort.findIndex(([key]) => key === name);
      const down = place >= 0 && sort[place][1];
      const mark = place < 0 ? "" : (down ? " ▼" : " ▲") + (sort.length > 1 ? place + 1 : "");
      return { name, type, right, text: name + mark, sort: place < 0 ? "none" : down ? "descending" : "ascending" };
    });
    this.widths.fit([["row id", element("b", {}, "row id"), false, SLACK],
      ...columns.map(({ name, text }) => [COLUMN + name, element("b", {}, text), true, SLACK])]);
    this.grid.setColumns([{ name: "" }, { name: "row id", right: true },
      ...columns.map(({ name, type, right, text, sort }) => ({
        name, right, sort,
        head: element("button", { type: "button", class: "dlk-df-sort", title: `${type || "dropped"}; sort, with Shift by this as well`, onclick: (event) => this.order(name, event.shiftKey) }, text),
      }))]);
    this.lay();
    this.grid.draw();
  }

  lay() {
    const names = this.model.get("columns").map(([name]) => this.widths.of(COLUMN + name));
    this.grid.root.style.setProperty("--dlk-columns", ["1.2em", this.widths.of("row id"), ...names].join(" "));
  }

  // Makes columns wider where values, earlier ones included, have no room.
  widen(rows) {
    const letters = ({ before, after, differs, lost }) => differs ? `${before ?? "NULL"} → ${after ?? "NULL"}`.length : ((lost ? before : after) ?? "NULL").length;
    const longest = (at) => rows.reduce((most, row) => {
      const length = letters(row.cells[at]);
      return length > most.length ? { length, row } : most;
    }, { length: -1 }).row;
    const columns = this.model.get("columns");
    const contents = columns.map(([name, , right], at) => [COLUMN + name, longest(at), !right, SLACK, at]).filter(([, row]) => row);
    const isWider = this.widths.fit([["row id", rows.reduce((most, { id }) => id.length > most.length ? id : most, ""), false, SLACK],
      ...contents.map(([key, row, canCut, around, at]) => [key, this.cell(row.cells[at]), canCut, around])]);
    if (isWider) this.lay();
  }

  order(name, more) {
    const sort = this.model.get("sort");
    const known = sort.find(([key]) => key === name);
    const rest = more ? sort.filter(([key]) => key !== name) : [];
    const next = !known ? [[name, false]] : known[1] ? [] : [[name, true]];
    this.set({ sort: [...rest, ...next] });
  }

  reload() {
    this.text.textContent = "";
    this.text.style.display = "none";
    const passing = this.model.get("passing");
    const note = this.model.get("note");
    this.status.textContent = `${counted(passing, "row")}${note ? " · " + note : ""}`;
    const every = this.model.get("every"), wide = this.model.get("wide");
    this.all.textContent = every ? "Show changed columns" : `Show all ${number.format(wide)} columns`;
    this.all.style.display = every || this.model.get("columns").length < wide ? "" : "none";
    this.heads();
    this.grid.reset(passing);
    this.tell();
  }

  // The clipboard may be out of reach: the statement is shown and selected then.
  async copySql() {
    try {
      const { content } = await this.line.ask("sql");
      this.text.textContent = content.sql;
      await navigator.clipboard.writeText(content.sql);
      this.copy.textContent = "Copied";
    } catch (error) {
      if (!this.text.textContent) { this.problem.textContent = error.message; return; }
      this.text.style.display = "";
      getSelection().selectAllChildren(this.text);
      this.copy.textContent = "Selected";
    }
    setTimeout(() => { this.copy.textContent = "Copy as SQL"; }, 1500);
  }

  tell() {
    this.problem.textContent = this.model.get("problem");
  }

  close() {
    super.close();
    for (const child of this.hidden) child.style.display = "";
  }
}

export default mounted(Changes);

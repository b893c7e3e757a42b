// The rows of a table: searched, sorted by a click on a name, filtered by what is written under it, profiled above it.

// Columns in the page at once.
const WIDE = 100;

class Table extends Browsing {
  constructor(model, host) {
    super(model);
    this.profiles = new Map();
    this.typing = new Map();
    this.start(host, {
      "change:look": () => this.reload(),
      "change:problem": () => this.tell(),
      "change:sort": () => this.heads(),
      "change:filters": () => this.fill(),
      "change:search": () => this.fill(),
    });
    this.watching = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting) this.profile(one.target);
    }, { root: this.grid.root });
    this.observers.push(this.watching);
    this.heads();
    this.reload();
  }

  build() {
    // [name, the name as it reads, type, whether it stands to the right]
    this.columns = this.model.get("columns");
    this.first = 0;
    this.status = element("span", { class: "dlk-soft", role: "status" });
    this.problem = element("span", { role: "alert" });
    this.sql = element("code", { class: "dlk-tb-sql", tabindex: "0", "aria-label": "What is shown, as SQL" });
    this.copy = copying("Copy SQL", () => this.model.get("sql"), this.sql);
    this.detail = new Detail(this, (column) => this.goTo(column));
    this.search = element("input", {
      type: "search", placeholder: "Search all columns", "aria-label": "Search all columns", value: this.model.get("search"),
      oninput: () => this.later("search", () => this.set({ search: this.search.value })),
    });
    this.grid = new Grid({
      byCell: true, label: `Rows of ${this.model.get("title")}`, height: 420, columns: [],
      fetch: (start, count) => this.rows(start, count, this.first, this.shown().length),
      cells: (row) => row.map((value) => value === null ? element("i", { class: "dlk-soft" }, "NULL") : value),
      onSelect: (at) => { this.set({ place: at }); this.show(); },
      onEnter: async () => {
        if (this.grid.cursor < 0) this.grid.choose(0);
        await this.show();
        this.detail.focus();
      },
      onError: (error) => { this.problem.textContent = error.message; },
    });
    this.grid.root.classList.add("dlk-tb-grid");
    this.chart = new Chart(this);
    const which = this.places();
    const rows = element("div", {}, this.grid.root, element("div", { class: "dlk-bar dlk-tb-foot" }, this.sql, this.copy, this.downloads()), this.detail.root);
    const tabs = tabbed(this.grid.id, [["Rows", rows], ["Chart", this.chart.root]], (name) => {
      this.isChart = name === "Chart";
      this.tell();
      if (which) which.hidden = this.isChart;
      if (this.isChart) this.chart.refresh();
      else this.grid.draw();
    });
    this.root = element("div", { class: "dlk-live dlk-tb", "data-lm-suppress-shortcuts": "true" },
      element("div", { class: "dlk-bar" }, element("strong", {}, this.model.get("title")), tabs, this.status, this.problem, which, this.search),
      rows, this.chart.root);
    this.resize(this.chart.root, () => { if (this.isChart) this.chart.draw(); });
    this.grid.root.addEventListener("keydown", (event) => {
      if (event.target !== this.grid.root) return;
      if (event.key === "Escape") this.detail.close();
      // what is selected by the mouse is copied by the browser
      if (event.key === "c" && (event.ctrlKey || event.metaKey) && getSelection().isCollapsed && this.detail.isOpen) this.detail.copied.click();
    });
  }

  // Buttons that hand over what is seen as a file.
  downloads() {
    const buttons = this.model.get("kinds").map(([kind, name]) => element("button", {
      type: "button", title: `Download what is seen as ${name}`, onclick: () => this.download(kind, buttons),
    }, name));
    return element("span", { role: "group", "aria-label": "Download", class: "dlk-tb-files" }, element("span", { class: "dlk-soft" }, "Download"), ...buttons);
  }

  async download(kind, buttons) {
    this.problem.textContent = "";
    for (const button of buttons) button.disabled = true;
    try {
      const { content, buffers } = await this.line.ask("download", { kind });
      const address = URL.createObjectURL(new Blob(buffers, { type: content.media }));
      element("a", { href: address, download: content.name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      this.problem.textContent = error.message;
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  }

  // The columns that are in the page.
  shown() {
    return this.columns.slice(this.first, this.first + WIDE);
  }

  // What leads to the other columns, where there are more than are in the page at once.
  places() {
    if (this.columns.length <= WIDE) return "";
    this.which = element("span", { class: "dlk-soft" });
    const step = (by, text, label) => element("button", { type: "button", "aria-label": label, onclick: () => this.turn(this.first + by) }, text);
    const go = element("input", {
      type: "search", placeholder: "Go to column", "aria-label": "Go to column",
      onchange: () => {
        const names = this.columns.map(([name]) => name.toLowerCase());
        const word = go.value.toLowerCase();
        const at = names.includes(word) ? names.indexOf(word) : names.findIndex((name) => name.includes(word));
        if (word && at >= 0) this.turn(at);
      },
    });
    return element("span", { class: "dlk-tb-places" }, step(-WIDE, "‹", "Earlier columns"), this.which, step(WIDE, "›", "Later columns"), go);
  }

  turn(first) {
    this.first = Math.max(0, Math.min(first, this.columns.length - WIDE));
    this.heads();
    this.grid.root.scrollLeft = 0;
    this.grid.reset(this.model.get("passing"), true);
  }

  // Texts of some columns of some rows, row by row.
  async rows(start, count, first, wide) {
    const { buffers } = await this.line.ask("page", { start, count, first, wide, look: this.model.get("look") });
    const { length, columns } = readArrow(buffers[0]);
    const lists = Array.from({ length: wide }, (_, at) => columns["c" + (first + at)]);
    return Array.from({ length }, (_, row) => lists.map((list) => list[row]));
  }

  heads() {
    if (this.which) this.which.textContent = `columns ${number.format(this.first + 1)} to ${number.format(this.first + this.shown().length)} of ${number.format(this.columns.length)}`;
    const sort = this.model.get("sort");
    this.inputs = new Map();
    this.watching.disconnect();
    this.grid.setColumns(this.shown().map(([name, label, type, right]) => {
      const place = sort.findIndex(([key]) => key === name);
      const down = place >= 0 && sort[place][1];
      const mark = place < 0 ? "" : (down ? " ▼" : " ▲") + (sort.length > 1 ? place + 1 : "");
      const input = element("input", {
        type: "text", class: "dlk-tb-filter", "aria-label": `Filter ${label}`, placeholder: right ? "> 5, null" : "part, = x",
        value: this.model.get("filters")[name] || "", oninput: () => this.write(name, input.value),
      });
      this.inputs.set(name, input);
      const profile = element("span", { class: "dlk-tb-profile" });
      profile.column = name;
      this.watching.observe(profile);
      const known = this.profiles.get(name);
      if (known) profile.replaceChildren(known);
      return {
        name, right, title: `${label} ${type}`, width: `minmax(${Math.min(18, Math.max(8, label.length * 0.62 + 3))}em, 1fr)`,
        sort: place < 0 ? "none" : down ? "descending" : "ascending",
        head: [element("button", { type: "button", class: "dlk-tb-sort", title: "Sort; with Shift, sort by this as well", onclick: (event) => this.order(name, event.shiftKey) },
          label + mark), element("span", { class: "dlk-soft dlk-tb-type" }, type), profile, input],
      };
    }));
    this.grid.draw();
  }

  order(name, more) {
    const sort = this.model.get("sort");
    const known = sort.find(([key]) => key === name);
    const rest = more ? sort.filter(([key]) => key !== name) : [];
    const next = !known ? [[name, false]] : known[1] ? [] : [[name, true]];
    this.set({ sort: [...rest, ...next] });
  }

  write(name, text) {
    this.later(`filter ${name}`, () => {
      const filters = { ...this.model.get("filters"), [name]: text };
      if (!text) delete filters[name];
      this.set({ filters });
    });
  }

  // Does something once nobody types there any more.
  later(where, act) {
    clearTimeout(this.typing.get(where));
    this.typing.set(where, setTimeout(act, 200));
  }

  fill() {
    if (document.activeElement !== this.search) this.search.value = this.model.get("search");
    for (const [name, input] of this.inputs) {
      if (document.activeElement !== input) input.value = this.model.get("filters")[name] || "";
    }
  }

  reload() {
    const passing = this.model.get("passing");
    const note = this.model.get("note");
    this.status.textContent = `${number.format(passing)} ${passing === 1 ? "row" : "rows"}${note ? " · " + note : ""}`;
    this.sql.textContent = this.model.get("sql");
    this.profiles.clear();
    for (const node of this.grid.root.querySelectorAll(".dlk-tb-profile")) { this.watching.unobserve(node); this.watching.observe(node); }
    this.detail.close();
    this.chart.isStale = true;
    if (this.isChart) this.chart.refresh();
    this.grid.reset(passing);
    this.tell();
  }

  tell() {
    this.problem.textContent = this.model.get("problem");
  }

  async profile(node) {
    const name = node.column;
    const look = this.model.get("look");
    if (this.profiles.has(name)) return;
    this.profiles.set(name, "");
    const { content } = await this.line.ask("profile", { column: name });
    if (look !== this.model.get("look")) return;
    const drawn = this.drawProfile(content.profile);
    this.profiles.set(name, drawn);
    node.replaceChildren(drawn);
  }

  drawProfile({ rows, nulls, distinct, low, high, bins, top }) {
    const width = 96, high_ = 26;
    const svg = shape("svg", { width, height: high_, role: "img" });
    const counts = bins.length ? bins : top.map(([, count]) => count);
    const largest = Math.max(1, ...counts);
    counts.forEach((count, at) => {
      const step = width / counts.length;
      const tall = count ? Math.max(1.5, ((high_ - 2) * count) / largest) : 0;
      svg.append(shape("rect", { x: at * step + 0.5, y: high_ - tall, width: Math.max(1, step - 1), height: tall, class: "dlk-tb-fill" }));
    });
    // of the first rows of many: there may be more different values, and other shares
    const isPart = this.model.get("note") !== "";
    const facts = [`${isPart ? "≥" : ""}${number.format(distinct)} distinct`, nulls ? `${share(nulls, rows, isPart)} null` : "no nulls"];
    const told = [
      ...(nulls ? [`NULL in ${counted(nulls, "row")}`] : []),
      ...(bins.length ? [`${low} to ${high}`] : top.map(([text, count]) => `${text === null ? "NULL" : text}: ${number.format(count)}`)),
      ...(isPart ? [`of the first ${counted(rows, "row")} that pass`] : []),
    ].join("\n");
    svg.setAttribute("aria-label", `${facts.join(", ")}; ${told}`);
    svg.append(shape("title", {}, `${facts.join(", ")}\n${told}`));
    return element("span", {}, svg, ...facts.map((fact) => element("div", { class: "dlk-soft" }, fact)));
  }

  // The cell of the cursor in full.
  show() {
    return this.detail.show(this.grid.cursor, this.first + this.grid.column).catch((error) => { this.problem.textContent = error.message; });
  }

  // Puts the cursor on another cell of its row, whichever columns are in the page.
  goTo(column) {
    if (column < this.first || column >= this.first + WIDE) this.turn(column);
    this.grid.column = column - this.first;
    this.grid.revealColumn();
    this.grid.choose(this.grid.cursor);
  }
}

export default mounted(Table);

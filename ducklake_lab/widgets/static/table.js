// The rows of a table: sorted by a click on a name; searched, filtered, profiled and drawn where that is unfolded.
//
// At first only the rows of the static view may be known. Functions that need the others ask for them first: see all().

// Columns in the page at once.
const WIDE = 100;
// Pixels between columns.
const GAP = 14;
// Sections that can be unfolded, with the smallest width of their columns.
const PARTS = [["filter", "Filter"], ["profile", "Profile"], ["chart", "Chart"], ["sql", "SQL"], ["download", "Download"]];
const ROOM = { filter: 84, profile: 112 };

class Table extends Browsing {
  // still: the static view, which stays until the first rows are here.
  constructor(model, host, still) {
    super(model);
    this.profiles = new Map();
    this.typing = new Map();
    this.widths = new Widths();
    this.still = new Still(still);
    this.start(host, {
      "change:look": () => this.reload(),
      "change:whole": () => this.reload(true),
      "change:problem": () => this.tell(),
      "change:sort": () => this.heads(),
      "change:filters": () => this.fill(),
      "change:search": () => this.fill(),
      "change:shows": () => this.unfold(),
    });
    this.watching = new IntersectionObserver((seen) => {
      for (const one of seen) if (one.isIntersecting) this.profile(one.target);
    }, { root: this.grid.root });
    this.observers.push(this.watching);
    this.unfold();
    this.reload();
    this.appear();
  }

  build() {
    // [name, the name as it reads, type, whether it stands to the right]
    this.columns = this.model.get("columns");
    this.first = 0;
    this.status = element("span", { role: "status" });
    this.facts = element("span", {});
    this.problem = element("span", { role: "alert" });
    this.sql = element("code", { class: "dlk-tb-sql", tabindex: "0", "aria-label": "What is shown, as SQL" });
    this.copy = copying("Copy SQL", () => this.model.get("sql"), this.sql);
    this.detail = new Detail(this, (column) => this.goTo(column));
    this.search = element("input", {
      type: "search", placeholder: "Search all columns", "aria-label": "Search all columns", value: this.model.get("search"),
      oninput: () => this.later("search", () => this.look(() => ({ search: this.search.value }))),
    });
    this.grid = new Grid({
      byCell: true, label: `Rows of ${this.model.get("title")}`, height: 430, columns: [], size: this.still.row, more: () => this.whole(() => {}),
      fetch: (start, count) => this.rows(start, count, this.first, this.shown().length).then((rows) => { this.widen(rows); return rows; }),
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
    this.chart.root.setAttribute("role", "region");
    this.chart.root.setAttribute("aria-label", "Chart");
    this.which = this.places();
    this.files = this.downloads();
    this.buttons = new Map(PARTS.map(([part, name]) => [part, element("button", { type: "button", onclick: () => this.toggle(part) }, name)]));
    this.more = element("button", { type: "button", title: "Compute the rows after these", onclick: () => this.whole(() => {}) }, "More rows");
    this.heading = element("strong", {}, this.model.get("heading"));
    this.above = element("div", { class: "dlk-bar" }, this.heading, this.search);
    this.statement = element("div", { class: "dlk-bar dlk-tb-statement" }, this.sql, this.copy);
    this.foot = element("div", { class: "dlk-bar dlk-tb-foot" }, element("span", {}, this.status, this.facts), this.problem, this.which,
      element("span", { role: "group", "aria-label": "Tools", class: "dlk-tb-parts" }, this.more, ...this.buttons.values()), this.files);
    this.root = element("div", { class: "dlk-live dlk-tb", "data-lm-suppress-shortcuts": "true" },
      this.above, this.grid.root, this.chart.root, this.foot, this.statement, this.detail.root, this.widths.rule);
    this.resize(this.chart.root, () => { if (this.is("chart")) this.chart.draw(); });
    this.grid.root.addEventListener("keydown", (event) => {
      if (event.target !== this.grid.root) return;
      if (event.key === "Escape") this.detail.close();
      // the browser copies a selection by the mouse
      if (event.key === "c" && (event.ctrlKey || event.metaKey) && getSelection().isCollapsed && this.detail.isOpen) this.detail.copied.click();
    });
  }

  // Replaces the static view once there are rows to show, so that nothing blinks or jumps.
  appear() {
    if (!this.still.box) return;
    this.root.classList.add("dlk-tb-unseen");
    const first = this.model.get("passing") ? this.grid.need(0) : Promise.resolve();
    first.then(() => {
      // without its rows the grid is less than the static view
      if (this.closed || (this.grid.count && !this.grid.row(0))) return;
      const { scrollTop, scrollLeft } = this.still.box;
      const isFocused = this.still.box === document.activeElement;
      this.still.hide();
      this.root.classList.remove("dlk-tb-unseen");
      Object.assign(this.grid.root, { scrollTop, scrollLeft });
      if (isFocused) this.grid.root.focus({ preventScroll: true });
      this.grid.draw();
    });
  }

  is(part) {
    return this.model.get("shows").includes(part);
  }

  toggle(part) {
    const shows = this.model.get("shows");
    this.set({ shows: this.is(part) ? shows.filter((one) => one !== part) : [...shows, part] });
    if (part === "chart") this.kept = true;
  }

  // Writes the saved output anew. The page makes another host for it, into which this view moves.
  keep(html) {
    this.held = document.activeElement;
    rewrite(this.model, () => html);
  }

  // Goes on in another host.
  adopt(host, still) {
    for (const node of still) node.style.display = "none";
    host.append(this.root);
    if (this.root.contains(this.held)) this.held.focus({ preventScroll: true });
  }

  // Shows the parts that are unfolded, and no others.
  unfold() {
    // One row needs no search and no chart.
    const isOne = this.model.get("whole") && this.model.get("total") === 1;
    for (const [part, button] of this.buttons) {
      button.setAttribute("aria-pressed", String(this.is(part)));
      button.hidden = isOne && part in { filter: 1, profile: 1, chart: 1 } && !this.is(part);
      this.root.classList.toggle(`dlk-tb-has-${part}`, this.is(part));
    }
    this.search.hidden = !this.is("filter");
    this.heading.hidden = !this.model.get("heading");
    this.above.hidden = this.search.hidden && this.heading.hidden;
    this.statement.hidden = !this.is("sql");
    this.files.hidden = !this.is("download");
    const isChart = this.is("chart");
    this.grid.root.hidden = isChart;
    this.chart.root.hidden = !isChart;
    if (this.which) this.which.hidden = isChart;
    if (isChart) this.detail.close();
    const drawn = isChart ? this.chart.refresh() : Promise.resolve();
    if (this.kept) drawn.then(() => this.chart.keep());
    this.heads();
  }

  // Brings the rows that are not here yet. No figure is shown until then: it would cover some rows only.
  all() {
    if (this.model.get("whole")) return Promise.resolve();
    this.reading ??= this.line.ask("all").finally(() => { this.reading = undefined; this.tell(); });
    this.tell();
    return this.reading;
  }

  // all() for a user's action: an error is shown and ends the action.
  async whole(act) {
    try {
      await this.all();
    } catch (error) {
      this.problem.textContent = error.message;
      return;
    }
    act();
  }

  // Sorts, filters or searches: values() is asked when the rows are here, as more may be clicked until then.
  look(values) {
    return this.whole(() => this.set(values()));
  }

  // Buttons that save the visible rows as a file.
  downloads() {
    const buttons = this.model.get("kinds").map(([kind, name]) => element("button", {
      type: "button", title: `Download what is seen as ${name}`, onclick: () => this.download(kind, buttons),
    }, name));
    return element("span", { role: "group", "aria-label": "Download", class: "dlk-tb-files" }, ...buttons);
  }

  async download(kind, buttons) {
    this.problem.textContent = "";
    for (const button of buttons) button.disabled = true;
    try {
      await this.all();
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

  // Links to the other columns, where there are more than the page has at once.
  places() {
    if (this.columns.length <= WIDE) return "";
    this.range = element("span", { class: "dlk-soft" });
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
    return element("span", { class: "dlk-tb-places" }, step(-WIDE, "‹", "Earlier columns"), this.range, step(WIDE, "›", "Later columns"), go);
  }

  turn(first) {
    this.first = Math.max(0, Math.min(first, this.columns.length - WIDE));
    this.heads();
    this.grid.root.scrollLeft = 0;
    this.grid.reset(this.model.get("passing"), true, !this.model.get("whole"));
  }

  // Texts of some columns of some rows, row by row.
  async rows(start, count, first, wide) {
    const { buffers } = await this.line.ask("page", { start, count, first, wide, look: this.model.get("look") });
    const { length, columns } = readArrow(buffers[0]);
    const lists = Array.from({ length: wide }, (_, at) => columns["c" + (first + at)]);
    return Array.from({ length }, (_, row) => lists.map((list) => list[row]));
  }

  heads() {
    if (this.range) this.range.textContent = `columns ${number.format(this.first + 1)} to ${number.format(this.first + this.shown().length)} of ${number.format(this.columns.length)}`;
    const sort = this.model.get("sort");
    this.inputs = new Map();
    this.watching.disconnect();
    this.known();
    this.grid.setColumns(this.shown().map(([name, label, type, right]) => {
      const place = sort.findIndex(([key]) => key === name);
      const down = place >= 0 && sort[place][1];
      const mark = place < 0 ? "" : (down ? "▼" : "▲") + (sort.length > 1 ? place + 1 : "");
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
        name, right, title: `${label} ${type}`, width: this.width(name), sort: place < 0 ? "none" : down ? "descending" : "ascending",
        head: [element("button", { type: "button", class: "dlk-tb-sort", title: "Sort; with Shift, sort by this as well", onclick: (event) => this.order(name, event.shiftKey) }, label),
          element("span", { class: "dlk-tb-mark", "aria-hidden": "true" }, mark), element("span", { class: "dlk-tb-type" }, element("small", { class: "dlk-soft" }, type)), profile, input],
      };
    }));
    this.grid.heads.style.minHeight = this.still.head ? `${this.still.head}px` : "";
    this.grid.draw();
  }

  // Takes each column's width from the static view, or from the texts that are known.
  known() {
    const fresh = this.shown().filter(([name]) => !this.widths.has(name));
    if (!fresh.length) return;
    const still = this.first === 0 ? this.still.widths : [];
    this.widths.fit(fresh.flatMap(([name, label, type]) => [[name, element("b", {}, label), true, GAP + 2], [name, element("small", {}, type), true, GAP + 2]]));
    fresh.forEach(([name], at) => { if (still[at]) this.widths.set(name, still[at]); });
  }

  width(name) {
    return this.widths.of(name, Math.max(0, ...Object.entries(ROOM).map(([part, room]) => this.is(part) ? room : 0)));
  }

  // Makes columns wider whose values have no room.
  widen(rows) {
    const shown = this.shown();
    const longest = shown.map((_, at) => rows.reduce((most, row) => (row[at] ?? "NULL").length > most.length ? row[at] ?? "NULL" : most, ""));
    const isWider = this.widths.fit(shown.map(([name, , , right], at) => [name, longest[at].slice(0, 200), !right, GAP + (at ? 0.02 : 2.02)]));
    if (isWider) this.grid.root.style.setProperty("--dlk-columns", shown.map(([name]) => this.width(name)).join(" "));
  }

  order(name, more) {
    this.look(() => {
      const sort = this.model.get("sort");
      const known = sort.find(([key]) => key === name);
      const rest = more ? sort.filter(([key]) => key !== name) : [];
      const next = !known ? [[name, false]] : known[1] ? [] : [[name, true]];
      return { sort: [...rest, ...next] };
    });
  }

  write(name, text) {
    this.later(`filter ${name}`, () => this.look(() => {
      const filters = { ...this.model.get("filters"), [name]: text };
      if (!text) delete filters[name];
      return { filters };
    }));
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

  // Shows other rows; keep: the same rows, with more of them known.
  reload(keep) {
    this.sql.textContent = this.model.get("sql");
    if (!keep) {
      this.profiles.clear();
      for (const node of this.grid.root.querySelectorAll(".dlk-tb-profile")) { this.watching.unobserve(node); this.watching.observe(node); }
      this.chart.isStale = true;
      if (this.is("chart")) this.chart.refresh().then(() => { if (this.kept) this.chart.keep(); });
      this.detail.close();
    }
    this.grid.reset(this.model.get("passing"), keep, !this.model.get("whole"));
    if (keep && this.detail.isOpen) this.show();
    this.tell();
  }

  tell() {
    const { passing, total, whole, note, filters, search, facts } = Object.fromEntries(
      ["passing", "total", "whole", "note", "filters", "search", "facts"].map((name) => [name, this.model.get(name)]));
    const isChosen = Object.keys(filters).length > 0 || search.trim();
    const rows = !whole ? `first ${counted(passing, "row")}` : isChosen ? `${number.format(passing)} of ${counted(total, "row")}` : counted(passing, "row");
    const more = !whole ? (this.reading ? "computing the rest…" : "more exist") : "";
    const end = passing > MOST ? `scrolls to row ${number.format(MOST)}` : "";
    this.status.textContent = [rows, more, note, end].filter(Boolean).join(" · ");
    this.more.hidden = whole;
    this.facts.textContent = facts && ` · ${facts}`;
    this.problem.textContent = this.model.get("problem");
    this.grid.root.setAttribute("aria-busy", String(Boolean(this.reading)));
  }

  async profile(node) {
    const name = node.column;
    if (this.profiles.has(name)) return;
    this.profiles.set(name, "");
    try {
      await this.all();
      const look = this.model.get("look");
      const { content } = await this.line.ask("profile", { column: name });
      if (look !== this.model.get("look")) return;
      const drawn = this.drawProfile(content.profile);
      this.profiles.set(name, drawn);
      for (const one of this.grid.root.querySelectorAll(".dlk-tb-profile")) if (one.column === name) one.replaceChildren(drawn);
    } catch (error) {
      this.profiles.delete(name);
      this.problem.textContent = error.message;
    }
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

// Measures of the static view that the grid replaces.
class Still {
  constructor(nodes) {
    this.nodes = nodes;
    this.widths = [];
    for (const node of nodes) node.style.display = "";
    this.box = nodes.map((node) => node.querySelector(".dlk-scroll")).find(Boolean);
    const table = this.box?.querySelector("table");
    if (!table) return;
    const { rows } = table.tBodies[0];
    this.widths = [...table.tHead.rows[0].cells].map((cell) => cell.getBoundingClientRect().width + 0.02);
    this.head = table.tHead.getBoundingClientRect().height;
    const high = rows.length && table.tBodies[0].getBoundingClientRect().height / rows.length;
    if (high > 17 && high < 34) this.row = high;
  }

  hide() {
    for (const node of this.nodes) node.style.display = "none";
  }
}

export default mounted(Table);

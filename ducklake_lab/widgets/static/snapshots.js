// The interactive snapshot browser: a timeline with an overview of all of it, a list and a detail panel.
//
// Numbers of all snapshots that pass the filters come at once, as Arrow; their texts come by page.

const KINDS = ["insert", "update", "delete", "restore", "schema", "maintenance", "none"];
const LABELS = { none: "no change" };
const HIGH = 58;
// Pixels from which the list has a column for what changed.
const WIDE = 1000;
// Pixels below which it has none for sizes.
const NARROW = 760;

// `atMost`: the numbers are upper bounds.
function amount(added, removed, write, atMost) {
  const parts = atMost && (added || removed) ? ["at most"] : [];
  if (added) parts.push("+" + write(added));
  if (removed === null) parts.push("\u2212?"); // the snapshot before has expired
  else if (removed) parts.push("\u2212" + write(removed));
  return parts.join(" ");
}

// Milliseconds in which snapshots that lie together differ by seconds.
const SHORT = 600_000;

class Snapshots extends Browsing {
  constructor(model, host) {
    super(model);
    this.start(host, {
      "change:overview": () => this.load(),
      "change:query": () => { if (document.activeElement !== this.search) this.search.value = model.get("query"); },
      "change:hidden": () => this.buttons(),
      "change:selected": () => this.refresh(true),
      "change:compare": () => this.refresh(false),
    });
    this.resize(this.timeline, () => { this.lay(); this.grid.draw(); this.draw(); });
    this.load();
  }

  // A time in the session's zone, as 2024-11-03 01:30, or with seconds.
  stamp(time, precise) {
    return this.clock.format(time).slice(0, precise ? 19 : 16);
  }

  build() {
    this.clock = new Intl.DateTimeFormat("sv-SE", { timeZone: this.model.get("zone"), dateStyle: "short", timeStyle: "medium" });
    this.search = element("input", {
      type: "search", placeholder: "Filter: text, author:, kind:", "aria-label": "Filter snapshots", value: this.model.get("query"),
      oninput: () => { clearTimeout(this.typing); this.typing = setTimeout(() => this.set({ query: this.search.value }), 120); },
    });
    this.summary = element("span", { class: "dlk-soft", role: "status" });
    this.kinds = element("span", { class: "dlk-sb-kinds", role: "group", "aria-label": "Kinds of change" });
    this.scaled = element("span", { class: "dlk-soft" }, "bar height: square root of the rows");
    this.mapped = element("div", { class: "dlk-soft dlk-sb-mapped" });
    this.zoom = element("span", { class: "dlk-sb-zoom" });
    this.timeline = element("div", { class: "dlk-sb-time", "aria-hidden": "true" });
    this.timeline.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.map = element("div", {
      class: "dlk-sb-map", role: "slider", tabindex: "0", "aria-label": "Snapshots in the timeline; arrows move, plus and minus zoom",
      onkeydown: (event) => this.mapKey(event), onpointerdown: (event) => this.brush(event),
    });
    this.grid = new Grid({
      label: "Snapshots, newest first", multiple: true,
      columns: [],
      fetch: async (start, count) => {
        const { buffers } = await this.line.ask("page", { start, count, filter: this.model.get("filter") });
        const { length, columns } = readArrow(buffers[0]);
        const rows = Array.from({ length }, (_, at) => Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[at]])));
        this.widen(rows);
        return rows;
      },
      cells: (row, at) => this.cells(row, at),
      selected: (at) => this.marked().includes(this.data.id[at]),
      onSelect: (at, row, event) => this.select(this.data.id[at], event.shiftKey),
      onEnter: () => this.button?.click(),
      onError: (error) => this.fail(error),
    });
    this.grid.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.set({ compare: [] });
    });
    this.detail = element("div", { class: "dlk-sb-detail", "aria-live": "polite" });
    this.result = element("div", { class: "dlk-sb-result" });
    // Without this attribute JupyterLab takes arrow keys and letters for its own commands.
    this.root = element("div", { class: "dlk-live dlk-sb", "data-lm-suppress-shortcuts": "true" },
      element("div", { class: "dlk-bar" }, element("strong", {}, this.model.get("title")), this.summary, this.kinds, this.scaled, this.zoom, this.search),
      this.timeline, this.map, this.mapped, this.grid.root, this.detail, this.result);
  }

  cells(row, at) {
    const kind = KINDS[this.data.kind[at]];
    const changes = element("span", { class: "dlk-soft" }, (row.changes || "").replaceAll("\n", ", "));
    const words = this.wide ? [row.message, changes] : [row.message || changes];
    return [String(this.data.id[at]), this.stamp(this.data.time[at]), [element("i", { class: "dlk-k-" + kind }), LABELS[kind] || kind], row.author,
      ...words, this.rowsOf(at) || "–", ...(this.narrow ? [] : [this.bytesOf(at)])];
  }

  timeName() {
    return `time (${this.model.get("zone")})`;
  }

  rowsOf(at) {
    return amount(this.data.added[at], this.data.removed[at], (n) => number.format(n), this.data.at_most[at]);
  }

  bytesOf(at) {
    return amount(this.data.bytes_added[at], this.data.bytes_removed[at], size);
  }

  // Columns of words share the room by their longest known text; true widths are not needed for that.
  widen(rows) {
    const longest = (name) => rows.reduce((most, row) => Math.max(most, (row[name] || "").length), 0);
    const words = { author: longest("author"), message: longest("message"), changes: longest("changes") };
    if (!Object.keys(words).some((name) => words[name] > this.words[name])) return;
    for (const name of Object.keys(words)) this.words[name] = Math.max(words[name], this.words[name]);
    this.lay();
  }

  // Numbers take the room that the longest of them needs, then authors, and other words the rest; in a narrow place what changed is left
  // out where there is a message, and listed below when the snapshot is selected.
  lay() {
    this.wide = this.grid.root.clientWidth >= WIDE;
    this.narrow = this.grid.root.clientWidth < NARROW;
    const all = (write) => this.data.id.map((_, at) => write(at));
    const kinds = this.model.get("kinds").map((kind) => LABELS[kind] || kind);
    const text = (name, width, right) => ({ name, width, right });
    const { author, message, changes } = this.words;
    const needed = (least, most, length) => `minmax(${least}em, ${Math.min(most, Math.max(least, length * 0.6 + 0.5))}em)`;
    const share = (least, length) => `minmax(${least}em, ${Math.min(Math.max(length, least), 200)}fr)`;
    // a message that is no paragraph is seen whole; what changed takes the rest
    const said = !this.wide ? "minmax(7em, 1fr)" : message > 40 ? share(7, message) : needed(message ? 7 : 6, 25, message);
    this.grid.setColumns([
      text("id", room(all((at) => String(this.data.id[at]))), true), text(this.timeName(), room([this.timeName(), "2000-01-01 00:00"])), text("kind", room(kinds, 1.4)), text("author", needed(4.5, 22, author)),
      text("message", said), ...(this.wide ? [text("what changed", share(9, changes))] : []),
      text("rows", room(all((at) => this.rowsOf(at))), true), ...(this.narrow ? [] : [text("size", room(all((at) => this.bytesOf(at))), true)]),
    ]);
  }

  load() {
    const { length, columns } = readArrow(this.model.get("overview"));
    this.data = columns;
    this.length = length;
    this.words = { author: 0, message: 0, changes: 0 };
    this.place = new Map(columns.id.map((id, at) => [id, at]));
    this.size = Math.min(length, this.capacity());
    this.offset = 0;
    const all = this.model.get("total");
    this.summary.textContent = length === all ? `${number.format(all)} snapshots` : `${number.format(length)} of ${number.format(all)} snapshots`;
    this.buttons();
    this.lay();
    this.grid.reset(length);
    this.refresh(true);
  }

  buttons() {
    const hidden = this.model.get("hidden");
    this.kinds.replaceChildren(...this.model.get("kinds").map((kind) => element("button", {
      type: "button", "aria-pressed": String(!hidden.includes(kind)),
      onclick: () => this.set({ hidden: hidden.includes(kind) ? hidden.filter((one) => one !== kind) : [...hidden, kind] }),
    }, element("i", { class: "dlk-k-" + kind }), LABELS[kind] || kind)));
    const between = this.model.get("between");
    this.zoom.replaceChildren();
    if (between.length === 2) {
      this.zoom.append(element("button", { type: "button", onclick: () => this.set({ between: [] }) },
        `${this.stamp(between[0])} – ${this.stamp(between[1])} ✕`));
    } else if (this.length > this.size) {
      this.zoom.append(element("button", { type: "button", title: "List only the snapshots that the timeline shows", onclick: () => this.narrow() }, "Only these"));
    }
  }

  narrow() {
    const last = Math.min(this.length, this.offset + this.size) - 1;
    this.set({ between: [this.data.time[last], this.data.time[this.offset]] });
  }

  // The selected snapshots: one, or the two that are compared.
  marked() {
    const compare = this.model.get("compare");
    const selected = this.model.get("selected");
    return compare.length === 2 ? compare : selected === null ? [] : [selected];
  }

  select(id, extend) {
    const anchor = this.anchor ?? this.model.get("selected");
    const pair = extend && anchor !== null && anchor !== undefined && anchor !== id;
    this.anchor = pair ? anchor : id;
    this.set({ compare: pair ? [Math.min(anchor, id), Math.max(anchor, id)] : [], selected: id });
  }

  refresh(follow) {
    const at = this.place.get(this.model.get("selected"));
    if (follow && at !== undefined) {
      this.grid.reveal(at);
      if (at < this.offset || at >= this.offset + this.size) this.move(at - Math.floor(this.size / 2));
    } else this.grid.draw();
    this.draw();
    this.describe();
  }

  // The timeline

  capacity() {
    return Math.max(8, Math.floor((this.timeline.clientWidth || 900) / 7));
  }

  move(offset) {
    this.offset = Math.max(0, Math.min(Math.round(offset), this.length - this.size));
    this.draw();
  }

  scale(factor) {
    const middle = this.offset + this.size / 2;
    this.size = Math.max(Math.min(8, this.length), Math.min(this.length, this.capacity() * 3, Math.round(this.size * factor)));
    this.move(middle - this.size / 2);
    this.buttons();
  }

  wheel(event) {
    if (this.length <= 8) return;
    if (!event.ctrlKey && this.length <= this.size) return;
    event.preventDefault();
    if (event.ctrlKey) this.scale(event.deltaY > 0 ? 1.25 : 0.8);
    else this.move(this.offset - Math.sign(event.deltaX || event.deltaY) * Math.max(1, Math.floor(this.size / 12)));
  }

  mapKey(event) {
    const steps = { ArrowLeft: this.size / 4, ArrowRight: -this.size / 4, PageUp: this.size, PageDown: -this.size, Home: this.length, End: -this.length };
    if (event.key in steps) this.move(this.offset + steps[event.key]);
    else if (event.key === "+") this.scale(0.5);
    else if (event.key === "-") this.scale(2);
    else return;
    event.preventDefault();
  }

  // Dragging over the overview chooses what the timeline shows.
  brush(event) {
    const box = this.map.getBoundingClientRect();
    const at = (x) => this.length * (1 - Math.max(0, Math.min(1, (x - box.left) / box.width)));
    const from = at(event.clientX);
    this.map.setPointerCapture(event.pointerId);
    const drag = (moved) => {
      const to = at(moved.clientX);
      if (Math.abs(moved.clientX - event.clientX) < 5) return this.move(from - this.size / 2);
      this.size = Math.max(Math.min(8, this.length), Math.min(this.capacity() * 3, Math.round(Math.abs(from - to))));
      this.move(Math.min(from, to));
    };
    const stop = (moved) => {
      drag(moved);
      this.map.removeEventListener("pointermove", drag);
      this.map.removeEventListener("pointerup", stop);
      this.buttons();
    };
    this.map.addEventListener("pointermove", drag);
    this.map.addEventListener("pointerup", stop);
  }

  draw() {
    const width = this.timeline.clientWidth;
    if (!width || !this.data) return;
    const { id, time, kind, added, removed, version } = this.data;
    const visible = [];
    for (let at = Math.min(this.length, this.offset + this.size) - 1; at >= this.offset; at--) visible.push(at);
    const base = HIGH + 26;
    const largest = visible.reduce((most, at) => Math.max(most, added[at], removed[at]), 1);
    this.scaled.hidden = !visible.some((at) => added[at] || removed[at]);
    const below = HIGH * Math.sqrt(visible.reduce((most, at) => Math.max(most, removed[at]), 0) / largest) + 8;
    const slot = width / Math.max(visible.length, 1);
    const bar = Math.min(16, Math.max(1.5, slot * 0.6));
    const svg = shape("svg", { width, height: base + below + 34 });
    svg.append(shape("line", { x1: 0, x2: width, y1: base, y2: base, class: "dlk-sb-base" }));
    const marked = this.marked();
    let free = 0;
    let day = "", previous = "";
    // clocks of snapshots that were made within minutes differ in their seconds
    const isShort = visible.length > 1 && time[visible.at(-1)] - time[visible[0]] < SHORT;
    visible.forEach((at, index) => {
      const x = slot * (index + 0.5);
      const group = shape("g", { class: "dlk-sb-mark" });
      const chosen = marked.includes(id[at]);
      const inside = marked.length === 2 && id[at] > marked[0] && id[at] < marked[1];
      group.append(shape("rect", {
        x: slot * index, width: slot, y: 0, height: base + below + 16, rx: Math.min(3, slot / 3),
        class: chosen ? "dlk-sb-band dlk-sb-chosen" : inside ? "dlk-sb-band dlk-sb-inside" : "dlk-sb-band",
      }));
      if (at + 1 < this.length && version[at] !== version[at + 1] && id[at] === id[at + 1] + 1) {
        group.append(shape("path", { d: `M${x - 3.5} 3 l3.5 -3.5 l3.5 3.5 l-3.5 3.5 z`, class: "dlk-k-schema" }));
      }
      const up = added[at] ? Math.max(2, HIGH * Math.sqrt(added[at] / largest)) : 0;
      const down = removed[at] ? Math.max(2, HIGH * Math.sqrt(removed[at] / largest)) : 0;
      const fill = { class: "dlk-k-" + KINDS[kind[at]] };
      if (up + down) group.append(shape("rect", { x: x - bar / 2, y: base - up, width: bar, height: up + down, ...fill }));
      else group.append(shape("circle", { cx: x, cy: base, r: Math.min(4.5, bar / 2), ...fill }));
      if (slot >= 34 && up + down) {
        group.append(shape("text", { x, y: base - up - 5, class: "dlk-soft" }, (this.data.at_most[at] ? "≤" : "") + (up ? compact(added[at]) : "\u2212" + compact(removed[at]))));
      }
      if (slot >= 9 + 6 * String(id[at]).length) group.append(shape("text", { x, y: base + below + 11 }, id[at]));
      const moment = this.stamp(time[at], isShort);
      const label = moment.slice(0, 10) !== day ? moment.slice(0, 10) : moment.slice(11);
      if (label !== previous && x - 34 >= free && x + 34 <= width) {
        previous = label;
        group.append(shape("text", { x, y: base + below + 28, class: "dlk-soft" }, label));
        day = moment.slice(0, 10);
        free = x + 64;
      }
      const facts = this.rowsOf(at);
      group.append(shape("title", {}, `${id[at]} · ${moment} ${this.model.get("zone")} · ${LABELS[KINDS[kind[at]]] || KINDS[kind[at]]}${facts ? ` · ${facts} rows` : ""} · schema version ${version[at]}`));
      group.addEventListener("click", (event) => { this.select(id[at], event.shiftKey); this.grid.root.focus({ preventScroll: true }); });
      svg.append(group);
    });
    this.timeline.replaceChildren(svg);
    this.overview(width);
  }

  // All snapshots in one thin strip, the part that the timeline shows framed.
  overview(width) {
    const needed = this.length > this.size;
    this.map.style.display = needed ? "" : "none";
    this.mapped.hidden = !needed;
    if (!needed) return;
    const bins = Math.min(this.length, Math.floor(width / 3));
    const sums = new Float64Array(bins);
    const { added, removed } = this.data;
    for (let at = 0; at < this.length; at++) sums[Math.floor(((this.length - 1 - at) / this.length) * bins)] += added[at] + removed[at] + 1;
    const largest = Math.max(...sums);
    const svg = shape("svg", { width, height: 26, "aria-hidden": "true" });
    let path = "";
    sums.forEach((sum, index) => { path += `M${((index + 0.5) * width) / bins} 26V${26 - 24 * Math.sqrt(sum / largest)}`; });
    svg.append(shape("path", { d: path, class: "dlk-sb-strip", "stroke-width": Math.max(1, width / bins - 1) }));
    const left = (width * (this.length - this.offset - this.size)) / this.length;
    svg.append(shape("rect", { x: left, y: 0.5, width: Math.max(4, (width * this.size) / this.length), height: 25, rx: 3, class: "dlk-sb-window" }));
    this.map.replaceChildren(svg);
    this.mapped.textContent = "overview height: square root of rows added, rows removed and snapshots, summed";
    const newest = this.data.id[this.offset];
    const oldest = this.data.id[Math.min(this.length, this.offset + this.size) - 1];
    for (const [name, value] of Object.entries({ min: this.data.id[this.length - 1], max: this.data.id[0], now: newest, text: `snapshots ${oldest} to ${newest}` })) {
      this.map.setAttribute("aria-value" + name, value);
    }
  }

  // The selection

  describe() {
    this.button = null;
    const compare = this.model.get("compare");
    const selected = this.model.get("selected");
    if (compare.length === 2) this.describePair(...compare);
    else if (this.place.has(selected)) this.describeOne(this.place.get(selected));
    else this.detail.replaceChildren(element("span", { class: "dlk-soft" }, "Select a snapshot; shift-click or Shift+↑↓ a second one to compare."));
  }

  async describeOne(at) {
    const token = (this.describing = {});
    const row = await this.grid.need(at);
    if (token !== this.describing || !row) return;
    const { id, time, bytes_added, bytes_removed, version } = this.data;
    const changed = this.rowsOf(at);
    const facts = [`${this.stamp(time[at], true)} ${this.model.get("zone")}`, row.author, row.origin, changed && changed + " rows", amount(bytes_added[at], bytes_removed[at], size), `schema version ${version[at]}`];
    this.detail.replaceChildren(
      element("b", {}, `Snapshot ${id[at]}`), " ", row.message || "", " ",
      element("span", { class: "dlk-soft" }, facts.filter(Boolean).join(" · ")), " ");
    if (this.model.get("can_look")) {
      this.button = element("button", { type: "button", onclick: () => this.request("lake", { snapshot: id[at] }, `Reading the catalog at ${id[at]} …`) }, "The lake as it was");
      this.detail.append(this.button, " ");
    }
    if (this.model.get("can_diff") && id[at] > 0) {
      this.detail.append(element("button", { type: "button", onclick: () => this.request("diffs", { snapshot: id[at] }, `Comparing what ${id[at]} changed …`) }, "What it changed"));
    }
    if (row.statement) this.detail.append(element("pre", { class: "dlk-sb-sql" }, row.statement));
    this.detail.append(element("ul", {}, ...(row.changes || "").split("\n").slice(0, 50).map((change) => element("li", {}, change))));
  }

  async describePair(start, end) {
    const token = (this.describing = {});
    this.detail.replaceChildren(element("b", {}, `Snapshot ${start} → ${end}`), " ");
    const { content } = await this.line.ask("between", { start, end });
    if (token !== this.describing) return;
    const touched = content.tables;
    if (!touched.length) {
      this.detail.append(element("span", { class: "dlk-soft" }, "no table changed in between"));
      return;
    }
    const choice = element("select", { "aria-label": "Table to compare" }, ...touched.map((name) => element("option", {}, name)));
    const code = element("code");
    const tell = () => { code.textContent = `%ducklake diff ${/^[\w.]+$/.test(choice.value) ? choice.value : JSON.stringify(choice.value)} ${start} ${end}`; };
    choice.addEventListener("change", tell);
    tell();
    this.detail.append(choice, " ");
    if (this.model.get("can_diff")) {
      this.button = element("button", { type: "button", onclick: () => this.request("diff", { table: choice.value, start, end }, `Comparing ${choice.value} at ${start} and ${end} …`) }, "Show diff");
      this.detail.append(this.button, " ");
    }
    this.detail.append(code);
  }

  fail(error) {
    this.result.replaceChildren(element("p", { role: "alert" }, error.message));
  }

  async request(type, question, told) {
    this.result.replaceChildren(element("p", { class: "dlk-soft", role: "status" }, told));
    const asked = (this.asked = {});
    try {
      const { content } = await this.line.ask(type, question);
      // Made by the kernel's own static view, which escapes everything that comes from the catalog.
      if (asked === this.asked) this.result.innerHTML = content.html;
    } catch (error) {
      if (asked === this.asked) this.fail(error);
    }
  }
}

export default mounted(Snapshots);

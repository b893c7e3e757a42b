// The interactive snapshot browser: a timeline, a list and a detail panel over the rows of one model.
//
// It shows itself in place of the static view whose element id is the model's `mount`. That output is plain HTML, so a
// notebook opened without a kernel still has it, and a kernel that is alive makes it interactive again.

const ROW = 26;
const KINDS = { insert: "insert", update: "update", delete: "delete", schema: "schema", maintenance: "maintenance", none: "no change" };
const FIELDS = ["id", "time", "kind", "author", "message", "changes", "tables", "added", "removed", "bytes"];

const number = new Intl.NumberFormat("en-US");

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function shape(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function compact(value) {
  for (const [limit, letter] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= limit) {
      const scaled = value / limit;
      return (scaled < 10 ? scaled.toFixed(1).replace(/\.0$/, "") : scaled.toFixed(0)) + letter;
    }
  }
  return String(value);
}

function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 999.5) return `${value.toFixed(unit !== "B" && value < 9.95 ? 1 : 0)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

const time = (entry, precise) => new Date(entry.time).toISOString().replace("T", " ").slice(0, precise ? 19 : 16);

function rows(entry) {
  const parts = [];
  if (entry.added) parts.push("+" + number.format(entry.added));
  if (entry.removed) parts.push("\u2212" + number.format(entry.removed));
  return parts.join(" ") || "–";
}

class Browser {
  constructor(model, host) {
    this.model = model;
    this.id = "dlk-" + Math.random().toString(36).slice(2, 8);
    this.hidden = new Set();
    this.build();
    host.append(this.root);
    this.listeners = {
      "change:rows": () => this.load(),
      "change:query": () => { this.search.value = model.get("query"); this.filter(); },
      "change:selected": () => this.refresh(true),
      "change:compare": () => this.refresh(false),
    };
    for (const [event, listener] of Object.entries(this.listeners)) model.on(event, listener);
    this.onMessage = (message) => this.receive(message);
    model.on("msg:custom", this.onMessage);
    this.resizing = new ResizeObserver(() => this.draw());
    this.resizing.observe(this.timeline);
    this.load();
  }

  close() {
    for (const [event, listener] of Object.entries(this.listeners)) this.model.off(event, listener);
    this.model.off("msg:custom", this.onMessage);
    this.resizing.disconnect();
    this.root.remove();
  }

  build() {
    this.search = element("input", {
      type: "search", placeholder: "Filter: text, table, author", "aria-label": "Filter snapshots",
      value: this.model.get("query"),
      oninput: () => { this.model.set("query", this.search.value); this.model.save_changes(); this.filter(); },
    });
    this.summary = element("span", { class: "dlk-sb-soft", role: "status" });
    this.kinds = element("span", { class: "dlk-sb-kinds", role: "group", "aria-label": "Kinds of change" });
    this.timeline = element("div", { class: "dlk-sb-time", "aria-hidden": "true" });
    this.timeline.addEventListener("wheel", (event) => this.slide(event), { passive: false });
    this.body = element("div", { role: "rowgroup", class: "dlk-sb-rows" });
    const heads = ["id", "time (UTC)", "kind", "author", "message", "what changed", "rows", "size"];
    this.grid = element("div", {
      role: "grid", tabindex: "0", "aria-label": "Snapshots, newest first", "aria-multiselectable": "true", class: "dlk-sb-grid",
      onscroll: () => this.list(), onkeydown: (event) => this.key(event),
    },
      element("div", { role: "rowgroup", class: "dlk-sb-heads" },
        element("div", { role: "row", class: "dlk-sb-row", "aria-rowindex": 1 },
          ...heads.map((head) => element("span", { role: "columnheader" }, head)))),
      this.body);
    this.detail = element("div", { class: "dlk-sb-detail", "aria-live": "polite" });
    this.result = element("div", { class: "dlk-sb-diff" });
    // Without this attribute JupyterLab takes arrow keys and letters for its own commands.
    this.root = element("div", { class: "dlk-sb", "data-lm-suppress-shortcuts": "true" },
      element("div", { class: "dlk-sb-bar" },
        element("strong", {}, this.model.get("title")), this.summary, this.kinds, this.search),
      this.timeline, this.grid, this.detail, this.result);
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
  }

  load() {
    this.entries = this.model.get("rows").map((row) => Object.fromEntries(FIELDS.map((name, at) => [name, row[at]])));
    this.entries.sort((a, b) => b.id - a.id);
    this.text = new Map(this.entries.map((entry) => [entry.id,
      [entry.id, entry.author, entry.message, ...entry.changes, ...entry.tables].join("\n").toLowerCase()]));
    const present = Object.keys(KINDS).filter((kind) => this.entries.some((entry) => entry.kind === kind));
    this.kinds.replaceChildren(...present.map((kind) => {
      const button = element("button", { type: "button", "aria-pressed": "true" }, element("i", { class: "dlk-k-" + kind }), KINDS[kind]);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(kind)) this.hidden.add(kind);
        button.setAttribute("aria-pressed", String(!this.hidden.has(kind)));
        this.filter();
      });
      return button;
    }));
    this.filter();
  }

  filter() {
    const words = this.model.get("query").toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = this.entries.filter((entry) =>
      !this.hidden.has(entry.kind) && words.every((word) => this.text.get(entry.id).includes(word)));
    const all = this.entries.length;
    this.summary.textContent = this.shown.length === all
      ? `${number.format(all)} snapshots` : `${number.format(this.shown.length)} of ${number.format(all)} snapshots`;
    this.grid.setAttribute("aria-rowcount", this.shown.length + 1);
    this.body.style.height = this.shown.length * ROW + "px";
    this.offset = 0;
    this.grid.scrollTop = 0;
    this.refresh(true);
  }

  // The selected snapshots: one, or the two that are compared.
  marked() {
    const compare = this.model.get("compare");
    const selected = this.model.get("selected");
    return compare.length === 2 ? compare : selected === null ? [] : [selected];
  }

  select(id, extend) {
    const anchor = this.anchor ?? this.model.get("selected");
    if (extend && anchor !== null && anchor !== undefined && anchor !== id) {
      this.anchor = anchor;
      this.model.set("compare", [Math.min(anchor, id), Math.max(anchor, id)]);
    } else {
      this.anchor = id;
      this.model.set("compare", []);
    }
    this.model.set("selected", id);
    this.model.save_changes();
  }

  key(event) {
    const count = this.shown.length;
    if (!count) return;
    const page = Math.max(1, Math.floor((this.grid.clientHeight - ROW) / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    const at = this.shown.findIndex((entry) => entry.id === this.model.get("selected"));
    if (event.key in steps) {
      const next = at < 0 ? 0 : Math.min(count - 1, Math.max(0, at + steps[event.key]));
      this.select(this.shown[next].id, event.shiftKey);
    } else if (event.key === "Escape") {
      this.select(at < 0 ? null : this.shown[at].id, false);
    } else if (event.key === "Enter" && this.button) {
      this.button.click();
    } else return;
    event.preventDefault();
  }

  refresh(follow) {
    const at = this.shown.findIndex((entry) => entry.id === this.model.get("selected"));
    if (follow && at >= 0) {
      const room = this.grid.clientHeight - ROW;
      if (at * ROW < this.grid.scrollTop) this.grid.scrollTop = at * ROW;
      else if (room > 0 && (at + 1) * ROW > this.grid.scrollTop + room) this.grid.scrollTop = (at + 1) * ROW - room;
      const window = this.capacity();
      if (at < this.offset || at >= this.offset + window) this.offset = Math.max(0, at - Math.floor(window / 2));
    }
    this.draw();
    this.list();
    this.describe();
  }

  list() {
    const first = Math.max(0, Math.floor(this.grid.scrollTop / ROW) - 6);
    const last = Math.min(this.shown.length, first + Math.ceil((this.grid.clientHeight || 320) / ROW) + 12);
    const marked = this.marked();
    const selected = this.model.get("selected");
    const nodes = [];
    for (let at = first; at < last; at++) {
      const entry = this.shown[at];
      const changes = entry.changes.join(", ");
      const row = element("div", {
        role: "row", class: "dlk-sb-row", id: `${this.id}-${entry.id}`, "aria-rowindex": at + 2, style: `top:${at * ROW}px`,
        "aria-selected": String(marked.includes(entry.id)), onclick: (event) => this.select(entry.id, event.shiftKey),
      });
      const cells = [
        [entry.id], [time(entry)], [element("i", { class: "dlk-k-" + entry.kind }), KINDS[entry.kind]], [entry.author || ""],
        [entry.message || ""], [changes], [rows(entry)], [entry.bytes ? size(entry.bytes) : ""],
      ];
      row.append(...cells.map((content) => element("span", { role: "gridcell" }, ...content)));
      nodes.push(row);
    }
    this.body.replaceChildren(...nodes);
    if (selected !== null) this.grid.setAttribute("aria-activedescendant", `${this.id}-${selected}`);
  }

  capacity() {
    return Math.max(1, Math.floor((this.timeline.clientWidth || 900) / 7));
  }

  slide(event) {
    const most = this.shown.length - this.capacity();
    if (most <= 0) return;
    event.preventDefault();
    const step = Math.sign(event.deltaX || event.deltaY) * Math.max(1, Math.floor(this.capacity() / 12));
    this.offset = Math.min(most, Math.max(0, this.offset - step));
    this.draw();
  }

  draw() {
    const width = this.timeline.clientWidth;
    if (!width) return;
    const visible = this.shown.slice(this.offset, this.offset + this.capacity()).reverse();
    const high = 58;
    const base = high + 16;
    const largest = Math.max(1, ...visible.map((entry) => Math.max(entry.added, entry.removed)));
    const below = high * Math.sqrt(Math.max(0, ...visible.map((entry) => entry.removed)) / largest) + 8;
    const slot = width / Math.max(visible.length, 1);
    const bar = Math.min(16, Math.max(3, slot * 0.6));
    const svg = shape("svg", { width, height: base + below + 34 });
    svg.append(shape("line", { x1: 0, x2: width, y1: base, y2: base, class: "dlk-sb-base" }));
    const marked = this.marked();
    const between = marked.length === 2 ? marked : null;
    let free = 0;
    let day = "";
    visible.forEach((entry, index) => {
      const x = slot * (index + 0.5);
      const group = shape("g", { class: "dlk-sb-mark" });
      const chosen = marked.includes(entry.id);
      const inside = between && entry.id > between[0] && entry.id < between[1];
      group.append(shape("rect", {
        x: slot * index, width: slot, y: 0, height: base + below + 16, rx: 3,
        class: chosen ? "dlk-sb-band dlk-sb-chosen" : inside ? "dlk-sb-band dlk-sb-inside" : "dlk-sb-band",
      }));
      const up = entry.added ? Math.max(2, high * Math.sqrt(entry.added / largest)) : 0;
      const down = entry.removed ? Math.max(2, high * Math.sqrt(entry.removed / largest)) : 0;
      const fill = { class: "dlk-k-" + entry.kind };
      if (up + down) group.append(shape("rect", { x: x - bar / 2, y: base - up, width: bar, height: up + down, ...fill }));
      else group.append(shape("circle", { cx: x, cy: base, r: Math.min(4.5, bar / 2), ...fill }));
      if (slot >= 34) {
        if (up + down) group.append(shape("text", { x, y: base - up - 5, class: "dlk-sb-soft" }, up ? compact(entry.added) : "\u2212" + compact(entry.removed)));
      }
      if (slot >= 22) group.append(shape("text", { x, y: base + below + 11 }, entry.id));
      const moment = time(entry);
      const label = moment.slice(0, 10) !== day ? moment.slice(0, 10) : moment.slice(11);
      if (x - 34 >= free && x + 34 <= width) {
        group.append(shape("text", { x, y: base + below + 28, class: "dlk-sb-soft" }, label));
        day = moment.slice(0, 10);
        free = x + 64;
      }
      group.append(shape("title", {}, `${entry.id} · ${moment} UTC · ${entry.message || entry.changes.join(", ") || KINDS[entry.kind]} · ${rows(entry)}`));
      group.addEventListener("click", (event) => { this.select(entry.id, event.shiftKey); this.grid.focus({ preventScroll: true }); });
      svg.append(group);
    });
    this.timeline.replaceChildren(svg);
  }

  describe() {
    this.button = null;
    const byId = (id) => this.entries.find((entry) => entry.id === id);
    const compare = this.model.get("compare");
    const entry = byId(this.model.get("selected"));
    if (compare.length === 2 && byId(compare[0]) && byId(compare[1])) this.describePair(...compare);
    else if (entry) this.describeOne(entry);
    else this.detail.replaceChildren(element("span", { class: "dlk-sb-soft" }, "Select a snapshot; shift-click or Shift+↑↓ a second one to compare."));
  }

  describeOne(entry) {
    const facts = [time(entry, true) + " UTC", entry.author, rows(entry) === "–" ? null : rows(entry) + " rows", entry.bytes ? size(entry.bytes) : null];
    this.detail.replaceChildren(
      element("b", {}, `Snapshot ${entry.id}`), " ", entry.message || "", " ",
      element("span", { class: "dlk-sb-soft" }, facts.filter(Boolean).join(" · ")),
      element("ul", {}, ...entry.changes.slice(0, 50).map((change) => element("li", {}, change))));
  }

  describePair(start, end) {
    const touched = [...new Set(this.entries.filter((entry) => entry.id > start && entry.id <= end).flatMap((entry) => entry.tables))].sort();
    this.detail.replaceChildren(element("b", {}, `Snapshot ${start} → ${end}`), " ");
    if (!touched.length) {
      this.detail.append(element("span", { class: "dlk-sb-soft" }, "no table changed in between"));
      return;
    }
    const choice = element("select", { "aria-label": "Table to compare" }, ...touched.map((name) => element("option", {}, name)));
    const code = element("code");
    const tell = () => { code.textContent = `%ducklake diff ${/^[\w.]+$/.test(choice.value) ? choice.value : JSON.stringify(choice.value)} ${start} ${end}`; };
    choice.addEventListener("change", tell);
    tell();
    this.detail.append(choice, " ");
    if (this.model.get("can_diff")) {
      this.button = element("button", { type: "button", onclick: () => this.request(choice.value, start, end) }, "Show diff");
      this.detail.append(this.button, " ");
    }
    this.detail.append(code);
  }

  request(table, start, end) {
    this.asked = `${table}/${start}/${end}`;
    this.result.replaceChildren(element("p", { class: "dlk-sb-soft", role: "status" }, `Comparing ${table} at ${start} and ${end} …`));
    this.model.send({ type: "diff", table, start, end });
  }

  receive(message) {
    if (message.type !== "diff" || message.key !== this.asked) return;
    if (message.error) this.result.replaceChildren(element("p", { role: "alert", class: "dlk-sb-error" }, message.error));
    // Made by the kernel's own static view, which escapes everything that comes from the catalog.
    else this.result.innerHTML = message.html;
  }
}

function initialize({ model }) {
  const live = new Map();
  const id = model.get("mount");
  const find = () => {
    for (const [host, entry] of live) {
      if (!host.isConnected) { entry.browser.close(); live.delete(host); }
    }
    for (const host of document.querySelectorAll(`[id="${CSS.escape(id)}"]`)) {
      if (live.has(host)) continue;
      const still = [...host.children];
      for (const child of still) child.style.display = "none";
      live.set(host, { still, browser: new Browser(model, host) });
    }
  };
  const observer = new MutationObserver(() => find());
  observer.observe(document.body, { childList: true, subtree: true });
  find();
  return () => {
    observer.disconnect();
    for (const { still, browser } of live.values()) {
      browser.close();
      for (const child of still) child.style.display = "";
    }
    live.clear();
  };
}

function render({ model, el }) {
  const browser = new Browser(model, el);
  return () => browser.close();
}

export default { initialize, render };

// The files of a table: a treemap, a histogram of sizes, the intervals of a column, advice, and a list.

const WORDS = ["file", "partition"];
const DRAWN = 1500;
// Pixels below which bars of sizes and ages make way.
const NARROW = 760;

class Files extends Browsing {
  constructor(model, host) {
    super(model);
    this.start(host, {
      "change:overview": () => this.load(),
      "change:column": () => this.ranges(),
      "change:place": () => this.follow(),
      "change:findings": () => this.mend(),
    });
    this.resize(this.map, () => { if (this.narrow !== this.root.clientWidth < NARROW) this.lay(); this.draw(); });
    this.resize(this.strip, () => this.drawRanges());
    this.load();
    this.ranges();
    this.mend();
  }

  build() {
    this.facts = element("span", { class: "dlk-soft", role: "status" });
    this.map = element("div", { class: "dlk-fb-map" });
    this.sizes = element("div", { class: "dlk-fb-sizes" });
    this.choice = element("select", { "aria-label": "Column whose intervals are drawn", onchange: () => this.set({ column: this.choice.value }) },
      ...this.model.get("columns").map((name) => element("option", {}, name)));
    this.told = element("span", { class: "dlk-soft" });
    this.strip = element("div", { class: "dlk-fb-strip" });
    this.care = element("div", { class: "dlk-fb-care" });
    this.detail = element("div", { class: "dlk-fb-detail", "aria-live": "polite" });
    this.grid = new Grid({
      label: `Data files of ${this.model.get("title")}`, height: 260, columns: [],
      fetch: async (start, count) => {
        const { buffers } = await this.line.ask("page", { start, count });
        const { length, columns } = readArrow(buffers[0]);
        return Array.from({ length }, (_, at) => ({ name: columns.name[at], path: columns.path[at], age: columns.age[at] }));
      },
      cells: (row, at) => this.cells(row, at),
      onSelect: (at) => this.set({ place: at }),
      onError: (error) => this.detail.replaceChildren(element("p", { role: "alert" }, error.message)),
    });
    this.caption = element("span");
    this.pictures = element("div", { class: "dlk-fb-two" },
      element("figure", {}, element("figcaption", {}, this.caption, " ", element("span", { class: "dlk-soft" }, "red: share of rows deleted")), this.map),
      element("figure", {}, element("figcaption", {}, "File sizes"), this.sizes));
    this.ranged = element("div", { class: "dlk-bar dlk-fb-ranges" }, element("b", {}, "Range per file of"), this.choice, this.told);
    this.root = element("div", { class: "dlk-live dlk-fb", "data-lm-suppress-shortcuts": "true" },
      element("div", { class: "dlk-bar" }, element("strong", {}, this.model.get("title")), this.facts),
      this.pictures, this.care, this.ranged, this.strip, this.grid.root, this.detail);
  }

  cells(row, at) {
    const { size: sizes, rows, partition, snapshot } = this.data;
    const bar = element("span", { class: "dlk-fb-bar", "aria-hidden": "true" }, element("i", { style: `width:${(100 * sizes[at]) / this.largest}%` }));
    return [
      element("span", { class: "dlk-mono", title: row.path }, row.name), ...(this.divided ? [this.model.get("partitions")[partition[at]]] : []),
      String(snapshot[at]), ...(this.narrow ? [] : [row.age]), number.format(rows[at]), this.deletedOf(at), [size(sizes[at]), bar],
    ];
  }

  deletedOf(at) {
    const { rows, deleted } = this.data;
    return deleted[at] ? `${number.format(deleted[at])} (${percent(deleted[at] / Math.max(rows[at], 1))})` : "–";
  }

  load() {
    const { length, columns } = readArrow(this.model.get("overview"));
    this.data = columns;
    this.length = length;
    this.largest = columns.size.reduce((most, one) => Math.max(most, one), 1);
    const sum = (list) => list.reduce((total, one) => total + one, 0);
    const deleted = sum(columns.deleted);
    const inlined = this.model.get("inlined");
    this.facts.textContent = [this.model.get("note"), counted(length, "file"), size(sum(columns.size)), counted(sum(columns.rows), "row"),
      inlined ? `${counted(inlined, "more row")} in the catalog` : null, deleted ? `${number.format(deleted)} deleted` : null].filter(Boolean).join(" · ");
    this.divided = this.model.get("partitions").some((name) => name);
    this.caption.textContent = this.divided ? "Size by partition" : "Size by file";
    this.lay();
    this.grid.reset(length);
    for (const part of [this.pictures, this.ranged, this.strip, this.grid.root]) part.style.display = length ? "" : "none";
    if (length) this.draw();
  }

  lay() {
    if (!this.data) return;
    const [sorted, down] = this.model.get("sort");
    const columns = this.data;
    this.narrow = this.root.clientWidth < NARROW;
    this.root.classList.toggle("dlk-fb-narrow", this.narrow);
    const widths = {
      file: `minmax(${this.narrow ? 8 : 11}em, 1.6fr)`, ...(this.divided ? { partition: `minmax(${this.narrow ? 6 : 7}em, 1.2fr)` } : {}),
      snapshot: "5.6em", ...(this.narrow ? {} : { age: "4.5em" }),
      rows: room(columns.rows.map((one) => number.format(one))), deleted: room(columns.rows.map((_, at) => this.deletedOf(at)), 0.4), size: this.narrow ? "4.5em" : "10.6em",
    };
    this.grid.setColumns(Object.entries(widths).map(([name, width]) => ({
      name, width, right: !WORDS.includes(name), sort: name === sorted ? (down ? "descending" : "ascending") : "none",
      head: name === "age" ? "age" : element("button", { type: "button", class: "dlk-fb-sort", onclick: () => this.set({ sort: [name, name === sorted ? !down : !WORDS.includes(name)] }) },
        name + (name === sorted ? (down ? " ▼" : " ▲") : "")),
    })));
    this.grid.draw();
  }

  // Squares of the files, or of the partitions where there are too many files, their area the size.
  boxes() {
    const { size: sizes, rows, deleted, partition } = this.data;
    const names = this.model.get("partitions");
    if (this.length <= DRAWN) {
      return sizes.map((value, at) => ({ value, at, group: partition[at], share: rows[at] ? deleted[at] / rows[at] : 0, name: names[partition[at]] }));
    }
    const groups = names.map((name) => ({ value: 0, rows: 0, deleted: 0, count: 0, name }));
    partition.forEach((group, at) => {
      const one = groups[group];
      one.value += sizes[at]; one.rows += rows[at]; one.deleted += deleted[at]; one.count += 1;
    });
    return groups.map((one, at) => ({ ...one, group: at, share: one.rows ? one.deleted / one.rows : 0 })).sort((a, b) => b.value - a.value).slice(0, DRAWN);
  }

  draw() {
    const width = this.map.clientWidth;
    if (!width || !this.data) return;
    const height = 150;
    const svg = shape("svg", { width, height, role: "img", "aria-label": `${number.format(this.length)} files by size; the list below tells each` });
    const boxes = this.boxes().filter((box) => box.value > 0).sort((a, b) => a.group - b.group || b.value - a.value);
    for (const { box, x, y, w, h } of squarify(boxes, width, height)) {
      const group = shape("g", { class: "dlk-fb-box" });
      group.append(shape("rect", { x: x + 0.5, y: y + 0.5, width: Math.max(0.5, w - 1), height: Math.max(0.5, h - 1), rx: 1.5, class: box.group % 2 ? "dlk-fb-odd" : "dlk-fb-even" }));
      if (box.share) {
        const tall = Math.max(1, (h - 1) * box.share);
        group.append(shape("rect", { x: x + 0.5, y: y + h - tall - 0.5, width: Math.max(0.5, w - 1), height: tall, class: "dlk-fb-gone" }));
      }
      if (w > 74 && h > 18 && box.name) {
        const text = shape("text", { x: x + 5, y: y + 14, class: "dlk-fb-name" }, box.name.length * 6.4 > w - 8 ? box.name.slice(0, Math.floor((w - 14) / 6.4)) + "…" : box.name);
        group.append(text);
      }
      group.append(shape("title", {}, [box.name, box.count ? `${number.format(box.count)} files` : null, size(box.value), box.share ? `${percent(box.share)} deleted` : null].filter(Boolean).join(" · ")));
      if (box.at !== undefined) group.addEventListener("click", () => { this.set({ place: box.at }); });
      svg.append(group);
    }
    this.map.replaceChildren(svg);
    this.histogram();
  }

  histogram() {
    const width = this.sizes.clientWidth || 300, height = 150, base = height - 18;
    const svg = shape("svg", { width, height, role: "img" });
    const logs = this.data.size.map((one) => Math.log10(Math.max(one, 1)));
    const low = Math.floor(Math.min(...logs.slice(0, 50_000)) * 2) / 2;
    const bins = new Map();
    for (const one of logs) { const bin = Math.max(0, Math.floor((one - low) * 4)); bins.set(bin, (bins.get(bin) || 0) + 1); }
    const count = Math.max(...bins.keys()) + 1;
    const largest = Math.max(...bins.values());
    const slot = width / Math.max(count, 6);
    for (const [bin, files] of bins) {
      const tall = Math.max(2, (base - 16) * (files / largest));
      const from = size(10 ** (low + bin / 4)), to = size(10 ** (low + (bin + 1) / 4));
      const group = shape("g", {});
      group.append(shape("rect", { x: bin * slot + 1, y: base - tall, width: Math.max(1, slot - 2), height: tall, rx: 1.5, class: "dlk-fb-even" }));
      if (slot > 26) group.append(shape("text", { x: (bin + 0.5) * slot, y: base - tall - 4, "text-anchor": "middle", class: "dlk-soft" }, compact(files)));
      group.append(shape("title", {}, `${counted(files, "file")} of ${from} to ${to}`));
      svg.append(group);
    }
    const every = Math.max(1, Math.ceil(64 / slot));
    for (let bin = 0; bin * slot + 50 < width; bin += every) {
      svg.append(shape("text", { x: bin * slot, y: height - 4, class: "dlk-soft" }, size(10 ** (low + bin / 4))));
    }
    svg.append(shape("line", { x1: 0, x2: width, y1: base, y2: base, stroke: "currentColor", "stroke-opacity": 0.3 }));
    svg.setAttribute("aria-label", `Sizes of ${number.format(this.length)} files, from ${size(10 ** Math.min(...logs.slice(0, 50_000)))} to ${size(this.largest)}`);
    this.sizes.replaceChildren(svg);
  }

  async ranges() {
    const column = this.model.get("column");
    if (!column) return;
    this.choice.value = column;
    const asked = (this.asking = {});
    const { content, buffers } = await this.line.ask("ranges", { column });
    if (asked !== this.asking) return;
    const { length, columns } = readArrow(buffers[0]);
    const nulls = content.nulls === null ? "" : `${percent(content.nulls)} null${content.nan ? ", has NaN" : ""}`;
    const told = length ? `a filter on one value reads ${content.depth.toFixed(1)} of ${counted(content.files, "file")} on average` : "no ranges to compare";
    this.told.textContent = [told, nulls].filter(Boolean).join(" · ");
    this.intervals = { length, columns, low: content.low, high: content.high };
    this.drawRanges();
  }

  drawRanges() {
    const { length, columns, low, high } = this.intervals || {};
    const width = this.strip.clientWidth;
    if (!length) { this.strip.replaceChildren(); return; }
    if (!width) return;
    const step = Math.max(1.2, Math.min(7, 120 / length));
    const svg = shape("svg", { width, height: step * length + 4, role: "img", "aria-label": `Ranges of ${this.model.get("column")}: ${this.told.textContent}` });
    for (let at = 0; at < length; at++) {
      const x1 = 2 + columns.low[at] * (width - 4), x2 = 2 + columns.high[at] * (width - 4);
      svg.append(shape("line", { x1, x2: Math.max(x2, x1 + 1), y1: 2 + step * (at + 0.5), y2: 2 + step * (at + 0.5), "stroke-width": Math.max(0.9, step - 1.4), "stroke-linecap": "round", class: "dlk-fb-line" }));
    }
    this.strip.replaceChildren(svg, element("div", { class: "dlk-fb-ends dlk-soft" }, element("span", {}, low), element("span", {}, high)));
  }

  mend() {
    const findings = this.model.get("findings");
    const can = this.model.get("can_mend");
    this.care.replaceChildren(...findings.map(([problem, effect, call], index) => {
      const facts = [element("span", {}, "⚠ " + problem), element("code", {}, call)];
      if (!can) return element("div", { class: "dlk-fb-finding" }, ...facts, element("span", { class: "dlk-soft" }, effect));
      const told = element("span", { class: "dlk-soft", role: "status" });
      const run = element("button", { type: "button", disabled: true, onclick: async () => {
        run.disabled = true;
        told.textContent = "Running …";
        try {
          await this.line.ask("mend", { index });
          told.textContent = "Done; run %ducklake files again to see the files as they are now.";
        } catch (error) {
          told.replaceChildren(element("span", { role: "alert" }, error.message));
        }
      } }, "Run it");
      const dry = element("button", { type: "button", onclick: () => { told.textContent = effect; run.disabled = false; } }, "Dry run");
      return element("div", { class: "dlk-fb-finding" }, ...facts, element("span", { class: "dlk-fb-acts" }, dry, run), told);
    }));
  }

  async follow() {
    const at = this.model.get("place");
    if (at === null) { this.detail.replaceChildren(); return; }
    if (this.grid.cursor !== at) this.grid.reveal(at);
    const { content } = await this.line.ask("stats", { place: at });
    // The kernel's own static view, which escapes everything that comes from the catalog.
    if (this.model.get("place") === at) this.detail.innerHTML = content.html;
  }
}

// Rows of boxes as near to squares as they get, in the order given: { box, x, y, w, h } each.
function squarify(boxes, width, height) {
  const total = boxes.reduce((sum, box) => sum + box.value, 0);
  const found = [];
  let x = 0, y = 0, w = width, h = height, left = total, row = [], sum = 0;
  const worst = (values, of, side) => {
    const strip = (of / left) * (w * h) / side;
    return Math.max(...values.map((box) => { const long = ((box.value / of) * side); return Math.max(long / strip, strip / long); }));
  };
  const place = () => {
    const down = w >= h;
    const side = down ? h : w;
    const strip = ((sum / left) * w * h) / side || 0;
    let at = 0;
    for (const box of row) {
      const long = (box.value / sum) * side;
      found.push(down ? { box, x, y: y + at, w: strip, h: long } : { box, x: x + at, y, w: long, h: strip });
      at += long;
    }
    if (down) { x += strip; w -= strip; } else { y += strip; h -= strip; }
    left -= sum;
    row = []; sum = 0;
  };
  for (const box of boxes) {
    const side = Math.min(w, h);
    if (row.length && worst([...row, box], sum + box.value, side) > worst(row, sum, side)) place();
    row.push(box);
    sum += box.value;
  }
  if (row.length) place();
  return found;
}

export default mounted(Files);

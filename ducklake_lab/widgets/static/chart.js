// A chart of the rows that are seen. The kernel counts and sums; this draws, and lists the same numbers as a table.

const CHART = { height: 300, top: 12, bottom: 40, bar: 22 };
const AGGREGATED = new Set(["bar", "line"]);
const exact = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 12 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 3 });

function tick(value) {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e15)) return value.toExponential().replace("e+", "e");
  return size >= 1e4 ? short.format(value) : exact.format(value);
}

// A number as it was written, by thousands.
const grouped = (text) => text.replace(/^(-?)(\d+)(?=\.\d+$|$)/, (_, sign, digits) => sign + digits.replace(/\B(?=(\d{3})+$)/g, ","));

// Round numbers from the first below the low end to the first above the high one, some `count` of them.
function ticks(low, high, count) {
  if (!(high > low)) [low, high] = [low - (Math.abs(low) || 1), high + (Math.abs(high) || 1)];
  const rough = high / count - low / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough * 0.999);
  const first = Math.floor(low / step), last = Math.ceil(high / step);
  // dividing by a whole number gives the number that is written 0.3, multiplying by 0.1 another one
  return Array.from({ length: last - first + 1 }, (_, at) => step < 1 ? (first + at) / Math.round(1 / step) : (first + at) * step);
}

// How far a value is from the low end to the high one; halves, as the difference of two numbers may be infinite.
const part = (value, low, high) => (value / 2 - low / 2) / (high / 2 - low / 2 || 1);

// As model/labels.py: NULL as such, and texts that could be taken for it, or for none, in quotes.
function named(label) {
  if (label === null) return "NULL";
  return label === "NULL" || label === "" || /^'(.*')?$/s.test(label) ? `'${label}'` : label;
}

class Chart {
  // table: { line, model }
  constructor(table) {
    this.table = table;
    this.isStale = true;
    const select = (label, changed) => {
      const node = element("select", { "aria-label": label, onchange: () => changed(node.value) });
      this[label.toLowerCase()] = node;
      return element("span", { class: "dlk-tb-choice" }, element("span", { class: "dlk-soft", "aria-hidden": "true" }, label), node);
    };
    // What was asked for last, which the next change builds on though it is not answered yet.
    this.asked = {};
    const over = select("Of", (value) => this.ask({ ...this.asked, aggregate: value }));
    this.over = over;
    this.note = element("span", { class: "dlk-soft", role: "status" });
    this.title = element("strong", {});
    this.drawing = element("div", { class: "dlk-tb-drawing" });
    this.grid = new Grid({
      label: "Points", height: 260, columns: [],
      fetch: (start, count) => this.points.slice(start, start + count), cells: (row) => this.cells(row),
    });
    this.numbers = element("details", { ontoggle: () => this.grid.draw() }, element("summary", {}, "Numbers"), this.grid.root);
    this.problem = element("span", { role: "alert" });
    this.root = element("div", {},
      element("div", { class: "dlk-bar" },
        select("Chart", (kind) => this.ask({ kind })), select("X", (x) => this.ask({ ...this.asked, x })),
        select("Y", (y) => this.ask({ ...this.asked, y: y || null, aggregate: this.aggregate(y) })), over,
        copying("Copy Plotly code", async () => (await this.table.line.ask("code", this.choice)).content.text),
        copying("Copy SQL", () => this.answer.sql), this.problem),
      element("div", { class: "dlk-tb-caption" }, this.title, " ", this.note), this.drawing, this.numbers);
  }

  // What becomes of the values of a y; rows are counted.
  aggregate(y) {
    if (!AGGREGATED.has(this.asked.kind)) return null;
    if (!y) return "count";
    return this.asked.y === null ? "sum" : this.asked.aggregate;
  }

  // Draws what is seen now, if that is not drawn yet.
  refresh() {
    if (this.isStale) this.ask(this.asked);
    else this.draw();
  }

  async ask(choice) {
    this.asked = choice;
    this.isStale = false;
    let look;
    try {
      await this.table.all();
      look = this.table.model.get("look");
      const { content, buffers } = await this.table.line.ask("chart", choice);
      if (this.asked !== choice || look !== this.table.model.get("look")) return;
      this.problem.textContent = "";
      const { length, columns } = readArrow(buffers[0]);
      this.answer = content;
      this.choice = this.asked = content.choice;
      this.points = Array.from({ length }, (_, at) => Object.fromEntries(Object.entries(columns).map(([name, list]) => [name, list[at]])));
      this.fill();
      this.draw();
    } catch (error) {
      if (this.asked !== choice) return;
      this.problem.textContent = error.message;
      if (!this.answer) return;
      this.asked = this.choice;
      this.fill();
    }
  }

  fill() {
    const { kinds, xs, ys, aggregates, title, notes, y_title, x_title, choice } = this.answer;
    const options = (node, list, chosen) => node.replaceChildren(...list.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
    const named = (list) => list.map((one) => [one, one]);
    options(this.chart, named(kinds), choice.kind);
    options(this.x, xs, choice.x);
    options(this.y, [...(AGGREGATED.has(choice.kind) ? [["", "rows"]] : []), ...ys], choice.y ?? "");
    options(this.of, named(aggregates), choice.aggregate);
    this.y.parentNode.hidden = choice.kind === "histogram";
    this.over.hidden = !AGGREGATED.has(choice.kind) || choice.y === null;
    this.title.textContent = title;
    this.note.textContent = [`${counted(this.points.length, "point")}`, ...notes].join(" · ");
    this.shown = [["label", x_title], ["until", "until"], ["value", y_title], ["value_until", "until"], ["rows", "rows"]]
      .filter(([name]) => (name !== "rows" || y_title !== "rows") && (name === "label" || this.points.some((point) => point[name] !== null)));
    this.grid.setColumns(this.shown.map(([name, text]) => ({ name: text, right: name !== "label" })));
    this.grid.reset(this.points.length);
  }

  cells(point) {
    return this.shown.map(([name]) => point[name] === null ? element("i", { class: "dlk-soft" }, "NULL") : typeof point[name] === "number" ? number.format(point[name]) : point[name]);
  }

  // What is said of a point where it is pointed at.
  told({ label, until, value, value_until, rows }) {
    const { x_title, y_title } = this.answer;
    const span = (from, to) => (from === null ? "NULL" : to === null ? from : `${from} to ${to}`);
    return [`${x_title}: ${span(label, until)}`, `${y_title}: ${span(value, value_until)}`, ...(y_title === "rows" ? [] : [counted(rows, "row")])].join("\n");
  }

  draw() {
    const width = this.drawing.clientWidth;
    if (!width || !this.answer) return;
    const points = this.points.filter((point) => Number.isFinite(point.y));
    if (!points.length) { this.drawing.replaceChildren(element("p", { class: "dlk-soft" }, "There is nothing to draw.")); return; }
    const svg = this.choice.kind === "bar" ? this.bars(points, width) : this.plane(points, width);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${this.answer.title}; ${this.note.textContent}`);
    this.drawing.replaceChildren(svg);
  }

  mark(svg, tag, attributes, point) {
    const node = shape(tag, attributes);
    node.append(shape("title", {}, this.told(point)));
    svg.append(node);
  }

  bars(points, width) {
    const svg = shape("svg", { width, height: points.length * CHART.bar + 8 });
    const longest = Math.max(...points.map(({ label }) => named(label).length));
    const left = Math.min(230, Math.max(40, longest * 6.6 + 10));
    const numbers = Math.max(...points.map(({ value }) => grouped(value).length)) * 6.8 + 10;
    const low = Math.min(0, ...points.map(({ y }) => y)), high = Math.max(0, ...points.map(({ y }) => y));
    const below = low < 0 ? numbers : 0;
    const scale = (y) => left + below + (width - left - below - numbers) * part(y, low, high);
    points.forEach((point, at) => {
      const { label, y, value } = point, top = at * CHART.bar + 3;
      const name = named(label), most = Math.round((left - 10) / 6.6);
      this.mark(svg, "rect", { x: Math.min(scale(0), scale(y)), y: top, width: Math.max(1, Math.abs(scale(y) - scale(0))), height: CHART.bar - 6, rx: 2, class: "dlk-tb-fill" }, point);
      const text = shape("text", { x: left - 6, y: top + 12, "text-anchor": "end", "font-style": label === null ? "italic" : "normal" }, name.length > most ? name.slice(0, most - 1) + "…" : name);
      text.append(shape("title", {}, name));
      svg.append(text, shape("text", y < 0 ? { x: scale(y) - 5, y: top + 12, "text-anchor": "end" } : { x: scale(y) + 5, y: top + 12 }, grouped(value)));
    });
    svg.append(shape("line", { x1: scale(0), x2: scale(0), y1: 0, y2: points.length * CHART.bar, class: "dlk-tb-axis" }));
    return svg;
  }

  plane(points, width) {
    const { height, top, bottom } = CHART;
    const svg = shape("svg", { width, height });
    const isHistogram = this.choice.kind === "histogram";
    const ends = (name, end) => points.flatMap((point) => (point[end] === null ? [point[name]] : [point[name], point[end]]));
    const ys = ends("y", "y_end");
    const up = ticks(Math.min(...ys, ...(isHistogram ? [0] : [])), Math.max(...ys), 5);
    const left = Math.max(...up.map((one) => tick(one).length)) * 6.8 + 12, right = 14;
    const xs = ends("x", "x_end");
    const isTime = this.answer.x_role === "time";
    const along = isTime || isHistogram ? null : ticks(Math.min(...xs), Math.max(...xs), Math.max(2, width / 110));
    const [first, last] = along ? [along[0], along.at(-1)] : [Math.min(...xs), Math.max(...xs)];
    const x = (value) => left + (width - left - right) * (last > first ? part(value, first, last) : 0.5);
    const y = (value) => height - bottom - (height - top - bottom) * part(value, up[0], up.at(-1));
    for (const one of up) {
      svg.append(shape("line", { x1: left, x2: width - right, y1: y(one), y2: y(one), class: "dlk-tb-axis" }), shape("text", { x: left - 6, y: y(one) + 4, "text-anchor": "end" }, tick(one)));
    }
    this.along(svg, along ? along.map((one) => [x(one), tick(one)]) : this.labels(points, x, width), height - bottom, width);
    svg.append(shape("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", class: "dlk-tb-name" }, this.answer.x_title));
    if (this.choice.kind === "line") this.line(svg, points, x, y);
    const most = Math.max(...points.map(({ rows }) => rows));
    for (const point of points) {
      if (isHistogram || point.y_end !== null) {
        const [low, high] = isHistogram ? [0, point.y] : [point.y, point.y_end];
        const place = { x: x(point.x) + 0.5, width: Math.max(1, x(point.x_end) - x(point.x) - 1), y: y(high), height: Math.max(1, y(low) - y(high) - (isHistogram ? 0 : 1)) };
        this.mark(svg, "rect", { ...place, class: "dlk-tb-fill", "fill-opacity": isHistogram ? 1 : 0.15 + (0.85 * point.rows) / most }, point);
      } else {
        const r = this.choice.kind === "line" ? (points.length > 150 ? 1.5 : 3) : 3 + 5 * Math.sqrt((point.rows - 1) / most);
        this.mark(svg, "circle", { cx: x(point.x), cy: y(point.y), r, class: "dlk-tb-fill", "fill-opacity": this.choice.kind === "line" ? 1 : 0.6 }, point);
      }
    }
    return svg;
  }

  // Points that follow each other are joined, over none that has no number.
  line(svg, drawn, x, y) {
    const known = new Set(drawn);
    let path = "", joined = false;
    for (const point of this.points) {
      if (known.has(point)) path += `${joined ? "L" : "M"}${x(point.x)} ${y(point.y)}`;
      joined = known.has(point);
    }
    svg.append(shape("path", { d: path, class: "dlk-tb-line" }));
  }

  // Texts of points that are apart, at their places: the kernel writes times, in the zone of the session.
  labels(points, x, width) {
    const places = points.map((point) => [x(point.x), point.label]);
    const end = points.at(-1);
    if (end.until !== null) places.push([x(end.x_end), end.until]);
    const rest = / 00:00:00(\+00)?$/;
    return places.every(([, text]) => rest.test(text)) ? places.map(([at, text]) => [at, text.replace(rest, "")]) : places;
  }

  along(svg, places, base, width) {
    let free = 0;
    for (const [at, text] of places) {
      const wide = text.length * 6.8;
      const from = Math.min(Math.max(0, at - wide / 2), width - wide);
      if (from < free) continue;
      svg.append(shape("line", { x1: at, x2: at, y1: base, y2: base + 4, class: "dlk-tb-axis" }), shape("text", { x: from + wide / 2, y: base + 17, "text-anchor": "middle" }, text));
      free = from + wide + 24;
    }
  }
}

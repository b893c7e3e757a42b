// A chart of the visible rows. The kernel counts and sums; this draws, and lists the same numbers as a table.

const CHART = { height: 300, top: 12, bottom: 40, bar: 22 };
const AGGREGATED = new Set(["bar", "line"]);
// Pixels of a bar of one of several colours, of the space between groups of them, and of a line of the legend.
const THIN = { bar: 9, gap: 8, legend: 18 };
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

// A time without its clock, where that is midnight.
const shortTime = (text) => (text === null ? "NULL" : text.replace(/ 00:00:00([+-]\d\d(:\d\d)?)?$/, ""));

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
    // The last question; the next change builds on it before its answer is here.
    this.asked = table.model.get("drawn");
    const over = select("Of", (value) => this.choose({ ...this.asked, aggregate: value }));
    this.over = over;
    const by = select("Bins", (bins) => this.choose({ ...this.asked, bins: bins || null }));
    this.by = by;
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
        select("Chart", (kind) => this.choose({ kind, color: this.asked.color })), select("X", (x) => this.choose({ ...this.asked, x, bins: null })), by,
        select("Y", (y) => this.choose({ ...this.asked, y: y || null, aggregate: this.aggregate(y) })), over,
        select("Colour", (color) => this.choose({ ...this.asked, color: color || null })),
        copying("Copy Plotly code", async () => (await this.table.line.ask("code", this.choice)).content.text),
        copying("Copy SQL", () => this.answer.sql), this.problem),
      element("div", { class: "dlk-tb-caption" }, this.title, " ", this.note), this.drawing, this.numbers);
  }

  // How the values of a y are aggregated; rows are counted.
  aggregate(y) {
    if (!AGGREGATED.has(this.asked.kind)) return null;
    if (!y) return "count";
    return this.asked.y === null ? "sum" : this.asked.aggregate;
  }

  // Draws the visible rows, unless they are drawn already.
  async refresh() {
    if (this.isStale) await this.ask(this.asked);
    else this.draw();
  }

  // Draws a user's choice, which stays, and is saved in the notebook.
  async choose(choice) {
    await this.ask(choice);
    if (this.problem.textContent) return;
    this.table.set({ drawn: this.choice });
    this.table.kept = true;
    await this.keep();
  }

  // Writes the picture into the saved output, or takes it out where the chart is closed.
  async keep() {
    const drawn = this.table.is("chart") ? this.drawing.querySelector("svg") : null;
    try {
      const { content } = await this.table.line.ask("still", { chart: drawn ? this.choice : null });
      if (!drawn) { this.table.keep(content.html); return; }
      const picture = drawn.cloneNode(true);
      picture.setAttribute("viewBox", `0 0 ${picture.getAttribute("width")} ${picture.getAttribute("height")}`);
      picture.setAttribute("style", "max-width:100%;height:auto");
      this.table.keep(content.html.replace(content.place, () => picture.outerHTML));
    } catch {
      // the kernel is gone: the page says so
    }
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
    const { kinds, xs, ys, colors, aggregates, bins, is_time, title, notes, y_title, x_title, choice } = this.answer;
    const options = (node, list, chosen) => node.replaceChildren(...list.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
    const plain = (list) => list.map((one) => [one, one]);
    options(this.chart, plain(kinds), choice.kind);
    options(this.x, xs, choice.x);
    options(this.y, [...(AGGREGATED.has(choice.kind) ? [["", "rows"]] : []), ...ys], choice.y ?? "");
    options(this.of, plain(aggregates), choice.aggregate);
    options(this.colour, [["", "one"], ...colors], choice.color ?? "");
    options(this.bins, [["", "by the span"], ...plain(bins)], choice.bins ?? "");
    this.by.hidden = !is_time;
    this.y.parentNode.hidden = choice.kind === "histogram";
    this.over.hidden = !AGGREGATED.has(choice.kind) || choice.y === null;
    this.title.textContent = title;
    this.note.textContent = [`${counted(this.points.length, "point")}`, ...notes].join(" · ");
    this.series = [];
    for (const { color, series } of this.points) if (color !== null) this.series[color] = named(series);
    this.shown = [["label", x_title], ["until", "until"], ["series", colors.find(([name]) => name === choice.color)?.[1]], ["value", y_title], ["value_until", "until"], ["rows", "rows"]]
      .filter(([name]) => (name !== "rows" || y_title !== "rows") && (name === "label" || (name === "series" && this.series.length) || this.points.some((point) => point[name] !== null)));
    this.grid.setColumns(this.shown.map(([name, text]) => ({ name: text, right: name !== "label" && name !== "series" })));
    this.grid.reset(this.points.length);
  }

  cells(point) {
    return this.shown.map(([name]) => point[name] === null ? element("i", { class: "dlk-soft" }, "NULL") : typeof point[name] === "number" ? number.format(point[name]) : point[name]);
  }

  // Text of a point, shown under the pointer.
  told({ label, until, value, value_until, rows, series, color }) {
    const { x_title, y_title, choice } = this.answer;
    const span = (from, to) => (from === null ? "NULL" : to === null ? from : `${from} to ${to}`);
    return [`${x_title}: ${span(label, until)}`, ...(color === null ? [] : [`${choice.color}: ${series === null ? "NULL" : series}`]), `${y_title}: ${span(value, value_until)}`, ...(y_title === "rows" ? [] : [counted(rows, "row")])].join("\n");
  }

  draw() {
    const width = this.drawing.clientWidth;
    if (!width || !this.answer) return;
    const points = this.points.filter((point) => Number.isFinite(point.y));
    if (!points.length) { this.drawing.replaceChildren(element("p", { class: "dlk-soft" }, "There is nothing to draw.")); return; }
    const legend = this.legend(width);
    const svg = this.choice.kind === "bar" ? this.bars(points, width, legend.high) : this.plane(points, width, legend.high);
    svg.prepend(...legend.shapes);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${this.answer.title}; ${this.note.textContent}`);
    this.drawing.replaceChildren(svg);
  }

  // Fill of a point: that of its value of the column of colours.
  fillOf({ color }) {
    return this.answer.palette[color ?? 0];
  }

  // The names of the colours over the drawing, in as many lines as they need.
  legend(width) {
    const shapes = [];
    let left = 0, line = 0;
    this.series.forEach((name, at) => {
      const text = name.length > 40 ? name.slice(0, 39) + "…" : name, wide = text.length * 6.8 + 34;
      if (left && left + wide > width) { left = 0; line += 1; }
      const top = line * THIN.legend + 3;
      const label = shape("text", { x: left + 15, y: top + 9 }, text);
      label.append(shape("title", {}, name));
      shapes.push(shape("rect", { x: left, y: top, width: 10, height: 10, rx: 2, fill: this.answer.palette[at] }), label);
      left += wide;
    });
    return { shapes, high: shapes.length ? (line + 1) * THIN.legend + 6 : 0 };
  }

  mark(svg, tag, attributes, point) {
    const node = shape(tag, attributes);
    node.append(shape("title", {}, this.told(point)));
    svg.append(node);
  }

  bars(points, width, above) {
    // the bars of one value of x stand together
    const groups = new Map();
    for (const point of points) groups.set(point.place, [...(groups.get(point.place) ?? []), point]);
    const isOne = !this.series.length;
    const [thick, gap, start] = isOne ? [CHART.bar - 6, 6, 3] : [THIN.bar, THIN.gap, 4];
    const height = points.length * (isOne ? CHART.bar : THIN.bar + 2) + (isOne ? 0 : groups.size * gap);
    const svg = shape("svg", { width, height: above + height + 8 });
    const span = ({ label, until }) => (until === null ? named(label) : shortTime(label));
    const longest = Math.max(...points.map((point) => span(point).length));
    const left = Math.min(230, Math.max(40, longest * 6.6 + 10));
    const numbers = Math.max(...points.map(({ value }) => grouped(value).length)) * 6.8 + 10;
    const low = Math.min(0, ...points.map(({ y }) => y)), high = Math.max(0, ...points.map(({ y }) => y));
    const below = low < 0 ? numbers : 0;
    const scale = (y) => left + below + (width - left - below - numbers) * part(y, low, high);
    const most = Math.round((left - 10) / 6.6);
    let top = above + start;
    for (const group of groups.values()) {
      const { label } = group[0], name = span(group[0]);
      const middle = top + (isOne ? thick : group.length * (thick + 2) - 2) / 2 + 4;
      const text = shape("text", { x: left - 6, y: middle, "text-anchor": "end", "font-style": label === null ? "italic" : "normal" }, name.length > most ? name.slice(0, most - 1) + "…" : name);
      text.append(shape("title", {}, name));
      svg.append(text);
      for (const point of group) {
        const { y, value } = point;
        this.mark(svg, "rect", { x: Math.min(scale(0), scale(y)), y: top, width: Math.max(1, Math.abs(scale(y) - scale(0))), height: thick, rx: 2, fill: this.fillOf(point) }, point);
        const at = { y: top + thick / 2 + 4, ...(isOne ? {} : { style: "font-size:10px" }) };
        svg.append(shape("text", y < 0 ? { x: scale(y) - 5, ...at, "text-anchor": "end" } : { x: scale(y) + 5, ...at }, grouped(value)));
        top += isOne ? CHART.bar : thick + 2;
      }
      if (!isOne) top += gap;
    }
    svg.append(shape("line", { x1: scale(0), x2: scale(0), y1: above, y2: above + height, class: "dlk-tb-axis" }));
    return svg;
  }

  plane(points, width, above) {
    const { bottom } = CHART, top = CHART.top + above, height = CHART.height + above;
    const svg = shape("svg", { width, height });
    const isHistogram = this.choice.kind === "histogram";
    const ends = (name, end) => points.flatMap((point) => (point[end] === null ? [point[name]] : [point[name], point[end]]));
    // counts of the colours of an interval stand on each other
    const feet = new Map();
    if (isHistogram) {
      const tops = new Map();
      for (const point of points) { feet.set(point, tops.get(point.place) ?? 0); tops.set(point.place, feet.get(point) + point.y); }
    }
    const ys = isHistogram ? points.map((point) => feet.get(point) + point.y) : ends("y", "y_end");
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
    this.along(svg, along ? along.map((one) => [x(one), tick(one)]) : this.labels(points, x), height - bottom, width);
    svg.append(shape("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", class: "dlk-tb-name" }, this.answer.x_title));
    if (this.choice.kind === "line") this.line(svg, points, x, y);
    const most = Math.max(...points.map(({ rows }) => rows));
    for (const point of points) {
      if (isHistogram || point.y_end !== null) {
        const [low, high] = isHistogram ? [feet.get(point), feet.get(point) + point.y] : [point.y, point.y_end];
        const place = { x: x(point.x) + 0.5, width: Math.max(1, x(point.x_end) - x(point.x) - 1), y: y(high), height: Math.max(1, y(low) - y(high) - (isHistogram ? 0 : 1)) };
        this.mark(svg, "rect", { ...place, fill: this.fillOf(point), "fill-opacity": isHistogram ? 1 : 0.15 + (0.85 * point.rows) / most }, point);
      } else {
        const r = this.choice.kind === "line" ? (points.length > 150 ? 1.5 : 3) : 3 + 5 * Math.sqrt((point.rows - 1) / most);
        this.mark(svg, "circle", { cx: x(point.x), cy: y(point.y), r, fill: this.fillOf(point), "fill-opacity": this.choice.kind === "line" ? 1 : 0.6 }, point);
      }
    }
    return svg;
  }

  // Points of one colour that follow each other are joined, over none that has no number.
  line(svg, drawn, x, y) {
    const known = new Set(drawn);
    const paths = new Map();
    for (const point of this.points) {
      const path = paths.get(point.color) ?? { text: "", joined: false };
      if (known.has(point)) path.text += `${path.joined ? "L" : "M"}${x(point.x)} ${y(point.y)}`;
      path.joined = known.has(point);
      paths.set(point.color, path);
    }
    for (const [color, { text }] of paths) svg.append(shape("path", { d: text, stroke: this.fillOf({ color }), class: "dlk-tb-line" }));
  }

  // Round times that the kernel writes, in the zone of the session; of one time alone, or of numbers, those of the points.
  labels(points, x) {
    const { ticks } = this.answer;
    if (ticks.length) return ticks.map(([at, text]) => [x(at), text]);
    const places = points.map((point) => [x(point.x), shortTime(point.label)]);
    const end = points.at(-1);
    if (end.until !== null) places.push([x(end.x_end), shortTime(end.until)]);
    return places;
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

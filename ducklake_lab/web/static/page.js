// The page of `ducklake-lab open`: a heading, tabs, and the widgets of a notebook, each a model over one socket.
//
// A widget's module gets what anywidget gives it in a notebook: { model, el }, with a model of get, set, save_changes,
// on, off and send. Texts from the lake become text nodes here; HTML is drawn by the widgets alone.

const VIEWS = [
  { name: "snapshots", title: "Snapshots" },
  { name: "schema", title: "Schema" },
  { name: "rows", title: "Rows", ofTable: true },
  { name: "files", title: "Files", ofTable: true },
];

const node = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};

// The state of a widget on this side: changes go to Python when they are saved, and come from it as they happen.
class Model {
  constructor(channel, id) {
    this.channel = channel;
    this.id = id;
    this.state = {};
    this.unsaved = new Set();
    this.listeners = new Map();
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.unsaved.add(name);
    this.emit(`change:${name}`, this, value);
    this.emit("change", this);
  }

  save_changes() {
    if (!this.unsaved.size) return;
    const state = Object.fromEntries([...this.unsaved].map((name) => [name, this.state[name]]));
    this.unsaved.clear();
    this.tell({ method: "update", state, buffer_paths: [] });
  }

  send(content) {
    this.tell({ method: "custom", content });
  }

  tell(data) {
    this.channel.send({ type: "comm_msg", comm: this.id, data });
  }

  on(event, listener) {
    if (!this.listeners.has(event)) this.listeners.set(event, new Set());
    this.listeners.get(event).add(listener);
  }

  off(event, listener) {
    if (event === undefined) this.listeners.clear();
    else if (listener === undefined) this.listeners.delete(event);
    else this.listeners.get(event)?.delete(listener);
  }

  emit(event, ...values) {
    for (const listener of [...(this.listeners.get(event) || [])]) listener(...values);
  }

  // A message of the widget in Python.
  receive(data, buffers) {
    if (data.method === "custom") this.emit("msg:custom", data.content, buffers);
    if (data.method !== "update") return; // an echo of this page's own message changes nothing
    const changed = { ...data.state };
    data.buffer_paths.forEach((path, at) => {
      const last = path[path.length - 1];
      path.slice(0, -1).reduce((inside, key) => inside[key], changed)[last] = buffers[at];
    });
    Object.assign(this.state, changed);
    for (const name of Object.keys(changed)) this.emit(`change:${name}`, this, changed[name]);
    this.emit("change", this);
  }
}

// The socket: questions with answers, and the messages of the models.
class Channel {
  constructor(address, onEnd) {
    this.models = new Map();
    this.waiting = new Map();
    this.count = 0;
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.ready = new Promise((resolve) => this.socket.addEventListener("open", resolve));
    this.socket.addEventListener("message", (event) => this.receive(event.data));
    this.socket.addEventListener("close", () => {
      for (const { reject } of this.waiting.values()) reject(new Error("The connection to ducklake-lab has ended."));
      this.waiting.clear();
      onEnd();
    });
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  async ask(type, more = {}) {
    const request = ++this.count;
    const answer = new Promise((resolve, reject) => this.waiting.set(request, { resolve, reject }));
    await this.ready;
    this.send({ type, request, ...more });
    return answer;
  }

  receive(data) {
    const length = new DataView(data).getUint32(0, true);
    const message = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
    let at = 4 + length;
    const buffers = message.sizes.map((size) => { at += size; return new DataView(data, at - size, size); });
    if (message.type === "comm_msg") this.model(message.comm).receive(message.data, buffers);
    else if (message.type === "comm_close") this.models.delete(message.comm);
    else {
      const asked = this.waiting.get(message.request);
      this.waiting.delete(message.request);
      if (message.type === "failed") asked?.reject(new Error(message.error));
      else asked?.resolve(message);
    }
  }

  // The model of a comm; its state comes before the answer that names it.
  model(id) {
    if (!this.models.has(id)) this.models.set(id, new Model(this, id));
    return this.models.get(id);
  }
}

// A widget in its panel.
class View {
  static async open(page, view, table) {
    const el = node("div");
    const { comm, head } = await page.channel.ask("open", { view, ...(table ? { schema: table[0], table: table[1] } : {}) });
    const model = page.channel.model(comm);
    const { default: widget } = await import(`./widgets/${view}.js`);
    const cleanups = [await widget.initialize?.({ model }), await widget.render?.({ model, el })];
    return Object.assign(new View(), { page, comm, model, el, head, cleanups: cleanups.filter(Boolean) });
  }

  close() {
    for (const cleanup of this.cleanups) cleanup();
    this.model.off();
    this.page.channel.ask("close", { comm: this.comm }).catch(() => {}); // the socket has closed, and all views with it
  }
}

class Page {
  constructor() {
    this.open = new Map();
    this.tables = [];
    this.tabs = document.querySelector("#tabs");
    this.notice = document.querySelector("#notice");
    this.which = document.querySelector("#which");
    this.table = document.querySelector("#table");
    this.views = document.querySelector("#views");
    this.channel = new Channel(new URL("socket", location.href).href.replace(/^http/, "ws").split("#")[0], () => this.end());
    for (const { name, title } of VIEWS) this.build(name, title);
    this.tabs.addEventListener("keydown", (event) => this.key(event));
    this.table.addEventListener("change", () => this.go(this.view, this.tables[this.table.value]));
    addEventListener("hashchange", () => this.follow());
    addEventListener("focus", () => this.look());
    this.follow();
  }

  build(name, title) {
    document.head.append(node("link", { rel: "stylesheet", href: `widgets/${name}.css` }));
    this.tabs.append(node("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, onclick: () => this.go(name, this.chosen),
    }, title));
    this.views.append(node("section", { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`, hidden: "" }));
  }

  // The place is in the address, so that it stays when the page is loaded again: #rows/main/flights
  go(view, table) {
    const parts = [view, ...(VIEWS.find(({ name }) => name === view).ofTable && table ? table.slice(0, 2) : [])];
    const hash = "#" + parts.map(encodeURIComponent).join("/");
    if (location.hash === hash) this.follow();
    else location.hash = hash;
  }

  follow() {
    const [view, schema, table] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const known = VIEWS.find(({ name }) => name === view) || VIEWS[0];
    if (table !== undefined) this.chosen = [schema, table];
    this.show(known);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = VIEWS.findIndex(({ name }) => name === this.view);
    const next = VIEWS[(at + step + VIEWS.length) % VIEWS.length].name;
    this.go(next, this.chosen);
    document.querySelector(`#tab-${next}`).focus();
  }

  async show({ name, ofTable }) {
    this.view = name;
    for (const { name: other } of VIEWS) {
      document.querySelector(`#view-${other}`).hidden = other !== name;
      const tab = document.querySelector(`#tab-${other}`);
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
    }
    this.which.hidden = !ofTable;
    const panel = document.querySelector(`#view-${name}`);
    const token = (panel.token = {});
    if (ofTable && !this.chosen) {
      if (!this.head) this.take((await this.channel.ask("head")).head);
      this.chosen = this.tables[0];
      if (!this.chosen) { panel.replaceChildren(node("p", { class: "wait" }, "The lake has no table.")); return; }
    }
    const key = ofTable ? JSON.stringify(this.chosen.slice(0, 2)) : "";
    const live = this.open.get(name);
    if (live?.key === key) { this.look(); return; }
    if (live) { live.view.close(); this.open.delete(name); }
    panel.replaceChildren(node("p", { class: "wait", role: "status" }, "reading …"));
    try {
      const view = await View.open(this, name, ofTable ? this.chosen : null);
      if (token !== panel.token) { view.close(); return; }
      this.take(view.head);
      this.open.set(name, { key, view });
      panel.replaceChildren(view.el);
      if (name === "schema") this.lead(view, panel);
    } catch (error) {
      if (token === panel.token) panel.replaceChildren(node("p", { class: "wrong", role: "alert" }, error.message));
    }
  }

  // The heading is that of the newest view; views of an older snapshot are made anew when they are looked at.
  take(head) {
    if (this.head && this.head.snapshot !== head.snapshot) {
      for (const [name, { view }] of this.open) { view.close(); this.open.delete(name); document.querySelector(`#view-${name}`).replaceChildren(); }
    }
    this.head = head;
    this.tables = head.tables;
    document.querySelector("#facts").textContent = head.facts;
    const chosen = JSON.stringify(this.chosen?.slice(0, 2));
    this.table.replaceChildren(...head.tables.map(([, , title], at) => node("option", { value: at }, title)));
    this.table.value = head.tables.findIndex((table) => JSON.stringify(table.slice(0, 2)) === chosen);
    this.notice.hidden = true;
  }

  // Links from the table selected in the schema to its rows and files.
  lead(view, panel) {
    const acts = node("div", { class: "acts" });
    panel.append(acts);
    const show = () => {
      const [schema, name] = view.model.get("selected");
      const table = this.tables.find(([its, called]) => its === schema && called === name);
      acts.replaceChildren(...(table ? [
        node("b", {}, table[2]),
        node("button", { type: "button", onclick: () => this.go("rows", table) }, "Rows"),
        node("button", { type: "button", onclick: () => this.go("files", table) }, "Files"),
      ] : []));
      if (table) { this.chosen = table; this.table.value = this.tables.indexOf(table); }
    };
    view.model.on("change:selected", show);
    show();
  }

  // Asks whether the lake has moved on since the views were read.
  async look() {
    if (!this.head || this.ended) return;
    let snapshot;
    try {
      ({ snapshot } = await this.channel.ask("newest"));
    } catch (error) {
      if (!this.ended) this.tell("alert", error.message);
      return;
    }
    if (snapshot === this.head.snapshot) return;
    this.tell("status", `The lake is at snapshot ${snapshot} now; this is snapshot ${this.head.snapshot}.`,
      node("button", { type: "button", onclick: () => this.again() }, "Show it as it is now"));
  }

  tell(role, ...words) {
    this.notice.setAttribute("role", role);
    this.notice.replaceChildren(...words);
    this.notice.hidden = false;
  }

  again() {
    for (const { view } of this.open.values()) view.close();
    this.open.clear();
    this.follow();
  }

  end() {
    this.ended = true;
    this.tell("alert", "The connection to ducklake-lab has ended. Load the page again, or run ducklake-lab open for a new one.");
  }
}

new Page();

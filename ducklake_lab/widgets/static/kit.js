// Parts of all views: elements, numbers as they read, asking the kernel, and taking the place of the static view.
//
// A view shows itself in place of the static one whose element id is the model's `mount`. That output is plain HTML, so
// a notebook opened without a kernel still has it, and a kernel that is alive makes it interactive again.

// Sentences of a view without its kernel.
const GONE = "The kernel was restarted; run the cell again.";
const STOPPED = "The kernel has stopped; run the cell again.";
// States of a kernel that end its variables.
const ENDS = { restarting: GONE, autorestarting: GONE, terminating: STOPPED, dead: STOPPED };

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

// A share as a whole percentage; it never rounds to all or nothing when it is not.
function percent(share) {
  if (share > 0 && share < 0.01) return "<1%";
  if (share > 0.99 && share < 1) return ">99%";
  return `${Math.round(share * 100)}%`;
}

// A share of a whole as `percent` writes it, marked where that is not exact.
function share(part, whole, isRough) {
  const text = percent(part / whole);
  return (isRough || (100 * part) % whole) && /^\d/.test(text) ? "≈" + text : text;
}

const counted = (value, noun) => `${number.format(value)} ${value === 1 ? noun : noun + "s"}`;

// The width of a column that holds numbers or names: that of the longest, whatever the font.
const room = (texts, more = 0) => `${texts.reduce((most, text) => Math.max(most, text.length), 4) * 0.66 + more}em`;

// A button that copies a text, or selects what shows it where copying is not allowed.
function copying(label, text, node) {
  const button = element("button", {
    type: "button",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(await text());
        button.textContent = "Copied";
      } catch {
        if (node) getSelection().selectAllChildren(node);
        button.textContent = node ? "Selected" : "Not copied";
      }
      setTimeout(() => { button.textContent = label; }, 1500);
    },
  }, label);
  return button;
}

// Tabs over panels [[name, panel], …], of which one is shown; the arrows go from tab to tab.
function tabbed(id, panels, changed) {
  const choose = (at) => {
    tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(place === at));
      tab.tabIndex = place === at ? 0 : -1;
      panels[place][1].hidden = place !== at;
    });
    changed(panels[at][0]);
  };
  const tabs = panels.map(([name, panel], at) => {
    panel.id = `${id}-panel-${at}`;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `${id}-tab-${at}`);
    panel.hidden = at > 0;
    return element("button", {
      type: "button", role: "tab", id: `${id}-tab-${at}`, "aria-controls": panel.id, "aria-selected": String(!at), tabindex: at ? -1 : 0,
      onclick: () => choose(at),
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by) return;
        event.preventDefault();
        const next = (at + by + panels.length) % panels.length;
        choose(next);
        tabs[next].focus();
      },
    }, name);
  });
  return element("span", { role: "tablist", class: "dlk-tabs" }, ...tabs);
}

// Changes the HTML of the outputs that hold a view's static form, in a notebook of JupyterLab; change(html) gives the new one.
//
// The protocol reaches outputs by a name that a page forgets when it is loaded again, and results have none.
function rewrite(model, change) {
  const mark = `id="${model.get("mount")}"`;
  for (const cell of model.widget_manager?.context?.model?.cells ?? []) {
    for (let at = 0; at < (cell.outputs?.length ?? 0); at++) {
      const output = cell.outputs.get(at).toJSON();
      const html = [].concat(output.data?.["text/html"] ?? []).join("");
      const changed = html.includes(mark) ? change(html) : html;
      if (changed !== html) cell.outputs.set(at, { ...output, data: { ...output.data, "text/html": changed } });
    }
  }
}

// Asks the kernel for something and gives the answer: { content, buffers }.
class Line {
  constructor(model) {
    this.model = model;
    this.count = 0;
    // Answers reach every line of the model: each view of it has one, and so has what waits for a kernel.
    this.id = Math.random().toString(36).slice(2);
    this.waiting = new Map();
    this.onMessage = (content, buffers) => {
      const asked = this.waiting.get(content.request);
      if (!asked) return;
      this.waiting.delete(content.request);
      if (content.error) asked.reject(new Error(content.error));
      else asked.resolve({ content, buffers: (buffers || []).map((one) => one.buffer ? one : new DataView(one)) });
    };
    model.on("msg:custom", this.onMessage);
  }

  ask(type, more = {}) {
    const request = `${this.id}-${++this.count}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(request, { resolve, reject });
      try {
        this.model.send({ type, request, ...more });
      } catch {
        // JupyterLab's own error is "Cannot send"
        this.waiting.delete(request);
        reject(new Error(GONE));
        this.onGone?.();
      }
    });
  }

  // No question gets an answer any more.
  fail(message) {
    for (const { reject } of this.waiting.values()) reject(new Error(message));
    this.waiting.clear();
  }

  close() {
    this.model.off("msg:custom", this.onMessage);
    this.waiting.clear();
  }
}

// Base of the browsers: they draw a model that may change from either side, until they are closed.
//
// A browser calls start(host, listeners) when its own state is there; build() makes this.root then.
class Browsing {
  constructor(model) {
    this.model = model;
    this.line = new Line(model);
    this.observers = [];
  }

  start(host, listeners) {
    this.build();
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    host.append(this.root);
    // A host may set the values of one message one by one, with an event after each: they are read when all are set.
    const later = (listener) => () => queueMicrotask(() => { if (!this.closed) listener(); });
    this.listeners = Object.entries(listeners).map(([event, listener]) => [event, later(listener)]);
    for (const [event, listener] of this.listeners) this.model.on(event, listener);
  }

  // Draws again when a part has another size.
  resize(node, draw) {
    const observer = new ResizeObserver(draw);
    observer.observe(node);
    this.observers.push(observer);
  }

  set(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  close() {
    this.closed = true;
    for (const [event, listener] of this.listeners) this.model.off(event, listener);
    for (const observer of this.observers) observer.disconnect();
    this.line.close();
    this.root.remove();
  }
}

// Calls back once when the kernel of a model is gone. JupyterLab signals changes of a kernel and of its connection;
// elsewhere the next question fails.
function whenGone(model, act) {
  const kernel = model.widget_manager?.kernel;
  const line = new Line(model);
  const lose = (sentence) => { stop(); act(sentence); };
  const probe = () => setTimeout(() => { line.ask("here").catch(() => {}); }, 50);
  const onStatus = (_, state) => { if (state in ENDS) lose(ENDS[state]); };
  const onDisposed = () => lose(STOPPED);
  const stop = () => {
    kernel?.statusChanged?.disconnect(onStatus);
    kernel?.disposed?.disconnect(onDisposed);
    model.off("comm_live_update", probe);
    line.close();
  };
  line.onGone = () => lose(GONE);
  kernel?.statusChanged?.connect(onStatus);
  kernel?.disposed?.connect(onDisposed);
  model.on("comm_live_update", probe);
  return stop;
}

// A widget module of a class with (model, host) and close(): mounted where the static view is, or where it is put.
//
// Without its kernel a view makes way for the static one, under a sentence that says what to do; one with stop(sentence)
// does that by itself.
function mounted(View) {
  function initialize({ model }) {
    const live = new Map();
    const id = model.get("mount");
    const line = new Line(model);
    let alive = false;
    let gone = "";
    // Views whose host is gone, until another host comes: the notebook's output was written anew.
    const homeless = new Map();
    const leave = (view) => homeless.set(view, setTimeout(() => { homeless.delete(view); view.close(); }, 2000));
    const end = (entry) => {
      entry.view?.close();
      entry.notice?.remove();
      for (const child of entry.still) child.style.display = "";
    };
    const stop = (host, entry) => {
      entry.view?.line.fail(gone);
      if (entry.view?.stop) { entry.view.stop(gone); return; }
      end(entry);
      entry.view = null;
      entry.notice = notice(gone);
      host.prepend(entry.notice);
    };
    const find = () => {
      if (!alive) return;
      for (const [host, entry] of live) {
        if (host.isConnected) continue;
        live.delete(host);
        if (entry.view?.adopt) leave(entry.view);
        else entry.view?.close();
      }
      // each view of the output has one; browsers find them by the id alone at once
      for (const host of document.querySelectorAll(`#${CSS.escape(id)}`)) {
        if (live.has(host)) continue;
        const still = [...host.children];
        const entry = { still, view: null };
        live.set(host, entry);
        if (gone) { stop(host, entry); continue; }
        const [view, timer] = homeless.entries().next().value ?? [];
        if (view) {
          clearTimeout(timer);
          homeless.delete(view);
          view.adopt(host, still);
          entry.view = view;
          continue;
        }
        for (const child of still) child.style.display = "none";
        entry.view = new View(model, host, still);
        entry.view.line.onGone = lose;
      }
    };
    const lose = (sentence = GONE) => {
      if (gone) return;
      gone = sentence;
      unwatch();
      for (const [host, entry] of live) stop(host, entry);
    };
    const unwatch = whenGone(model, lose);
    const observer = new MutationObserver(() => find());
    observer.observe(document.body, { childList: true, subtree: true });
    // A notebook may keep the model of a kernel that is gone: the static view stays until a kernel answers.
    line.ask("here").then(() => { alive = true; find(); }, () => {});
    return () => {
      observer.disconnect();
      unwatch();
      line.close();
      for (const entry of live.values()) end(entry);
      live.clear();
      for (const [view, timer] of homeless) { clearTimeout(timer); view.close(); }
      homeless.clear();
    };
  }

  function render({ model, el }) {
    const view = new View(model, el, []);
    const lose = (sentence = GONE) => {
      unwatch();
      view.line.fail(sentence);
      if (view.stop) { view.stop(sentence); return; }
      // there is no static view in a box
      view.root.inert = true;
      el.prepend(notice(sentence));
    };
    const unwatch = whenGone(model, lose);
    view.line.onGone = lose;
    return () => { unwatch(); view.close(); };
  }

  return { initialize, render };
}

function notice(sentence) {
  return element("p", { class: "dlk-live dlk-gone", role: "status" }, sentence);
}

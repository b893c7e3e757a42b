// A streaming query: its state, batches and rows, as its kernel sees them.

class Stream {
  constructor(model, host, still) {
    this.model = model;
    this.line = new Line(model);
    this.root = element("div", { class: "dlk-live dlk-st", role: "status" });
    this.onChange = () => this.show();
    model.on("change:state change:facts change:error", this.onChange);
    this.show();
    this.adopt(host, still);
  }

  show() {
    const { model } = this;
    const state = model.get("state");
    const error = model.get("error");
    this.root.replaceChildren(
      element("p", {}, element("i", { class: "dlk-st-" + state, "aria-hidden": "true" }), element("b", {}, `Stream ${model.get("name")}`), ` ${state} `,
        element("span", { class: "dlk-soft" }, model.get("facts"))),
      ...(error ? [element("p", { class: "dlk-st-error" }, error)] : []));
  }

  // Goes on in another host.
  adopt(host, still) {
    for (const node of still) node.style.display = "none";
    host.append(this.root);
  }

  close() {
    this.line.close();
    this.model.off("change:state change:facts change:error", this.onChange);
    this.root.remove();
  }
}

export default mounted(Stream);

// The bar over an uncommitted change: Commit, Roll back, and its end.

class Preview {
  constructor(model, host, still) {
    this.model = model;
    this.still = still;
    this.line = new Line(model);
    this.message = element("input", { type: "text", placeholder: "Commit message", "aria-label": "Commit message", value: model.get("message") });
    this.message.addEventListener("keydown", (event) => { if (event.key === "Enter") this.end("commit"); });
    this.commit = element("button", { type: "button", class: "dlk-pv-commit", onclick: () => this.end("commit") }, "Commit");
    this.drop = element("button", { type: "button", onclick: () => this.end("rollback") }, "Roll back");
    this.status = element("span", { role: "status" });
    this.bar = element("div", { class: "dlk-pv-bar", role: "toolbar", "aria-label": "Uncommitted change" });
    // Without this attribute JupyterLab takes letters for its own commands.
    this.root = element("div", { class: "dlk-pv", "data-lm-suppress-shortcuts": "true" }, this.bar);
    this.root.addEventListener("keydown", (event) => event.stopPropagation());
    host.prepend(this.root);
    // The diffs below stay as they are; only the line about ending the change goes.
    for (const child of still) {
      child.style.display = "";
      const told = child.querySelector(".dlk-pv-told");
      if (told) told.style.display = "none";
    }
    this.onState = () => { this.show(); this.keep(); };
    model.on("change:state", this.onState);
    this.show();
  }

  show() {
    const state = this.model.get("state");
    if (state === "open") {
      this.status.textContent = "Not committed: nothing is in the lake yet.";
      this.bar.replaceChildren(element("b", {}, "Preview"), this.message, this.commit, this.drop, this.status);
    } else {
      const became = state === "committed" ? `${this.model.get("snapshot") ?? state}` : state;
      for (const child of this.still) for (const end of child.querySelectorAll(".dlk-pv-state")) end.textContent = became;
      const snapshot = this.model.get("snapshot");
      this.bar.replaceChildren(element("b", {}, state === "committed" ? "Committed" : "Rolled back"), this.status);
      this.status.textContent = state !== "committed" ? "the lake is as it was" : snapshot === null ? "" : `as snapshot ${snapshot}`;
    }
  }

  // The saved output shows how the change ended.
  async keep() {
    try {
      const { content } = await this.line.ask("still");
      rewrite(this.model, () => content.html);
    } catch {
      // the kernel is gone: the page says so
    }
  }

  // The kernel is gone, and with it the uncommitted change.
  stop(sentence) {
    this.isGone = true;
    if (this.model.get("state") !== "open") return;
    for (const control of [this.message, this.commit, this.drop]) control.disabled = true;
    this.status.textContent = this.ending === "commit"
      ? "The kernel ended during the commit; %ducklake snapshots shows whether the change is in the lake."
      : `Not committed. ${sentence}`;
    this.bar.replaceChildren(element("b", {}, "Preview"), this.message, this.commit, this.drop, this.status);
  }

  async end(how) {
    this.commit.disabled = this.drop.disabled = true;
    this.status.textContent = how === "commit" ? "Committing …" : "Rolling back …";
    this.ending = how;
    try {
      await this.line.ask(how, { message: this.message.value });
    } catch (error) {
      if (this.isGone) return;
      this.bar.replaceChildren(element("span", { role: "alert" }, error.message));
      return;
    }
    this.commit.disabled = this.drop.disabled = false;
    this.show();
  }

  close() {
    this.line.close();
    this.model.off("change:state", this.onState);
    this.root.remove();
  }
}

export default mounted(Preview);

// The value of a cell in full, beside all values of its row. Texts of a lake are text here, never HTML.

class Detail {
  // table: { line, columns, grid }; go(column) moves to another value of the row.
  constructor(table, go) {
    this.table = table;
    this.go = go;
    this.title = element("span", { role: "status" });
    this.value = element("pre", { class: "dlk-tb-value dlk-mono", tabindex: "0", role: "region", "aria-label": "Value" });
    this.copied = copying("Copy value", () => this.text, this.value);
    this.copyRow = copying("Copy row", async () => (await this.table.line.ask("row", { row: this.at })).content.text);
    this.copyRow.title = "The whole row for a spreadsheet, separated by tabs";
    this.row = element("dl", { tabindex: "0", "aria-label": "Values of the row" });
    this.root = element("div", { class: "dlk-tb-detail", role: "region", "aria-label": "Cell", hidden: true },
      element("div", { class: "dlk-bar" }, this.title, this.copied, this.copyRow, element("button", { type: "button", onclick: () => this.close() }, "Close")),
      element("div", { class: "dlk-tb-two" }, this.value, this.row));
    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  get isOpen() {
    return !this.root.hidden;
  }

  close() {
    const inside = this.root.contains(document.activeElement);
    this.root.hidden = true;
    this.shown = undefined;
    if (inside) this.table.grid.root.focus();
  }

  focus() {
    this.value.focus();
  }

  // row: its place among the visible ones.
  async show(row, column) {
    this.root.hidden = false;
    const asked = this.shown = `${row} ${column} ${this.table.model.get("look")}`;
    const [{ content }, [values]] = await Promise.all([
      this.table.line.ask("cell", { row, column }), this.table.rows(row, 1, 0, this.table.columns.length),
    ]);
    if (this.shown !== asked) return;
    const { text, shown, length, type } = content;
    const cut = text !== null && text.length < length;
    const [, name] = this.table.columns[column];
    const long = text === null ? "" : cut ? ` · first ${number.format(text.length)} of ${number.format(length)} characters` : ` · ${counted(length, "character")}`;
    this.text = text;
    this.at = row;
    this.copied.disabled = text === null;
    this.title.replaceChildren(element("b", {}, `Row ${number.format(row + 1)} · ${name}`), " ", element("span", { class: "dlk-soft" }, type + long));
    this.value.replaceChildren(text === null ? element("i", { class: "dlk-soft" }, "NULL") : shown ?? text);
    this.value.scrollTop = 0;
    this.listing(values || [], column);
  }

  // All values of the row, one below the other; a name leads to its value in full.
  listing(values, chosen) {
    this.row.replaceChildren(...this.table.columns.flatMap(([, name], column) => {
      const value = values[column];
      const is = column === chosen ? "true" : null;
      return [
        element("dt", {}, element("button", { type: "button", "aria-current": is, title: name, onclick: () => this.go(column) }, name)),
        element("dd", { title: value }, value === null ? element("i", { class: "dlk-soft" }, "NULL") : value ?? ""),
      ];
    }));
  }
}

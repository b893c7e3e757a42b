// Widths of a grid's columns in pixels, by their widest contents. A column becomes wider, never narrower.

// The widest text that makes its column wider; a number is never cut.
const MOST_TEXT = 420;
// Where nothing is drawn, as in a hidden page, nothing can be measured.
const LETTER = 7.5;

class Widths {
  constructor() {
    this.known = new Map();
    // stands in the owner's page, so that fonts are the same
    this.rule = element("div", { class: "dlk-rule", "aria-hidden": "true" });
  }

  has(key) {
    return this.known.has(key);
  }

  set(key, width) {
    this.known.set(key, width);
  }

  of(key, least = 0) {
    return `${Math.max(least, this.known.get(key) || 0)}px`;
  }

  // Makes room for contents, [[key, text or node, whether it may be cut, pixels around it], …], with one layout for all of
  // them; true where a column became wider.
  fit(contents) {
    const nodes = contents.map(([, content]) => element("span", {}, content));
    this.rule.replaceChildren(...nodes);
    const wide = nodes.map((node) => node.getBoundingClientRect().width || node.textContent.length * LETTER);
    this.rule.replaceChildren();
    let isWider = false;
    contents.forEach(([key, , canCut, around], at) => {
      const needed = (canCut ? Math.min(MOST_TEXT, wide[at]) : wide[at]) + around;
      if (needed <= (this.known.get(key) || 0) + 0.5) return;
      this.known.set(key, needed);
      isWider = true;
    });
    return isWider;
  }
}

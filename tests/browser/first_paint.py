"""Checks of every view before anybody touches it: drawn whole, nothing cut off, no word of a program's insides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from playwright.sync_api import Page, expect

import ducklake_lab.widgets

#: Everything of ours that a page may show.
VIEWS = (
    ".dlk-live",
    ".dlk-pv",
    ".jp-OutputArea-output .dlk",
    "#jp-ducklake-sidebar",
    ".jp-DuckLake-statusButton",
    ".jp-DuckLake-mark",
    ".jp-DuckLake-pinned",
    ".dlk-page",
)
#: The style sheets of all views. A page gets one with each view that it shows, the newest last.
STYLES = sorted((Path(ducklake_lab.widgets.__file__).parent / "static").glob("*.css"))
#: Widths of the window.
WIDTHS = (900, 1280, 1320, 1920)

_PROBLEMS = """
([selectors]) => {
    const found = [];
    const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length > 0;
    const views = [...document.querySelectorAll(selectors.join(","))].filter(seen);
    const never = /\\bundefined\\b|\\bNaN\\b|\\bInfinity\\b|\\b0 found\\b|\\[object |(?<!not |no |% |is |, )\\bnull\\b/;
    const told = (node, what) => {
        const name = (node.className.baseVal ?? node.className) || node.tagName;
        found.push(`${what}: "${(node.textContent || "").trim().slice(0, 60)}" in ${node.tagName} ${name}`);
    };
    for (const view of views) {
        if (view.scrollWidth > view.clientWidth + 1 && getComputedStyle(view).display !== "inline") told(view, "overflows");
        const texts = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const parent = texts.currentNode.parentElement;
            if (parent.tagName !== "STYLE" && seen(parent) && never.test(texts.currentNode.data)) told(parent, "says");
        }
        for (const node of view.querySelectorAll("*")) {
            if (!seen(node)) continue;
            for (const { name, value } of node.attributes) {
                if (name === "placeholder") continue;
                if (never.test(value)) told(node, `has ${name}="${value.slice(0, 60)}"`);
            }
            if (node.matches("svg, svg *")) continue;
            // boxes of any number of columns, and the values in them
            if (node.matches(".dlk-scroll, .dlk-tb-grid, :is(.dlk-cf, .dlk-rv) .dlk-g, .dlk-rv-list, .dlk-ag-commits") || node.closest(".dlk-tb-grid .dlk-g-rows")) continue;
            const style = getComputedStyle(node);
            if (style.overflowX === "visible" || !node.clientWidth || style.display === "inline") continue;
            const range = document.createRange();
            range.selectNodeContents(node);
            const inner = node.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
            // the width of a text is exact, that of what scrolls is rounded
            const leaf = !node.childElementCount || node.matches("[role=gridcell], [role=columnheader]");
            const text = leaf ? range.getBoundingClientRect().width : 0;
            const needed = Math.max(text, node.scrollWidth > node.clientWidth + 1 ? node.scrollWidth : 0);
            if (needed <= inner + 0.7) continue;
            // words may end in an ellipsis where enough of them is there to read, and pointing at them tells the rest
            const number = /^[\\d\\s,.:+\\u2212\\u2013<>%()kMGTB-]+$/.test(node.textContent);
            if (style.textOverflow === "ellipsis" && !number && inner >= (view.id ? 80 : 120) && node.closest("[title]")) continue;
            told(node, `is cut off (${inner} of ${needed} px)`);
        }
        const room = view.closest(".jp-OutputArea-output, body").getBoundingClientRect();
        for (const box of [view, ...view.querySelectorAll(".dlk-scroll, .dlk-g")]) {
            const scrolls = seen(box) && box.scrollWidth > box.clientWidth + 1;
            if (scrolls && box.getBoundingClientRect().right < room.right - 40) told(box, `scrolls sideways beside ${room.right - box.getBoundingClientRect().right} px of room`);
        }
        for (const svg of view.querySelectorAll("svg")) {
            if (!seen(svg)) continue;
            const frame = svg.getBoundingClientRect();
            const drawn = parseFloat(svg.getAttribute("width"));
            const whole = svg.parentElement.matches(".dlk-sb-time, .dlk-fb-map, .dlk-fb-sizes, .dlk-fb-strip");
            const meant = whole ? svg.parentElement.clientWidth : frame.width;
            if (!(svg.getAttribute("width") ?? "%").endsWith("%") && Math.abs(drawn - meant) > 1) told(svg, `is drawn ${drawn} px wide, not ${meant}`);
            const boxes = [...svg.querySelectorAll("text")].filter(seen).map((text) => [text, text.getBoundingClientRect()]);
            boxes.forEach(([text, box], at) => {
                if (box.left < frame.left - 2 || box.right > frame.right + 2) told(text, "reaches out of its picture");
                for (const [other, its] of boxes.slice(at + 1)) {
                    const wide = Math.min(box.right, its.right) - Math.max(box.left, its.left);
                    const high = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
                    if (wide > 1 && high > 4) told(text, `lies over "${other.textContent}"`);
                }
            });
        }
    }
    for (const figure of document.querySelectorAll(".js-plotly-plot")) {
        const bar = figure.querySelector(".modebar-group")?.getBoundingClientRect();
        for (const part of figure.querySelectorAll(".legend, .gtitle, .annotation-text-g")) {
            const box = part.getBoundingClientRect();
            const over = bar && Math.min(bar.right, box.right) > Math.max(bar.left, box.left) && Math.min(bar.bottom, box.bottom) > Math.max(bar.top, box.top);
            if (over) told(part, "lies under plotly's toolbar");
        }
    }
    if (document.documentElement.scrollWidth > window.innerWidth) found.push("the page scrolls sideways");
    return found;
}
"""

_RESTYLED = """
([views, sheets]) => {
    const drawn = (one) => one.getClientRects().length > 0 && one.closest(views);
    // of an element, the properties that a rule which selects it sets: others change only with these
    const setBy = (rules, found = new Map()) => {
        for (const rule of rules) {
            if (rule.cssRules?.length) setBy(rule.cssRules, found);
            if (!rule.selectorText) continue;
            for (const one of [...document.querySelectorAll(rule.selectorText)].filter(drawn))
                found.set(one, [...(found.get(one) ?? []), ...rule.style]);
        }
        return found;
    };
    const found = new Set();
    for (const [name, text] of sheets) {
        const sheet = document.head.appendChild(document.createElement("style"));
        sheet.textContent = text;
        const look = (one) => { const style = getComputedStyle(one); return (property) => style.getPropertyValue(property); };
        const after = [...setBy(sheet.sheet.cssRules)].map(([one, names]) => [one, names, names.map(look(one))]);
        sheet.disabled = true;
        for (const [one, names, values] of after) names.map(look(one)).forEach((was, at) => {
            if (was !== values[at]) found.add(`${name} restyles ${one.tagName} ${one.className}: ${names[at]}: ${was} → ${values[at]}`);
        });
        sheet.remove();
    }
    return [...found];
}
"""


def first_paint(page: Page, facts: Mapping[str, Iterable[str]] | None = None, height: int = 4000) -> None:
    """Looks at all views of a page that nobody has touched, at each width; leaves the window as it was.

    Args:
        facts: texts that must be there, by the selector of the view, of the only one or the first.
        height: of the window, so that all of a notebook is drawn.

    Raises:
        AssertionError: a view shows what it must not, lacks a fact, has something cut off, or looks otherwise once
            another view brings its style sheet.
    """
    before = page.viewport_size
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        for selector, texts in (facts or {}).items():
            for text in texts:
                expect(page.locator(selector).first).to_contain_text(text)
        problems = page.evaluate(_PROBLEMS, [list(VIEWS)])
        assert problems == [], f"at {width} px:\n" + "\n".join(problems)
    sheets = [[path.name, path.read_text()] for path in STYLES]
    problems = page.evaluate(_RESTYLED, [".dlk-live, .dlk-pv, .dlk", sheets])
    assert problems == [], "\n".join(problems)
    if before is not None:
        page.set_viewport_size(before)


def settle(page: Page) -> None:
    """Waits until nothing is asked of the kernel any more, and nothing has changed for a moment."""
    page.evaluate(
        """() => new Promise((resolve, reject) => {
            const deadline = performance.now() + 120_000;
            let changed = performance.now();
            const observer = new MutationObserver(() => { changed = performance.now(); });
            observer.observe(document.body, { attributes: true, characterData: true, childList: true, subtree: true });
            const asked = () => [...document.querySelectorAll("[role=gridcell], .jp-DuckLake-row")]
                .some(node => ["…", "reading …"].includes(node.textContent));
            const look = () => {
                const now = performance.now();
                if (now > changed + 300 && !asked()) { observer.disconnect(); resolve(); }
                else if (now > deadline) reject(new Error(`changed ${now - changed} ms ago; asked: ${asked()}`));
                else setTimeout(look, 20);
            };
            look();
        })"""
    )

"""Findings of axe fail a test, and so does a rule of axe that crashed."""

from __future__ import annotations

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser

from tests.browser.lab import serious


def test_a_rule_that_crashes_is_a_finding(browser: Browser) -> None:
    page = browser.new_context(color_scheme="light").new_page()
    page.set_content("<html lang=en><title>t</title><main><h1>a</h1><p>b</p></main></html>")
    assert serious(page, "main") == []
    page.evaluate(AXE_SCRIPT)
    page.evaluate(
        """() => axe.configure({
            checks: [{ id: "crash", evaluate: () => { throw new Error("no such thing"); } }],
            rules: [{ id: "crashing", selector: "p", any: ["crash"] }],
        })"""
    )
    ((theme, rule, _, why),) = serious(page, "main")
    assert (theme, rule) == ("light", "crashing")
    assert "no such thing" in why
    page.context.close()

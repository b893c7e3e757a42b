"""JupyterLab and Chromium, started once for all browser tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.lab import ARGUMENTS, Lab, Screenshot, themes
from tests.installed import Installed

# a kernel that starts beside others takes its time
expect.set_options(timeout=120_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def _lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"), browser)
    yield lab
    lab.close()


@pytest.fixture
def lab(_lab: Lab) -> Iterator[Lab]:
    """JupyterLab; a test in which a page asks another machine for anything fails."""
    yield _lab
    strangers, _lab.strangers = _lab.strangers, []
    assert strangers == []


@pytest.fixture(scope="session")
def _wheel_lab(browser: Browser, installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("wheel-lab"), browser, installed)
    yield lab
    lab.close()


@pytest.fixture
def wheel_lab(_wheel_lab: Lab) -> Iterator[Lab]:
    """JupyterLab with the built extension; a test in which a page asks another machine for anything fails."""
    yield _wheel_lab
    strangers, _wheel_lab.strangers = _wheel_lab.strangers, []
    assert strangers == []


@pytest.fixture(scope="session")
def screenshot() -> Screenshot:
    """Takes a picture in each theme into the folder DUCKLAKE_SCREENSHOTS, where that is set."""
    folder = os.environ.get("DUCKLAKE_SCREENSHOTS")

    def take(page: Page, name: str) -> None:
        if not folder:
            return
        page.wait_for_timeout(500)
        for theme in themes(page):
            page.screenshot(path=Path(folder) / f"{name}-{theme}.png")

    return take

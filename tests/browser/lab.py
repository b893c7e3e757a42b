"""A real JupyterLab with a real kernel, driven through Chromium."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal
from urllib.error import URLError
from urllib.parse import urlsplit

import nbformat
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Locator, Page, ViewportSize
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.installed import Installed

ROOT = Path(__file__).parents[2]
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # pages have this machine alone: where other addresses would be asked for, nobody listens
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=127.0.0.1;localhost",
)
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, Theme] = ("light", "dark")
#: Takes pictures of a page, under a name.
Screenshot = Callable[[Page, str], None]
_LOCAL = ("127.0.0.1", "localhost")
#: Runs of axe until none of its rules crashes.
_ATTEMPTS = 4
_NOTIFICATIONS = {"fetchNews": "false", "checkForUpdates": False}
_SIZE: ViewportSize = {"width": 1320, "height": 1000}
#: Windows whose notebooks were closed: JupyterLab takes ten times as long to load as to open another notebook.
_closed: list[Page] = []
_OPEN = """async name => {
    const { commands, shell } = window.jupyterapp;
    for (const one of [...shell.widgets("main")]) {
        // nobody is asked whether to save it
        if (one.context) one.context.model.dirty = false;
        one.close();
    }
    const panel = await commands.execute("docmanager:open", { path: name });
    await panel.context.ready;
    // what came in their place, such as a launcher
    for (const one of [...shell.widgets("main")]) if (one !== panel) one.close();
}"""


#: Makes the page's notebook the current one; true once it is.
_MAKE_CURRENT = """() => {
    const shell = window.jupyterapp?.shell;
    if (!shell) return false;
    if (shell.currentWidget?.context) return true;
    const panel = [...shell.widgets('main')].find(widget => widget.context && widget.isVisible);
    // what has the focus already, from before the shell listened, would not get it again
    if (panel) document.activeElement?.blur();
    if (panel) shell.activateById(panel.id);
    return false;
}"""
#: Says why a page has no current notebook.
_SHELL = """() => {
    const { shell } = window.jupyterapp;
    const widgets = [...shell.widgets("main")].map(one => [one.id, one.isVisible, Boolean(one.context), one.isDisposed]);
    const active = document.activeElement?.outerHTML.slice(0, 200);
    return JSON.stringify({ widgets, active, focus: document.hasFocus(), hidden: document.hidden });
}"""


class Lab:
    """A JupyterLab server over a folder, and the pages opened on it.

    Args:
        installed: the environment it runs in, instead of that of the tests with the repository's sources.

    Attributes:
        strangers: URLs of other machines that a page asked for; none was answered.
    """

    def __init__(self, folder: Path, browser: Browser, installed: Installed | None = None) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir()
        self.strangers: list[str] = []
        self._browser = browser
        self._settings = folder / "settings"
        self._port = _free_port()
        self._log = (folder / "server.log").open("w")
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY", "PYDEVD"))}
        environment = (installed.environment if installed else ours | {"PYTHONPATH": str(ROOT)}) | {
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTERLAB_SETTINGS_DIR": str(self._settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        }
        self.theme("light")
        self._setting("notification", _NOTIFICATIONS)
        self._process = subprocess.Popen(
            [
                installed.python if installed else sys.executable,
                "-m",
                "jupyterlab",
                "--no-browser",
                "--allow-root",
                "--ip=127.0.0.1",
                f"--port={self._port}",
                "--ServerApp.port_retries=0",
                f"--ServerApp.root_dir={self.files}",
                "--IdentityProvider.token=",
                "--ServerApp.password=",
                "--LabApp.expose_app_in_browser=True",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.address}/api/status", timeout=2):
                    return
            except (URLError, OSError):
                time.sleep(0.2)
        raise RuntimeError(f"JupyterLab did not start:\n{(self.folder / 'server.log').read_text()[-3000:]}")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def close(self) -> None:
        for page in [page for page in _closed if page.url.startswith(self.address)]:
            _closed.remove(page)
            page.context.close()
        self._process.terminate()
        self._process.wait(timeout=120)
        self._log.close()

    def theme(self, name: Theme) -> None:
        """Sets the theme of pages opened from now on: light or dark."""
        self._setting("themes", {"theme": f"JupyterLab {name.title()}", "adaptive-theme": False})

    def _setting(self, plugin: str, values: dict[str, object]) -> None:
        folder = self._settings / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{plugin}.jupyterlab-settings").write_text(json.dumps(values))

    def write(self, name: str, cells: Sequence[str]) -> Path:
        """Writes a notebook of code cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.files / name
        nbformat.write(notebook, path)
        return path

    def open(self, name: str, *, theme: Theme = "light", whole: bool = False, fresh: bool = False) -> Page:
        """Opens a notebook, alone in a window or in the whole of JupyterLab, and waits until it is there.

        Args:
            fresh: in a new window, rather than in one of its theme whose notebooks were closed.
        """
        page = None if fresh else self._closed_window(theme, whole=whole)
        if page is None:
            page = self._new_window(f"{'lab' if whole else 'doc'}/tree/{name}?reset", theme)
        else:
            page.set_viewport_size(_SIZE)
            page.evaluate(_OPEN, name)
            try:
                page.wait_for_function(_MAKE_CURRENT, polling=100, timeout=20_000)
            except PlaywrightTimeout:
                warnings.warn(f"A window of other notebooks shows none: {page.evaluate(_SHELL)}", stacklevel=2)
                page.context.close()
                page = self._new_window(f"{'lab' if whole else 'doc'}/tree/{name}?reset", theme)
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function("window.jupyterapp !== undefined")
        return page

    def _new_window(self, place: str, theme: Theme) -> Page:
        self.theme(theme)
        context = self._browser.new_context(viewport=_SIZE, color_scheme=theme)
        context.set_default_timeout(120_000)
        context.on("request", lambda request: self._note(request.url))
        page = context.new_page()
        page.on("websocket", lambda socket: self._note(socket.url))
        page.goto(f"{self.address}/{place}")
        return page

    def _closed_window(self, theme: Theme, *, whole: bool) -> Page | None:
        for page in _closed:
            worn = page.evaluate("document.body.dataset.jpThemeLight") == str(theme == "light").lower()
            if worn and page.url.startswith(f"{self.address}/{'lab' if whole else 'doc'}/"):
                _closed.remove(page)
                return page
        return None

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in _LOCAL:
            self.strangers.append(url)


def run_all(page: Page, timeout: float = 120) -> None:
    """Runs every cell and waits until the last one is done; cells after a failing one are not run."""
    # A page that was just opened, or that has lost the focus, has no current notebook.
    page.wait_for_function(_MAKE_CURRENT, polling=100)
    # The commands do nothing, and say nothing, before the kernel has answered.
    page.evaluate(
        """async () => {
            const panel = window.jupyterapp.shell.currentWidget;
            await panel.context.ready;
            await panel.sessionContext.ready;
            await panel.sessionContext.session.kernel.info;
            window.jupyterapp.commands.execute('notebook:run-all-cells');
        }"""
    )
    page.wait_for_function(
        """() => {
            const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(node => node.textContent);
            return prompts.some(text => /\\d/.test(text)) && !prompts.some(text => text.includes('*'));
        }""",
        timeout=timeout * 1000,
        polling=100,
    )


def run_cell(page: Page, index: int) -> None:
    """Runs one code cell; does not wait for it."""
    page.locator(".jp-CodeCell").nth(index).locator(".cm-content").click()
    page.keyboard.press("Control+Enter")


def wait_for_kernel(page: Page) -> None:
    """Waits until the kernel takes cells again: after an error it drops those that are sent before it has come to its queue's end.

    It answers what is no cell in turn, behind the end of that.
    """
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo()")


# JupyterLab's own command hides the page for a moment, by which focus is lost and what was scrolled is at its top.
_WEAR = """async (theme) => {
    const { body } = document;
    if (body.dataset.jpThemeName === undefined) return;
    const ours = document.querySelector("#other-theme");
    const theirs = document.querySelector('link[href*="/themes/@jupyterlab/theme-"]:not(#other-theme)');
    if (theirs.href.includes(`theme-${theme}-extension`)) {
        theirs.disabled = false;
        ours?.remove();
    } else if (!ours) {
        const link = theirs.cloneNode();
        link.id = "other-theme";
        link.href = theirs.href.replace(/theme-\\w+-extension/, `theme-${theme}-extension`);
        const loaded = new Promise((resolve, reject) => { link.onload = resolve; link.onerror = reject; });
        theirs.after(link);
        await loaded;
        theirs.disabled = true;
    }
    body.dataset.jpThemeLight = String(theme === "light");
    body.dataset.jpThemeName = theme === "light" ? "JupyterLab Light" : "JupyterLab Dark";
    body.style.colorScheme = theme;
}"""
_DRAWN = """async () => {
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const changing = document.getAnimations().filter(one => one instanceof CSSTransition);
    await Promise.allSettled(changing.map(one => one.finished));
}"""


def themes(page: Page) -> Iterator[Theme]:
    """Shows an open page in its theme, then in the other one, and at the end as it was.

    The page keeps what is open, selected, focused and scrolled to. JupyterLab has a theme; other pages follow the
    colour scheme that the browser prefers.
    """
    dark = page.evaluate(
        """() => {
            const theme = document.body.dataset.jpThemeLight;
            return theme ? theme === "false" : matchMedia("(prefers-color-scheme: dark)").matches;
        }"""
    )
    first, second = THEMES[::-1] if dark else THEMES
    yield first
    try:
        wear(page, second)
        yield second
    finally:
        wear(page, first)


def wear(page: Page, theme: Theme) -> None:
    """Shows an open page in a theme, and waits until it is drawn."""
    page.emulate_media(color_scheme=theme)
    page.evaluate(_WEAR, theme)
    page.evaluate(_DRAWN)


def brightness(at: Locator, colour: str) -> float:
    """Return the brightness of a colour of an element, such as its backgroundColor: 0 to 255."""
    found: float = at.evaluate(
        """(node, name) => {
            const canvas = new OffscreenCanvas(1, 1).getContext("2d");
            canvas.fillStyle = getComputedStyle(node)[name];
            canvas.fillRect(0, 0, 1, 1);
            const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
            return (red + green + blue) / 3;
        }""",
        colour,
    )
    return found


def serious(page: Page, *selectors: str) -> list[tuple[Theme, str, str, str]]:
    """Return axe's findings in parts of a page that keep people from reading or using them, in each theme.

    Returns:
        The theme, the rule, the element, and what to do.
    """
    # themes differ in colours alone, so all other rules find the same in both
    rules: tuple[list[str] | None, ...] = (None, ["color-contrast", "link-in-text-block"])
    return [
        (theme, *found)
        for theme, only in zip(themes(page), rules, strict=True)
        for found in _serious(page, selectors, only)
    ]


def _serious(page: Page, selectors: Sequence[str], rules: list[str] | None) -> list[tuple[str, str, str]]:
    # JupyterLab's body hides what overflows and has no height: axe takes all text in it for hidden, of any contrast
    page.evaluate("() => { document.body.style.minHeight = '100vh'; }")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    for _ in range(_ATTEMPTS):
        found = page.evaluate(
            "([context, options]) => axe.run(context, options)",
            [
                {"include": [[selector] for selector in selectors]},
                {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})},
            ],
        )
        # a rule that crashed has found nothing, of any weight; axe crashes where a page moves below it
        crashed = [one for one in found["incomplete"] if one.get("error")]
        if not crashed:
            break
        page.wait_for_timeout(500)
    return [
        (one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ] + [(one["id"], one["nodes"][0]["html"][:200], str(one["error"])[:300]) for one in crashed]


def save(page: Page) -> None:
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!document.title.startsWith('*')")


def close(page: Page, *, window: bool = False) -> None:
    """Ends the kernels of a window's notebooks, which close when another test opens its own there.

    Args:
        window: close the window too, as where a test has changed it.
    """
    page.evaluate(
        """() => Promise.all(
            [...window.jupyterapp.shell.widgets('main')].map(widget => widget.sessionContext?.shutdown())
        )"""
    )
    if window:
        page.context.close()
    else:
        _closed.append(page)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

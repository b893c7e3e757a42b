"""Widgets whose saved output is static HTML, which a live kernel makes interactive again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ducklake_lab.engine.turn import looking
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.widgets.html import PLACE, mounted_at, new_mount

_STATIC = Path(__file__).parent / "static"


def script(*names: str) -> str:
    """Files of `static/` as one module: a widget has but one, and nothing may be fetched."""
    return "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in names)


def styles(*names: str) -> str:
    """Style sheets of `static/` as one, under the colours and fonts of the place."""
    return PLACE + script(*names)


class Mounted(anywidget.AnyWidget):
    """A view that replaces its static sibling.

    The output in the notebook is static HTML, and only that is saved: JupyterLab would show an error in place of a
    widget whose kernel is gone. The widget's model, which lives as long as the kernel, puts the interactive view in
    the place of the static one. Inside another widget (a box, say) it is an ordinary widget.

    The view asks with messages `{type, request, …}`; a method `answer_<type>` takes the message and returns a dict to
    send, or (dict, buffers). Errors that we raise are sent as text, and of others the kind.

    Args:
        mount: where the static view is already.
    """

    mount = traitlets.Unicode().tag(sync=True)

    def __init__(self, *, mount: str | None = None, **state: object) -> None:
        super().__init__(mount=mount or new_mount(), **state)
        self._is_displayed = False
        self.on_msg(self._receive)

    def still(self) -> str:
        """The static view."""
        raise NotImplementedError

    def answer_here(self, _content: dict[str, object]) -> None:
        """That there is a kernel: the interactive view takes the place of the static one."""

    def _receive(self, _widget: object, content: dict[str, object], _buffers: object) -> None:
        answer = getattr(self, f"answer_{content.get('type')}", None)
        if answer is None:
            return
        head = {"request": content.get("request")}
        try:
            with looking():
                found = answer(content)
        except DuckLakeError as error:
            self.send({**head, "error": str(error)})
            return
        except Exception as error:
            # ipywidgets writes it to the log, and the view would wait without an end
            self.send({**head, "error": f"DuckLake Lab failed here: {type(error).__name__}. The log has the details."})
            raise
        message, buffers = found if isinstance(found, tuple) else (found, [])
        self.send({**(message or {}), **head}, buffers)

    def rewrite(self) -> None:
        """Writes the static view anew into the outputs that `_ipython_display_` has made."""
        from IPython.display import display

        if self._is_displayed:
            display(self._repr_mimebundle_()[0], raw=True, display_id=self.mount, update=True)

    def _display_to_rewrite(self) -> None:
        """Displays the view so that `rewrite` reaches it: what a cell returns has no name in the protocol."""
        from IPython.display import display

        self._is_displayed = True
        display(self._repr_mimebundle_()[0], raw=True, display_id=self.mount)

    def _repr_html_(self) -> str:
        return mounted_at(self.mount, self.still())

    def _repr_mimebundle_(self, **_options: object) -> tuple[dict[str, Any], dict[str, Any]]:
        # No widget-view type here: a frontend prefers it to HTML, and shows an error where there is no model.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}, {}

"""Widgets that are saved as static HTML, and become interactive again with a live kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ducklake_lab.engine.turn import looking
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.widgets.html import PLACE, mounted_at, new_mount

_STATIC = Path(__file__).parent / "static"


def script(name: str) -> str:
    """Returns the module of a widget, as `extensions/widgets` builds it."""
    return (_STATIC / f"{name}.js").read_text(encoding="utf-8")


def styles(name: str) -> str:
    """Returns the style sheet of a widget, below the notebook's colours and fonts."""
    return PLACE + (_STATIC / f"{name}.css").read_text(encoding="utf-8")


class Mounted(anywidget.AnyWidget):
    """A view that replaces its own static form.

    Only static HTML is in the notebook and saved: JupyterLab would show an error for a
    widget without its kernel. The widget's model, which lives as long as the kernel, replaces the static
    view by the interactive one. Inside another widget, such as a box, it is an ordinary widget.

    The view sends messages `{type, request, …}`. A method `answer_<type>` takes the message and returns a dict to
    send, or (dict, buffers). Errors of this package are sent as text, others by their type.

    Args:
        mount: the element of an existing static view.
    """

    mount = traitlets.Unicode().tag(sync=True)

    def __init__(self, *, mount: str | None = None, **state: object) -> None:
        super().__init__(mount=mount or new_mount(), **state)
        self._is_displayed = False
        self.on_msg(self._receive)

    def still(self) -> str:
        """Returns the static view."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """Returns the metadata of the output, which says what the view shows of lakes."""
        return {}

    def answer_here(self, _content: dict[str, object]) -> None:
        """Confirms that there is a kernel, so that the interactive view replaces the static one."""

    def _receive(self, _widget: object, content: dict[str, object], _buffers: object) -> None:
        answer = getattr(self, f"answer_{content.get('type')}", None)
        if answer is None:
            return
        head = {"request": content.get("request")}
        try:
            with looking():
                reply = answer(content)
        except DuckLakeError as error:
            self.send({**head, "error": str(error)})
            return
        except Exception as error:
            # otherwise ipywidgets would only log it, and the view would wait forever
            self.send({**head, "error": f"DuckLake Lab failed here: {type(error).__name__}. The log has the details."})
            raise
        message, buffers = reply if isinstance(reply, tuple) else (reply, [])
        self.send({**(message or {}), **head}, buffers)

    def rewrite(self) -> None:
        """Replaces the static view in the outputs that `_ipython_display_` has made."""
        from IPython.display import display

        if self._is_displayed:
            data, record = self._repr_mimebundle_()
            display(data, metadata=record, raw=True, display_id=self.mount, update=True)

    def _display_to_rewrite(self) -> None:
        """Displays the view so that `rewrite` can reach it; a cell's returned value has no display id."""
        from IPython.display import display

        self._is_displayed = True
        data, record = self._repr_mimebundle_()
        display(data, metadata=record, raw=True, display_id=self.mount)

    def _repr_html_(self) -> str:
        return mounted_at(self.mount, self.still())

    def _repr_mimebundle_(self, **_options: object) -> tuple[dict[str, Any], dict[str, Any]]:
        # No widget-view type here: a frontend prefers it to HTML, and shows an error without a model.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}, self.record()

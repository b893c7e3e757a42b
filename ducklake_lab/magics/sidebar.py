"""The kernel's side of the comm to JupyterLab's sidebar."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell

from ducklake_lab.engine.turn import looking
from ducklake_lab.errors import DuckLakeError, SessionBusyError
from ducklake_lab.magics.watching import Watch
from ducklake_lab.version import __version__

if TYPE_CHECKING:
    from ducklake_lab.magics.pins import NotebookPins
    from ducklake_lab.session import Session

#: The comm's target, and the version of its messages; both are in the extension's `protocol.ts` too.
TARGET = "ducklake-lab"
PROTOCOL = 4

Answer = dict[str, Any]
Ask = Callable[[str, Mapping[str, Any]], Answer]


class SidebarComm:
    """The kernel's side of the comm: answers questions, and reports running statements and finished cells.

    Only one thread at a time uses a session. Kernels may handle comm messages in another thread: a question
    during a cell gets the answer `busy`, and a cell waits for an answer in progress.
    """

    def __init__(self, shell: InteractiveShell, ask: Ask, comm: Any) -> None:
        self._ask = ask
        self._comm = comm
        self._turn = threading.Lock()
        self._running = False
        comm.on_msg(self._on_message)
        shell.events.register("pre_run_cell", self._before_cell)
        shell.events.register("post_run_cell", self._after_cell)

    def show_running(self, statement: str, state: Mapping[str, object] | None) -> None:
        """Sends the progress of a statement, or None at its end; any thread may call it."""
        self._comm.send({"event": "done"} if state is None else {"event": "running", "statement": statement, **state})

    def show_moved(self) -> None:
        """Says that a lake may have changed; any thread may call it."""
        self._comm.send({"event": "moved"})

    @property
    def is_idle(self) -> bool:
        """Whether no cell runs."""
        return not self._running

    def _before_cell(self, *_: object) -> None:
        with self._turn:
            self._running = True

    def _after_cell(self, *_: object) -> None:
        with self._turn:
            self._running = False
        self._comm.send({"event": "ran"})

    def _on_message(self, message: Mapping[str, Any]) -> None:
        data = message.get("content", {}).get("data", {})
        self._comm.send({"id": data.get("id"), **self._answer(data)})

    def _answer(self, data: Mapping[str, Any]) -> Answer:
        if not self._turn.acquire(blocking=False):
            return {"busy": True}
        try:
            if self._running:
                return {"busy": True}
            with looking():
                return {"answer": self._ask(str(data.get("question")), data.get("given") or {})}
        except SessionBusyError:
            return {"busy": True}
        except DuckLakeError as error:
            return {"error": str(error)}
        finally:
            self._turn.release()


def sessions_of(shell: InteractiveShell, own: Callable[[], object]) -> Callable[[], dict[str, Session]]:
    """Returns a function for the sessions of the magics and of notebook variables, each once."""

    def named() -> Iterator[tuple[str, object]]:
        yield "", own()
        yield from ((name, value) for name, value in list(shell.user_ns.items()) if not name.startswith("_"))

    def sessions() -> dict[str, Session]:
        if "ducklake_lab.session" not in sys.modules:
            return {}  # nothing was connected, so the import is not needed
        from ducklake_lab.session import Session

        by_name: dict[str, Session] = {}
        for name, value in named():
            if isinstance(value, Session) and not any(value is other for other in by_name.values()):
                by_name[name] = value
        return by_name

    return sessions


def start(
    shell: InteractiveShell,
    own: Callable[[], object],
    connections: Callable[[], Mapping[str, Mapping[str, object]]] = dict,
    pins: NotebookPins | None = None,
    cells: Callable[[], Answer] = dict,
) -> SidebarComm | None:
    """Opens the comm in a Jupyter kernel; None without one, as in a terminal."""
    if getattr(shell, "kernel", None) is None:
        return None
    from comm import create_comm

    def ask(question: str, given: Mapping[str, object]) -> Answer:
        from ducklake_lab.magics.questions import Questions

        return Questions(sessions_of(shell, own), connections, watch, pins, cells).ask(question, given)

    comm = create_comm(target_name=TARGET, data={"protocol": PROTOCOL, "version": __version__})
    page = SidebarComm(shell, ask, comm)
    watch = Watch(page.show_moved, lambda: page.is_idle)
    return page

"""A server on this machine with one page, which shows a lake in the widgets of a notebook."""

from __future__ import annotations

import asyncio
import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tornado import web, websocket
from tornado.httpserver import HTTPServer
from tornado.log import app_log
from tornado.netutil import bind_sockets

from ducklake_lab.errors import UsageError
from ducklake_lab.session import Session
from ducklake_lab.web.access import ADDRESS, Access
from ducklake_lab.web.conversation import WIDGETS, Conversation, heading
from ducklake_lab.widgets.html import escape

_STATIC = Path(__file__).parent / "static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: Bytes of a message from the page: it sends names, filters and numbers.
_LONGEST = 1 << 20

Report = Callable[[str], None]


def serve(session: Session, *, port: int = 0, browser: bool = True, report: Report) -> None:
    """Serves the page until Ctrl-C.

    Args:
        session: has the lake in use, read-only.
        port: to listen on; 0 for a free one.
        browser: open the page in the user's browser.
        report: shows a line to the user.

    Raises:
        UsageError: the port cannot be listened on.
        DuckLakeError: the lake cannot be read.
    """
    name = heading(session)["name"]
    try:
        sockets = bind_sockets(port, ADDRESS)
    except OSError as error:
        raise UsageError(f"Port {port} cannot be used: {error.strerror}. Leave --port out for a free one.") from None
    access = Access(sockets[0].getsockname()[1])
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    ending = _Ending(loop)
    server = HTTPServer(application(session, access, name, ending.interruptible))
    before = signal.signal(signal.SIGINT, ending)
    try:
        server.add_sockets(sockets)
        report(f"{name} is open, read-only, at {access.link}  Ctrl-C ends it.")
        if browser:
            threading.Thread(target=_show, args=(access.link, report), daemon=True).start()
        loop.run_forever()
        report("Ended.")
    finally:
        signal.signal(signal.SIGINT, before)
        server.stop()
        loop.run_until_complete(server.close_all_connections())
        asyncio.set_event_loop(None)
        loop.close()


class _Ending:
    """Ctrl-C: stops the loop, and interrupts the question that is being answered.

    KeyboardInterrupt comes up while a question is answered, and nowhere else: a loop that it breaks cannot be closed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answering = False

    def __call__(self, *_signal: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._answering:
            raise KeyboardInterrupt

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Around an answer, which Ctrl-C ends early."""
        try:
            self._answering = True
            yield
        except KeyboardInterrupt:
            pass  # the loop stops: nobody waits for this answer
        finally:
            self._answering = False


def application(
    session: Session, access: Access, name: str, answering: Callable[[], AbstractContextManager[None]] = nullcontext
) -> web.Application:
    """The page, its modules and styles, and its socket, all below the token.

    Args:
        name: the lake's, for the title of the page.
        answering: entered around each answer to the page.
    """
    rule = {"access": access}
    return web.Application(
        [
            (r"/([^/]*)/", _Page, {**rule, "name": name}),
            (r"/([^/]*)/(page\.js|page\.css|icon\.svg)", _File, rule),
            (r"/([^/]*)/widgets/([a-z]+)\.(js|css)", _Widget, rule),
            (r"/([^/]*)/socket", _Socket, {**rule, "session": session, "answering": answering}),
        ],
        default_handler_class=_Nothing,
        default_handler_args=rule,
        websocket_max_message_size=_LONGEST,
        # A terminal is no log, and addresses hold the token.
        log_function=lambda _handler: None,
    )


def _show(link: str, report: Report) -> None:
    if not webbrowser.open(link, new=2):
        report("No browser was found here; open the link in one.")


class _Guarded(web.RequestHandler):
    """Refuse requests by the rules of access, before anything else."""

    needs_origin = False

    def initialize(self, access: Access, **more: Any) -> None:
        self.access = access
        self.more = more

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Cross-Origin-Opener-Policy", "same-origin")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("X-Frame-Options", "DENY")

    def prepare(self) -> None:
        headers = self.request.headers
        token = self.path_args[0] if self.path_args else ""
        host = headers.get("Host")
        why = self.access.refusal(token, host, headers.get("Origin"), needs_origin=self.needs_origin)
        if why is not None:
            raise web.HTTPError(403, reason=why)
        self.set_header("Content-Security-Policy", self.access.policy(str(host)))

    def write_error(self, status_code: int, **_more: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._reason}\n")

    def log_exception(self, *raised: Any) -> None:
        # Tornado's own names the address, which holds the token
        if not isinstance(raised[1], web.HTTPError):
            app_log.error("A question of the page failed.", exc_info=raised)

    def give(self, kind: str, text: str) -> None:
        self.set_header("Content-Type", _TYPES[kind])
        self.finish(text)


class _Nothing(_Guarded):
    def prepare(self) -> None:
        self.path_args = [self.request.path.split("/")[1]]
        super().prepare()
        raise web.HTTPError(404)


class _Page(_Guarded):
    def get(self, _token: str) -> None:
        page = (_STATIC / "page.html").read_text(encoding="utf-8")
        self.give("html", page.replace("{name}", escape(self.more["name"])))


class _File(_Guarded):
    def get(self, _token: str, name: str) -> None:
        self.give(name.rpartition(".")[2], (_STATIC / name).read_text(encoding="utf-8"))


class _Widget(_Guarded):
    """The module or the styles of a widget."""

    def get(self, _token: str, name: str, kind: str) -> None:
        if name not in WIDGETS:
            raise web.HTTPError(404)
        self.give(kind, str(WIDGETS[name]._esm if kind == "js" else WIDGETS[name]._css))


class _Socket(_Guarded, websocket.WebSocketHandler):
    """A page's conversation, as long as the page is there."""

    needs_origin = True

    def check_origin(self, _origin: str) -> bool:
        return True  # prepare() has compared it, port and all

    def open(self, *_path: str) -> None:
        self.conversation = Conversation(self.more["session"], self._post)

    def on_message(self, message: str | bytes) -> None:
        with self.more["answering"]():
            self.conversation.receive(message)

    def on_close(self) -> None:
        self.conversation.end()

    def _post(self, message: bytes) -> None:
        # The page may have gone while its question was answered.
        if self.ws_connection is not None and not self.ws_connection.is_closing():
            self.write_message(message, binary=True)

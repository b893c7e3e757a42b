"""The door over the Model Context Protocol: on standard input and output, or on this machine's own address.

The only module that imports `mcp`, which the extra `agents` installs.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from ducklake_lab.agents.door import Door, one_line
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.redaction import hide
from ducklake_lab.version import __version__

#: The only address that is listened on, and the names that reach it.
ADDRESS = "127.0.0.1"
_NAMES = (ADDRESS, "localhost")
_INSTRUCTIONS = (
    "A DuckLake lake, in DuckDB's SQL. query reads. change works on a branch of the lake, which the first change makes, and one "
    "statement at a time. When the changes are done, call ask_review and give its link to the person, who alone merges."
)
_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


def make_server(door: Door) -> Any:
    """Return the server with the door's functions as tools."""
    server = MCPServer("ducklake-lab", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")

    def run(context: Context | None, act: Callable[[], Any]) -> Any:
        if context is not None:
            parameters = context.session.client_params
            if parameters is not None:
                door.client = str(parameters.client_info.name)
        try:
            with one_line():
                return act()
        except DuckLakeError as error:
            raise ToolError(hide(str(error))) from None

    def list_tables() -> dict[str, Any]:
        """List the tables with their columns and numbers of rows, and the views."""
        return dict(run(None, door.list_tables))

    def describe(table: str) -> dict[str, Any]:
        """Describe the columns of a table or view, named as table or schema.table."""
        return dict(run(None, lambda: door.describe(table)))

    def query(sql: str, at: int | None = None, limit: int | None = None) -> dict[str, Any]:
        """Run one query in DuckDB's SQL; `at` is the id of a snapshot to read. Values are texts, or null."""
        return dict(run(None, lambda: door.query(sql, at, limit)))

    def history(table: str | None = None, last: int = 20) -> dict[str, Any]:
        """List the newest snapshots of the lake or of a table: time, author, message, changes."""
        return dict(run(None, lambda: door.history(table, last)))

    def diff() -> str:
        """Show what the branch changed, and the conflicts with the lake, as Markdown."""
        return str(run(None, door.diff))

    def change(sql: str, context: Context, message: str | None = None) -> dict[str, Any]:
        """Run one statement that changes rows or definitions, on the branch; the message says why."""
        return dict(run(context, lambda: door.change(sql, message)))

    def ask_review() -> dict[str, Any]:
        """Write the review of the branch as a page; give the link to the person who decides."""
        return dict(run(None, door.ask_review))

    for tool in (list_tables, describe, query, history, diff, change, ask_review):
        server.add_tool(tool)
    return server


def serve_stdio(door: Door) -> None:
    """Serve one client on standard input and output, until it closes them."""
    make_server(door).run("stdio")


def serve_http(door: Door, port: int, report: Callable[[str], None]) -> None:
    """Serve clients that have the token on 127.0.0.1, until interrupted.

    Args:
        report: called once with the address and the token.
    """
    import uvicorn

    token = secrets.token_urlsafe(32)
    app = guarded(make_server(door).streamable_http_app(host=ADDRESS), port, token)
    report(f"http://{ADDRESS}:{port}/mcp with the header  Authorization: Bearer {token}")
    uvicorn.run(app, host=ADDRESS, port=port, log_level="warning", access_log=False)


def guarded(app: _App, port: int, token: str) -> _App:
    """Return an application that passes on requests with the token, from this machine and no page of another site."""
    hosts = {f"{name}:{port}".encode() for name in _NAMES}
    expected = f"Bearer {token}".encode()

    async def check(scope: _Message, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope.get("headers", ()):
            headers.setdefault(name.lower(), []).append(value)
        host, origin = headers.get(b"host", []), headers.get(b"origin", [])
        given = headers.get(b"authorization", [])
        # a foreign Host is a sign of DNS rebinding, and a foreign Origin a page of another site
        is_here = len(host) == 1 and host[0] in hosts and origin in ([], [b"http://" + host[0]])
        is_known = len(given) == 1 and secrets.compare_digest(given[0], expected)
        if scope["type"] == "http" and is_here and is_known:
            await app(scope, receive, send)
        elif scope["type"] == "http":
            status = 401 if is_here else 403
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "websocket.close", "code": 1008})

    return check

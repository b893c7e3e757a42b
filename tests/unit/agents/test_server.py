"""The door over the Model Context Protocol, with its own client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ducklake_lab as dl
from ducklake_lab.cli import main

needs_mcp = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('mcp')", reason="mcp is not installed")


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread of its own: Playwright keeps a loop in that of the tests."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    path = tmp_path / "shop.ducklake"
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        session.sql("CREATE TABLE orders AS SELECT i AS id FROM range(20) r(i)")
    return path


def test_the_extra_is_named_where_mcp_is_missing(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "ducklake_lab.agents.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert main(["mcp", str(lake)]) == 2
    assert capsys.readouterr().err.strip().endswith("pip install 'ducklake-lab[agents]'")


@needs_mcp
def test_a_client_works_over_standard_input(lake: Path) -> None:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def talk() -> list[Any]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "ducklake_lab.cli", "mcp", str(lake)],
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()
            tools = [tool.name for tool in (await client.list_tools()).tools]
            asked = (
                ("query", "SELECT count(*) FROM orders"),
                ("query", "FROM '/etc/passwd'"),
                ("change", "TRUNCATE orders"),
            )
            return [tools, *[await client.call_tool(name, {"sql": sql}) for name, sql in asked]]

    tools, counted, refused, changed = _run(talk())
    assert tools == ["list_tables", "describe", "query", "history", "diff", "change", "ask_review"]
    assert counted.structured_content["rows"] == [["20"]]
    assert refused.is_error and "This door refuses the statement" in refused.content[0].text
    assert changed.structured_content["branch"].startswith("agent-")
    with dl.connect(f"ducklake:{lake}", engine="duckdb") as session:
        assert session.sql("SELECT count(*) FROM orders").fetchall() == [(20,)]


@needs_mcp
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:9", "authorization": "Bearer right"}, 200),
        ({"host": "localhost:9", "authorization": "Bearer right", "origin": "http://localhost:9"}, 200),
        ({"host": "127.0.0.1:9"}, 401),
        ({"host": "127.0.0.1:9", "authorization": "Bearer wrong"}, 401),
        ({"host": "127.0.0.1:9", "authorization": "right"}, 401),
        ({"host": "evil.example", "authorization": "Bearer right"}, 403),
        ({"host": "127.0.0.1:8", "authorization": "Bearer right"}, 403),
        ({"host": "127.0.0.1:9", "authorization": "Bearer right", "origin": "http://evil.example"}, 403),
        ({"host": "127.0.0.1:9", "authorization": "Bearer right", "origin": "null"}, 403),
        ({"authorization": "Bearer right"}, 403),
    ],
)
def test_http_asks_for_the_token_and_its_own_address(headers: dict[str, str], status: int) -> None:
    from ducklake_lab.agents.server import guarded

    sent: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    async def send(message: Any) -> None:
        if "status" in message:
            sent.append(message["status"])

    scope = {"type": "http", "headers": [(k.encode(), v.encode()) for k, v in headers.items()]}
    _run(guarded(app, 9, "right")(scope, None, send))  # type: ignore[arg-type]
    assert sent == [status]

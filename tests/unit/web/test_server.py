"""The server as a browser and as an attacker reach it: real requests to a real socket."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.websocket import WebSocketClientConnection, websocket_connect

import ducklake_lab as dl
from ducklake_lab.cli import main
from ducklake_lab.web.access import Access
from ducklake_lab.web.server import application
from tests.unit.web.talking import unpacked

pytestmark = pytest.mark.sampled(3)

ROOT = Path(__file__).parents[3]
NAME = "<b>lake</b>"


@pytest.fixture
def lake(tmp_path: Path) -> str:
    path = f"{tmp_path}/lake.ducklake"
    with dl.connect(f"ducklake:{path}", engine="duckdb") as session:
        session.sql("CREATE TABLE t (i INTEGER); INSERT INTO t FROM range(3)")
    return path


def alone(visit: Coroutine[None, None, None]) -> None:
    """Runs a visit in a thread of its own: browser tests leave a loop running in the tests' thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, visit).result()


def served(lake: str, visit: Callable[[Access], Awaitable[None]]) -> None:
    """Serves a lake while it is visited."""

    async def run() -> None:
        sockets = bind_sockets(0, "127.0.0.1")
        access = Access(sockets[0].getsockname()[1])
        server = HTTPServer(application(session, access, NAME))
        server.add_sockets(sockets)
        try:
            await visit(access)
        finally:
            server.stop()

    with dl.Session(engine="duckdb") as session:
        session.attach(f"ducklake:{lake}", read_only=True)
        alone(run())


async def get(url: str, **headers: str) -> HTTPResponse:
    return await AsyncHTTPClient().fetch(HTTPRequest(url, headers=headers, follow_redirects=False), raise_error=False)


async def connect(access: Access, path: str = "socket", **headers: str) -> WebSocketClientConnection:
    return await websocket_connect(HTTPRequest(f"{access.link.replace('http', 'ws')}{path}", headers=headers))


def test_the_page_and_what_it_loads(lake: str) -> None:
    async def visit(access: Access) -> None:
        page = await get(access.link)
        assert page.code == 200
        assert "&lt;b&gt;lake&lt;/b&gt;" in page.body.decode() and NAME not in page.body.decode()
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self';" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy.partition("style-src")[0]
        assert page.headers["Referrer-Policy"] == "no-referrer"
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        names = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
        widgets = [
            f"widgets/{name}.{kind}" for name in ("snapshots", "schema", "rows", "files") for kind in ("js", "css")
        ]
        for name in (*names, *widgets):
            found = await get(access.link + name)
            assert found.code == 200 and found.body, name
            kind = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[name.rpartition(".")[2]]
            assert found.headers["Content-Type"].startswith(kind)
        for name in (
            "page.html",
            "widgets/nothing.js",
            "../server.py",
            "%2e%2e/server.py",
            "widgets/rows.py",
            "socket/x",
        ):
            assert (await get(access.link + name)).code == 404, name

    served(lake, visit)


def test_requests_without_the_token_or_of_other_sites_are_refused(lake: str) -> None:
    async def visit(access: Access) -> None:
        host = f"127.0.0.1:{access.port}"
        for path in ("", "page.js", "widgets/rows.js", "socket", "nothing"):
            assert (await get(f"http://{host}/wrong/{path}")).code == 403
            assert (await get(f"http://{host}/{path}")).code == 403
            assert (await get(access.link + path, Host="evil.example")).code == 403
            assert (await get(access.link + path, Origin="http://evil.example")).code == 403
        refused = await get(f"http://{host}/wrong/")
        assert access.token not in refused.body.decode() + str(refused.headers)
        assert (await get(access.link, Host=f"localhost:{access.port}")).code == 200

    served(lake, visit)


def test_a_socket_needs_the_token_and_its_own_page(lake: str) -> None:
    async def visit(access: Access) -> None:
        own = f"http://127.0.0.1:{access.port}"
        for headers in (
            {},
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": own, "Host": "evil.example"},
        ):
            with pytest.raises(HTTPClientError, match="403"):
                await connect(access, **headers)
        with pytest.raises(HTTPClientError, match="403"):
            await connect(Access(access.port, "wrong"), Origin=own)
        socket = await connect(access, Origin=own)
        await socket.write_message(json.dumps({"type": "head", "request": 1}))
        message, _ = unpacked(await socket.read_message())  # type: ignore[arg-type]
        assert message["head"]["facts"].startswith("snapshot 2 · 1 schema · 1 table · 3 rows")
        await socket.write_message("x" * (2 << 20))
        assert await socket.read_message() is None
        socket.close()

    served(lake, visit)


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ducklake_lab.cli", "open", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "SPARK_HOME")}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONPATH": str(ROOT), "PATH": "", "BROWSER": "nothing"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("with_page", [False, True])
def test_ctrl_c_ends_it_with_one_line(lake: str, with_page: bool) -> None:
    process = start(lake, "--no-browser")
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(
        r"lake\.ducklake is open, read-only, at (http://127\.0\.0\.1:(\d+)/[\w-]{40,}/)  Ctrl-C ends it\.\n", line
    )
    assert found is not None, line

    async def visit() -> None:
        access = Access(int(found[2]), found[1].split("/")[3])
        page = await connect(access, Origin=f"http://127.0.0.1:{access.port}")
        await page.write_message(json.dumps({"type": "open", "view": "snapshots"}))
        assert unpacked(await page.read_message())[0]["type"] == "comm_msg"  # type: ignore[arg-type]
        assert unpacked(await page.read_message())[0]["type"] == "answer"  # type: ignore[arg-type]
        process.send_signal(signal.SIGINT)
        assert await page.read_message() is None

    if with_page:
        alone(visit())
    else:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "Ended.\n", "")


@pytest.mark.slow
def test_without_a_browser_the_link_is_there(lake: str) -> None:
    process = start(lake)
    assert process.stdout is not None
    assert "http://127.0.0.1:" in process.stdout.readline()
    assert process.stdout.readline() == "No browser was found here; open the link in one.\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0
    process.communicate()


def test_errors_are_one_line(lake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["open", lake, "--no-browser", "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert (
        error == f"ducklake-lab: Port {port} cannot be used: Address already in use. Leave --port out for a free one.\n"
    )
    assert main(["open", f"{tmp_path}/no.ducklake", "--no-browser"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "no.ducklake").exists()
    assert (
        main(["open", "ducklake:postgres:host=127.0.0.1 port=1 dbname=x user=u password=hunter2", "--no-browser"]) == 2
    )
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "hunter2" not in error


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_the_port_is_checked(lake: str, capsys: pytest.CaptureFixture[str], port: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["open", lake, "--port", port])
    assert stopped.value.code == 2
    assert f'--port: takes a port, 1 to 65535, not "{port}"' in capsys.readouterr().err


@pytest.mark.slow
def test_a_fault_of_ours_reaches_the_terminal(lake: str) -> None:
    process = start(lake, "--no-browser")
    assert process.stdout is not None
    found = re.search(r"(http://127\.0\.0\.1:(\d+))/([\w-]+)/", process.stdout.readline())
    assert found is not None

    async def visit() -> None:
        page = await connect(Access(int(found[2]), found[3]), Origin=found[1])
        await page.write_message(json.dumps({"type": "open", "view": "snapshots"}))
        comm = unpacked(await page.read_message())[0]["comm"]  # type: ignore[arg-type]
        await page.read_message()
        data = {"method": "custom", "content": {"type": "page"}}
        await page.write_message(json.dumps({"type": "comm_msg", "comm": comm, "data": data}))
        assert "failed here" in unpacked(await page.read_message())[0]["data"]["content"]["error"]  # type: ignore[arg-type]
        # the fault is logged after it is answered, and before the next question is
        await page.write_message(json.dumps({"type": "newest"}))
        await page.read_message()

    alone(visit())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyError: 'start'" in err

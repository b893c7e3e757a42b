"""DuckDB files served by DuckDB's extension quack, in a process beside the tests."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from tests.reference import extension, installed

#: The token of every server of the tests.
TOKEN = "a-token-of-tests"
#: What a client needs, and a server.
EXTENSIONS = ("httpfs", "quack")


def is_installed() -> bool:
    """Whether the extensions for the DuckDB that is installed are here."""
    return all(map(installed, EXTENSIONS))


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as taken:
        return int(taken.getsockname()[1])


class Servers:
    """Serves files, each at a port of its own, until it is closed."""

    def __init__(self) -> None:
        for name in EXTENSIONS:
            extension(name)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.quack"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def serve(self, path: Path, port: int | None = None) -> int:
        """Serves a file, which need not exist yet; returns the port."""
        port = port or free_port()
        answer = self._ask(f"serve {port} {path}")
        assert answer == "ok", answer
        return port

    def stop(self, port: int) -> None:
        assert self._ask(f"stop {port}") == "ok"

    def kill(self) -> None:
        """Ends all servers, in the midst of what they do."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def _ask(self, line: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextmanager
def serving() -> Iterator[Servers]:
    servers = Servers()
    try:
        yield servers
    finally:
        servers.close()


def _main() -> None:
    """Obeys lines of standard input, `serve PORT PATH` and `stop PORT`, until it ends."""
    served: dict[str, duckdb.DuckDBPyConnection] = {}
    for line in sys.stdin:
        what, port, *rest = line.rstrip("\n").split(" ", 2)
        address = f"quack:localhost:{port}"
        try:
            if what == "serve":
                connection = duckdb.connect(rest[0], config={"allow_unsigned_extensions": True})
                for name in EXTENSIONS:
                    connection.execute(f"LOAD '{extension(name)}'")
                connection.execute(f"CALL quack_serve('{address}', token := '{TOKEN}')")
                served[port] = connection
            else:
                served[port].execute(f"CALL quack_stop('{address}')")
                served.pop(port).close()
        except duckdb.Error as error:
            print(str(error).splitlines()[0], flush=True)
        else:
            print("ok", flush=True)


if __name__ == "__main__":
    _main()

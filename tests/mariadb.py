"""A private MariaDB server on a socket, for the tests that need one."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])


def server() -> str | None:
    """The path of the server's program, or None."""
    return shutil.which("mariadbd", path=_PATH)


@contextmanager
def running(folder: Path) -> Iterator[Path]:
    """A server with its data in an empty folder; gives the path of its socket, where root needs no password."""
    data, socket, log = folder / "data", folder / "s", folder / "log"
    install = shutil.which("mariadb-install-db", path=_PATH)
    program, user = server(), getpass.getuser()
    assert install is not None and program is not None
    common = ["--no-defaults", f"--user={user}", f"--datadir={data}"]
    subprocess.run(
        [install, *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with log.open("wb") as output:
        # nothing here must survive a crash of the machine
        options = [
            f"--socket={socket}",
            "--skip-networking",
            "--innodb-flush-method=nosync",
            "--skip-innodb-doublewrite",
        ]
        options += ["--innodb-flush-log-at-trx-commit=0"]
        process = subprocess.Popen([program, *common, *options, f"--pid-file={folder / 'pid'}"], stderr=output)
    try:
        _wait(process, socket, log)
        yield socket
    finally:
        process.terminate()
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    import pymysql

    deadline = time.monotonic() + 60
    while True:
        try:
            execute(socket, "SELECT 1")
            return
        except pymysql.err.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text(errors="replace")) from None
            time.sleep(0.1)


def execute(socket: Path, statement: str) -> None:
    import pymysql

    with pymysql.connect(unix_socket=str(socket), user="root", autocommit=True, ssl_disabled=True) as connection:
        connection.cursor().execute(statement)

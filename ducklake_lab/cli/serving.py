"""`serve`: a catalog in a DuckDB file, for many processes and machines."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from secrets import token_urlsafe

from ducklake_lab.cli.arguments import DONE, Commands
from ducklake_lab.cli.lakes import uri
from ducklake_lab.errors import UsageError

#: Bytes of a token, and letters of the shortest that DuckDB takes.
_BYTES, _SHORTEST = 32, 4


def add_serve(commands: Commands) -> None:
    from ducklake_lab.catalog.servers import QUACK_PORT

    served = commands.add(
        "serve",
        "serve a catalog in a DuckDB file to other processes, by DuckDB's extension quack",
        _serve,
        "lake.ducklake",
        "lake.ducklake --port 9595 --host 0.0.0.0",
    )
    served.add_argument(
        "--port",
        type=_port,
        default=QUACK_PORT,
        metavar="N",
        help=f"listen on this port ({QUACK_PORT}); 0 takes a free one",
    )
    served.add_argument(
        "--host",
        default="localhost",
        metavar="HOST",
        help="listen at this address, also for other machines (localhost)",
    )
    served.add_argument("--data-path", metavar="PATH", help="the folder for the data of a new lake")


def _serve(given: argparse.Namespace) -> int:
    from ducklake_lab.catalog.attach_options import AttachOptions
    from ducklake_lab.catalog.opening import open_lake
    from ducklake_lab.catalog.quack import TOKEN
    from ducklake_lab.catalog.serving import LOOPBACK, check_can_be_served, serving
    from ducklake_lab.catalog.uri import parse_uri

    location = parse_uri(uri(given.lake))
    check_can_be_served(location)
    own = os.environ.get(TOKEN)
    if own is not None and len(own) < _SHORTEST:
        raise UsageError(f"{TOKEN} has fewer than {_SHORTEST} letters; set a longer one, or none.")
    options = AttachOptions(create_if_not_exists=given.data_path is not None, data_path=given.data_path)
    lake = open_lake(location, location.default_alias, options)
    lake.database.dispose()
    token = own or token_urlsafe(_BYTES)
    say = partial(print, flush=True)
    with _stopped() as stopped, serving(location, given.host, given.port, token) as address:
        say(f"Serving {location.display} at {address.removeprefix('quack:')}; Ctrl-C ends it.")
        say(f"Token: {token}" if own is None else f"Token: that of {TOKEN}")
        say(
            f'Connect with it in {TOKEN}, or in a secret of type quack: dl.connect("ducklake:{address}", data_path="{lake.data_path}")'
        )
        if given.host not in LOOPBACK:
            say(
                "Clients of other machines expect TLS: put a proxy with a certificate before it, or let them set DISABLE_SSL."
            )
        stopped.wait()
    say("Stopped.")
    return DONE


@contextmanager
def _stopped() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set in the block."""
    event = threading.Event()
    before = {number: signal.signal(number, lambda *_: event.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _port(given: str) -> int:
    if not given.isdecimal() or int(given) > 65535:
        raise argparse.ArgumentTypeError(f'takes a port, 0 to 65535, not "{given}"')
    return int(given)

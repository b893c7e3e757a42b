"""`open`: a page in the browser that shows a lake."""

from __future__ import annotations

import argparse
import logging
from functools import partial

from ducklake_lab.cli.arguments import DONE, Commands, add_data_path
from ducklake_lab.cli.lakes import attach
from ducklake_lab.redaction import hide


def add_open(commands: Commands) -> None:
    opened = commands.add(
        "open",
        "show the snapshots, schema, rows and files of a lake in the browser, read-only",
        _open,
        "lake.ducklake",
        "lake.ducklake --no-browser --port 8642",
    )
    add_data_path(opened)
    opened.add_argument(
        "--port", type=_port, default=0, metavar="N", help="listen on this port; a free one if left out"
    )
    opened.add_argument("--no-browser", action="store_true", help="print the link, open no browser")


def _open(given: argparse.Namespace) -> int:
    from ducklake_lab.session import Session
    from ducklake_lab.web.server import serve

    # ipywidgets and Tornado catch what fails in an answer, and leave it to the log
    logging.basicConfig(level=logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Log("ducklake-lab: %(message)s"))
    with Session(engine="duckdb") as session:
        attach(session, given)
        # a link is to be seen when the output is a pipe too
        serve(session, port=given.port, browser=not given.no_browser, report=partial(print, flush=True))
    return DONE


class _Log(logging.Formatter):
    """Lines of a log without secrets: the address in a request holds the page's token."""

    def format(self, record: logging.LogRecord) -> str:
        return hide(super().format(record))


def _port(given: str) -> int:
    if not given.isdecimal() or int(given) > 65535:
        raise argparse.ArgumentTypeError(f'takes a port, 1 to 65535, not "{given}"')
    return int(given)

"""`mcp`: a door for agents, which opens onto a branch of a lake."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from ducklake_lab.cli.arguments import DONE, Commands, add_data_path
from ducklake_lab.cli.lakes import uri
from ducklake_lab.errors import UnsupportedFeatureError


def add_mcp(commands: Commands) -> None:
    door = commands.add(
        "mcp",
        "serve a lake to an agent, which reads it and changes a branch of it; merging stays with people",
        _mcp,
        "lake.ducklake",
        "lake.ducklake --branch fix-amounts --http 8765",
    )
    door.add_argument("--branch", metavar="NAME", help="the branch for changes; the first change makes one if left out")
    door.add_argument(
        "--http", type=_port, metavar="PORT", help="listen on 127.0.0.1 with a token, not on standard input"
    )
    add_data_path(door)


def _mcp(given: argparse.Namespace) -> int:
    try:
        from ducklake_lab.agents.server import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise UnsupportedFeatureError(
            "ducklake-lab mcp needs the package mcp: pip install 'ducklake-lab[agents]'"
        ) from None
    from ducklake_lab.agents.door import Door

    with Door(
        uri(given.lake),
        given.branch,
        data_path=given.data_path,
        override_data_path=given.data_path is not None,
    ) as door:
        if given.http is not None:
            serve_http(door, given.http, partial(print, file=sys.stderr, flush=True))
        else:
            serve_stdio(door)
    return DONE


def _port(given: str) -> int:
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise argparse.ArgumentTypeError(f'takes a port, 1 to 65535, not "{given}"')
    return int(given)

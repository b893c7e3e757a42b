"""The words of a command, its errors and its exit code."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from ducklake_lab.cli import (
    agents,
    autopilot,
    checks,
    differences,
    doctor,
    history,
    indexes,
    live,
    merging,
    notebooks,
    page,
    queries,
    reverting,
    reviewing,
    serving,
)
from ducklake_lab.cli.arguments import DONE, FAILED, STOPPED, Commands
from ducklake_lab.cli.output import read_no_more
from ducklake_lab.errors import DuckLakeError
from ducklake_lab.redaction import hide
from ducklake_lab.version import __version__

#: Functions that add a command each, in the order of the help.
_COMMANDS = (
    queries.add_sql,
    history.add_snapshots,
    differences.add_diff,
    differences.add_compare,
    queries.add_when,
    notebooks.add_run,
    reverting.add_revert,
    live.add_refresh,
    reviewing.add_review,
    merging.add_merge,
    merging.add_rebase,
    history.add_blame,
    autopilot.add_autopilot,
    doctor.add_doctor,
    checks.add_check,
    checks.add_lineage,
    indexes.add_indexes,
    page.add_open,
    serving.add_serve,
    agents.add_mcp,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Returns:
        The exit code: that of the command, STOPPED or FAILED, which is that of a wrong option too.
    """
    given = parsed(arguments)
    try:
        return int(given.run(given))
    except BrokenPipeError:
        read_no_more()
        return DONE
    except KeyboardInterrupt:
        print("ducklake-lab: stopped.", file=sys.stderr)
        return STOPPED
    except DuckLakeError as error:
        print(f"ducklake-lab: {error}", file=sys.stderr)
        return FAILED
    except Exception:  # noqa: BLE001 - Python would exit with 1, which says that the states differ
        print(hide(traceback.format_exc()), end="", file=sys.stderr)
        return FAILED


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parses the words of a command, whose options may stand anywhere.

    Until Python 3.12, argparse takes words that may be left out only before the options.
    """
    parser = _parser()
    given, left = parser.parse_known_args(arguments)
    for name in given.optional:
        if left and getattr(given, name) is None and not _is_option(left[0]):
            setattr(given, name, left.pop(0))
    if left:
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    return given


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and " " not in word and not word[1:].isdecimal()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ducklake-lab", description="Queries, compares and shows DuckLake lakes.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = Commands(parser)
    for add_command in _COMMANDS:
        add_command(commands)
    return parser

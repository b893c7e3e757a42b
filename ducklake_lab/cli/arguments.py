"""Parsers of commands: their help, the options that several of them take, and exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: Exit codes: done, and nothing differs where the command compares; something differs, or conflicts; an error; Ctrl-C.
DONE, DIFFERENT, FAILED, STOPPED = 0, 1, 2, 130

#: Snapshots that `lakes.at` reads, as the help says it.
SNAPSHOT = "a snapshot id, a tag or a time; a negative id counts from the newest"
_FORMATS = ("table", "json", "csv", "markdown")


class Commands:
    """The commands of a parser."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        self,
        name: str,
        text: str,
        run: Callable[[argparse.Namespace], int],
        *examples: str,
        codes: str = "0 done",
        of_lake: bool = True,
    ) -> argparse.ArgumentParser:
        """Adds a command and returns its parser, to which its options are added.

        Args:
            text: its help, which begins with a verb.
            run: runs it with the parsed words and returns the exit code.
            examples: words after its name.
            codes: exit codes of its own, as the help says them.
            of_lake: it takes a lake as the first word.
        """
        lines = "\n".join(f"  ducklake-lab {name} {example}" for example in examples)
        made = self._parsers.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=f"Examples:\n{lines}\n\nExit codes: {codes}, 2 an error, 130 stopped by Ctrl-C.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if of_lake:
            made.add_argument(
                "lake", metavar="LAKE", help="a lake's URI, e.g. ducklake:postgres:dbname=lake, or its file"
            )
        made.set_defaults(run=run, optional=())
        return made


def add_data_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-path", metavar="PATH", help="where the data is, if not where the catalog says")


def add_output(parser: argparse.ArgumentParser, rows: str = "rows") -> None:
    """Adds the options of commands that print rows; `rows` is what their help calls them."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--format", choices=_FORMATS, default="table", help="how rows are printed (table)")
    form.add_argument("--json", dest="format", action="store_const", const="json", help="as --format json")
    parser.add_argument(
        "--limit",
        type=_count_above_zero,
        metavar="N",
        help=f"print N of {rows} at most (50 in tables and Markdown, all in others)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write one self-contained HTML file")


def add_changed_rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=count, default=20, metavar="N", help="changed rows printed at most (20)")


def listed(given: str | None) -> list[str] | None:
    """Reads names with commas between; None where none are given."""
    return [name.strip() for name in given.split(",")] if given else None


def count(given: str) -> int:
    """Reads a number of rows."""
    if not given.isdecimal():
        raise argparse.ArgumentTypeError(f'takes a number of rows, 0 or more, not "{given}"')
    return int(given)


def _count_above_zero(given: str) -> int:
    if not given.isdecimal() or not int(given):
        raise argparse.ArgumentTypeError(f'takes a number of rows above 0, not "{given}"')
    return int(given)

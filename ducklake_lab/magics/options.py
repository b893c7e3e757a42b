"""The magic line of `%%ducklake`: options, then `name <<`, then SQL.

Options end at the first word that is not one, and nothing after it is looked at: `->`, `-1`, `[a:b]`, `$$` and `:x`
in SQL are SQL. `--` before a blank is a comment of SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from ducklake_lab.errors import UsageError, did_you_mean

_OPTION = re.compile(r"\s*(--[A-Za-z][\w-]*|-h\b)(=)?")
_VALUE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
_TARGET = re.compile(r"\s*([^\W\d]\w*)\s*(=)?\s*<<(?!<)\s*")

#: Options that take a value, and those that do not, with their help.
_VALUED = {
    "lake": ("NAME", "the attached lake to run in; the current one if left out"),
    "limit": ("ROWS", "rows shown at most (50)"),
    "at": ("SNAPSHOT", "read lake tables as of a snapshot id or a time"),
    "dialect": ("NAME", "duckdb or spark (duckdb)"),
}
_FLAGS = {
    "no-display": "run, show nothing",
    "traceback": "show the whole stack trace of an error",
    "help": "show this help",
}


@dataclass(frozen=True, slots=True)
class CellOptions:
    """What the magic line asks for.

    Attributes:
        at: snapshot id or time, None for the newest.
        name: the variable to assign, or None.
        show: display the rows; False for `name <<`, true for `name = <<`.
    """

    lake: str | None = None
    limit: int | None = None
    at: int | datetime | None = None
    dialect: str | None = None
    traceback: bool = False
    help: bool = False
    name: str | None = None
    show: bool = True


def parse(line: str) -> tuple[CellOptions, str]:
    """The options of a magic line and the rest of it, which is SQL (or a subcommand), unchanged.

    Raises:
        UsageError: an unknown option, or one with a wrong or missing value.
    """
    given: dict[str, str] = {}
    position = 0
    while match := _OPTION.match(line, position):
        name = "help" if match[1] == "-h" else match[1][2:]
        position = match.end()
        if name in _VALUED:
            value = _VALUE.match(line, position)
            if value is None:
                raise UsageError(f"--{name} needs a value: --{name} {_VALUED[name][0]}.")
            given[name] = next(group for group in value.groups() if group is not None)
            position = value.end()
        elif name in _FLAGS and match[2] is None:
            given[name] = ""
        else:
            known = [f"--{option}" for option in (*_VALUED, *_FLAGS)]
            raise UsageError(f"%%ducklake has no option --{name}.{did_you_mean(f'--{name}', known)}")
    rest = line[position:]
    target = _TARGET.match(rest)
    name_given = target[1] if target else None
    options = CellOptions(
        lake=given.get("lake"),
        limit=_limit(given.get("limit")),
        at=moment(given["at"]) if "at" in given else None,
        dialect=_dialect(given.get("dialect")),
        traceback="traceback" in given,
        help="help" in given,
        name=name_given,
        show="no-display" not in given and (target is None or target[2] is not None),
    )
    return options, (rest[target.end() :] if target else rest).lstrip()


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise UsageError(f'--limit takes a number of rows above 0, not "{text}".')
    return int(text)


def _dialect(text: str | None) -> str | None:
    if text not in (None, "duckdb", "spark"):
        raise UsageError(f'--dialect is duckdb or spark, not "{text}".')
    return text


def moment(text: str) -> int | datetime:
    """A snapshot id or an ISO time.

    Raises:
        UsageError: it is neither.
    """
    if text.isdecimal():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f'"{text}" is neither a snapshot id nor a time such as "2026-03-02 09:30".') from None


def usage() -> str:
    """The help of the cell magic."""
    options = [(f"--{name} {value}", text) for name, (value, text) in _VALUED.items()]
    options += [(f"--{name}", text) for name, text in _FLAGS.items()]
    lines = "\n".join(f"  {name:<20}{text}" for name, text in options)
    return (
        "%%ducklake [options] [name <<]\nSQL\n\n"
        "Runs SQL in DuckDB's dialect on Spark and shows the first rows.\n"
        "  name <<             assign a lazy Spark DataFrame, show nothing\n"
        "  name = <<           assign it and show the first rows\n"
        "  :name               in SQL: the notebook's variable, bound as a value\n\n"
        f"Options\n{lines}"
    )

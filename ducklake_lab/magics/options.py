"""Parses the magic line of `%%ducklake`: options, then `name <<`, then SQL.

Options end at the first other word, and the rest is not parsed: `->`, `-1`, `[a:b]`, `$$` and `:x`
belong to the SQL. `--` before a blank is a SQL comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ducklake_lab.errors import UsageError, did_you_mean
from ducklake_lab.model.snapshot_names import named_snapshot

_OPTION = re.compile(r"\s*(--[A-Za-z][\w-]*|-[hmo](?=\s|$))(=)?")
_VALUE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
_TARGET = re.compile(r"\s*([^\W\d]\w*)\s*(=)?\s*<<(?!<)\s*")

OUTPUTS = ("spark", "pandas", "polars", "arrow")
ENGINES = ("auto", "spark", "duckdb")
DIALECTS = ("duckdb", "spark")

#: Options with a value, and options without, with their help.
VALUED = {
    "lake": ("NAME", "the attached lake to run in; the current one if left out"),
    "at": ("SNAPSHOT", "read lake tables as of a snapshot id, a tag or a time"),
    "compare": ("A B", "show what differs in the answers at two snapshots"),
    "engine": ("NAME", "auto (by size), spark, or duckdb, which works in process"),
    "dialect": ("NAME", "duckdb or spark (duckdb)"),
    "message": ("TEXT", "the commit message of what the cell changes; also -m"),
    "limit": ("ROWS", "rows shown at most (50)"),
    "output": ("KIND", "what a name gets: spark, pandas, polars or arrow; also -o (spark)"),
    "save": ("NAME", "keep the query under a name, for --with"),
    "view": ("NAME", "keep the query as a temporary view, which later cells read by its name"),
    "with": ("NAME", "put a saved query before this one, as WITH NAME AS (…); may be repeated"),
}
FLAGS = {
    "preview": "run in a transaction, show what would change, commit when told to",
    "explain": "show how the query would run, and which files it would read",
    "jinja": "fill in {{ name }} from the notebook's variables first",
    "grid": "show the grid of the rows with its filters, profiles and SQL",
    "no-grid": "show the rows as a table, without a grid",
    "no-display": "run, show nothing",
    "traceback": "show the whole stack trace of an error",
    "help": "show this help",
}
#: Pairs of options that exclude each other; `name` means `name <<`.
_EXCLUDED = (
    ("preview", "explain"),
    ("preview", "at"),
    ("preview", "name"),
    ("grid", "at"),
    ("grid", "no-grid"),
    *(("view", n) for n in ("preview", "explain", "at")),
    *(("compare", n) for n in ("preview", "explain", "at", "view", "grid", "no-grid", "engine", "dialect", "output")),
)
_SHORT = {"-h": "help", "-m": "message", "-o": "output"}


@dataclass(frozen=True, slots=True)
class CellOptions:
    """The options of a magic line.

    Attributes:
        at: snapshot id, tag or time, None for the newest.
        compare: two snapshots at which the answers are compared, or None.
        output: the type of the rows: spark, pandas, polars or arrow; None if not given.
        compose: names of saved queries to put before the SQL, in order.
        name: the variable to assign, or None.
        grid: open, with filters and profiles, or none; None for the notebook's setting.
        show: display the rows; False for `name <<`, True for `name = <<`.
    """

    lake: str | None = None
    limit: int | None = None
    at: int | datetime | str | None = None
    compare: tuple[int | datetime | str, int | datetime | str] | None = None
    engine: str | None = None
    dialect: str | None = None
    output: str | None = None
    message: str | None = None
    save: str | None = None
    view: str | None = None
    compose: tuple[str, ...] = ()
    preview: bool = False
    explain: bool = False
    grid: Literal["open", "none"] | None = None
    jinja: bool = False
    traceback: bool = False
    help: bool = False
    name: str | None = None
    show: bool = True


def parse(line: str) -> tuple[CellOptions, str]:
    """Returns the options of a magic line, and the unchanged rest, which is SQL or a subcommand.

    Raises:
        UsageError: an option is unknown, or its value is wrong or missing.
    """
    given: dict[str, list[str]] = {}
    position = 0
    while match := _OPTION.match(line, position):
        name = _SHORT.get(match[1], match[1][2:])
        position = match.end()
        if name in VALUED:
            shown = VALUED[name][0]
            for _ in shown.split():
                value = _VALUE.match(line, position)
                if value is None:
                    raise UsageError(f"--{name} needs {'two values' if ' ' in shown else 'a value'}: --{name} {shown}.")
                given.setdefault(name, []).append(next(group for group in value.groups() if group is not None))
                position = value.end()
        elif name in FLAGS and match[2] is None:
            given[name] = []
        else:
            option_names = [f"--{option}" for option in (*VALUED, *FLAGS)]
            raise UsageError(f"%%ducklake has no option --{name}.{did_you_mean(f'--{name}', option_names)}")
    rest = line[position:]
    target = _TARGET.match(rest)
    last = {name: values[-1] for name, values in given.items() if values}
    options = CellOptions(
        lake=last.get("lake"),
        limit=_limit(last.get("limit")),
        at=named_snapshot(last["at"]) if "at" in last else None,
        compare=_two(given.get("compare", ())),
        engine=_choice("engine", last.get("engine"), ENGINES),
        dialect=_choice("dialect", last.get("dialect"), DIALECTS),
        output=_choice("output", last.get("output"), OUTPUTS),
        message=last.get("message"),
        save=_identifier("save", last.get("save")),
        view=_identifier("view", last.get("view")),
        compose=tuple(given.get("with", ())),
        preview="preview" in given,
        explain="explain" in given,
        grid="open" if "grid" in given else "none" if "no-grid" in given else None,
        jinja="jinja" in given,
        traceback="traceback" in given,
        help="help" in given,
        name=target[1] if target else None,
        show="no-display" not in given and (target is None or target[2] is not None),
    )
    asked = {*given, *(("name",) if target else ())}
    for one, other in _EXCLUDED:
        if one in asked and other in asked:
            raise UsageError(f"--{one} does not go together with {'name <<' if other == 'name' else '--' + other}.")
    return options, (rest[target.end() :] if target else rest).lstrip()


def _two(given: Sequence[str]) -> tuple[int | datetime | str, int | datetime | str] | None:
    return (named_snapshot(given[-2]), named_snapshot(given[-1])) if given else None


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise UsageError(f'--limit takes a number of rows above 0, not "{text}".')
    return int(text)


def _choice(option: str, text: str | None, choices: Sequence[str]) -> str | None:
    if text is not None and text not in choices:
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise UsageError(f'--{option} is {listed}, not "{text}".')
    return text


def _identifier(option: str, text: str | None) -> str | None:
    if text is not None and not text.isidentifier():
        raise UsageError(f'--{option} takes a name that SQL can use, not "{text}".')
    return text


def moment(text: str) -> int | datetime:
    """Returns a snapshot id or an ISO time.

    Raises:
        UsageError: the text is neither.
    """
    point = named_snapshot(text)
    if isinstance(point, str):
        raise UsageError(f'"{text}" is neither a snapshot id nor a time such as "2026-03-02 09:30".')
    return point


def typed(text: str) -> tuple[str, str]:
    """Returns the name and the type in `NAME=TYPE`.

    Raises:
        UsageError: the text has another form.
    """
    name, _, kind = (part.strip() for part in text.rpartition("="))
    if not (name and kind):
        raise UsageError(f'"{text}" is no type of a column; write NAME=TYPE, such as "zip=VARCHAR".')
    return name, kind


def usage() -> str:
    """Returns the help of the cell magic."""
    options = [(f"--{name} {value}", text) for name, (value, text) in VALUED.items()]
    options += [(f"--{name}", text) for name, text in FLAGS.items()]
    lines = "\n".join(f"  {name:<20}{text}" for name, text in options)
    return (
        "%%ducklake [options] [name <<]\nSQL\n\n"
        "Runs SQL in DuckDB's dialect, in process or on Spark by size, and shows the first rows.\n"
        "  name <<             assign a lazy Spark DataFrame (or what -o says), show nothing\n"
        "  name = <<           assign it and show the first rows\n"
        "  :name               in SQL: the notebook's variable, bound as a value\n\n"
        f"Options\n{lines}"
    )

"""The documentation's reference, made from the code when the site is built: it cannot be out of date.

MkDocs calls `on_files` (see `hooks` in mkdocs.yml).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import ducklake_lab as dl
from ducklake_lab import errors, widgets
from ducklake_lab.diff.lake import TableDiff
from ducklake_lab.errors import UnsupportedFeatureError
from ducklake_lab.magics import DuckLakeMagics, arguments, options
from ducklake_lab.model import types
from ducklake_lab.session import functions
from ducklake_lab.session.appender import Appender
from ducklake_lab.session.doctoring import Diagnosis
from ducklake_lab.spark.types import spark_type


def pages() -> dict[str, str]:
    """The text of each page by its path in the documentation."""
    made = {
        "reference/magics.md": _magics(),
        "reference/python.md": _python(),
        "reference/functions.md": _functions(),
        "reference/errors.md": _errors(),
        "reference/types.md": _types(),
        "reference/widgets.md": _widgets(),
    }
    return {name: re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n" for name, text in made.items()}


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head)]
    lines.append(["---"] * len(lines[0]))
    lines += [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _magics() -> str:
    text = "# Magics\n\n`%load_ext ducklake_lab` registers them. They never claim `%sql`.\n\n"
    text += "## `%%ducklake`: a cell of SQL\n\n"
    text += "`%%ducklake [options] [name <<]`, then SQL in DuckDB's dialect in the lines below. "
    text += "`%ducklake [options] [name <<] SQL` is the same in one line.\n\n"
    text += _table(
        ("option", "meaning"),
        [
            *((_code(f"--{name} {value}"), meaning) for name, (value, meaning) in options.VALUED.items()),
            *((_code(f"--{name}"), meaning) for name, meaning in options.FLAGS.items()),
        ],
    )
    text += "`:name` in SQL is the notebook's variable of that name, bound as a value and never pasted.\n\n"
    text += "## `%ducklake`: subcommands\n\n"
    for name, parser in arguments.parsers().items():
        usage = " ".join(parser.format_usage().removeprefix("usage:").split())
        text += f"### {name}\n\n{_sentence(parser.description or '')}\n\n```text\n{usage}\n```\n\n"
        taken = [action for action in parser._actions if action.help]
        if taken:
            text += _table(
                ("argument", "meaning"),
                ((_code(", ".join(a.option_strings) or str(a.metavar or a.dest)), a.help or "") for a in taken),
            )
    text += "## Settings\n\n`%config DuckLakeMagics.limit = 100` sets one for a notebook, "
    text += "`[tool.ducklake_lab]` in a `pyproject.toml` in the notebook's folder or above it for a project.\n\n"
    traits = DuckLakeMagics.class_traits(config=True)
    return text + _table(
        ("setting", "default", "meaning"),
        ((_code(name), _code(repr(trait.default_value)), trait.help) for name, trait in sorted(traits.items())),
    )


def _python() -> str:
    text = "# Python\n\n`import ducklake_lab as dl`. "
    text += "Importing it loads neither Spark nor pandas; each comes when it is first used.\n\n"
    text += _callable("dl.connect", dl.connect, 2)
    for cls in (
        dl.Session,
        dl.TableHandle,
        dl.Result,
        Diagnosis,
        dl.Diff,
        dl.AnswerDiff,
        dl.LakeDiff,
        TableDiff,
        Appender,
    ):
        text += f"## {cls.__name__}\n\n{_doc(cls)}\n\n"
        for name, member in sorted(_members(cls).items()):
            if isinstance(member, property):
                text += f"### {cls.__name__}.{name}\n\n{_doc(member)}\n\n"
            else:
                text += _callable(f"{cls.__name__}.{name}", member, 3)
    return text


def _members(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not object:
            public = {name: member for name, member in vars(base).items() if not name.startswith("_")}
            found |= {n: member for n, member in public.items() if callable(member) or isinstance(member, property)}
    return found


def _callable(name: str, function: Callable[..., Any], level: int) -> str:
    signature = inspect.signature(function)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    shown = str(signature.replace(parameters=parameters)).replace("'", "")
    return f"{'#' * level} {name}\n\n```text\n{name}{shown}\n```\n\n{_doc(function)}\n\n"


def _doc(documented: Any) -> str:
    """A docstring as Markdown: sections as bold words, their entries as lists."""
    lines, section = [], False
    for line in (inspect.getdoc(documented) or "").splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Yields|Attributes|Example|Examples):", line):
            lines += ["", f"**{line[:-1]}**", ""]
            section = True
        elif section and re.match(r" {4}\S", line):
            lines.append(re.sub(r"^ {4}([^:]+):", r"- `\1`:", line) if ":" in line else f"- {line.strip()}")
        elif section and line.strip():
            lines.append(f"  {line.strip()}")
        else:
            section = section and not line.strip()
            lines.append(line)
    return "\n".join(lines).strip()


def _functions() -> str:
    text = "# Functions of a lake\n\n"
    text += "`FROM lake.f(…)`, `CALL lake.f(…)` or `FROM ducklake_f('lake', …)`; the lake in use needs no prefix: "
    text += "`FROM snapshots()`. Those that change the lake run once, as statements of their own.\n\n"
    rows = []
    for function in sorted((f for family in functions._FAMILIES for f in family), key=lambda f: f.name):
        fewest, most = function.arguments
        count = str(fewest) if fewest == most else f"{fewest} to {most}"
        columns = (
            "by its arguments"
            if callable(function.columns)
            else ", ".join(f"`{name}` {kind.sql()}" for name, kind in function.columns)
        )
        named = ", ".join(_code(name) for name in function.named)
        rows.append((_code(function.name), count, named, "" if function.effects == "none" else "yes", columns))
    return text + _table(("function", "arguments", "named", "changes the lake", "columns"), rows)


def _errors() -> str:
    text = "# Errors\n\nEverything that is raised on purpose is a `dl.DuckLakeError`. "
    text += "The text is one line: what is wrong, with which object, what to do next.\n\n"
    tree = inspect.getdoc(errors) or ""
    text += "```text\n" + inspect.cleandoc(tree.partition("::\n\n")[2].partition("\n\nThe text")[0]) + "\n```\n\n"
    classes = [getattr(errors, name) for name in errors.__all__ if inspect.isclass(getattr(errors, name))]
    return text + _table(
        ("error", "is a", "meaning"),
        ((_code(c.__name__), _code(c.__bases__[0].__name__), (_doc(c)).splitlines()[0]) for c in classes),
    )


def _types() -> str:
    text = (
        "# Types\n\nThe types of a lake's columns, as the specification names them, and what they are on each side.\n\n"
    )
    rows = []
    for name, known in types._PRIMITIVES.items():
        try:
            spark = _code(spark_type(types.DataType(name)).simpleString())
        except UnsupportedFeatureError:
            spark = "not supported"
        rows.append((_code(name), _code(known.sql), spark, _code(str(known.arrow))))
    rows.append((_code("decimal(p,s)"), _code("DECIMAL(p, s)"), _code("decimal(p,s)"), _code("decimal128(p, s)")))
    rows.append((_code("struct"), _code("STRUCT(a T, …)"), _code("struct<a:T,…>"), _code("struct")))
    rows.append((_code("list"), _code("T[]"), _code("array<T>"), _code("list")))
    rows.append((_code("map"), _code("MAP(K, V)"), _code("map<K,V>"), _code("map")))
    text += _table(("specification", "SQL", "Spark", "Arrow"), rows)
    return text + 'A column of a type that Spark lacks is read in process: `engine="duckdb"`.\n'


def _widgets() -> str:
    text = "# Views and widgets\n\nWhat a cell shows. Each is HTML that stays in the saved notebook and in exported pages; "
    text += "those that need a kernel fall back to it.\n\n"
    rows = []
    for path in sorted(Path(widgets.__path__[0]).glob("*.py")):
        if path.stem == "__init__":
            continue
        module = __import__(f"ducklake_lab.widgets.{path.stem}", fromlist=["_"])
        for name, cls in sorted(vars(module).items()):
            if inspect.isclass(cls) and cls.__module__ == module.__name__ and not name.startswith("_"):
                rows.append((_code(f"{path.stem}.{name}"), (_doc(cls) or _doc(module)).splitlines()[0]))
    return text + _table(("class in `ducklake_lab.widgets`", "shows"), rows)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages to those of the folder."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files

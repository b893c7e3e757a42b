"""Runs the SQL of DuckLake's documentation on a session and on the reference, page by page, and compares.

    python -m tests.corpus.documentation DUCKLAKE_WEB/docs/stable/duckdb

Each page runs in two fresh folders, with a fresh lake that has some tables, and again from every block on that attaches
a lake itself. Some pages take more for granted, which is made for them first (`_PREPARED`). A statement is the same where
both run it and give the same rows. Names of files, UUIDs and times differ from run to run and are not compared, nor are
who made a lake, the words that describe an option, and what is logged of queries inside.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import duckdb

import ducklake_lab as dl
from tests.reference import connect, extension

_BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: What is out of reach: other servers, object stores, and installing extensions.
_SERVICE = re.compile(
    r"\b(s3|gs|gcs|az|abfss|r2|https?|sftp)://|(postgres|mysql|quack|motherduck|md):|^\s*INSTALL\b", re.I
)
_VARIES = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ATTACH = re.compile(r"^\s*ATTACH 'ducklake:", re.MULTILINE)
#: What pages that attach nothing take for granted.
_START = (
    "ATTACH 'ducklake:my_ducklake.ducklake' AS my_ducklake",
    "USE my_ducklake",
    "CREATE SCHEMA my_schema",
    "CREATE SCHEMA some_schema",
    "CREATE TABLE tbl (col1 INTEGER, part_key INTEGER, ts TIMESTAMP, user_id BIGINT, nested_column STRUCT(a INTEGER))",
    "INSERT INTO tbl SELECT i, i % 2, TIMESTAMP '2025-01-01' + to_days(i::INTEGER), i, {'a': i} FROM range(20) r(i)",
    "CREATE TABLE test_table (test_table_column INTEGER)",
    "CREATE TABLE my_table (id INTEGER, value INTEGER)",
    "INSERT INTO my_table FROM (VALUES (1, 50), (2, 150))",
    "CREATE TABLE my_schema.my_table (id INTEGER)",
    "CREATE TABLE my_schema.important_table (id INTEGER)",
    "CREATE TABLE t (i INTEGER)",
    "INSERT INTO t FROM range(30)",
    "DELETE FROM t WHERE i % 3 = 0",
    "CREATE TABLE some_schema.t (i INTEGER)",
    "COPY (SELECT 1 AS id, 'x' AS name) TO 'people.parquet'",
)

#: What single pages take for granted: statements before each of their scenes.
_PREPARED = {
    "advanced_features/constraints.md": ("DROP TABLE tbl",),
    "introduction.md": (
        "ATTACH 'ducklake:my_ducklake.ducklake' AS made",
        "CREATE TABLE made.nl_train_stations AS SELECT i AS id, CASE i WHEN 7 THEN 'ASB' ELSE 'S' || i END AS code, "
        "'Station ' || i AS name_long FROM range(400) r(i)",
        "DETACH made",
    ),
    "metadata/adding_files.md": (
        "CREATE TABLE people (id INTEGER, name VARCHAR)",
        "CREATE TABLE some_schema.people (id INTEGER, name VARCHAR)",
    ),
    "metadata/list_files.md": (
        "ATTACH 'ducklake:catalog.ducklake' AS catalog",
        "CREATE TABLE catalog.table_name AS FROM range(100)",
        "INSERT INTO catalog.table_name FROM range(50)",
    ),
    "usage/connecting.md": (
        "CREATE SECRET my_secret (TYPE ducklake, METADATA_PATH 'mine.ducklake', DATA_PATH 'mine/')",
        "CREATE SECRET secret_name (TYPE ducklake, METADATA_PATH 'named.ducklake', DATA_PATH 'named/')",
    ),
    "usage/time_travel.md": (
        "ATTACH 'ducklake:metadata.duckdb' AS made",
        "CREATE TABLE made.tbl AS SELECT 1 AS i",
        "INSERT INTO made.tbl VALUES (2)",
        "INSERT INTO made.tbl VALUES (3)",
        "DETACH made",
    ),
}
#: Pages that take something for granted only where they attach a lake.
_ATTACHED = ("introduction.md", "usage/time_travel.md")
#: Columns with names of authors, with words of an engine, or with facts about its own work.
_TOLD = frozenset(("description", "extension_version", "elapsed_ms", "query"))
_MAKER = re.compile(r"^(DuckDB [0-9a-f]{8,}|DuckLake Lab [0-9.]+)$")
_LOGS = re.compile(r"\bFROM\s+duckdb_logs", re.I)

Run = Callable[[str], tuple[list[str], list[tuple[Any, ...]]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a statement: its rows, or the error."""

    rows: tuple[tuple[str, ...], ...] | None
    error: str | None = None

    @property
    def beyond(self) -> bool:
        """Whether it is a thing that is not implemented yet."""
        return (self.error or "").startswith("NotImplementedException")

    @property
    def out_of_reach(self) -> bool:
        """Whether it wants an extension that is not installed."""
        return "install the required extension" in (self.error or "")

    def same_as(self, other: Outcome) -> bool:
        """Whether both failed, or both gave the same rows in any order."""
        if self.rows is None or other.rows is None:
            return self.rows is other.rows
        return Counter(self.rows) == Counter(other.rows)


@dataclass(frozen=True, slots=True)
class Compared:
    """A statement of a page; `expected` is None where it needs what is out of reach."""

    page: str
    statement: str
    expected: Outcome | None
    found: Outcome | None

    @property
    def verdict(self) -> str:
        if self.expected is None or self.found is None or self.expected.out_of_reach:
            return "out of reach"
        if self.expected.beyond and self.found.rows is not None:
            return "beyond the reference"
        if not self.expected.same_as(self.found):
            return "different"
        return "same" if self.expected.rows is not None else "refused by both"


def scenes(page: str) -> list[list[str]]:
    """The statements of a page's SQL blocks, cut before each block that attaches a lake.

    What stands in angle brackets is taken as it is.
    """
    found: list[list[str]] = [[]]
    for block in _BLOCK.findall(page):
        text = block.replace("⟨", "").replace("⟩", "")
        try:
            listed = [statement.query for statement in duckdb.extract_statements(text)]
        except duckdb.Error:
            listed = [text]
        if any(_ATTACH.search(statement) for statement in listed):
            found.append([])
        found[-1] += listed
    return [scene for scene in found if scene]


def compare(page: str, texts: Sequence[str], engine: Literal["spark", "duckdb"] = "spark") -> list[Compared]:
    """Runs the statements of a scene on both."""
    attaches = any(_ATTACH.search(text) for text in texts)
    start = () if attaches else _START
    if attaches or page not in _ATTACHED:
        start = (*start, *_PREPARED.get(page, ()))
    with tempfile.TemporaryDirectory() as folder, chdir(folder), connect() as connection:
        expected = _run_all(start, texts, lambda text: _of_reference(connection, text), folder)
    with tempfile.TemporaryDirectory() as folder, chdir(folder), dl.Session(engine=engine) as session:
        # both have the extensions that a machine with a network would install
        session.sql(f"LOAD '{extension('sqlite_scanner')}'")
        found = _run_all(start, texts, lambda text: _of_session(session, text), folder)
    return [Compared(page, text, e, f) for text, e, f in zip(texts, expected, found, strict=True)]


def _of_reference(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    if not text.strip():
        return [], []
    rows = connection.execute(text).fetchall()
    return [column[0] for column in connection.description or ()], rows


def _of_session(session: dl.Session, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    result = session.sql(text)
    return result.columns, result.fetchall()


def _run_all(start: Sequence[str], texts: Sequence[str], run: Run, folder: str) -> list[Outcome | None]:
    for text in start:
        run(text)
    outcomes: list[Outcome | None] = []
    for text in texts:
        if _SERVICE.search(text):
            outcomes.append(None)
            continue
        try:
            columns, rows = run(text)
        except (duckdb.Error, dl.DuckLakeError) as error:
            outcomes.append(Outcome(None, f"{type(error).__name__}: {error}"))
        else:
            kept = [] if _LOGS.search(text) else [i for i, name in enumerate(columns) if name not in _TOLD]
            shown = [] if _LOGS.search(text) else rows
            outcomes.append(Outcome(tuple(tuple(_text(row[i], folder) for i in kept) for row in shown)))
    return outcomes


def _text(value: Any, folder: str) -> str:
    """A value, without what differs from run to run."""
    if isinstance(value, datetime | timedelta):
        return "a time"
    if isinstance(value, dict):
        return _text(sorted(value.items()), folder)
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        value = sorted(value)  # a MAP
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_text(part, folder) for part in value) + "]"
    if isinstance(value, str):
        return _MAKER.sub("a client", _VARIES.sub("a UUID", value.replace(folder, ".")))
    return repr(value)


def main() -> None:
    """Prints a table of pages, and each statement that differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus.documentation", description=__doc__)
    parser.add_argument("folder", type=Path, help="docs/stable/duckdb of a checkout of the reference's site")
    parser.add_argument("--engine", choices=("spark", "duckdb"), default="spark")
    parser.add_argument("--page", help="only pages whose path has this in it")
    parser.add_argument("--refused", action="store_true", help="print what both refuse, too")
    options = parser.parse_args()
    shown = ("different", "refused by both") if options.refused else ("different",)
    total: Counter[str] = Counter()
    for path in sorted(options.folder.rglob("*.md")):
        name = str(path.relative_to(options.folder))
        if options.page and options.page not in name:
            continue
        compared = [one for texts in scenes(path.read_text()) for one in compare(name, texts, options.engine)]
        if not compared:
            continue
        counts = Counter(one.verdict for one in compared)
        total += counts
        print(f"{name:50} {_line(counts)}", flush=True)
        for one in compared:
            if one.verdict in shown:
                print(f"    {' '.join(one.statement.split())[:150]}")
                print(f"        reference: {_shown(one.expected)}")
                print(f"        found:     {_shown(one.found)}", flush=True)
    print(f"{'all':50} {_line(total)}")
    sys.exit(1 if total["different"] else 0)


def _line(counts: Counter[str]) -> str:
    return "  ".join(
        f"{counts[verdict]:3} {verdict}"
        for verdict in ("same", "refused by both", "out of reach", "beyond the reference", "different")
    )


def _shown(outcome: Outcome | None) -> str:
    assert outcome is not None  # what is out of reach is not different
    text = outcome.error if outcome.rows is None else str([list(row) for row in outcome.rows[:5]])
    return " ".join(str(text).split())[:200]


if __name__ == "__main__":
    main()

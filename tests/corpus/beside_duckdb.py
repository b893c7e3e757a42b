"""Runs DuckDB's own sqllogictest files on a lake and on DuckDB, statement by statement, and prints where they differ.

    python -m tests.corpus.beside_duckdb SUITE subquery window --engine spark

SUITE is the folder `test/sql` of DuckDB's repository; the words after it choose files by their path. What the files
expect is not read: it is that of another version. Differences may be faults of DuckDB, which later versions mend.

With `--log`, a run that was cut goes on where it stopped. The last lines count the outcomes, and the result columns
that DuckDB calls otherwise; `--refusals` prints the most frequent refusals.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import ducklake_lab as dl
from ducklake_lab.engine import placement
from ducklake_lab.engine.placement import Facts, Limits, Placement, place
from tests.cluster import QUICK_JAVA

_QUERY = re.compile(r"\s*(SELECT|FROM|WITH|VALUES|\()", re.IGNORECASE)
#: What says something of DuckDB's own storage and session, or of other files.
_OTHERS = re.compile(
    r"\s*(PRAGMA|LOAD|INSTALL|ATTACH|DETACH|USE|CHECKPOINT|VACUUM|ANALYZE|COPY|EXPORT|IMPORT|CALL|EXPLAIN|PREPARE|EXECUTE|"
    r"DEALLOCATE|DROP\s+INDEX|CREATE\s+(OR\s+REPLACE\s+)?(TEMP\w*\s+|UNIQUE\s+)*(INDEX|SEQUENCE|TRIGGER|SECRET))\b",
    re.IGNORECASE,
)
#: What begins and ends transactions.
_TRANSACTION = re.compile(r"\s*(BEGIN|START|COMMIT|END|ROLLBACK|ABORT)\b", re.IGNORECASE)
#: Constraints that lakes do not have, and no query needs.
_KEYS = re.compile(r",\s*(PRIMARY\s+KEY|UNIQUE)\s*\([^)]*\)|\bPRIMARY\s+KEY\b|\bUNIQUE\b", re.IGNORECASE)
#: A query that ends in ORDER BY.
_ORDERED = re.compile(r"\bORDER\s+BY\b[^()]*(\([^()]*\)[^()]*)*$", re.IGNORECASE)
_TEXT = re.compile(r"'[^']*'")
_TYPES = {
    "<integral>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint",
    "<signed>": "tinyint smallint integer bigint hugeint",
    "<unsigned>": "utinyint usmallint uinteger ubigint uhugeint",
    "<numeric>": "tinyint smallint integer bigint hugeint utinyint usmallint uinteger ubigint uhugeint float double",
    "<alltypes>": "boolean tinyint smallint integer bigint hugeint float double varchar date timestamp interval",
}


@dataclass(frozen=True)
class Statement:
    """A statement of a file; `is_error` where it is expected to fail."""

    sql: str
    is_error: bool


def statements(text: str) -> list[Statement]:
    """The statements of a sqllogictest file, with loops written out."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found, _ = _read(lines, 0, {})
    return found


def _read(lines: Sequence[str], at: int, values: Mapping[str, str]) -> tuple[list[Statement], int]:
    found: list[Statement] = []
    while at < len(lines):
        words = lines[at].split()
        at += 1
        if not words:
            continue
        if words[0] == "endloop":
            return found, at
        if words[0] in ("loop", "concurrentloop", "foreach", "concurrentforeach"):
            body = at
            for value in _values(words):
                inner, at = _read(lines, body, {**values, words[1]: value})
                found += inner
        elif words[0] in ("statement", "query"):
            end = next((n for n in range(at, len(lines)) if lines[n].strip() in ("", "----")), len(lines))
            sql = "\n".join(lines[at:end])
            for name, value in values.items():
                sql = sql.replace(f"${{{name}}}", value)
            found.append(Statement(_prepared(sql), words[1:2] in (["error"], ["maybe"])))
            at = next((n for n in range(end, len(lines)) if not lines[n].strip()), len(lines))
    return found, at


def _values(words: Sequence[str]) -> list[str]:
    if "foreach" in words[0]:
        return [one for word in words[2:] for one in _TYPES.get(word, word).split()]
    numbers = [int(word) if word.isdigit() else 1 for word in words[2:4]]
    return [str(n) for n in range(*numbers)][:4] or ["0"]


def _prepared(sql: str) -> str:
    sql = sql.strip().rstrip(";")
    return _KEYS.sub("", sql) if re.match(r"\s*CREATE\s+(\w+\s+)*TABLE", sql, re.IGNORECASE) else sql


def shown(value: Any) -> str:
    """A value as it is compared: numbers of each type alike, DOUBLE without its last digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        return f"{value:.11g}" if math.isfinite(value) else str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{shown(key)}: {shown(one)}" for key, one in value.items())) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)


def compare(
    file: Path, session: dl.Session, beside: duckdb.DuckDBPyConnection, engine: str
) -> Iterator[tuple[str, str]]:
    """(kind, text) of each statement of a file: `same`, `refused`, `failed`, `lenient`, `newer`, `moved` or `differs`.

    DuckDB alone refuses the `lenient`, as the file expects, and the `newer`, which a later version answers. `moved` are rows in another order under ORDER BY, whose keys may leave that open. A `name` or a `type` follows
    for each column of an answer that DuckDB calls otherwise, or gives another type.

    A change that only DuckDB makes is undone there, so that later statements find the same tables.
    """
    for statement in statements(file.read_text(encoding="utf-8", errors="replace")):
        sql = statement.sql
        is_query = bool(_QUERY.match(sql))
        if not sql or _OTHERS.match(sql) or ";" in _TEXT.sub("", sql):
            continue
        is_change = not is_query and not _TRANSACTION.match(sql)
        undoable = is_change and not isinstance(_answer(beside.begin), Exception)
        theirs = _answer(_rows, beside.execute, sql)
        if isinstance(theirs, _NO_PYTHON) and is_query:
            sql = f"SELECT COLUMNS(*)::VARCHAR FROM ({sql})"
            theirs = _answer(_rows, beside.execute, sql)
        ours = _answer(_rows, partial(session.sql, engine=engine if is_query else "duckdb"), sql)
        if undoable:
            _answer(beside.rollback if isinstance(ours, Exception) or isinstance(theirs, Exception) else beside.commit)
        kind, text = _outcome(sql, ours, theirs, is_query=is_query)
        yield "newer" if kind == "lenient" and not statement.is_error else kind, text
        if is_query and isinstance(ours, _Rows) and isinstance(theirs, _Rows):
            for mine, other in zip(ours.columns, theirs.columns, strict=False):
                if mine[0] != other[0]:
                    yield "name", f"{sql}\n  ours   {mine[0]}\n  DuckDB {other[0]}"
                if mine[1] != other[1]:
                    yield "type", f"{sql}\n  ours   {mine[1]}\n  DuckDB {other[1]}"


#: What DuckDB raises for values that Python does not have.
_NO_PYTHON = (duckdb.ConversionException, OverflowError, ValueError)


def _rows(run: Callable[[str], Any], sql: str) -> _Rows:
    result = run(sql)
    if isinstance(result, dl.Result):
        return _Rows(result.fetchall(), tuple(zip(result.columns, result.types, strict=True)))
    columns = tuple((str(name), str(kind)) for name, kind, *_ in result.description or ())
    return _Rows(result.fetchall(), columns)


@dataclass(frozen=True)
class _Rows:
    """Rows of an answer, and the names and types of its columns."""

    rows: Sequence[Any]
    columns: Sequence[tuple[str, str]]


def _answer(run: Callable[..., Any], *args: Any) -> Any:
    try:
        return run(*args)
    except Exception as error:
        if isinstance(error, RuntimeError) and "interrupted" in str(error):
            raise _Late from error  # DuckDB puts its own error in place of a signal's
        return error


def _outcome(sql: str, ours: Any, theirs: Any, *, is_query: bool) -> tuple[str, str]:
    if isinstance(ours, dl.DuckLakeError):
        kind = "refused" if isinstance(ours, dl.UnsupportedFeatureError) else "failed"
        return ("same" if isinstance(theirs, Exception) else kind), f"{sql}\n  {ours}"
    if isinstance(ours, Exception):
        return "failed", f"{sql}\n  {type(ours).__name__}: {ours}"
    if isinstance(theirs, Exception):
        return "lenient", sql
    if not is_query:
        return "same", sql
    mine, others = list(map(shown, ours.rows)), list(map(shown, theirs.rows))
    both = f"{sql}\n  ours   {shown(ours.rows[:8])}\n  DuckDB {shown(theirs.rows[:8])}"
    if sorted(mine) != sorted(others):
        return "differs", both
    return ("moved" if _ORDERED.search(sql) and mine != others else "same"), both


def _on_spark(facts: Facts, limits: Limits, asked: Any) -> Placement:
    """The placement of a query that is asked of Spark: there, however few rows it reads."""
    return Placement("spark", "asked for") if asked == "spark" else place(facts, limits, asked)


class _Late(BaseException):
    """A file takes too long; no `except Exception` on the way takes this for a failure."""


def _late(*_: object) -> None:
    raise _Late


def _in_time(found: Iterator[tuple[str, str]], seconds: int, *, may_stop: bool) -> Iterator[tuple[str, str]]:
    """The outcomes of a file until its time is over.

    Args:
        may_stop: a signal may stop a statement on its way; after one that was, Spark's client mistakes later answers,
            so that Spark's jobs are cancelled instead.

    Raises:
        _Late: it is over.
    """
    signal.alarm(seconds if may_stop else 0)
    cancel = threading.Timer(seconds, _cancel)
    if not may_stop:
        cancel.start()
    end = time.monotonic() + seconds
    try:
        for outcome in found:
            if time.monotonic() > end:
                raise _Late
            yield outcome
    finally:
        signal.alarm(0)
        cancel.cancel()


def _cancel() -> None:
    from pyspark import SparkContext

    if (context := SparkContext._active_spark_context) is not None:
        context.cancelAllJobs()


def _of_file(file: Path, engine: str, seconds: int) -> Iterator[tuple[str, str]]:
    """The outcomes of a file, with `late` at the end if its time is over."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as beside:
        uri = f"ducklake:sqlite:{folder}/lake.sqlite"
        with dl.connect(uri, engine="duckdb", limits=Limits(refused=-1)) as session:
            try:
                yield from _in_time(compare(file, session, beside, engine), seconds, may_stop=engine == "duckdb")
            except _Late:
                yield "late", file.name


def _kind_of_refusal(text: str) -> str:
    """The message of a refusal without names, texts and numbers."""
    return re.sub(r"\d+", "0", re.sub(r"(\"[^\"]*\"|'[^']*')", "…", text.rpartition("\n  ")[2]))[:140]


def _known(log: Path | None) -> dict[str, dict[str, int]]:
    lines = log.read_text(encoding="utf-8").splitlines() if log is not None and log.exists() else []
    return {name: json.loads(counts) for name, _, counts in (line.partition("\t") for line in lines)}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("suite", type=Path)
    arguments.add_argument("words", nargs="*", help="parts of the paths of files; all files if there are none")
    arguments.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    arguments.add_argument(
        "--show", nargs="*", default=["differs", "failed", "lenient", "moved"], help="kinds that are printed"
    )
    arguments.add_argument("--seconds", type=int, default=45, help="for each file")
    arguments.add_argument("--log", type=Path, help="gets a line of counts for each file; files in it are not run")
    arguments.add_argument("--refusals", type=int, default=0, help="most frequent refusals to print")
    options = arguments.parse_args()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
    placement.place = _on_spark
    signal.signal(signal.SIGALRM, _late)
    known = _known(options.log)
    refusals: Counter[str] = Counter()
    for file in sorted(options.suite.rglob("*.test")):
        name = str(file.relative_to(options.suite))
        if name in known or (options.words and not any(word in name for word in options.words)):
            continue
        counts: Counter[str] = Counter()
        for kind, text in _of_file(file, options.engine, options.seconds):
            counts[kind] += 1
            if kind in options.show:
                print(f"{kind}: {name}\n  {text}", flush=True)
            if kind == "refused":
                refusals[_kind_of_refusal(text)] += 1
        known[name] = dict(counts)
        if options.log is not None:
            with options.log.open("a", encoding="utf-8") as log:
                log.write(f"{name}\t{json.dumps(counts)}\n")
    for message, count in refusals.most_common(options.refusals):
        print(f"{count:6} {message}")
    chosen = [counts for name, counts in known.items() if not options.words or any(w in name for w in options.words)]
    total = sum((Counter(counts) for counts in chosen), Counter[str]())
    print(f"{len(chosen)} files:", ", ".join(f"{count} {kind}" for kind, count in total.most_common()))


if __name__ == "__main__":
    main()

"""Looking at a lake, and small changes of it, in process: each beside the reference, on lakes with the same rows."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare
from ducklake_lab.demo.builder import build
from tests import reference

TPCH_SCALE = 0.1

QUERIES = {
    "join": "SELECT a.name, count(*) AS n FROM flights f JOIN airlines a USING (carrier) GROUP BY ALL ORDER BY n DESC",
    "group by": "SELECT carrier, count(*) AS n, avg(dep_delay) AS late FROM flights WHERE month = 1 GROUP BY ALL ORDER BY late",
    "LIMIT 1000": "SELECT * FROM flights LIMIT 1000",
}
CHANGES = {
    "UPDATE of 299 rows": "UPDATE flights SET tailnum = 'N{}' WHERE dest = 'TUL'",
    "MERGE of two rows": "MERGE INTO airlines a USING (VALUES ('UA', 'x{0}'), ('Z{0}', 'new')) AS s(carrier, name) "
    "ON a.carrier = s.carrier WHEN MATCHED THEN UPDATE SET name = s.name "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.carrier, s.name)",
}
_FIRST = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
{lines}
import os
os._exit(0)  # a kernel stays: what a process does at its end is not measured
"""
_OURS = """shell.run_line_magic("load_ext", "ducklake_lab")
shell.run_line_magic("ducklake", "connect {uri}")
shell.run_cell_magic("ducklake", "", {query!r})._repr_html_()"""
_THEIRS = """from tests import reference
connection = reference.connect()
connection.execute("ATTACH '{uri}' AS lake; USE lake")
connection.execute({query!r}).df()._repr_html_()"""


_SPARK = """from ducklake_lab.spark import runtime
assert runtime.start().range(1000).selectExpr("id % 7 AS k").groupBy("k").count().count() == 7"""


def run(folder: Path, rounds: int) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        folder: an empty one, for lakes.
    """
    build(folder / "ours", report=lambda line: None)
    shutil.copytree(folder / "ours", folder / "theirs")
    uri, data = f"ducklake:{folder}/theirs/flights.ducklake", f"{folder}/theirs/data"
    place = f"ATTACH '{uri}' AS lake (DATA_PATH '{data}', OVERRIDE_DATA_PATH true); USE lake"
    with dl.connect(f"ducklake:{folder}/ours/flights.ducklake") as session, reference.connect() as connection:
        connection.execute(place)
        for name, query in QUERIES.items():
            yield compare(f"small {name}", "DuckDB", _ours(session, query), _theirs(connection, query), rounds * 5)
        for name, change in CHANGES.items():
            yield compare(name, "DuckDB", _ours(session, change), _theirs(connection, change), rounds * 3)
    with reference.connect("tpch") as connection:
        yield _tpch(connection, folder, rounds)
    # the reference has no lake of its own in this process any more
    ours = f"ducklake:{folder}/ours/flights.ducklake"
    yield compare(
        "fresh kernel to first answer",
        "DuckDB",
        _process(_OURS.format(uri=ours, query=QUERIES["group by"])),
        _process(_THEIRS.format(uri=ours, query=QUERIES["group by"])),
        rounds,
    )
    yield _spark_starts(folder, rounds)


def _ours(session: dl.Session, text: str) -> Callable[[], Any]:
    numbers = itertools.count()
    return lambda: session.sql(text.replace("{}", str(n := next(numbers))).replace("{0}", str(n))).fetchall()


def _theirs(connection: Any, text: str) -> Callable[[], Any]:
    numbers = itertools.count()
    return lambda: connection.execute(text.replace("{}", str(n := next(numbers))).replace("{0}", str(n))).fetchall()


def _spark_starts(folder: Path, rounds: int) -> Comparison:
    """A new process up to the first answer of Spark, with the archive of its classes and without."""
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    ours, theirs = (_process(_SPARK, cache | {"DUCKLAKE_LAB_CLASS_ARCHIVE": archive}) for archive in ("1", "0"))
    ours()
    # the archive is written after the process is gone
    time.sleep(20)
    return compare("Spark starts, first answer", "without its archive of classes", ours, theirs, rounds)


def _process(lines: str, more: Mapping[str, str] | None = None) -> Callable[[], Any]:
    # installed packages are compiled, and so are ours
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= more or {}
    command = [sys.executable, "-c", _FIRST.format(lines=lines)]
    return lambda: subprocess.run(command, check=True, capture_output=True, env=environment)


def _tpch(connection: Any, folder: Path, rounds: int) -> Comparison:
    uri = f"ducklake:{folder}/tpch.ducklake"
    connection.execute(f"CALL dbgen(sf = {TPCH_SCALE}); ATTACH '{uri}' AS lake (DATA_PATH '{folder}/tpch')")
    for (table,) in connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'memory'"
    ).fetchall():
        connection.execute(f"CREATE TABLE lake.{table} AS FROM memory.{table}")
    queries = [query for _, query in connection.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()]
    # both read the same lake, a copy each: a process has a catalog file open once
    connection.execute("DETACH lake")
    shutil.copyfile(f"{folder}/tpch.ducklake", f"{folder}/tpch-copy.ducklake")
    connection.execute(f"ATTACH 'ducklake:{folder}/tpch-copy.ducklake' AS lake; USE lake")
    with dl.connect(uri) as session:

        def ours() -> None:
            for query in queries:
                session.sql(query).fetchall()

        def theirs() -> None:
            for query in queries:
                connection.execute(query).fetchall()

        return compare(f"TPC-H, 22 queries at {TPCH_SCALE:g}, in process", "DuckDB", ours, theirs, rounds)

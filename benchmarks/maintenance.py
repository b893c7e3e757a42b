"""Maintenance of a table of 20,000 small files, ours beside the reference: `python -m benchmarks.maintenance`.

Each statement runs once in a process of its own, on a copy of one lake; a process prints its seconds and its most memory.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import ducklake_lab as dl
from tests import reference

#: Rows of each file.
_ROWS = 50
#: What is done to copies of one lake, statement by statement.
_WORK: dict[str, tuple[str, ...]] = {
    "merge": (
        "CALL lake.set_option('target_file_size', '1MB')",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_expire_snapshots('lake', older_than => now())",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    ),
    "rewrite": (
        "DELETE FROM lake.t WHERE i = 7",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    ),
    "add": (
        "CREATE TABLE lake.added (i BIGINT, s VARCHAR, d DOUBLE)",
        "CALL ducklake_add_data_files('lake', 'added', '{copies}/*.parquet')",
    ),
    "flush": (
        "CALL lake.set_option('data_inlining_row_limit', 1000000)",
        "CREATE TABLE lake.kept AS SELECT range AS i, 'text ' || range AS s FROM range(0)",
        "INSERT INTO lake.kept SELECT range AS i, 'text ' || range AS s FROM range(20000)",
        "CALL ducklake_flush_inlined_data('lake')",
    ),
    "orphans": ("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",),
}


def build(folder: Path, files: int) -> None:
    """A lake at `lake.ducklake` whose table t has so many files, each inserted by a snapshot of its own."""
    folder.mkdir()
    uri, data = f"ducklake:{folder}/lake.ducklake", folder / "data"
    with dl.connect(uri, alias="lake", data_path=f"{data}/") as session:
        session.sql("CALL lake.set_option('data_inlining_row_limit', 0)")
        session.sql("CREATE TABLE t (i BIGINT, s VARCHAR, d DOUBLE)")
        session.sql(f"INSERT INTO t SELECT range, 'text ' || range, range / 7 FROM range({_ROWS})")
    (first,) = (data / "main" / "t").glob("*.parquet")
    for number in range(1, files):
        shutil.copy(first, first.with_name(f"ducklake-{number}.parquet"))
    with duckdb.connect(f"{folder}/lake.ducklake") as catalog:
        catalog.execute(
            f"""
            CREATE TEMP TABLE n AS SELECT range AS n FROM range(1, {files});
            CREATE TEMP TABLE last AS FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1;
            INSERT INTO ducklake_snapshot SELECT last.* REPLACE (snapshot_id + n AS snapshot_id, next_file_id + n AS next_file_id,
              snapshot_time + to_milliseconds(n) AS snapshot_time) FROM last, n;
            INSERT INTO ducklake_snapshot_changes SELECT c.* REPLACE (snapshot_id + n AS snapshot_id)
              FROM ducklake_snapshot_changes AS c, n WHERE c.snapshot_id = (SELECT snapshot_id FROM last);
            CREATE TEMP TABLE stats AS FROM ducklake_file_column_stats;
            INSERT INTO ducklake_file_column_stats SELECT stats.* REPLACE (data_file_id + n AS data_file_id) FROM stats, n;
            INSERT INTO ducklake_data_file SELECT f.* REPLACE (data_file_id + n AS data_file_id, begin_snapshot + n AS
              begin_snapshot, 'ducklake-' || n || '.parquet' AS path, row_id_start + n * {_ROWS} AS row_id_start)
              FROM ducklake_data_file AS f, n;
            UPDATE ducklake_table_stats SET record_count = record_count * {files}, next_row_id = next_row_id * {files},
              file_size_bytes = file_size_bytes * {files};
            """
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.maintenance", description="Maintenance of many files.")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--work", nargs="+", choices=_WORK, default=list(_WORK))
    parser.add_argument("--engine", choices=("auto", "duckdb", "spark"), default="auto", help="of ours")
    parser.add_argument("--worker", nargs=3, metavar=("ROLE", "URI", "STATEMENT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        role, uri, statement = options.worker
        print(json.dumps(_run(role, uri, statement, options.engine)))
        return
    print(f"{options.files:,} files of {_ROWS} rows\n")
    print("| statement | ours | memory | theirs | memory |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as name:
        template = Path(name) / "template"
        build(template, options.files)
        for work in options.work:
            copies = {role: _copy(template, Path(name) / f"{role}-{work}", work) for role in ("ours", "theirs")}
            for statement in _WORK[work]:
                found = {role: _measured(role, uri, statement, options.engine) for role, uri in copies.items()}
                cells = [f"{r['seconds']:.2f} s | {r['megabytes']:,.0f} MB" for r in found.values()]
                print(f"| `{statement.partition(' => ')[0]}` | {' | '.join(cells)} |", flush=True)
            states = {role: _state(uri) for role, uri in copies.items()}
            assert states["ours"] == states["theirs"], states


def _copy(template: Path, folder: Path, work: str) -> str:
    """A lake of its own with the template's files; more files beside them where the work asks for such."""
    shutil.copytree(template, folder)
    with duckdb.connect(f"{folder}/lake.ducklake") as catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", [f"{folder}/data/"])
    if work == "add":
        shutil.copytree(template / "data" / "main" / "t", folder / "copies")
    if work == "orphans":
        shutil.copytree(template / "data" / "main" / "t", folder / "data" / "main" / "orphans")
    return f"{folder}/lake.ducklake"


def _measured(role: str, uri: str, statement: str, engine: str) -> dict[str, float]:
    text = statement.format(copies=Path(uri).parent / "copies")
    command = [sys.executable, "-m", "benchmarks.maintenance", "--engine", engine, "--worker", role, uri, text]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def _run(role: str, path: str, statement: str, engine: Any) -> dict[str, float]:
    """One statement: its seconds, and the most memory of this process."""

    def timed(run: Callable[[str], object]) -> float:
        started = time.perf_counter()
        run(statement)
        return time.perf_counter() - started

    if role == "ours":
        with dl.connect(f"ducklake:{path}", alias="lake", engine=engine) as session:
            seconds = timed(session.sql)
    else:
        with reference.connect() as connection:
            connection.execute(f"ATTACH 'ducklake:{path}' AS lake")
            seconds = timed(lambda text: connection.execute(text).fetchall())
    (most,) = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return {"seconds": seconds, "megabytes": int(most) / 1024}


def _state(path: str) -> dict[str, tuple[int, int]]:
    """Rows, and the sum of their first column, of each table."""
    with dl.connect(f"ducklake:{path}", alias="lake", read_only=True, engine="duckdb") as session:
        names = [name for (name,) in session.sql("SELECT table_name FROM ducklake_table_info('lake')").fetchall()]
        return {n: session.sql(f"SELECT count(*), sum(i)::BIGINT FROM {n}").fetchall()[0] for n in sorted(names)}


if __name__ == "__main__":
    main()

"""The autopilot beside writers and readers: `python -m benchmarks.autopilot --seconds 1800`.

Four writers commit once a second each, inserts into partitions of their own, and every tenth an update or a deletion. A reader
asks old snapshots what it asked them before. The autopilot runs all the time. At the end no row may be lost, no commit refused, and
no answer changed; the files are counted after each of its runs and at the end, beside the smallest number, and reading is timed
beside a compacted copy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import ducklake_lab as dl
from benchmarks.catalogs import Place, places

SECONDS = 60.0
KINDS = ("SQLite", "PostgreSQL")
_WRITERS, _ROWS, _PARTITIONS = 4, 200, 4


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.autopilot", description="Maintenance beside writers.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--catalogs", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--worker", nargs=3, metavar=("ROLE", "URI", "NUMBER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        role, uri, number = options.worker
        work = {"write": _write, "read": _read, "fly": _fly}[role]
        print(json.dumps(work(uri, int(number), options.seconds)))
        return
    print(
        "| catalog | commits | refused | rows missing | changed answers | pieces | yielded | files, median | at the end | at least "
        "| read, ratio |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-autopilot-") as folder:
        for kind, place in places(Path(folder)):
            if kind in options.catalogs:
                print(_line(kind, place, Path(folder), options.seconds), flush=True)


def _line(kind: str, place: Place, folder: Path, seconds: float) -> str:
    uri = f"ducklake:{place('busy')}"
    with dl.connect(uri, alias="lake", data_path=f"{folder}/{kind}", engine="duckdb") as session:
        session.sql("CREATE TABLE t (worker INTEGER, n BIGINT, part INTEGER, v DOUBLE)")
        session.sql("ALTER TABLE t SET PARTITIONED BY (worker, part)")
        session.set_policy({"enabled": True, "settled": 2})
    command = [sys.executable, "-m", "benchmarks.autopilot", "--seconds", str(seconds), "--worker"]
    roles = [*(("write", n) for n in range(_WRITERS)), ("read", 0), ("fly", 0)]
    running = [
        (role, subprocess.Popen([*command, role, uri, str(number)], stdout=subprocess.PIPE, text=True))
        for role, number in roles
    ]
    found = [(role, json.loads(process.communicate()[0])) for role, process in running]
    written = [report for role, report in found if role == "write"]
    ((reader,), (pilot,)) = ([report for role, report in found if role == wanted] for wanted in ("read", "fly"))
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        time.sleep(2)
        session.autopilot(dry_run=False)
        ((rows,),) = session.sql("SELECT count(*) FROM t").fetchall()
        files = len(session.table("t").files())
        session.sql("CREATE TABLE copied AS FROM t LIMIT 0; ALTER TABLE copied SET PARTITIONED BY (worker, part)")
        session.sql("INSERT INTO copied FROM t")
        ratio = _ratio(session)
    commits, refused = (sum(report[name] for report in written) for name in ("commits", "refused"))
    missing = sum(report["rows"] for report in written) - rows
    cells = (
        commits,
        refused,
        missing,
        reader["changed"],
        pilot["done"],
        pilot["yielded"],
        pilot["files"],
        files,
        _WRITERS * _PARTITIONS,
    )
    return f"| {kind} | {' | '.join(f'{cell:,}' for cell in cells)} | {ratio:.2f} |"


def _ratio(session: dl.Session) -> float:
    """Return the time of reading the table, as a share of reading a copy with one file in each partition."""
    times: dict[str, list[float]] = {"t": [], "copied": []}
    for _ in range(7):
        for table, taken in times.items():
            start = time.perf_counter()
            session.sql(f"SELECT worker, sum(v), count(DISTINCT n) FROM {table} GROUP BY ALL").fetchall()
            taken.append(time.perf_counter() - start)
    return median(times["t"]) / median(times["copied"])


def _write(uri: str, number: int, seconds: float) -> dict[str, Any]:
    commits = refused = rows = 0
    end = time.monotonic() + seconds
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        while time.monotonic() < end:
            start = time.monotonic()
            text, change = _statement(number, commits)
            try:
                session.sql(text)
            except dl.TransactionError as error:
                refused += 1
                print(f"writer {number}: {error}", file=sys.stderr, flush=True)
            else:
                commits, rows = commits + 1, rows + change
            time.sleep(max(0.0, start + 1 - time.monotonic()))
    return {"commits": commits, "refused": refused, "rows": rows}


def _statement(worker: int, commit: int) -> tuple[str, int]:
    """Return the statement of a commit, and the rows that it adds."""
    if commit % 20 == 10:
        return f"UPDATE t SET v = v + 1 WHERE worker = {worker} AND n % 7 = 3", 0
    first = commit * _ROWS
    rows = f"SELECT {worker}, {first} + r, ({commit} % {_PARTITIONS}), random() FROM range({_ROWS}) s(r)"
    return f"INSERT INTO t {rows}", _ROWS


def _read(uri: str, _number: int, seconds: float) -> dict[str, Any]:
    """Ask old snapshots again what they answered before."""
    answers: dict[int, Any] = {}
    changed = 0
    end = time.monotonic() + seconds
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        while time.monotonic() < end:
            newest = session.current_snapshot().snapshot_id
            for at in {newest, *list(answers)[-20:], *list(answers)[:20]}:
                query = f"SELECT count(*), sum(n), sum(rowid), bit_xor(hash(rowid, v)) FROM t AT (VERSION => {at})"
                answer = session.sql(query).fetchall()
                if answers.setdefault(at, answer) != answer:
                    changed += 1
                    print(f"snapshot {at}: {answers[at]} became {answer}", file=sys.stderr, flush=True)
            time.sleep(0.5)
    return {"changed": changed}


def _fly(uri: str, _number: int, seconds: float) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    files: list[int] = []
    end = time.monotonic() + seconds
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        while time.monotonic() < end:
            outcomes.update(str(one["outcome"]) for one in session.autopilot(dry_run=False, only_enabled=True))
            files.append(len(session.table("t").files()))
            time.sleep(1)
    return {"done": outcomes["done"], "yielded": outcomes["yielded"], "files": round(median(files))}


if __name__ == "__main__":
    main()

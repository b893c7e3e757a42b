"""Kills streams and statements of Spark at every step, restarts, expires and compacts, and counts: `python -m tests.spark.kills`.

Rows come into two tables of a lake. Streams copy one of them, by the format and by names of catalogs, and write the change feed of the other
to another lake; statements of Spark SQL change a third table. Each round kills one of these at one step: the process of Python that works
there, or Spark as a whole. Counts and sums have to be exact after each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import ducklake_lab as dl
from tests.spark.killed_work import STATEMENT_STEPS, STREAM_STEPS
from tests.spark.versions import SPARK

Where = Literal["classic", "connect"]
Rows = list[tuple[Any, ...]]

#: Statements of Spark SQL on the table m of the target, for a random number.
_STATEMENTS = {
    "update": "UPDATE b.main.m SET n = n + 1 WHERE k % 5 = {0} % 5",
    "delete": "DELETE FROM b.main.m WHERE k % 97 = {0} % 97",
    "merge": (
        "MERGE INTO b.main.m AS m USING (SELECT id AS i FROM range({0}, {0} + 200)) AS s ON m.k = s.i "
        "WHEN MATCHED AND s.i % 3 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = m.n + 10 "
        "WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.i, 1)"
    ),
}
_TOTALS = "SELECT count(*), count(DISTINCT {0}), coalesce(sum({0}), 0) FROM {1}"


@dataclass
class Kills:
    """Two lakes, and the process that is killed.

    Attributes:
        folder: for checkpoints and files.
        source, target: URIs of lakes that do not exist yet.
        done: how often which work was killed, at which step and in which scope.
    """

    folder: Path
    source: str
    target: str
    where: Where
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    starts: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._process: subprocess.Popen[str] | None = None
        self._rows = 0
        self._model: dict[int, int] = dict.fromkeys(range(500), 0)
        with self._open(self.source, "source") as session:
            session.sql("CREATE TABLE t (i BIGINT); CREATE TABLE c (k BIGINT, n BIGINT)")
        with self._open(self.target, "target") as session:
            session.sql("CREATE TABLE t (i BIGINT); CREATE TABLE named (i BIGINT)")
            session.sql("CREATE TABLE feed (snapshot_id BIGINT, rowid BIGINT, change_type VARCHAR, k BIGINT, n BIGINT)")
            session.sql("CREATE TABLE m AS SELECT range AS k, 0::BIGINT AS n FROM range(500)")

    def run(self, kills: int) -> None:
        """Kills as often, then lets all work end; raises AssertionError where a count or a sum is wrong."""
        try:
            while self.done.total() < kills:
                self._change_source()
                self._kill(self._random.choice(self._kinds()))
                if self._random.random() < 0.4:
                    self._finish()
            self._finish()
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def _kinds(self) -> tuple[str, ...]:
        """Connect has no catalogs of lakes."""
        return ("copy", "feed", "named", "sql") if self.where == "classic" else ("copy", "feed")

    def _open(self, uri: str, name: str) -> dl.Session:
        return dl.connect(uri, alias="lake", data_path=f"{self.folder}/{name}-data", engine="duckdb")

    # the world changes

    def _change_source(self) -> None:
        with self._open(self.source, "source") as session:
            for count in (self._random.choice((3, 400)) for _ in range(self._random.randint(1, 3))):
                session.sql(f"INSERT INTO t SELECT * FROM range({self._rows}, {self._rows + count})")
                session.sql(f"INSERT INTO c SELECT range, 0 FROM range({self._rows}, {self._rows + count})")
                self._rows += count
            digit = self._random.randrange(10)
            session.sql(f"UPDATE c SET n = n + 1 WHERE k % 10 = {digit}; DELETE FROM c WHERE k % 31 = {digit}")
        if self._random.random() < 0.4:
            self._tidy(self.target, "target")

    def _tidy(self, uri: str, name: str) -> None:
        """Expires all but the newest snapshot, compacts, and deletes what nobody reads."""
        with self._open(uri, name) as session:
            session.sql("CREATE OR REPLACE TABLE newest AS SELECT 1 AS i")
            session.sql("CALL lake.expire_snapshots(older_than => now() + INTERVAL 1 DAY)")
            session.sql(
                "CALL lake.flush_inlined_data(); CALL lake.merge_adjacent_files(); CALL lake.rewrite_data_files()"
            )
            session.sql("CALL lake.cleanup_old_files(cleanup_all => true)")
            session.sql("CALL lake.delete_orphaned_files(cleanup_all => true)")

    # work, and its end

    def _kill(self, kind: str) -> None:
        step = self._random.choice(STATEMENT_STEPS if kind == "sql" else STREAM_STEPS)
        scope = "all" if kind == "sql" or self._random.random() < 0.3 else "worker"
        self._ready()
        statement = self._random.choice(list(_STATEMENTS)) if kind == "sql" else ""
        if statement == "delete" and step in ("sql begin", "sql write"):
            step = "sql ask"  # it writes no new versions
        number = self._random.randrange(300)
        die = self.folder / "die"
        die.write_text(f"{step}|{scope}")
        answer = self._ask(kind, *([_STATEMENTS[statement].format(number)] if statement else []))
        where = f"{kind} {statement} at {step}, {scope}".replace("  ", " ")
        assert not die.exists(), f"{where} was not killed: {answer}"
        assert answer is not None, f"{where} was killed, and ended well"
        self.done[where] += 1
        if statement:
            self._check_statement(statement, number, where)
        self._check(exact=False, where=where)

    def _finish(self) -> None:
        """Lets all streams end; then nothing is missing, and the source can expire."""
        self._ready()
        for kind in self._kinds():
            if kind != "sql":
                # before 4.2 a query runs the batch that was planned, or all that came since
                for _ in range(2 if SPARK < (4, 2) else 1):
                    answer = self._ask(kind)
                    assert answer is None, f"{kind}: {answer}"
        self._check(exact=True, where="all")
        if self._random.random() < 0.6:
            self._tidy(self.source, "source")

    def _ready(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.starts += 1
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.killed_work", str(self.folder), self.source, self.target, self.where],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / f"{self.starts}.log").open("w"),
            text=True,
            start_new_session=True,
        )
        assert self._answer() == "started", (self.folder / f"{self.starts}.log").read_text()[-3000:]

    def _ask(self, *request: str) -> str | None:
        """Returns the error of a request; a process that died has one, too."""
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str | None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@"):
                found: str | None = json.loads(line[1:])
                return found
        assert self._process.wait(60) == -signal.SIGKILL, (self.folder / f"{self.starts}.log").read_text()[-3000:]
        self._process = None
        return "killed"

    # what has to be true

    def _check(self, *, exact: bool, where: str) -> None:
        rows = {"t": self._copied("t")} | ({"named": self._copied("named")} if self.where == "classic" else {})
        for name, (count, distinct, total) in rows.items():
            assert count == distinct, (where, name, count, distinct)
            assert count <= self._rows and total <= self._rows * (self._rows - 1) // 2, (where, name, count, total)
            if exact:
                assert (count, total) == (self._rows, self._rows * (self._rows - 1) // 2), (where, name, count, total)
        if exact:
            self._check_feed(where)

    def _copied(self, table: str) -> tuple[int, int, int]:
        with self._open(self.target, "target") as session:
            count, distinct, total = session.sql(_TOTALS.format("i", table)).fetchall()[0]
            return count, distinct, total

    def _check_feed(self, where: str) -> None:
        """The changes of each row add up to what the source has now, and none came twice."""
        with self._open(self.target, "target") as session:
            ((count, distinct),) = session.sql(
                "SELECT count(*), count(DISTINCT (snapshot_id, rowid, change_type)) FROM feed"
            ).fetchall()
            assert count == distinct, (where, count, distinct)
            replayed = session.sql(
                "SELECT k, max_by(n, (snapshot_id, change_type <> 'update_preimage')) AS n, "
                "max_by(change_type, (snapshot_id, change_type <> 'update_preimage')) AS last "
                "FROM feed GROUP BY k HAVING last <> 'delete' ORDER BY k"
            ).fetchall()
        with self._open(self.source, "source") as session:
            now = session.sql("SELECT k, n FROM c ORDER BY k").fetchall()
        assert [row[:2] for row in replayed] == now, where

    def _check_statement(self, statement: str, number: int, where: str) -> None:
        """The table has all of a statement, or nothing of it."""
        after = dict(self._model)
        if statement == "update":
            after = {k: n + (k % 5 == number % 5) for k, n in after.items()}
        elif statement == "delete":
            after = {k: n for k, n in after.items() if k % 97 != number % 97}
        else:
            for k in range(number, number + 200):
                if k not in after:
                    after[k] = 1
                elif k % 3 == 0:
                    del after[k]
                else:
                    after[k] += 10
        with self._open(self.target, "target") as session:
            found = dict(session.sql("SELECT k, n FROM m").fetchall())
            ((count,),) = session.sql("SELECT count(*) FROM m").fetchall()
        assert count == len(found), where
        assert found in (self._model, after), where
        if "sql commit" in where:
            assert found == after, where
        self._model = found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.kills", description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--where", choices=("classic", "connect"), default="classic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalog", choices=("sqlite", "duckdb"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-kills-") as name:
        kind = "sqlite:" if options.catalog == "sqlite" else ""
        uris = [f"ducklake:{kind}{name}/{lake}.db" for lake in ("source", "target")]
        kills = Kills(Path(name), uris[0], uris[1], options.where, options.seed)
        started = time.monotonic()
        kills.run(options.kills)
        print(
            f"{options.where}: {kills.done.total()} kills, {kills.starts} starts of Spark, "
            f"{time.monotonic() - started:.0f} s; counts and sums exact"
        )
        for kill, count in sorted(kills.done.items()):
            print(f"  {count:3} {kill}")


if __name__ == "__main__":
    main()

"""Spark SQL on a lake beside Iceberg, Delta and plain Parquet, in one Spark: `python -m benchmarks.lakehouses`.

All formats have the same rows, and each line is the same statement. Iceberg and Delta have no jars for the newest Spark, so that this
runs on the newest that both have, which pip installs into a folder. Where a jar does not resolve, its column is empty.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark

import ducklake_lab as dl
from benchmarks import medallion
from ducklake_lab.spark import class_archive
from ducklake_lab.spark.java import find_java

#: The minor version of PySpark that this runs on.
SPARK = "4.1"
PACKAGES = {
    "iceberg": f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_2.13:1.11.0",
    "delta": f"io.delta:delta-spark_{SPARK}_2.13:4.1.0",
}
SETTINGS = {
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
    },
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
}
#: Files of the table of many files, and of each of its partitions.
FILES, IN_PARTITION = 20_000, 1_000


@dataclass
class Line:
    """Seconds of each format, by rounds."""

    name: str
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, kind: str) -> float | None:
        found = self.seconds.get(kind)
        return statistics.median(found) if found else None

    @property
    def ratio(self) -> float | None:
        """The lake's median by that of the fastest other; None where it is alone."""
        others = [found for kind in self.seconds if kind != "lake" and (found := self.median(kind)) is not None]
        ours = self.median("lake")
        return ours / min(others) if others and ours is not None else None


def timed(name: str, runs: dict[str, Callable[[], object]], rounds: int) -> Line:
    """Runs each once to warm up, then all by turns in each round, the first one changing."""
    line = Line(name, {kind: [] for kind in runs})
    for run in runs.values():
        run()
    order = list(runs)
    for _ in range(rounds):
        for kind in order:
            started = time.perf_counter()
            runs[kind]()
            line.seconds[kind].append(time.perf_counter() - started)
        order.append(order.pop(0))
    return line


class Formats:
    """The table `lineitem` in each format, on one Spark.

    Args:
        kinds: the formats whose jars have resolved.
    """

    def __init__(self, spark: Any, folder: Path, kinds: Sequence[str]) -> None:
        self.spark = spark
        self.folder = folder
        self.names = {"lake": "lake.main.lineitem"}
        if "iceberg" in kinds:
            self.names["iceberg"] = "iceberg.main.lineitem"
        if "delta" in kinds:
            self.names["delta"] = f"delta.`{folder}/delta/lineitem`"

    def fill(self, source: Any) -> None:
        """Writes the rows in each format, in as many files as they are now."""
        for kind, name in self.names.items():
            if kind == "delta":
                source.write.format("delta").option("delta.enableChangeDataFeed", "true").option(
                    "delta.enableDeletionVectors", "true"
                ).save(f"{self.folder}/delta/lineitem")
                continue
            if kind == "iceberg":
                self.spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.main")
            made = source.writeTo(name)
            if kind == "iceberg":
                made = made.tableProperty("format-version", "2")
                for command in ("delete", "update", "merge"):
                    made = made.tableProperty(f"write.{command}.mode", "merge-on-read")
            made.create()
        source.write.parquet(f"{self.folder}/parquet")

    def sql(self, text: str) -> dict[str, Callable[[], object]]:
        """A query in each format; Parquet has the rows as they were first."""
        names = {**self.names, "parquet": f"parquet.`{self.folder}/parquet`"}
        return {kind: self._query(text.format(name)) for kind, name in names.items()}

    def _query(self, text: str) -> Callable[[], object]:
        return lambda: self.spark.sql(text).collect()

    def noop(self) -> dict[str, Callable[[], object]]:
        """All rows, in each format."""
        texts = {kind: f"SELECT * FROM {name}" for kind, name in self.names.items()}
        texts["parquet"] = f"SELECT * FROM parquet.`{self.folder}/parquet`"

        def read(text: str) -> Callable[[], object]:
            return lambda: self.spark.sql(text).write.format("noop").mode("overwrite").save()

        return {kind: read(text) for kind, text in texts.items()}

    def changes(self, text: str) -> dict[str, Callable[[], object]]:
        """A statement that changes another hundredth of the rows each time; the same in each format."""

        def run(name: str) -> Callable[[], object]:
            numbers = itertools.count()
            return lambda: self.spark.sql(text.format(name, slice=next(numbers) % 90)).collect()

        return {kind: run(name) for kind, name in self.names.items()}

    def feeds(self) -> dict[str, Callable[[], object]]:
        """The rows of the newest change, with their kinds."""
        found: dict[str, Callable[[], object]] = {}
        count = "SELECT {}, count(*), sum(l_quantity) FROM {} GROUP BY 1"
        last = self.spark.sql("SELECT max(snapshot_id) FROM lake.main.lineitem.snapshots").first()[0]
        where = f"(SELECT * FROM lake.main.lineitem.changes WHERE snapshot_id = {last})"
        found["lake"] = self._query(count.format("change_type", where))
        if "iceberg" in self.names:
            snapshots = self.spark.sql("SELECT snapshot_id FROM iceberg.main.lineitem.snapshots ORDER BY committed_at")
            before, newest = [row[0] for row in snapshots.collect()][-2:]
            self.spark.sql(
                "CALL iceberg.system.create_changelog_view(table => 'main.lineitem', changelog_view => 'changes', "
                f"options => map('start-snapshot-id', '{before}', 'end-snapshot-id', '{newest}'))"
            )
            found["iceberg"] = self._query(count.format("_change_type", "changes"))
        if "delta" in self.names:
            path = f"{self.folder}/delta/lineitem"
            version = self.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").first()[0]
            reader = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
            reader.load(path).createOrReplaceTempView("delta_changes")
            found["delta"] = self._query(count.format("_change_type", "delta_changes"))
        return found


_MERGE = (
    "MERGE INTO {} AS t USING (SELECT * FROM fresh WHERE l_orderkey % 100 = {slice}) AS s "
    "ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
    "WHEN MATCHED THEN UPDATE SET l_tax = s.l_tax, l_comment = s.l_comment WHEN NOT MATCHED THEN INSERT *"
)


def lines(spark: Any, folder: Path, kinds: Sequence[str], scale: float, rounds: int) -> Iterator[Line]:
    """All lines, as they are finished."""
    source = spark.read.parquet(str(_lineitem(folder, scale)))
    source.createOrReplaceTempView("fresh")
    formats = Formats(spark, folder, kinds)
    formats.fill(source)
    one = source.select("l_orderkey").limit(1).collect()[0][0]
    yield timed("full read to noop", formats.noop(), rounds)
    yield timed("one column", formats.sql("SELECT sum(l_quantity) FROM {}"), rounds)
    yield timed("point look-up", formats.sql(f"SELECT * FROM {{}} WHERE l_orderkey = {one}"), rounds)
    yield timed("count(*)", formats.sql("SELECT count(*) FROM {}"), rounds)
    for name in formats.names.values():
        spark.sql(f"DELETE FROM {name} WHERE l_orderkey % 50 = 49").collect()
    deleted = formats.sql("SELECT sum(l_quantity) FROM {}")
    deleted.pop("parquet")
    yield timed("2% deleted, sum", deleted, rounds)
    update = "UPDATE {} SET l_tax = 0 WHERE l_orderkey % 1000 BETWEEN {slice} * 10 AND {slice} * 10 + 9"
    yield timed("UPDATE 1%", formats.changes(update), rounds)
    yield timed("DELETE 1%", formats.changes("DELETE FROM {} WHERE l_orderkey % 100 = {slice}"), rounds)
    yield timed("MERGE 1%", formats.changes(_MERGE), rounds)
    for name in formats.names.values():
        spark.sql(f"UPDATE {name} SET l_tax = 1 WHERE l_orderkey % 4 = 1").collect()
    yield timed("change feed of 25% updated", formats.feeds(), rounds)


def many_files(spark: Any, session: dl.Session, folder: Path, rounds: int) -> Iterator[Line]:
    """Counts of a table of many files, and one partition of it."""
    session.sql("CREATE TABLE many (p INTEGER, i BIGINT)")
    below = folder / "many"
    below.mkdir()
    for number in range(FILES):
        part = number // IN_PARTITION
        pq.write_table(
            pa.table({"p": pa.array([part], pa.int32()), "i": [number]}),
            below / f"{number}.parquet",
            compression="none",
        )
    session.sql(f"CALL lake.add_data_files('many', '{below}/*.parquet')")
    texts = {
        f"count(*) of {FILES:,} files": "SELECT count(*) FROM lake.main.many",
        f"a partition of {IN_PARTITION:,} of them": "SELECT sum(i) FROM lake.main.many WHERE p = 7",
    }
    for name, text in texts.items():
        yield timed(name, {"lake": lambda text=text: spark.sql(text).collect()}, rounds)  # type: ignore[misc]


def _lineitem(folder: Path, scale: float) -> Path:
    from tests import reference

    target = folder / "source"
    with reference.connect("tpch") as connection:
        connection.execute(f"CALL dbgen(sf = {scale})")
        connection.execute(f"COPY lineitem TO '{target}' (FORMAT parquet, PER_THREAD_OUTPUT, ROW_GROUP_SIZE 1000000)")
    return target


def start(folder: Path, kinds: Sequence[str]) -> Any:
    """Starts Spark with the jars of some formats.

    Raises:
        RuntimeError: a jar does not resolve.
    """
    from pyspark.sql import SparkSession

    java = find_java()
    os.environ["JAVA_HOME"] = java.launcher()
    settings: dict[str, str] = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.extraJavaOptions": " ".join(class_archive.options(java)),
        "spark.sql.catalog.iceberg.warehouse": f"{folder}/iceberg",
        "spark.jars.packages": ",".join(PACKAGES[kind] for kind in kinds),
    }
    extensions = []
    for kind in kinds:
        settings |= SETTINGS[kind]
        extensions.append(SETTINGS[kind]["spark.sql.extensions"])
    settings["spark.sql.extensions"] = ",".join(extensions)
    builder = SparkSession.builder.master("local[2]").appName("lakehouses")
    spark = builder.config(map={key: value for key, value in settings.items() if value}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def table(found: Sequence[Line]) -> str:
    """The lines as Markdown, in seconds; the ratio is the lake's by the fastest other's."""
    kinds = ("lake", "iceberg", "delta", "parquet")
    rows = [f"| | {' | '.join(kinds)} | ratio |", "|---|" + "--:|" * (len(kinds) + 1)]
    for line in found:
        cells = [f"{value:.2f}" if (value := line.median(kind)) is not None else "" for kind in kinds]
        rows.append(f"| {line.name} | {' | '.join(cells)} | {f'{line.ratio:.2f}' if line.ratio is not None else ''} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lakehouses", description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=float, default=0.8, help="of TPC-H (0.8, which is 4.8 million rows)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", nargs="*", choices=list(PACKAGES), default=list(PACKAGES), help="all if left out")
    parser.add_argument("--only", choices=("lines", "files", "medallion"), help="a part")
    parser.add_argument("--spark", type=Path, default=Path(f"benchmarks/results/pyspark-{SPARK}"), metavar="FOLDER")
    options = parser.parse_args()
    if not pyspark.__version__.startswith(f"{SPARK}."):
        sys.exit(_again(options.spark))
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as name:
        folder = Path(name)
        try:
            spark, kinds = start(folder, options.formats), list(options.formats)
        except Exception as error:  # noqa: BLE001 - py4j and Ivy raise errors of several kinds
            print(f"Without {', '.join(options.formats)}, whose jars did not resolve: {str(error).splitlines()[0]}")
            spark, kinds = start(folder, []), []
        print(
            f"PySpark {pyspark.__version__}, DuckDB {duckdb.__version__}, {os.cpu_count()} cores, scale {options.scale:g}"
        )
        with dl.spark_catalog(spark, "lake", f"ducklake:{folder}/lake.ducklake") as session:
            found: list[Line] = []
            parts: list[Iterator[Line]] = []
            if options.only in (None, "lines"):
                parts.append(lines(spark, folder, kinds, options.scale, options.rounds))
            if options.only in (None, "files"):
                parts.append(many_files(spark, session, folder, options.rounds))
            if options.only in (None, "medallion"):
                catalogs = ["lake", *(kind for kind in kinds if kind == "iceberg")]
                parts.append(
                    Line(name, seconds) for name, seconds in medallion.run(spark, folder, catalogs, options.rounds)
                )
            for line in itertools.chain.from_iterable(parts):
                print(line.name, {kind: [round(value, 2) for value in values] for kind, values in line.seconds.items()})
                found.append(line)
            print(f"\n{table(found)}")
        spark.stop()


def _again(folder: Path) -> int:
    """Runs this again with the PySpark that both formats have jars for, which is installed into a folder first."""
    folder = folder.absolute()
    if not (folder / "pyspark").is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
        subprocess.run([*command, f"pyspark=={SPARK}.*"], check=True)
    paths = [str(folder), os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    environment.pop("SPARK_HOME", None)
    return subprocess.run([sys.executable, "-m", "benchmarks.lakehouses", *sys.argv[1:]], env=environment).returncode


if __name__ == "__main__":
    main()

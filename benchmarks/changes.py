"""Changing 1% of a table, compared with rewriting it, its change feed, and opening a table of many files, compared with their paths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare

FILES = 5_000


def run(session: dl.Session, spark: Any, lineitem: Any, folder: Path, rounds: int, files: int) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        lineitem: rows of TPC-H, as a DataFrame.
        folder: for copies and small files.
        files: of the table that is opened.
    """
    session.write(lineitem, "main.changed", mode="create")
    paths = [entry.path for entry in session.table("main.changed").files()]
    numbers = itertools.count()

    def rewrite(*columns: str) -> None:
        kept = spark.read.parquet(*paths).selectExpr(*columns) if columns else spark.read.parquet(*paths)
        kept = kept.where("l_orderkey % 1000 > 9") if not columns else kept
        kept.write.parquet(str(folder / f"rewritten-{next(numbers)}"))

    def places() -> str:
        """Another hundredth of the rows each time, all over the table."""
        first = next(numbers) * 10 % 1000
        return f"l_orderkey % 1000 BETWEEN {first} AND {first + 9}"

    yield compare(
        "DELETE of 1% of lineitem",
        "rewriting it by Spark",
        lambda: session.sql(f"DELETE FROM changed WHERE {places()}"),
        rewrite,
        rounds,
    )
    changed = "CASE WHEN l_orderkey % 1000 <= 9 THEN 0 ELSE l_tax END AS l_tax"
    yield compare(
        "UPDATE of 1% of lineitem",
        "rewriting it by Spark",
        lambda: session.sql(f"UPDATE changed SET l_tax = 0 WHERE {places()}"),
        lambda: rewrite(*(name if name != "l_tax" else changed for name in lineitem.columns)),
        rounds,
    )
    source = lineitem.where("l_orderkey % 100 = 3").selectExpr(
        "* EXCEPT (l_tax)", "CAST(0.01 AS DECIMAL(15,2)) AS l_tax"
    )
    source.createOrReplaceTempView("bench_merged")

    def rewrite_joined() -> None:
        keys = source.selectExpr("l_orderkey", "l_linenumber", "l_tax AS new_tax")
        joined = spark.read.parquet(*paths).join(keys, ["l_orderkey", "l_linenumber"], "full_outer")
        joined.write.parquet(str(folder / f"rewritten-{next(numbers)}"))

    yield compare(
        "MERGE of 1% of lineitem, from a DataFrame",
        "rewriting it by Spark",
        lambda: session.sql(
            "MERGE INTO changed t USING bench_merged s ON t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber "
            "WHEN MATCHED THEN UPDATE SET l_tax = s.l_tax WHEN NOT MATCHED THEN INSERT BY NAME"
        ),
        rewrite_joined,
        rounds,
    )
    session.sql("UPDATE changed SET l_tax = 0 WHERE l_orderkey % 4 = 3")
    ((last,),) = session.sql("SELECT max(snapshot_id) FROM ducklake_snapshots('bench')").fetchall()
    feed = f"SELECT change_type, count(*), sum(l_quantity) FROM table_changes('changed', {last}, {last}) GROUP BY ALL"
    yield compare(
        "change feed of an UPDATE of a quarter of lineitem",
        "reading it twice by Spark",
        lambda: session.sql(feed).fetchall(),
        lambda: [
            spark.read.parquet(*paths).selectExpr("sum(l_quantity)", "max(l_comment)").collect() for _ in range(2)
        ],
        rounds,
    )
    many = _many_files(session, folder / "many", files)
    yield compare(
        f"open a table of {files:,} files",
        "spark.read.parquet",
        lambda: session.table("main.many").spark().schema,
        lambda: spark.read.parquet(*many).schema,
        rounds,
    )


def _many_files(session: dl.Session, folder: Path, count: int) -> list[str]:
    folder.mkdir()
    session.sql("CREATE TABLE many (i BIGINT, s VARCHAR)")
    for number in range(count):
        pq.write_table(pa.table({"i": [number], "s": [f"row {number}"]}), folder / f"{number}.parquet")
    session.sql(f"CALL ducklake_add_data_files('bench', 'many', '{folder}/*.parquet')")
    return [entry.path for entry in session.table("main.many").files()]

"""Cases that are measured. Every case names the other side of its comparison."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks import answers, blame, branches, changes, commits, listing, live, looking, metadata, peer, reverts
from benchmarks.measure import Comparison, compare
from ducklake_lab.demo import source
from ducklake_lab.spark import runtime
from tests import reference

#: Queries that read few columns; Q1 and Q6 are TPC-H's.
QUERIES = {
    "sum": "SELECT sum(l_quantity), sum(l_extendedprice), count(*) FROM {}",
    "Q1": """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
            sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
            avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        FROM {} WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q6": """
        SELECT sum(l_extendedprice * l_discount) FROM {}
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
}


def run(folder: Path, scale: float, rounds: int) -> Iterator[Comparison]:
    """All comparisons, as they are finished.

    Args:
        folder: an empty one, for lakes and copies.
        scale: of TPC-H; at 1, lineitem has six million rows.
    """
    share = min(1.0, scale)
    place = folder / "metadata"
    place.mkdir()
    tables, files = int(metadata.TABLES * share), int(metadata.FILES * share)
    yield from metadata.run(place, rounds, tables=tables, files=files)
    place = folder / "commits"
    place.mkdir()
    yield from commits.run(place, rounds)
    place = folder / "looking"
    place.mkdir()
    yield from looking.run(place, rounds)
    place = folder / "answers"
    place.mkdir()
    yield from answers.run(place, rounds, share)
    place = folder / "reverts"
    place.mkdir()
    yield from reverts.run(place, rounds, rows=int(reverts.ROWS * share))
    place = folder / "branches"
    place.mkdir()
    yield from branches.merges(place, rounds, rows=int(branches.ROWS / 10 * share))
    place = folder / "blame"
    place.mkdir()
    yield from blame.run(place, rounds, files=int(blame.FILES * share), rows=blame.ROWS)
    place = folder / "live"
    place.mkdir()
    yield from live.run(place, rounds, scale=scale, engine="duckdb")
    with dl.connect(f"ducklake:{folder / 'bench.ducklake'}", engine="spark") as session:
        spark: Any = runtime.start()
        yield _read_flights(session, spark, rounds)
        lineitem = spark.read.parquet(str(_generate(folder, scale)))
        yield _append(session, spark, lineitem, folder, rounds)
        yield from _read_lineitem(session, spark, lineitem, rounds)
        yield from changes.run(session, spark, lineitem, folder, rounds, int(changes.FILES * share))
        many = folder / "listing"
        many.mkdir()
        yield from listing.run(spark, many, rounds, files=files)
        other = folder / "peer"
        other.mkdir()
        yield from peer.run(spark, lineitem, other, rounds)
        runtime.stop(spark)


def _consume(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _paths(session: dl.Session, table: str) -> list[str]:
    return [entry.path for entry in session.table(table).files()]


def _read_flights(session: dl.Session, spark: Any, rounds: int) -> Comparison:
    session.sql(source.create_table_sql("flights"))
    for month in range(1, 13):
        session.write(source.flights_of(month), "main.flights", mode="append")
    paths = _paths(session, "main.flights")
    return compare(
        "read flights, 12 files, 336,776 rows",
        "spark.read.parquet",
        lambda: _consume(session.table("main.flights").spark()),
        lambda: _consume(spark.read.parquet(*paths)),
        rounds,
    )


def _generate(folder: Path, scale: float) -> Path:
    """TPC-H's lineitem as Parquet files."""
    target = folder / "lineitem"
    with reference.connect("tpch") as connection:
        connection.execute(f"CALL dbgen(sf = {scale})")
        connection.execute(f"COPY lineitem TO '{target}' (FORMAT parquet, PER_THREAD_OUTPUT, ROW_GROUP_SIZE 1000000)")
    return target


def _append(session: dl.Session, spark: Any, lineitem: Any, folder: Path, rounds: int) -> Comparison:
    session.write(lineitem.limit(0), "main.appended", mode="create")
    numbers = itertools.count()
    return compare(
        "append lineitem",
        "df.write.parquet",
        lambda: session.write(lineitem, "main.appended", mode="append"),
        lambda: lineitem.write.parquet(str(folder / f"copy-{next(numbers)}")),
        rounds,
    )


def _read_lineitem(session: dl.Session, spark: Any, lineitem: Any, rounds: int) -> Iterator[Comparison]:
    session.write(lineitem, "main.lineitem", mode="create")
    for name, delete in (("no rows deleted", None), ("2% deleted", "DELETE FROM lineitem WHERE l_orderkey % 50 = 7")):
        if delete is not None:
            session.sql(delete)
        paths = _paths(session, "main.lineitem")
        yield compare(
            f"read lineitem, {name}",
            "spark.read.parquet",
            lambda: _consume(session.table("main.lineitem").spark()),
            lambda paths=paths: _consume(spark.read.parquet(*paths)),  # type: ignore[misc]
            rounds,
        )
        spark.read.parquet(*paths).createOrReplaceTempView("plain_lineitem")
        for query, sql in QUERIES.items():
            yield compare(
                f"{query} of lineitem, {name}",
                "spark.read.parquet",
                lambda sql=sql: session.sql(sql.format("lineitem")).fetchall(),  # type: ignore[misc]
                lambda sql=sql: spark.sql(sql.format("plain_lineitem")).collect(),  # type: ignore[misc]
                rounds if query == "Q1" else rounds * 5,
            )

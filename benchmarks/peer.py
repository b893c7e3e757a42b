"""The other client of DuckLake on PySpark, where it is installed: the same lake, the same Spark."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks.measure import Comparison, compare

PEER = "ducklake-dataframe"
_AGGREGATE = ("sum(l_quantity)", "sum(l_extendedprice)", "count(*)")


def run(spark: Any, lineitem: Any, folder: Path, rounds: int) -> Iterator[Comparison]:
    """All comparisons, as they are finished; none where the other client is not installed.

    Args:
        lineitem: rows of TPC-H, as a DataFrame.
        folder: an empty one, for lakes: one for each client, with the same rows.
    """
    if importlib.util.find_spec("ducklake_pyspark") is None:
        return
    import ducklake_pyspark as peer  # type: ignore[import-not-found]

    ours, theirs = folder / "ours.sqlite", folder / "theirs.sqlite"
    for place in (ours, theirs):
        # both begin with a lake that is ours, files and deletes alike
        with dl.connect(
            f"ducklake:sqlite:{place}", alias="lake", data_path=f"{place}.files/", engine="spark"
        ) as session:
            session.write(lineitem, "main.lineitem", mode="create")
    numbers = itertools.count()
    with dl.connect(f"ducklake:sqlite:{ours}", alias="lake", engine="spark") as session:
        yield from _reads("no rows deleted", session, peer, spark, theirs, rounds)
        yield compare(
            "selective query of lineitem",
            PEER,
            lambda: session.sql("SELECT sum(l_quantity) FROM lineitem WHERE l_orderkey < 100").fetchall(),
            lambda: (
                peer.read_ducklake(spark, str(theirs), "lineitem")
                .where("l_orderkey < 100")
                .selectExpr("sum(l_quantity)")
                .collect()
            ),
            rounds,
        )
        yield _compare_changes("DELETE of 1% of lineitem", session, peer, theirs, rounds, numbers)
        yield from _reads("1% deleted several times", session, peer, spark, theirs, rounds)
        sample = lineitem.limit(10_000).persist()
        yield compare(
            "append 10,000 rows",
            PEER,
            lambda: session.write(sample, "main.lineitem", mode="append"),
            lambda: peer.write_ducklake(sample, str(theirs), "lineitem", mode="append"),
            rounds,
        )
        sample.unpersist()


def _reads(state: str, session: dl.Session, peer: Any, spark: Any, theirs: Path, rounds: int) -> Iterator[Comparison]:
    def read() -> Any:
        return peer.read_ducklake(spark, str(theirs), "lineitem")

    def consume(frame: Any) -> None:
        frame.write.format("noop").mode("overwrite").save()

    yield compare(
        f"read lineitem, {state}",
        PEER,
        lambda: consume(session.table("main.lineitem").spark()),
        lambda: consume(read()),
        rounds,
    )
    yield compare(
        f"sum of lineitem, {state}",
        PEER,
        lambda: session.sql(f"SELECT {', '.join(_AGGREGATE)} FROM lineitem").fetchall(),
        lambda: read().selectExpr(*_AGGREGATE).collect(),
        rounds,
    )


def _compare_changes(
    name: str, session: dl.Session, peer: Any, theirs: Path, rounds: int, numbers: Iterator[int]
) -> Comparison:
    def places() -> str:
        first = next(numbers) * 10 % 1000
        return f"l_orderkey % 1000 BETWEEN {first} AND {first + 9}"

    run: Callable[[], object] = lambda: session.sql(f"DELETE FROM lineitem WHERE {places()}")  # noqa: E731
    return compare(name, PEER, run, lambda: peer.delete_ducklake(str(theirs), "lineitem", places()), rounds)

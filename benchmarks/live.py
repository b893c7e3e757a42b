"""Live tables over TPC-H, refreshed after changes and recomputed: `python -m benchmarks.live`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ducklake_lab as dl
from benchmarks.measure import Comparison, table
from ducklake_lab.engine.placement import Engine
from tests import reference

#: Shares of lineitem and orders that change between two refreshes.
SHARES = (0.01, 0.0001)
_REVENUE = "sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS lines"
#: Queries with the joins, conditions and groups of TPC-H's; sums beside the counts of their rows.
QUERIES = {
    "Q1": "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS qty, sum(l_extendedprice) AS price, "
    "sum(l_extendedprice * (1 - l_discount)) AS disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge, "
    "sum(l_discount) AS discount, count(*) AS lines FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' "
    "GROUP BY l_returnflag, l_linestatus",
    "Q3": f"SELECT l_orderkey, o_orderdate, o_shippriority, {_REVENUE} FROM customer, orders, lineitem "
    "WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey "
    "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15' "
    "GROUP BY l_orderkey, o_orderdate, o_shippriority",
    "Q5": f"SELECT n_name, {_REVENUE} FROM customer, orders, lineitem, supplier, nation, region "
    "WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey "
    "AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' "
    "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name",
    "Q10": f"SELECT c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment, {_REVENUE} "
    "FROM customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey "
    "AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' "
    "AND c_nationkey = n_nationkey "
    "GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment",
}
_TABLES = ("customer", "lineitem", "nation", "orders", "region", "supplier")


def run(folder: Path, rounds: int, *, scale: float, engine: Engine = "auto") -> Iterator[Comparison]:
    """All comparisons, as they are finished; each refreshed table is compared with its query.

    Args:
        folder: an empty one, for the lake.
        scale: of TPC-H.
        engine: of both sides.
    """
    files = _generated(folder, scale)
    with dl.connect(
        f"ducklake:{folder}/lake.ducklake", alias="lake", data_path=f"{folder}/data", engine=engine
    ) as session:
        for name, file in files.items():
            session.sql(f"CREATE TABLE {name} AS FROM read_parquet('{file}')", engine="duckdb")
        for name, query in QUERIES.items():
            session.sql(f"CREATE LIVE TABLE {name} AS {query}")
            session.sql(f"CREATE TABLE {name}_anew AS {query}")
        for share in SHARES:
            found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in QUERIES}
            for number in range(rounds):
                _change(session, share, number)
                for name, query in QUERIES.items():
                    ours, theirs = found[name]
                    started = time.perf_counter()
                    done = session.refresh(name)
                    ours.append(time.perf_counter() - started)
                    assert done.mode == "incremental", done.reason
                    started = time.perf_counter()
                    session.sql(f"CREATE OR REPLACE TABLE {name}_anew AS {query}")
                    theirs.append(time.perf_counter() - started)
                    _check(session, name)
            for name, (ours, theirs) in found.items():
                yield Comparison(f"refresh {name}, {share:.2%} changed", "recomputed", ours, theirs)


def _generated(folder: Path, scale: float) -> dict[str, Path]:
    """Writes the tables of TPC-H as Parquet files."""
    connection = reference.connect("tpch")
    connection.execute(f"CALL dbgen(sf = {scale})")
    found = {}
    for name in _TABLES:
        found[name] = folder / f"{name}.parquet"
        connection.execute(f"COPY {name} TO '{found[name]}' (FORMAT parquet)")
    connection.close()
    return found


def _change(session: dl.Session, share: float, number: int) -> None:
    """Inserts, updates and deletes a third of a share each of the orders, with their lines."""
    each = int(3 / share)

    def chosen(key: str, part: int) -> str:
        return f"hash({key} + {1_000_003 * (3 * number + part)}) % {each} = 0"

    session.sql("BEGIN")
    for name, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        new = f"INSERT INTO {name} SELECT * REPLACE ({key} + 100000000 + {10_000_000 * number} AS {key}) FROM {name} WHERE"
        session.sql(f"{new} {key} < 100000000 AND {chosen(key, 0)}", engine="duckdb")
        session.sql(f"DELETE FROM {name} WHERE {chosen(key, 1)}", engine="duckdb")
    session.sql(f"UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE {chosen('l_orderkey', 2)}", engine="duckdb")
    session.sql(f"UPDATE orders SET o_orderdate = o_orderdate + 1 WHERE {chosen('o_orderkey', 2)}", engine="duckdb")
    session.sql("COMMIT")


def _check(session: dl.Session, name: str) -> None:
    differing = f"(FROM {name} EXCEPT ALL FROM {name}_anew) UNION ALL (FROM {name}_anew EXCEPT ALL FROM {name})"
    assert session.sql(differing, engine="duckdb").fetchall() == [], name


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of TPC-H (1)")
    parser.add_argument("--rounds", type=int, default=3, help="changes of each size (3)")
    parser.add_argument("--engine", choices=("auto", "duckdb", "spark"), default="auto", help="of both sides (auto)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ducklake-lab-live-") as folder:
        comparisons = list(run(Path(folder), given.rounds, scale=given.scale, engine=given.engine))
    print(table(comparisons))


if __name__ == "__main__":
    main()

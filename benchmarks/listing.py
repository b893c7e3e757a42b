"""DataFrames of tables with many files, compared with Spark's own listing of their folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ducklake_lab as dl
from benchmarks import metadata
from benchmarks.measure import Comparison, compare
from ducklake_lab.spark import runtime
from tests import reference


def run(spark: Any, folder: Path, rounds: int, *, files: int = metadata.FILES) -> Iterator[Comparison]:
    """All comparisons, as they are finished; no file is opened.

    Args:
        folder: an empty one, for the lake.
    """
    uri, data = f"ducklake:{folder / 'many.ducklake'}", folder / "data"
    with reference.connect() as connection:
        metadata.fill(connection, uri, f"{data}/", 1, files)
    below = data / "main" / "wide"
    below.mkdir(parents=True)
    for number in range(files):
        (below / f"ducklake-{number}.parquet").touch()

    def listed() -> object:
        return spark.read.schema("i bigint, s string").parquet(str(below))

    with dl.connect(uri, alias="many", engine="spark") as session:
        everything = session.table("wide")
        yield compare(f"DataFrame of {files:,} files", "Spark's listing", everything.spark, listed, rounds)
    yield compare(f"attach, DataFrame of 1 of {files:,} files", "Spark's listing", lambda: _one(uri), listed, rounds)


def _one(uri: str) -> None:
    with dl.connect(uri, alias="many", engine="spark") as session:
        session.sql("SELECT s FROM many.wide WHERE i = 4200")


def main() -> None:
    import tempfile

    from benchmarks.measure import table

    with tempfile.TemporaryDirectory(prefix="ducklake-lab-bench-") as folder:
        print(table(list(run(runtime.start(), Path(folder), 5))))


if __name__ == "__main__":
    main()

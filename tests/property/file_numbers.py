"""Numbers shown about a table's files and their statistics, checked against SQL over the files."""

from __future__ import annotations

from typing import NamedTuple

import duckdb

import ducklake_lab as dl
from ducklake_lab.session.listings import FileListing
from ducklake_lab.widgets.file_browser import FileBrowser


class Files(NamedTuple):
    """The files of the table at a snapshot, as the reference lists them: paths and sizes."""

    data: dict[str, int]
    deletes: dict[str, int]

    def sizes(self) -> dict[str, int]:
        return self.data | self.deletes


def list_files(reference: duckdb.DuckDBPyConnection, number: int) -> Files:
    read = reference.execute(
        "SELECT data_file, data_file_size_bytes, delete_file, delete_file_size_bytes "
        f"FROM ducklake_list_files('lake', 't', snapshot_version => {number})"
    ).fetchall()
    return Files({row[0]: row[1] for row in read}, {row[2]: row[3] for row in read if row[2]})


class Known(NamedTuple):
    """Values that SQL finds in data files, deleted rows included: values, NULLs, NaN, smallest, largest."""

    values: int
    nulls: int
    nan: bool
    low: str | None
    high: str | None


def look_into(reference: duckdb.DuckDBPyConnection, paths: list[str], column: str) -> Known:
    number = f"NOT isnan({column}::DOUBLE)"
    found = reference.execute(
        f"SELECT count({column}), count(*) - count({column}), count({column}) > count({column}) FILTER ({number}), "
        f"(min({column}) FILTER ({number}))::VARCHAR, (max({column}) FILTER ({number}))::VARCHAR FROM read_parquet($1)",
        [paths],
    ).fetchone()
    assert found is not None
    return Known(*found)


def check_ranges(listing: FileListing, files: Files, reference: duckdb.DuckDBPyConnection) -> None:
    """Check the number of files that hold a value, on average over the files' bounds."""
    browser = FileBrowser(listing)
    for name in "kvf" if files.data else "":
        number = f"{name} IS NOT NULL AND NOT isnan({name}::DOUBLE)"
        bounds = f"""
            WITH f AS (SELECT min({name}) FILTER ({number}) AS low, max({name}) FILTER ({number}) AS high, count({name}) AS n
                       FROM read_parquet($1, filename = true) GROUP BY filename),
            b AS (SELECT low AS v FROM f WHERE low IS NOT NULL UNION SELECT high FROM f WHERE high IS NOT NULL)
        """
        query = f"""{bounds} SELECT min(v)::VARCHAR, max(v)::VARCHAR, sum(files) / count(*) + any_value(unknown) FROM
            (SELECT v, (SELECT count(*) FROM f WHERE v BETWEEN low AND high) AS files,
                    (SELECT count(*) FROM f WHERE low IS NULL AND n > 0) AS unknown FROM b)"""
        ((low, high, depth),) = reference.execute(query, [list(files.data)]).fetchall()
        message, _ = browser.answer_ranges({"column": name})
        if "depth" in message:
            assert (message["low"], message["high"]) == (low, high), name
            assert abs(message["depth"] - depth) < 1e-9, name
        else:  # one file, or one value
            ((count,),) = reference.execute(
                f"{bounds} SELECT count(*) FROM f WHERE low IS NOT NULL", [list(files.data)]
            ).fetchall()
            assert low == high or count < 2, name


def check_statistics(table: dl.TableHandle, files: Files, reference: duckdb.DuckDBPyConnection) -> None:
    """The statistics of columns, of each file and summed up, and the figure of the files."""
    listing = table.files()
    for entry in listing:
        for name in "kvf":
            stats, known = entry.stats[name], look_into(reference, [entry.path], name)
            nan = stats.contains_nan if name == "f" else False
            shown = Known(stats.value_count or 0, stats.null_count or 0, bool(nan), stats.min_value, stats.max_value)
            assert shown == known, (entry.path, name)
    summed = {row["column"]: row for row in table.column_stats()}
    for name in "kvf" if files.data else "":
        known = look_into(reference, list(files.data), name)
        row = summed[name]
        # NaN is larger than all others
        high = "nan" if known.nan else known.high
        assert (row["min"], row["max"], bool(row["NaN"])) == (known.low, high, known.nan), name
        share = known.nulls / (known.nulls + known.values)
        assert abs(row["null share"] - share) < 0.0001 and (row["null share"] > 0) == (share > 0), name
        query = "SELECT sum(total_compressed_size) FROM parquet_metadata($1) WHERE path_in_schema = $2"
        assert (row["bytes"],) == reference.execute(query, [list(files.data), name]).fetchone()
    check_ranges(listing, files, reference)
    (figure,) = listing.plot().data
    drawn = {path: (size, text) for path, size, text in zip(figure.ids, figure.values, figure.hovertext, strict=True)}
    assert len(figure.ids) == 1 + len(files.data) and sum(figure.values) == sum(files.data.values())
    for entry in listing:
        size, text = drawn[f"f{entry.data_file.data_file_id}"]
        assert size == files.data[entry.path]
        assert f"{entry.rows:,} rows, {entry.deleted:,} deleted" in text

"""Hits that footers and rows show: each data and delete file is read once, several at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ducklake_lab.doctor import footers
from ducklake_lab.doctor.check import Row
from ducklake_lab.doctor.contents import plan_of, read_rows, seen_files, table_of
from ducklake_lab.doctor.context import NEVER, Context
from ducklake_lab.doctor.deletion_files import delete_of, deletions_of
from ducklake_lab.doctor.partition_keys import Values, other_keys
from ducklake_lab.doctor.plan import metadata_table
from ducklake_lab.duckdb.casting import cast_sql
from ducklake_lab.engine.in_process.engine import evaluate
from ducklake_lab.errors import DataFileError, DuckLakeError, UnsupportedFeatureError
from ducklake_lab.model.entries import Column, Table
from ducklake_lab.model.files import ColumnStats, DataFile
from ducklake_lab.model.quoting import quote_text
from ducklake_lab.model.staged import ROW_ID, SNAPSHOT_ID
from ducklake_lab.model.types import FLOATS, INTEGERS
from ducklake_lab.parallel import in_parallel

#: First id that DuckDB's client gives to rows of an open transaction. Rows that it updates again keep theirs.
_OF_TRANSACTIONS = 10**18
#: Types whose bounds are compared with values.
_COMPARED = frozenset((*INTEGERS, *FLOATS, "varchar", "date", "timestamp", "timestamptz", "boolean", "uuid"))


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Values of a column in a file, beside its statistics.

    Attributes:
        outside: values outside of the bounds, and NaN where the statistics deny it.
        nulls: NULLs, where their number differs from the catalog's; None where it does not.
    """

    column: Column
    stats: ColumnStats
    outside: int
    nulls: int | None


@dataclass(slots=True)
class FileFacts:
    """Content of a data file.

    Attributes:
        error: why it cannot be read; None where it can.
        rows: their number.
        row_ids: of all rows, deleted ones too.
        newest: the largest snapshot id that a row says.
        columns: those whose statistics are wrong.
        keys: partition keys of rows that are not those of the file; None where there are none, or they are not known.
    """

    file: DataFile
    path: str
    error: str | None = None
    rows: int = 0
    row_ids: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    newest: int | None = None
    columns: list[ColumnFacts] = field(default_factory=list)
    keys: Values | None = None


def facts(context: Context) -> list[FileFacts]:
    """Read all data files that a snapshot sees."""
    _ = context.folders  # threads are not to read the catalog
    files = seen_files(context, context.table_id)
    stats: dict[int, dict[int, ColumnStats]] = {}
    for table_id in sorted({file.table_id for file in files}):
        stats |= _stats(context, table_id)
    work = [(file, table_of(context, file), stats.get(file.data_file_id, {})) for file in files]
    return in_parallel(work, lambda item: _read(context, *item))


def _stats(context: Context, table_id: int) -> dict[int, dict[int, ColumnStats]]:
    """Statistics of a table's files, by file and column."""
    stats: dict[int, dict[int, ColumnStats]] = defaultdict(dict)
    query = (
        "SELECT data_file_id, column_id, value_count, null_count, min_value, max_value, contains_nan "
        f"FROM ducklake_file_column_stats WHERE table_id = {table_id:d}"
    )
    for file_id, column_id, *values in context.tuples(query):
        if values[-1] is not None:
            values[-1] = bool(values[-1])  # SQLite and MySQL have numbers
        stats[file_id][column_id] = ColumnStats(column_id, None, *values)
    return stats


def _read(context: Context, file: DataFile, table: Table | None, stats: dict[int, ColumnStats]) -> FileFacts:
    path = context.place(file.table_id, file.path, file.path_is_relative)
    file_facts = FileFacts(file, path)
    try:
        file_facts.rows = footers.footer_of(context, path, file.encryption_key).rows
        if table is None:
            return file_facts
        rows = read_rows(plan_of(context, file, table))
    except (DuckLakeError, *footers._UNREADABLE) as error:
        file_facts.error = str(error).strip().partition("\n")[0]
        return file_facts
    file_facts.row_ids = rows.column(ROW_ID).fill_null(-1).to_numpy().astype(np.int64)
    snapshots = rows.column(SNAPSHOT_ID).fill_null(-1).to_numpy()
    file_facts.newest = int(snapshots.max()) if len(snapshots) else None
    file_facts.keys = other_keys(file, table, rows)
    for column in table.columns:
        column_stats = stats.get(column.column_id)
        if column_stats is not None and not column.children and column.type in _COMPARED:
            checked = _checked(column, column_stats, rows.column(column.name))
            if checked.outside or checked.nulls is not None:
                file_facts.columns.append(checked)
    return file_facts


def _checked(column: Column, stats: ColumnStats, values: pa.ChunkedArray) -> ColumnFacts:
    kind = column.data_type
    wrong = []
    if stats.min_value is not None:
        wrong.append(f"v < {cast_sql(quote_text(stats.min_value), kind)}")
    if stats.max_value is not None:
        wrong.append(f"v > {cast_sql(quote_text(stats.max_value), kind)}")
    condition = f"({' OR '.join(wrong)})" if wrong else "false"
    if kind.name in FLOATS:
        # NaN is in no bounds
        condition = f"CASE WHEN isnan(v) THEN {stats.contains_nan is False} ELSE {condition} END"
    answer = evaluate(f"SELECT count(*) FILTER ({condition}) AS n FROM rows", {"rows": pa.table({"v": values})})
    outside = int(answer.column(0)[0].as_py())
    nulls = values.null_count
    differs = stats.null_count is not None and stats.null_count != nulls
    return ColumnFacts(column, stats, outside, nulls if differs else None)


def _row(one: FileFacts, **values: object) -> Row:
    file = one.file
    return {
        "table_id": file.table_id,
        "id": file.data_file_id,
        "path": one.path,
        "record_count": file.record_count,
        "since": file.begin_snapshot,
        "until": file.end_snapshot,
        "evidence": f"SELECT count(*) FROM read_parquet({quote_text(one.path)})",
        **values,
    }


def unreadable_files(context: Context) -> Iterator[Row]:
    return (_row(one, reason=one.error) for one in context.once(facts) if one.error is not None)


def wrong_counts(context: Context) -> Iterator[Row]:
    for one in context.once(facts):
        if one.rows != one.file.record_count and (one.error is None or one.rows):
            yield _row(one, rows=one.rows)


def rows_outside_bounds(context: Context) -> Iterator[Row]:
    for one in context.once(facts):
        for checked in one.columns:
            if checked.outside:
                name, stats = checked.column.name, checked.stats
                yield _row(
                    one,
                    column_id=checked.column.column_id,
                    column_name=name,
                    low=stats.min_value,
                    high=stats.max_value,
                    outside=checked.outside,
                    evidence="SELECT min_value, max_value FROM ducklake_file_column_stats "
                    f"WHERE data_file_id = {one.file.data_file_id:d} AND column_id = {checked.column.column_id:d}",
                )


def wrong_null_counts(context: Context) -> Iterator[Row]:
    for one in context.once(facts):
        for checked in one.columns:
            if checked.nulls is not None:
                yield _row(
                    one,
                    column_id=checked.column.column_id,
                    column_name=checked.column.name,
                    null_count=checked.stats.null_count,
                    nulls=checked.nulls,
                    evidence="SELECT value_count, null_count FROM ducklake_file_column_stats "
                    f"WHERE data_file_id = {one.file.data_file_id:d} AND column_id = {checked.column.column_id:d}",
                )


def rows_of_other_partitions(context: Context) -> Iterator[Row]:
    for one in context.once(facts):
        if one.keys is not None:
            yield _row(one, keys=_shown(one.file.partition_values), found=_shown(one.keys))


def _shown(values: Values) -> str:
    return ", ".join("NULL" if value is None else value for value in values)


def future_rows(context: Context) -> Iterator[Row]:
    for one in context.once(facts):
        bound = max(one.file.begin_snapshot, one.file.partial_max or 0)
        if one.newest is not None and one.newest > bound and one.newest > context.newest:
            yield _row(one, found=one.newest, bound=bound)


def repeated_row_ids(context: Context) -> Iterator[Row]:
    """Rows of files with one id, at the newest snapshot or when the second of two files with the same first id begins."""
    by_table: dict[int, list[FileFacts]] = defaultdict(list)
    for one in context.once(facts):
        if one.error is None and len(one.row_ids):
            by_table[one.file.table_id].append(one)
    for table_id, files in by_table.items():
        live = [one for one in files if one.file.end_snapshot is None]
        for at, together in ((context.newest, live), *_pairs(context, files)):
            ids = [_live_ids(context, one, at) for one in together]
            joined = np.concatenate(ids) if ids else np.zeros(0, np.int64)
            unique, counts = np.unique(joined, return_counts=True)
            again = unique[counts > 1]
            if not len(again):
                continue
            twice = [one.file for one, own in zip(together, ids, strict=True) if again[0] in own]
            ends = [file.end_snapshot for file in twice if file.end_snapshot is not None]
            yield {
                "table_id": table_id,
                "times": int(counts[counts > 1].sum()),
                "row_id": int(again[0]),
                "since": max(file.begin_snapshot for file in twice),
                "until": min(ends, default=None),
                "evidence": "SELECT data_file_id, path, row_id_start, record_count FROM ducklake_data_file "
                f"WHERE data_file_id IN ({', '.join(f'{file.data_file_id:d}' for file in twice)})",
            }
            break


def _pairs(context: Context, files: list[FileFacts]) -> Iterator[tuple[int, list[FileFacts]]]:
    """Pairs of files whose row ids begin alike, each with the first snapshot that sees both: later only rows go."""
    by_start: dict[int, list[FileFacts]] = defaultdict(list)
    for one in files:
        if one.file.row_id_start is not None and one.file.partial_max is None:
            by_start[one.file.row_id_start].append(one)
    for alike in by_start.values():
        for a, b in combinations(alike, 2):
            at = context.first_from(max(a.file.begin_snapshot, b.file.begin_snapshot))
            if at is not None and all(one.file.end_snapshot is None or at < one.file.end_snapshot for one in (a, b)):
                yield at, [a, b]


def _live_ids(context: Context, one: FileFacts, at: int) -> npt.NDArray[np.int64]:
    """Return the ids of rows that a snapshot sees in a file; none where its deletions cannot be read."""
    gone: set[int] = set()
    name = context.delete_tables.get(one.file.table_id)
    if name is not None:
        query = f"SELECT row_id FROM {name} WHERE file_id = {one.file.data_file_id:d} AND begin_snapshot <= {at:d}"
        gone |= {int(str(row["row_id"])) for row in context.rows(query)}
    for record in _delete_records(context, one.file.table_id):
        end = NEVER if record["end_snapshot"] is None else int(str(record["end_snapshot"]))
        if record["data_file_id"] == one.file.data_file_id and int(str(record["begin_snapshot"])) <= at < end:
            try:
                positions, begins = deletions_of(context, delete_of(record), one.file.table_id)
            except (DataFileError, UnsupportedFeatureError):
                return np.zeros(0, np.int64)
            gone.update(positions[begins <= at].tolist())
    kept = np.ones(len(one.row_ids), np.bool_)
    kept[[position for position in gone if 0 <= position < len(kept)]] = False
    return one.row_ids[kept]


def _delete_records(context: Context, table_id: int) -> list[dict[str, object]]:
    columns = ", ".join(column.name for column in metadata_table(context, "ducklake_delete_file").c)
    return context.rows(f"SELECT {columns} FROM ducklake_delete_file WHERE table_id = {table_id:d}")


def large_row_ids(context: Context) -> Iterator[Row]:
    largest: dict[int, int] = {}
    for one in context.once(facts):
        kept = one.row_ids[one.row_ids < _OF_TRANSACTIONS]
        if len(kept):
            largest[one.file.table_id] = max(largest.get(one.file.table_id, -1), int(kept.max()))
    for table_id, row_id in largest.items():
        counter = context.rows(f"SELECT max(next_row_id) AS n FROM ducklake_table_stats WHERE table_id = {table_id:d}")
        following = counter[0]["n"]
        if following is not None and row_id >= int(str(following)):
            yield {
                "table_id": table_id,
                "row_id": row_id,
                "next_row_id": following,
                "since": None,
                "until": None,
                "evidence": f"SELECT next_row_id FROM ducklake_table_stats WHERE table_id = {table_id:d}",
            }


def row_ids_of_transactions(context: Context) -> Iterator[Row]:
    for one in context.once(facts):
        local = one.row_ids[one.row_ids >= _OF_TRANSACTIONS]
        if len(local):
            yield _row(one, row_id=int(local.min()), rows=len(local))


def _deletes(context: Context) -> Iterator[tuple[dict[str, object], npt.NDArray[np.int64]]]:
    """Rows of `ducklake_delete_file` that a snapshot sees, and the positions in their files."""
    tables = [context.table_id] if context.table_id is not None else sorted(context.names)
    records = []
    for table_id in tables:
        for record in _delete_records(context, table_id):
            first = context.first_from(int(str(record["begin_snapshot"])))
            end = NEVER if record["end_snapshot"] is None else int(str(record["end_snapshot"]))
            if first is not None and first < end:
                records.append(record)

    def positions(record: dict[str, object]) -> npt.NDArray[np.int64] | None:
        try:
            return deletions_of(context, delete_of(record), int(str(record["table_id"])))[0]
        except (DataFileError, UnsupportedFeatureError):
            return None

    for record, deleted in zip(records, in_parallel(records, positions), strict=True):
        if deleted is not None:
            yield record, deleted


def _of_delete(record: dict[str, object], **values: object) -> Row:
    return {
        "table_id": record["table_id"],
        "id": record["delete_file_id"],
        "data_file_id": record["data_file_id"],
        "since": record["begin_snapshot"],
        "until": record["end_snapshot"],
        "delete_count": record["delete_count"],
        "evidence": f"SELECT * FROM ducklake_delete_file WHERE delete_file_id = {record['delete_file_id']}",
        **values,
    }


def wrong_delete_counts(context: Context) -> Iterator[Row]:
    for record, positions in _deletes(context):
        if len(positions) != record["delete_count"]:
            yield _of_delete(record, rows=len(positions))


def deletions_outside(context: Context) -> Iterator[Row]:
    rows = {one.file.data_file_id: one.rows for one in context.once(facts) if one.error is None}
    for record, positions in _deletes(context):
        count = rows.get(int(str(record["data_file_id"])))
        if count is None:
            continue
        inside = np.unique(positions[(positions >= 0) & (positions < count)])
        if len(inside) != len(positions):
            yield _of_delete(record, outside=len(positions) - len(inside))

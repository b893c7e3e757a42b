"""Files that the catalog database leaves out by statistics: pruning would keep none, in every kind of database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ducklake_lab.catalog import tables as t
from ducklake_lab.catalog.attach_options import AttachOptions
from ducklake_lab.catalog.files import join_stats, read_candidates
from ducklake_lab.catalog.opening import open_lake
from ducklake_lab.catalog.uri import parse_uri
from ducklake_lab.model.entries import Column, PartitionField, PartitionSpec, Table
from ducklake_lab.model.files import ColumnStats
from ducklake_lab.model.moments import Moment
from ducklake_lab.model.predicates import And, Comparison, InList, NullTest, Or, Predicate, StartsWith
from ducklake_lab.model.transforms import Bucket
from ducklake_lab.model.types import DataType
from ducklake_lab.scan import prefilter
from ducklake_lab.scan.partitioned import Partitioning
from ducklake_lab.scan.pruning import columns_of, may_match

pytestmark = pytest.mark.sampled(3)

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
COLUMNS: dict[str, tuple[str, st.SearchStrategy[object]]] = {
    "i": ("int32", st.integers(-50, 50)),
    "l": ("int64", st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 2, 2**53 + 2)),
    "h": ("uint128", st.integers(0, 2**128 - 1) | st.integers(2**63 - 2, 2**63 + 2)),
    "d": ("float64", FLOATS | st.integers(-9, 9).map(lambda n: n / 10)),
    "f": ("float32", st.floats(allow_nan=False, allow_infinity=False, width=32)),
    "n": ("decimal(38,5)", st.decimals("-1e30", "1e30", places=5) | st.decimals(-3, 3, places=5)),
    "s": ("varchar", st.text("abZ é%_'\U0001f986", max_size=3)),
    "t": ("date", st.dates()),
    "u": ("timestamp", st.datetimes(min_value=datetime(2013, 1, 1), max_value=datetime(2013, 1, 1, 0, 0, 3))),
    "z": ("timestamptz", st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC))),
    "b": ("boolean", st.booleans()),
}
#: Bounds that other writers may have left, and some that say nothing.
ODD = ["", "nan", "inf", "-inf", "1e5", "1E+400", "abc", "--5", "5-3", " 7", "infinity", "0044-03-15 (BC)", "0044-03-15 00:00:00 (BC)",
       "2013-01-01T00:00:00", "2013-01-01 00:00:00+02", "10000-01-01", "0x10", "1_0", "é", "1" * 50]  # fmt: skip
TABLE = Table(
    7,
    "",
    0,
    "t",
    "t/",
    tuple(Column.build(name, DataType(k), i) for i, (name, (k, _)) in enumerate(COLUMNS.items(), 1)),
    partition=PartitionSpec(9, (PartitionField(4, "identity"), PartitionField(1, "bucket(4)"))),
)


def _comparison(name: str) -> st.SearchStrategy[Predicate]:
    values = COLUMNS[name][1].map(lambda value: Moment.of(value) if isinstance(value, date) else value)
    path = st.just((name,))
    kinds: list[st.SearchStrategy[Predicate]] = [
        st.builds(Comparison, path, st.sampled_from(["=", "<", "<=", ">", ">=", "!="]), values),
        st.builds(InList, path, st.lists(values, min_size=1, max_size=3).map(tuple)),
        st.builds(NullTest, path, st.booleans()),
    ]
    if name == "s":
        kinds.append(st.builds(StartsWith, path, st.text("abZé%", min_size=1, max_size=2)))
    return st.one_of(kinds)


PREDICATES = st.recursive(
    st.sampled_from(list(COLUMNS)).flatmap(_comparison),
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=3,
)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ").replace("+00:00", "+00")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _bounds(column: int, values: st.SearchStrategy[object]) -> st.SearchStrategy[ColumnStats | None]:
    pairs = st.tuples(values, values).map(lambda pair: sorted(pair)).map(lambda pair: (_text(pair[0]), _text(pair[1])))  # type: ignore[type-var]
    odd = st.none() | st.sampled_from(ODD)
    either = pairs | pairs | st.tuples(odd, odd)
    counts, nan = st.none() | st.integers(0, 5), st.none() | st.booleans()
    known = st.builds(lambda b, c, n: ColumnStats(column, None, None, c, b[0], b[1], n), either, counts, nan)
    return known | known | st.none()


FILE = st.tuples(*[_bounds(i, values) for i, (_, values) in enumerate(COLUMNS.values(), 1)])


@pytest.mark.every_catalog
@pytest.mark.slow
def test_what_may_match_is_kept(lake_uri: Callable[..., str], tmp_path: Path) -> None:
    lake = open_lake(parse_uri(lake_uri()), "lake", AttachOptions(data_path=f"{tmp_path}/data"))
    with lake.connect() as connection:

        @settings(max_examples=15, deadline=None, phases=[Phase.generate])
        @given(st.lists(FILE, min_size=8, max_size=8), st.lists(PREDICATES, min_size=6, max_size=6))
        def check(files: list[tuple[ColumnStats | None, ...]], predicates: list[Predicate]) -> None:
            _fill(connection, files)
            for predicate in predicates:
                kept = _kept(connection, predicate, lake.database.backend)
                for file_id, found in enumerate(files):
                    stats = {known.column_id: known for known in found if known is not None}
                    keys = {} if file_id % 4 == 3 else {1: {"bucket(4)": str(file_id % 3)}}
                    if may_match(TABLE, predicate, stats, 3, keys):
                        assert file_id in kept, (predicate, stats)
                        read = kept[file_id]
                        assert read == {column: stats[column] for column in read}, "the statistics are read as they are"

        check()
        assert _left_out_of_fifty(connection, lake.database.backend) == 49
        _fill(connection, [(None,)] * 8)
        # files 3 and 7 have another partition spec
        assert set(_kept(connection, Comparison(("i",), "=", 7), lake.database.backend)) == {3, 7} | {
            file_id
            for file_id in (0, 1, 2, 4, 5, 6)
            if str(file_id % 3) == Bucket(4).key_of(Decimal(7), TABLE.columns[0].data_type)
        }
    lake.database.dispose()


def _fill(connection: sa.Connection, files: Sequence[tuple[ColumnStats | None, ...]]) -> None:
    s, f, p = t.file_column_stats, t.data_file, t.file_partition_value
    for table in (f, s, p):
        connection.execute(sa.delete(table))
    rows = [
        {
            "data_file_id": file_id, "table_id": 7, "begin_snapshot": 1, "path": f"{file_id}.parquet",
            "path_is_relative": True, "record_count": 3, "file_size_bytes": 100, "footer_size": 10, "row_id_start": 0,
            "partition_id": 8 if file_id % 4 == 3 else 9,
        }
        for file_id in range(len(files))
    ]  # fmt: skip
    connection.execute(sa.insert(f).values(rows))
    keys = [
        {"data_file_id": file_id, "table_id": 7, "partition_key_index": index, "partition_value": value}
        for file_id in range(len(files)) for index, value in ((0, None), (1, str(file_id % 3)))
    ]  # fmt: skip
    connection.execute(sa.insert(p).values(keys))
    stats = [
        {
            "data_file_id": file_id, "table_id": 7, "column_id": known.column_id, "null_count": known.null_count,
            "min_value": known.min_value, "max_value": known.max_value, "contains_nan": known.contains_nan,
        }
        for file_id, found in enumerate(files) for known in found if known is not None
    ]  # fmt: skip
    if stats:
        connection.execute(sa.insert(s).values(stats))


def _kept(connection: sa.Connection, predicate: Predicate, backend: str) -> dict[int, dict[int, ColumnStats]]:
    joined = join_stats(columns_of(TABLE, predicate))
    condition = prefilter.may_match(TABLE, predicate, joined, backend, Partitioning({}))
    found = read_candidates(connection, 7, sa.true() if condition is None else condition, joined)
    return {file.data_file_id: stats for file, stats in found}


def _left_out_of_fifty(connection: sa.Connection, backend: str) -> int:
    _fill(connection, [(ColumnStats(2, None, None, 0, f"{n}000", f"{n}999"),) for n in range(1, 51)])
    return 50 - len(_kept(connection, Comparison(("l",), "=", 42_300), backend))

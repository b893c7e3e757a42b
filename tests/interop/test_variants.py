"""Inlined variants of every kind that the reference writes: the same texts and types on both sides."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import ducklake_lab as dl

pytestmark = pytest.mark.sampled(4)

#: Values whose kinds Parquet's variant has.
_IN_PARQUET = (
    "NULL",
    "42",
    "9223372036854775807",
    "1.50::DECIMAL(4,2)",
    "1e300",
    "'nan'::FLOAT",
    "true",
    "'it''s'",
    "'x'::BLOB",
    "UUID '00000000-0000-0000-0000-000000000001'",
    "DATE '0044-01-01 (BC)'",
    "TIME '12:00:00.123456'",
    "TIMESTAMP 'infinity'",
    "'2020-01-01 00:00:00.123456789'::TIMESTAMP_NS",
    "TIMESTAMPTZ '2020-01-01 00:00:00.123+00'",
    "[[1], [2, NULL], []]",
    "{'a': {'x': 1}, 'b': [1, 2]}",
    "MAP {'a': 1}",
)
#: Values that it cannot hold, or not exactly.
_OTHERS = (
    "9223372036854775808::HUGEINT",
    "(-170141183460469231731687303715884105728)::HUGEINT",
    "340282366920938463463374607431768211455::UHUGEINT",
    "18446744073709551615::UBIGINT",
    "INTERVAL '1 month -3 days 5 microseconds'",
    "INTERVAL '-14 months'",
    "TIMETZ '12:00:00+01:30'",
    "TIMETZ '23:59:59.999999-11:30:15'",
    "'24:00:00.000000000'::TIME_NS",
    "'12:00:00.123456789'::TIME_NS",
    "'2020-01-01'::TIMESTAMP_S",
    "'infinity'::TIMESTAMP_S",
    "'0044-03-15 (BC) 01:02:03.004'::TIMESTAMP_MS",
    "'12020-02-29 23:59:59'::TIMESTAMP_S",
    "'POINT (1 2)'::GEOMETRY",
    "0.1::FLOAT",
    "{'z': 1, 'a': 'x'}",
    "{'it''s \"z\"': INTERVAL 1 DAY, 'a': [], 'b': NULL, 'c': [1, 2]}",
    "[INTERVAL 1 DAY, NULL]",
    "[{'a': NULL, 'b': INTERVAL 1 DAY}, {'a': 1, 'b': NULL}, NULL]",
    "[[], [TIMETZ '12:00:00+00']]",
    "{'i': INTERVAL 1 DAY, 'z': ['\\x00\\xFF'::BLOB], 'd': DATE 'infinity', 't': TIMESTAMP '0001-01-01 (BC)', 'f': '-inf'::DOUBLE, "
    "'u': UUID 'ffffffff-0000-0000-0000-000000000001', 'g': 'inf'::FLOAT, 'b': [true, false], 's': 'ä\\0', "
    "'n': '2020-01-01 00:00:00.123456789'::TIMESTAMP_NS, 'zone': TIMESTAMPTZ '2020-01-01 12:00:00+05', "
    "'e': 12345678901234567890123456789012345.678, 'h': -0.05, 'c': TIME '01:02:03.4', 'x': 1e300}",
)
#: Python's names of one zone differ.
_ZONE = re.compile("tzinfo=<[^>]*>")
_READ = "SELECT i, w, v::VARCHAR, variant_typeof(v), (v::JSON)::VARCHAR FROM lake.t ORDER BY i"


#: Values that Parquet's variant holds in another spelling, in which they are read and written.
_RESPELLED = ("0.1::FLOAT", "{'z': 1, 'a': 'x'}", "1.50::DECIMAL(4,2)")


def _exact(rows: list[tuple[object, ...]], values: tuple[str, ...]) -> list[tuple[object, ...]]:
    return [row for row, value in zip(rows, values, strict=True) if value not in _RESPELLED]


def _attach(reference: duckdb.DuckDBPyConnection, folder: Path) -> str:
    uri = f"ducklake:{folder}/lake.ducklake"
    reference.execute(f"ATTACH '{uri}' AS lake (DATA_PATH '{folder}/data')")
    return uri


def _fill(reference: duckdb.DuckDBPyConnection, values: tuple[str, ...]) -> None:
    reference.execute("CREATE TABLE lake.t (i INTEGER, w INTEGER, v VARIANT)")
    for i, value in enumerate(values):
        reference.execute(f"INSERT INTO lake.t SELECT {i}, 1, ({value})::VARIANT")


def _read_by_reference(reference: duckdb.DuckDBPyConnection, folder: Path) -> list[tuple[object, ...]]:
    _attach(reference, folder)
    rows = reference.execute(_READ).fetchall()
    reference.execute("DETACH lake")
    return rows


def test_the_reference_writes_and_we_read(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    values = _IN_PARQUET + _OTHERS
    uri = _attach(reference, tmp_path)
    _fill(reference, values)
    expected = reference.execute(_READ).fetchall()
    native = reference.execute("SELECT v FROM lake.t ORDER BY i").fetchall()
    reference.execute("DETACH lake")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        found = session.sql(_READ).fetchall()
        assert _exact(found, values) == _exact(expected, values)
        handed = session.sql("SELECT v FROM t ORDER BY i").fetchall()
        assert _ZONE.sub("", repr(_exact(handed, values))) == _ZONE.sub("", repr(_exact(native, values)))
        # what other columns hold, and what was before
        assert len(session.sql("SELECT w FROM t").fetchall()) == len(values)
        assert session.sql("SELECT * FROM t AT (VERSION => 1)").fetchall() == []
        feed = f"SELECT i, rowid, v::VARCHAR, variant_typeof(v) FROM lake.table_changes('t', 2, {1 + len(values)}) ORDER BY i"
        assert [(row[0], *row[2:]) for row in session.sql(feed).fetchall()] == [(r[0], *r[2:4]) for r in found]
        for i in range(len(values)):
            session.sql(f"UPDATE t SET w = 2 WHERE i = {i}")
        updated = session.sql(_READ).fetchall()
        assert _exact(updated, values) == [(row[0], 2, *row[2:]) for row in _exact(expected, values)]
        last = 1 + len(values)
        diff = session.table("t").diff(last, 2 * last - 1).rows()
        assert len(diff) == len(values) and {row.changed for row in diff} == {("w",)}
    assert _read_by_reference(reference, tmp_path) == updated


def test_we_write_and_the_reference_reads(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    values = _IN_PARQUET + _OTHERS + ("123456789012345678901234567890::BIGNUM", "(-5)::BIGNUM", "'0101'::BIT")
    sources = ", ".join(f"({value})::VARIANT::VARCHAR" for value in values)
    kinds = ", ".join(f"variant_typeof(({value})::VARIANT)" for value in values)
    expected = list(
        zip(*(reference.execute(f"SELECT {listed}").fetchone() or () for listed in (sources, kinds)), strict=True)
    )
    with dl.connect(
        f"ducklake:{tmp_path}/lake.ducklake", data_path=f"{tmp_path}/data", alias="lake", engine="duckdb"
    ) as session:
        session.sql("CREATE TABLE t (i INTEGER, w INTEGER, v VARIANT)")
        for i, value in enumerate(values):
            session.sql(f"INSERT INTO t SELECT {i}, 1, ({value})::VARIANT")
        ours = session.sql(_READ).fetchall()
    assert [row[2:4] for row in _exact(ours, values)] == _exact(expected, values)
    assert _read_by_reference(reference, tmp_path) == ours


@pytest.mark.parametrize("value", ["INTERVAL 3 DAY", "TIMETZ '12:00:00+01'", "9223372036854775808::HUGEINT"])
def test_a_file_takes_what_parquet_holds(tmp_path: Path, reference: duckdb.DuckDBPyConnection, value: str) -> None:
    uri = _attach(reference, tmp_path)
    _fill(reference, (value,))
    with pytest.raises(duckdb.Error, match=r"INTERVAL|TIME_MICROS_TZ|INT128"):
        reference.execute("CALL ducklake_flush_inlined_data('lake')")
    reference.execute("DETACH lake")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        with pytest.raises(dl.UnsupportedFeatureError, match=r"INTERVAL|TIME_MICROS_TZ|INT128"):
            session.sql("CALL ducklake_flush_inlined_data('lake')")
        assert len(session.sql("SELECT v FROM t").fetchall()) == 1


def test_a_flush_gives_the_values_of_the_reference(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    values = (*_IN_PARQUET, "{'z': 1, 'a': 'x'}", "0.1::FLOAT")
    found = []
    for name in ("theirs", "ours"):
        (tmp_path / name).mkdir()
        uri = _attach(reference, tmp_path / name)
        _fill(reference, values)
        if name == "theirs":
            reference.execute("CALL ducklake_flush_inlined_data('lake')")
        reference.execute("DETACH lake")
        if name == "ours":
            with dl.connect(uri, alias="lake", engine="duckdb") as session:
                session.sql("CALL ducklake_flush_inlined_data('lake')")
                assert len(session.table("t").files()) == 1
        found.append(_read_by_reference(reference, tmp_path / name))
    assert found[0] == found[1]


def _nested(levels: int) -> str:
    value = "INTERVAL 1 DAY"
    for level in range(levels):
        value = f"[{value}, NULL]" if level % 2 else f"{{'a': 1, 'it''s': {value}}}"
    return value


def test_values_are_nested_six_levels_deep(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = _attach(reference, tmp_path)
    _fill(reference, tuple(map(_nested, range(7))))
    expected = reference.execute(_READ).fetchall()
    reference.execute(f"INSERT INTO lake.t SELECT 7, 1, ({_nested(7)})::VARIANT")
    reference.execute("DETACH lake")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql(_READ.replace("FROM lake.t", "FROM lake.t AT (VERSION => 8)")).fetchall() == expected
        with pytest.raises(dl.UnsupportedFeatureError, match=r"more than 6 levels.*select other columns"):
            session.sql("SELECT v FROM t").fetchall()
        assert session.sql("SELECT i, w FROM t ORDER BY i").fetchall() == [(i, 1) for i in range(8)]


def test_variants_inside_other_types_are_read_and_changed(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    uri = _attach(reference, tmp_path)
    reference.execute("CREATE TABLE lake.t (i INTEGER, s STRUCT(v VARIANT), l VARIANT[], m MAP(VARCHAR, VARIANT))")
    value = "({'z': INTERVAL 1 MONTH, 'b': 1})::VARIANT"
    reference.execute(
        f"INSERT INTO lake.t VALUES (1, {{'v': {value}}}, [{value}, NULL], MAP {{'k': {value}}}), "
        "(2, NULL, NULL, NULL), (3, {'v': NULL}, [], MAP {})"
    )
    query = "SELECT i, s::VARCHAR, l::VARCHAR, m::VARCHAR, variant_typeof(l[1]) FROM lake.t ORDER BY i"
    expected = reference.execute(query).fetchall()
    reference.execute("DETACH lake")
    with dl.connect(uri, alias="lake", engine="duckdb") as session:
        assert session.sql(query).fetchall() == expected
        session.sql("UPDATE t SET i = i + 10")
    _attach(reference, tmp_path)
    assert reference.execute(query).fetchall() == [(row[0] + 10, *row[1:]) for row in expected]


def test_objects_with_a_field_without_a_name_are_written(tmp_path: Path, reference: duckdb.DuckDBPyConnection) -> None:
    # DuckDB's report of the file names its columns without quotes, so that no field has bounds
    uri = f"ducklake:{tmp_path}/x.ducklake"
    with dl.connect(uri, alias="lake", data_path=f"{tmp_path}/data", engine="duckdb") as session:
        session.sql(
            'CREATE TABLE t AS SELECT range AS i, (\'{"": \' || range || \', "x": {"y": "t\' || range || \'"}}\')::JSON::VARIANT AS v '
            "FROM range(30)"
        )
        read = "SELECT i, v::VARCHAR FROM t WHERE v::VARCHAR LIKE '%t17%'"
        rows = session.sql(read).fetchall()
        assert [i for i, _ in rows] == [17]
    reference.execute(f"ATTACH '{uri}' AS lake")
    assert reference.execute(read.replace("FROM t", "FROM lake.t")).fetchall() == rows
